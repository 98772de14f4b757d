"""The cells of the paper's tables of results, each beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..results.paper import Published, published_rows, same_method
from ..results.rows import rows_in
from .table import BenchTable, Estimate, Line, bench_table

__all__ = [
    "NEAREST_FIRST",
    "SUITES",
    "VERDICTS",
    "PaperCell",
    "count_verdicts",
    "paper_cells",
]

#: Suites that have a table of results in the paper.
SUITES = ("mnist", "cifar10", "lamost")
#: Profiles by how closely they follow the paper's settings.
NEAREST_FIRST = ("paper", "gpu", "cpu")
VERDICTS = ("better", "equal", "worse", "no data")


@dataclass(frozen=True)
class PaperCell:
    """A cell of a table of the paper, and ours, of the profile and the seeds that are named.

    `ours` is None, and `profile` is "", where the method or the metric has no published row.
    """

    suite: str
    method: str
    metric: str
    paper: Published
    ours: Estimate | None = None
    profile: str = ""

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        return "no data" if self.ours is None else self.ours.verdict

    @property
    def cause(self) -> str:
        """Reason why ours differs, as the captions of the suite say it."""
        return (self.ours.why if self.ours else None) or "unexplained"


def paper_cells(root: Path) -> list[PaperCell]:
    """Return every cell of the paper's three tables of results beside the published row of ours.

    Ours is the row that bears the paper's name of the method, of the first profile of
    `NEAREST_FIRST` that has one: no number has a part in the choice. `root` is the folder of
    published results.
    """
    result = []
    for suite in SUITES:
        rows = {profile: rows_in(root / suite / profile) for profile in NEAREST_FIRST}
        tables = {profile: bench_table(of) for profile, of in rows.items() if of}
        for method, cells in published_rows(suite).items():
            profile, line = nearest_line(tables, method)
            for metric, paper in cells.items():
                ours = line.cells.get(metric) if line else None
                # rows of other data than the paper's have none of its numbers beside them
                there = (ours, profile) if ours and ours.paper else (None, "")
                result.append(PaperCell(suite, method, metric, paper, *there))
    return result


def nearest_line(tables: Mapping[str, BenchTable], method: str) -> tuple[str, Line | None]:
    """Return the first profile with a row of the paper's name, and that row; else "" and None."""
    for profile, table in tables.items():
        for line in table.lines:
            if same_method(line.name, method):
                return profile, line
    return "", None


def count_verdicts(cells: Sequence[PaperCell]) -> dict[str, int]:
    """Return the number of cells of each verdict."""
    return {verdict: sum(cell.verdict == verdict for cell in cells) for verdict in VERDICTS}
