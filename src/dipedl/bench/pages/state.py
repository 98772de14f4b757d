"""What a page says of its rows: where they were made, with which seeds, and what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..spec.suite import load_suite
from ..tables.table import BenchTable

__all__ = ["machines_and_seeds", "not_yet_run"]


def machines_and_seeds(table: BenchTable, rows: Sequence[dict[str, Any]]) -> str:
    """Machines, and methods by their seeds, as two paragraphs."""
    machines = sorted({_machine(row) for row in rows})
    seeds: dict[tuple[int, ...], list[str]] = {}
    for line in table.lines:
        seeds.setdefault(line.seeds, []).append(line.title)
    told = [f"{', '.join(names)}: {', '.join(map(str, of))}" for of, names in seeds.items()]
    return f"On {'; '.join(machines)}.\n\nSeeds by method: {'; '.join(told)}.\n"


def not_yet_run(table: BenchTable) -> str:
    """Methods, and default seeds, that there are no rows of yet, as a paragraph; "" if none."""
    suite = load_suite(table.suite)
    setting = suite.profile(table.profile)
    found = {line.name: set(line.seeds) for line in table.lines}
    left = []
    for name in suite.method_names(table.profile):
        entry = {**suite.methods[name], **setting.methods.get(name, {})}
        wanted = entry.get("seeds") or setting.seeds or suite.seeds
        seeds = [str(seed) for seed in wanted if seed not in found.get(name, set())]
        if seeds:
            left.append(f"{entry['title']} ({', '.join(seeds)})")
    return f"\nNot yet run, with seeds: {'; '.join(left)}.\n" if left else ""


def _machine(row: dict[str, Any]) -> str:
    gpus = {part["gpu"] for part in (row["own"], *row["parts"].values()) if "gpu" in part}
    return " and ".join([*sorted(gpus), str(row["device"])])
