"""Write the pages of measurements from their templates and the receipts: every number has one home.

    python benchmarks/write_pages.py

A template is Markdown with expressions of Jinja; `receipt(NAME)` is results/NAME.json.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from math import pi, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import RESULTS, ROOT, receipt, where
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pandas import DataFrame

from dipedl.writing import write_file
from dipedl_bench import load_suite, read_rows
from dipedl_bench.results.files import read_file
from dipedl_bench.results.paper import published_rows
from dipedl_bench.running.verify import ACROSS, EXACT
from dipedl_bench.studies.toys import load_toys
from dipedl_bench.tables.provenance import receipts
from dipedl_bench.tables.table import keep_latest, keep_shared_seeds

DOCS, FOR_USERS = ROOT / "docs", ROOT.parent / "docs"
#: Pages by template.
PAGES = {
    "measurements.md": DOCS / "measurements.md",
    "protocol.md": DOCS / "protocol.md",
    "how-good.md": FOR_USERS / "how-good.md",
    "comparison.md": DOCS / "comparison.md",
    "users-comparison.md": FOR_USERS / "comparison.md",
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
#: Classifiers of the suite `defaults`, by kind.
CLASSIFIERS = {
    "forests": ["forest", "forest-pixels"],
    "boosted trees": ["boosting"],
    "logistic regression": ["logistic", "logistic-pixels"],
    "networks": ["mlp", "lenet", "lenet-fashion", "pool-cnn"],
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
    tolerances = {t: [name for name, of in ACROSS.items() if of == t] for t in ACROSS.values()}
    environment.globals |= {
        "receipt": receipt,
        "where": where,
        "mean": mean,
        "names": NAMES,
        "facts": FACTS,
        "shares_of": shares_of,
        "average": average,
        "error": error,
        "published_rows": published_rows,
        "max": max,
        "chance": chance,
        "classifiers": CLASSIFIERS,
        "looked_at": looked_at("defaults"),
        "calls": calls,
        "label": label,
        "verdict": verdict,
        "exact": EXACT,
        "verified": verify_rows(),
        "tolerances": sorted(tolerances.items()),
    }
    return environment.get_template(template).render(values)


def page_of_toys(root: Path) -> str:
    """Return the page of the paper's toy experiments, from the folder of published results."""
    toys = load_toys(root)
    off = max(abs(row["mean"] / row["theory"] - 1) for row in toys.vacuity)
    largest = max(toys.vacuity, key=lambda row: row["max"] / row["theory"])
    of = receipts([*toys.vacuity, *toys.moons])
    return page("toys.md", toys=toys, off=off, largest=largest, receipts=of)


@cache
def looked_at(suite: str) -> dict[str, list[str]]:
    """Return names of data sets by when their OOD sets were looked at."""
    found: dict[str, list[str]] = {}
    for name, data in load_suite(suite).datasets.items():
        found.setdefault(data.looked_at, []).append(name)
    return found


@cache
def metrics_of(suite: str, seed: int | None = None) -> DataFrame:
    """Return metrics of the profile that users' pages show, by method, classifier and data set.

    Of one seed, or of those that all methods have.
    """
    profile = {"spectra": "scarce", "mnist": "gpu", "cifar10": "gpu"}.get(suite, "cpu")
    rows = read_rows(RESULTS / "bench" / suite / profile)
    latest = keep_latest(rows["row"])
    kept = keep_shared_seeds(latest) if seed is None else [r for r in latest if r["seed"] == seed]
    shared = {id(row) for row in kept}
    rows = rows[rows["row"].map(id).isin(shared)]
    rows = rows.assign(dataset=rows.get("dataset", ""))
    return rows.set_index(["method", "classifier", "dataset"]).filter(regex=r"^metrics\.")


def mean(
    suite: str,
    method: str,
    metric: str,
    classifiers: list[str] | None = None,
    datasets: list[str] | None = None,
    seed: int | None = None,
) -> dict[str, float]:
    """Return mean and number of the values of a metric; ``auroc/*`` takes every OOD set."""
    found = metrics_of(suite, seed).filter(regex=f"^metrics.{metric.replace('*', '.*')}$")
    found = found[found.index.isin([method], level="method")]
    if classifiers is not None:
        found = found[found.index.isin(classifiers, level="classifier")]
    if datasets is not None:
        found = found[found.index.isin(datasets, level="dataset")]
    values = found.melt()["value"].dropna()
    return {"n": len(values), "mean": float(values.mean()) if len(values) else 0.0}


def shares_of(row: dict[str, Any]) -> list[dict[str, float]]:
    """Return the shares of the classes of all data sets, of the receipt of unknown_classes."""
    return [of for data in row["values"].values() for of in data.values()]


def average(classes: list[dict[str, float]], name: str) -> float:
    """Return the mean of a share over classes."""
    return fmean(of[name] for of in classes)


def error(classes: list[dict[str, float]], name: str, over: Callable[..., float] = fmean) -> float:
    """Return the absolute difference of estimate and fresh rows, its mean `over` classes."""
    return over([abs(of["dipedl"] - of[name]) for of in classes])


def chance(classes: list[dict[str, float]]) -> float:
    """Return the mean absolute difference that two samples of one share have by chance."""
    found = []
    for of in classes:
        share = (of["dipedl"] + of["same half"]) / 2
        variance = share * (1 - share) * (1 / of["rows"] + 1 / of["fresh rows"])
        found.append(sqrt(2 / pi * variance))  # the mean of |x| of a normal variable
    return fmean(found)


def natural(names: Iterable[str]) -> list[str]:
    """Return names sorted by their words and numbers."""

    def key(name: str) -> list[tuple[int, str]]:
        parts = (part.replace(",", "") for part in re.findall(r"\d[\d,]*|\D+", name))
        return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]

    return sorted(names, key=key)


def verify_metrics(files: Iterable[Path]) -> DataFrame:
    """Return metrics of receipts of `dipedl-bench verify`: "kind", "agrees", moved "by"."""
    rows = [of for path in files for row in read_file(path) for of in row["metrics"].items()]
    kinds = [name.partition("/")[0] + "/" * ("/" in name) for name, _ in rows]
    found = DataFrame([of for _, of in rows], columns=["published", "again", "agrees"])
    return found.assign(kind=kinds, by=(found["again"] - found["published"]).abs())


def verify_rows() -> Iterator[dict[str, Any]]:
    """Of each receipt of `dipedl-bench verify`: how many metrics agree, and how far some moved."""
    for path in sorted(RESULTS.glob("verify_*.json")):
        rows, of = read_file(path), verify_metrics([path])
        columns = {}
        for at in ("then", "now"):
            machines = {row[at].partition(", threads: ")[0] for row in rows}
            threads = {n for row in rows for n in re.findall(r"threads: (\w+)", row[at])}
            columns[at] = "; ".join(sorted(machines))
            columns[f"threads_{at}"] = ", ".join(sorted(threads)) or "unknown"
        largest = of.groupby("kind")["by"].max()
        yield {
            "name": path.stem.removeprefix("verify_").replace("_same_", ", same_"),
            **{"rows": len(rows), "metrics": len(of), **columns},
            **{"agree": int(of["agrees"].sum()), "equal": int((of["by"] <= EXACT).sum())},
            **{
                kind.removesuffix("/"): largest.get(kind, 0.0)
                for kind in ("accuracy", "auroc/", "brier_ood/")
            },
        }


def calls(shown: dict[str, dict[str, str]]) -> Iterator[str]:
    """Of the lines behind "yes" and "part" the last step that is more than a name.

    Of an import it is what that brings; searches of sources are left out.
    """
    for fact in (shown[about] for about in FACTS["questions"] if about in shown):
        if fact["answer"] != "no" and not re.search(r"holds\(|mentions\(", fact["shows"]):
            *_, last = (step for step in ast.parse(fact["shows"]).body if not is_name(step))
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
