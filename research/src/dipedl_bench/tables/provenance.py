"""Origin of rows: machines, versions, commits, times; and which rows are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..results.receipt import machine_of
from ..results.rows import trained_parts_of
from ..spec.suite import load_suite
from .table import BenchTable, keep_latest

#: When our default last changed its probabilities, in UTC: since then the prior is 1/2 for each
#: class. Those of `DIPModule` in between, which got another score on that day, are made again.
DEFAULT_CHANGED = "2026-11-28T09:45"
#: What it is called in sentences; pages link it to when and how.
CHANGED = "last changed its probabilities"
_MODULES = ("DIPModuleMethod", "PolarDIPModuleMethod")
#: Estimators that fit a temperature and a caution budget unless they are told otherwise.
_LIKE_DEFAULT = ("DIPClassifier", *_MODULES)


def machines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return processors and GPUs that made the rows."""
    names = set()
    for row in rows:
        parts = trained_parts_of(row)
        gpus = {part["gpu"] for part in parts if "gpu" in part}
        moved = {", resumed on ".join(part["machines"]) for part in parts if "machines" in part}
        names.add(" and ".join([*sorted(gpus), *(sorted(moved) or [machine_of(row)])]))
    return "; ".join(sorted(names))


def describe_missing(table: BenchTable) -> str:
    """Return methods, and default seeds, that have no rows yet, as a sentence; "" if none."""
    suite = load_suite(table.suite)
    setting = suite.profile(table.profile)
    there = {line.name: set(line.seeds) for line in table.lines}
    left: dict[str, list[str]] = {}
    for name in suite.method_names(table.profile):
        entry = {**suite.methods[name], **setting.methods.get(name, {})}
        of_method = entry.get("seeds") or setting.seeds or suite.seeds
        seeds = ", ".join(str(seed) for seed in of_method if seed not in there.get(name, set()))
        left.setdefault(seeds, []).append(str(entry["title"]))
    parts = [f"{', '.join(titles)} (seeds {seeds})" for seeds, titles in left.items() if seeds]
    return f"Not yet run: {'; '.join(parts)}." if parts else ""


def older_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
    """Return methods and seeds of rows of ours made before the default changed its probabilities.

    Settings with the published calibrator ("passthrough") did not change.
    """
    older: dict[str, tuple[int, ...]] = {}
    for row in keep_latest(rows):
        config = row["config"]
        default = config.get("estimator") in _LIKE_DEFAULT
        default &= config.get("arguments", {}).get("calibrator") is None
        if default and row["time"] < DEFAULT_CHANGED:
            older[row["method"]] = (*older.get(row["method"], ()), row["seed"])
    return older


def describe_older(table: BenchTable, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return which lines have rows older than today's default, as a sentence; "" if none."""
    titles, by_seeds = {line.name: line.title for line in table.lines}, dict[str, list[str]]()
    older = older_rows(rows)
    for method, seeds in older.items():
        by_seeds.setdefault(", ".join(map(str, seeds)), []).append(titles[method])
    if not by_seeds:
        return ""
    parts = [f"{', '.join(of)} (seeds {seeds})" for seeds, of in by_seeds.items()]
    modules = any(
        row["method"] in older and row["config"].get("estimator") in _MODULES for row in rows
    )
    ranks = ", but of `DIPModule`, which ranks by another score now" if modules else ""
    return (
        f"Made before the default {CHANGED}, and not yet run again: {'; '.join(parts)}. Labels and "
        f"AUROC are as today{ranks}; Brier scores, prices, NLL and ECE are not."
    )


def receipts(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return what the numbers depend on: everything that occurs in the rows, once."""
    # rows of several data sets say nothing of their parts but the name
    parts = [part for row in rows for part in trained_parts_of(row) if isinstance(part, Mapping)]
    times = [row["time"] for row in rows]
    return {
        "Versions": sorted({f"{name} {v}" for row in rows for name, v in row["versions"].items()}),
        "Machine": sorted({machine_of(row) for row in rows}),
        "Commit": sorted({str(of["commit"]) for of in (*rows, *parts) if of.get("commit")}),
        "From, to": [min(times), max(times)],
    }
