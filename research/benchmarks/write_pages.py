"""Write the pages of measurements from their templates and the receipts: every number has one home.

    python benchmarks/write_pages.py

A template is Markdown with expressions of Jinja; `receipt(NAME)` is results/NAME.json.
"""

import json
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from harness import ROOT, receipt, where
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dipedl_bench.running.verify import ACROSS, EXACT
from dipedl_bench.writing import write_file

#: Pages by template.
PAGES = {
    "measurements.md": ROOT / "docs" / "measurements.md",
    "protocol.md": ROOT / "docs" / "protocol.md",
    "how-good.md": ROOT.parent / "docs" / "how-good.md",
}


def page(template: str) -> str:
    """Return the text of a page as the receipts say it."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"f": format, "natural": natural}
    environment.tests["startswith"] = str.startswith
    environment.globals |= {"receipt": receipt, "where": where, "exact": EXACT}
    environment.globals["mean"] = mean
    environment.globals |= {"tolerances": tolerances(), "verified": verified()}
    return environment.get_template(template).render()


@cache
def rows(suite: str) -> list[dict[str, Any]]:
    """Published rows of the profile of a suite that runs on two CPU cores."""
    profile = "scarce" if suite == "spectra" else "cpu"
    file = ROOT / "results" / "bench" / suite / profile / "rows.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def mean(
    suite: str, method: str, metric: str, classifiers: list[str] | None = None
) -> dict[str, float]:
    """Mean and number of the values of a metric; ``auroc/*`` takes every OOD set of each row."""
    values = [
        value
        for row in rows(suite)
        if row["method"] == method and (classifiers is None or row["classifier"] in classifiers)
        for name, value in row["metrics"].items()
        if fnmatch(name, metric) and value is not None
    ]
    return {"n": len(values), "mean": sum(values) / max(1, len(values))}


def natural(names: Iterable[str]) -> list[str]:
    """Return names sorted by their words and numbers."""

    def key(name: str) -> list[tuple[int, str]]:
        parts = (part.replace(",", "") for part in re.findall(r"\d[\d,]*|\D+", name))
        return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]

    return sorted(names, key=key)


def tolerances() -> list[tuple[float, list[str]]]:
    """Names of metrics by the tolerance of `dipedl-bench verify`, the strictest first."""
    found: dict[float, list[str]] = {}
    for name, tolerance in ACROSS.items():
        found.setdefault(tolerance, []).append(name)
    return sorted(found.items())


def verified() -> Iterator[dict[str, Any]]:
    """Of each receipt of `dipedl-bench verify`: how many metrics agree, and how far some moved."""
    for path in sorted((ROOT / "results").glob("verify_*.json")):
        rows = json.loads(path.read_text())
        metrics = [(name, of) for row in rows for name, of in row["metrics"].items()]
        moved = [(name, abs(of["again"] - of["published"])) for name, of in metrics]
        yield {
            "name": path.stem.removeprefix("verify_").replace("_same_cpu", ", same_cpu"),
            "rows": len(rows),
            "then": "; ".join(sorted({row["then"].partition(", threads")[0] for row in rows})),
            "now": "; ".join(sorted({row["now"].partition(", threads")[0] for row in rows})),
            "metrics": len(metrics),
            "agree": sum(of["agrees"] for _, of in metrics),
            "equal": sum(by <= EXACT for _, by in moved),
            "accuracy": max(by for name, by in moved if name == "accuracy"),
            **{
                kind: max((by for name, by in moved if name.startswith(f"{kind}/")), default=0.0)
                for kind in ("auroc", "brier_ood")
            },
        }


if __name__ == "__main__":
    for name, file in PAGES.items():
        write_file(file, page(name))
