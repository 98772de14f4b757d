"""Write the pages of measurements from their templates and the receipts: every number has one home.

    python benchmarks/write_pages.py

A template is Markdown with expressions of Jinja; `receipt(NAME)` is results/NAME.json.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from harness import ROOT, receipt, where
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dipedl.writing import write_file
from dipedl_bench.running.verify import ACROSS, EXACT
from dipedl_bench.studies.toys import load_toys
from dipedl_bench.tables.provenance import receipts

#: Pages by template.
PAGES = {
    "measurements.md": ROOT / "docs" / "measurements.md",
    "protocol.md": ROOT / "docs" / "protocol.md",
    "how-good.md": ROOT.parent / "docs" / "how-good.md",
    "comparison.md": ROOT / "docs" / "comparison.md",
    "users-comparison.md": ROOT.parent / "docs" / "comparison.md",
}
#: Libraries of the comparison, as the page calls them; a snippet is of the library of its name.
NAMES = {
    "dipedl": "dipedl",
    "probly": "probly",
    "torch_uncertainty": "torch-uncertainty",
    "pytorch_ood": "pytorch-ood",
    "pyod": "PyOD",
    "mapie": "MAPIE",
    "uncertainty_toolbox": "uncertainty-toolbox",
}
SNIPPETS = NAMES | {"plain": "classifier alone", "dipedl_network": "dipedl"}
FACTS = tomllib.loads((ROOT / "benchmarks" / "compare" / "facts.toml").read_text(encoding="utf-8"))


def page(template: str, **values: Any) -> str:
    """Return the text of a page as the receipts, and further `values`, say it."""
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
    environment.globals |= {"mean": mean, "tolerances": tolerances(), "verified": verified()}
    environment.globals |= {"names": NAMES, "facts": FACTS, "calls": calls}
    environment.globals |= {"label": label, "verdict": verdict}
    return environment.get_template(template).render(values)


def page_of_toys(root: Path) -> str:
    """Return the page of the paper's toy experiments, from the folder of published results."""
    toys = load_toys(root)
    off = max(abs(row["mean"] / row["theory"] - 1) for row in toys.vacuity)
    largest = max(toys.vacuity, key=lambda row: row["max"] / row["theory"])
    of = receipts([*toys.vacuity, *toys.moons])
    return page("toys.md", toys=toys, off=off, largest=largest, receipts=of)


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


def calls(shown: dict[str, dict[str, str]]) -> Iterator[str]:
    """Of the lines behind "yes" and "part" the last step that is more than a name.

    Of an import it is what that brings; searches of sources are left out.
    """
    for fact in (shown[about] for about in FACTS["questions"] if about in shown):
        if fact["answer"] != "no" and not re.search(r"holds\(|mentions\(", fact["shows"]):
            steps = [step for step in ast.parse(fact["shows"]).body if not is_name(step)]
            last = steps[-1]
            yield last.names[0].name if isinstance(last, ast.ImportFrom) else ast.unparse(last)


def is_name(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Name)


def label(name: str) -> str:
    snippet, _, method = name.partition(": ")
    return f"{SNIPPETS[snippet]}: {method}"


def verdict(found: list[tuple[str, dict[str, Any]]]) -> str:
    """Say who is first, and the place of dipedl, by figures that no library's threshold enters."""
    firsts = []
    for key in ("auroc", "flagged_at_rate"):
        names = [label(name) for name, of in sorted(found, key=lambda pair: -pair[1][key][0])]
        place = next(i for i, name in enumerate(names, 1) if name.startswith("dipedl"))
        firsts.append(names[0] + (f" (dipedl is no. {place} of {len(names)})" if place > 1 else ""))
    by_auroc, by_caught = firsts
    if by_auroc == by_caught:
        return f"First by AUROC and by caught at 5 %: {by_auroc}"
    return f"First by AUROC: {by_auroc}; by caught at 5 %: {by_caught}"


if __name__ == "__main__":
    for name, file in PAGES.items():
        write_file(file, page(name))
