"""What a page is made of: the published rows of a suite, and the tables made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dipedl_bench.results.files import read_file
from dipedl_bench.results.parts import Parts
from dipedl_bench.results.store import Store
from dipedl_bench.studies.sweeps import parts_file, parts_of
from dipedl_bench.tables.table import BenchTable, bench_table
from dipedl_bench.tables.trivial import stored_trivial_lines

__all__ = ["Source", "largest_changes"]

_RECEIPTS = Path(__file__).parents[2] / "results"


def largest_changes(suite: str) -> dict[str, str]:
    """By how much rows that were trained again moved at most, by kind of metric, from receipts."""
    found: dict[str, float] = {}
    for path in _RECEIPTS.glob(f"verify_{suite.replace('-', '_')}*.json"):
        for name, of in (item for row in read_file(path) for item in row["metrics"].items()):
            kind = name.partition("/")[0]
            found[kind] = max(found.get(kind, 0.0), abs(of["again"] - of["published"]))
    return {kind: f"{by:.4f}".lstrip("0") for kind, by in found.items()}


@dataclass(frozen=True)
class Source:
    """The published rows of a suite below `root`; of `profiles` those that were run."""

    suite: str
    root: Path
    profiles: tuple[str, ...]

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by profile, of profiles that have any."""
        found = {profile: self._store(profile).rows() for profile in self.profiles}
        return {profile: rows for profile, rows in found.items() if rows}

    @cached_property
    def tables(self) -> dict[str, BenchTable]:
        """Tables by profile, with the detectors without a model where they were published."""
        return {profile: self._table(profile) for profile in self.rows}

    def kept(self, profile: str, file: str) -> Mapping[str, Any]:
        """What a file beside the rows holds; {} without one."""
        path = self._store(profile).folder / file
        found: Mapping[str, Any] = read_file(path) if path.exists() else {}
        return found

    def parts(self, profile: str) -> dict[int, Parts]:
        """Published predictions of DIP-EDL by seed."""
        store = self._store(profile)
        rows = [row for row in self.rows[profile] if parts_file(store, row).exists()]
        return {row["seed"]: parts_of(store, row) for row in rows}

    def _table(self, profile: str) -> BenchTable:
        made, store = bench_table(self.rows[profile]), self._store(profile)
        if not (store.folder / "trivial.json").exists():
            return made
        return replace(made, trivial=stored_trivial_lines(store))

    def _store(self, profile: str) -> Store:
        return Store(self.root, self.suite, profile)
