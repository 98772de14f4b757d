"""Origin of rows: machines, versions, commits, times; and which rows are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..results.receipt import machine_of
from ..results.rows import trained_parts_of
from ..spec.suite import load_suite
from .table import BenchTable


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
