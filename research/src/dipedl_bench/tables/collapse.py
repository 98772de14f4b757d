"""Methods that predict a single class: as published, and in a healthy configuration beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..spec.captions import captions_of
from .cells import Cell
from .formatting import stable
from .table import Line, bench_table

__all__ = ["LOST", "CollapseLine", "Regime", "collapse_grid", "collapse_lines", "collapse_summary"]

#: A class is lost where a classifier finds less than this share of its rows.
LOST = 0.1
#: What a reader looks at: whether OOD rows are ranked at all.
_RANKED = "auroc/stars"


@dataclass(frozen=True)
class Regime:
    """Results of a method in one configuration, over seeds.

    `recalls` has one cell per class; `auroc` is that on stars, where they were scored.
    """

    accuracy: Cell
    recalls: tuple[Cell, ...]
    auroc: Cell | None

    @property
    def n_seeds(self) -> int:
        """Number of seeds."""
        return len(self.accuracy.values)

    @property
    def one_class(self) -> int:
        """Seeds in which it says one class only: all rows of it are found, and none of others."""
        return sum(max(r) == 1 and sum(r) == 1 for r in self._by_seed())

    @property
    def lost(self) -> int:
        """Seeds in which it finds less than a tenth of some class."""
        return sum(min(r) < LOST for r in self._by_seed())

    def _by_seed(self) -> list[tuple[float, ...]]:
        return list(zip(*(cell.values for cell in self.recalls), strict=True))


@dataclass(frozen=True)
class CollapseLine:
    """A method as published and healthy; None where there are no rows.

    `method` is the paper's name of it, `name` and `title` those of the rows; `cause` says what is
    weak in its settings as published, `cure` what the healthy configuration does otherwise.
    """

    method: str
    name: str
    title: str
    published: Regime | None
    healthy: Regime | None
    cause: str = ""
    cure: str = ""

    @property
    def collapsed(self) -> bool:
        """Return whether it loses a class in any seed as published."""
        return self.published is not None and self.published.lost > 0


def collapse_lines(
    published: Iterable[Mapping[str, Any]], healthy: Iterable[Mapping[str, Any]]
) -> tuple[CollapseLine, ...]:
    """One line for each method of the paper that either set of rows holds.

    Rows of one profile each, on the same spectra: with features, networks and schedules as
    published, and healthy ones. Either may be empty.
    """
    published, healthy = list(published), list(healthy)
    broken, sound = _lines(published), _lines(healthy)
    suites = [row["suite"] for row in (*published, *healthy)]
    reasons = captions_of(suites[0]).collapse if suites else {}
    return tuple(
        CollapseLine(
            method,
            line.name,
            line.title,
            _regime(broken.get(method)),
            _regime(sound.get(method)),
            **reasons[method].model_dump() if method in reasons else {},
        )
        for method, line in (sound | broken).items()
    )


def collapse_summary(lines: Sequence[CollapseLine]) -> str:
    """How many methods lose a class as published, and how many healthy; "" with nothing to say."""
    broken = [line for line in lines if line.published is not None]
    if not broken:
        return ""
    lost = [line.title for line in broken if line.collapsed]
    sound = [line.healthy for line in lines if line.healthy is not None]
    still = sum(regime.lost > 0 for regime in sound)
    named = f" ({', '.join(lost)})" if lost else ""
    return (
        f"As published, {len(lost)} of {len(broken)} methods lose a class in some seed{named}; in "
        f"the healthy configuration {still} of {len(sound)}."
    )


def collapse_grid(
    lines: Sequence[CollapseLine], classes: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the table as text: as published, then healthy, in one cell."""
    heads = ["method", "accuracy", *(f"recall of {name}" for name in classes)]
    heads += ["seeds that say one class only", "AUROC, stars"]
    return heads, [[line.title, *_cells(line, len(classes))] for line in lines]


def _lines(rows: Iterable[Mapping[str, Any]]) -> dict[str, Line]:
    """Of each method of the paper its first line; variants of it come after that."""
    kept = list(rows)
    found: dict[str, Line] = {}
    for line in bench_table(kept).lines if kept else ():
        if line.paper and "recall_0" in line.cells:
            found.setdefault(line.paper, line)
    return found


def _regime(line: Line | None) -> Regime | None:
    if line is None:
        return None
    cells = line.cells
    n_classes = sum(name.startswith("recall_") and "/" not in name for name in cells)
    recalls = tuple(cells[f"recall_{i}"] for i in range(n_classes))
    return Regime(cells["accuracy"], recalls, cells.get(_RANKED))


def _cells(line: CollapseLine, n_classes: int) -> list[str]:
    sides = (_side(regime, n_classes) for regime in (line.published, line.healthy))
    return [" → ".join(pair) for pair in zip(*sides, strict=True)]


def _side(regime: Regime | None, n_classes: int) -> list[str]:
    if regime is None:
        return ["–"] * (n_classes + 3)
    cells = [regime.accuracy, *regime.recalls[:n_classes]]
    ranked = "–" if regime.auroc is None else stable(regime.auroc)
    only = f"{regime.one_class} of {regime.n_seeds}"
    return [*map(stable, cells), only, ranked]
