"""Methods that predict a single class: as published, and in a healthy configuration beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..spec.captions import captions_of
from .formatting import stable
from .table import Line, bench_table

__all__ = [
    "LOST",
    "CollapseLine",
    "collapse_grid",
    "collapse_lines",
    "collapse_summary",
    "lost",
    "one_class",
]

#: A class is lost where a classifier finds less than this share of its rows.
LOST = 0.1
#: What a reader looks at: whether OOD rows are ranked at all.
_RANKED = "auroc/stars"


@dataclass(frozen=True)
class CollapseLine:
    """A method as published and healthy: lines of two tables; None where there are no rows.

    `method` is the paper's name of it, `name` and `title` those of the rows; `cause` says what is
    weak in its settings as published, `cure` what the healthy configuration does otherwise.
    """

    method: str
    name: str
    title: str
    published: Line | None
    healthy: Line | None
    cause: str = ""
    cure: str = ""

    @property
    def collapsed(self) -> bool:
        """Return whether it loses a class in any seed as published."""
        return self.published is not None and lost(self.published) > 0


def one_class(line: Line) -> int:
    """Seeds in which it says one class only: all rows of it are found, and none of others."""
    return sum(max(r) == 1 and sum(r) == 1 for r in _recalls(line))


def lost(line: Line) -> int:
    """Seeds in which it finds less than a tenth of some class."""
    return sum(min(r) < LOST for r in _recalls(line))


def _recalls(line: Line) -> list[tuple[float, ...]]:
    """Recall of each class, by seed."""
    names = [name for name in line.cells if name.startswith("recall_") and "/" not in name]
    cells = (line.cells[f"recall_{i}"] for i in range(len(names)))
    return list(zip(*(cell.values for cell in cells), strict=True))


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
            broken.get(method),
            sound.get(method),
            **reasons[method].model_dump() if method in reasons else {},
        )
        for method, line in (sound | broken).items()
    )


def collapse_summary(lines: Sequence[CollapseLine]) -> str:
    """How many methods lose a class as published, and how many healthy; "" with nothing to say."""
    broken = [line for line in lines if line.published is not None]
    if not broken:
        return ""
    named = [line.title for line in broken if line.collapsed]
    sound = [line.healthy for line in lines if line.healthy is not None]
    still = sum(lost(line) > 0 for line in sound)
    titles = f" ({', '.join(named)})" if named else ""
    return (
        f"As published, {len(named)} of {len(broken)} methods lose a class in some seed{titles}; "
        f"in the healthy configuration {still} of {len(sound)}."
    )


def collapse_grid(
    lines: Sequence[CollapseLine], classes: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the table as text: as published, then healthy, in one cell."""
    heads = ["method", "accuracy", *(f"recall of {name}" for name in classes)]
    heads += ["seeds that say one class only", "AUROC, stars"]
    rows = []
    for line in lines:
        sides = (_side(one, len(classes)) for one in (line.published, line.healthy))
        rows.append([line.title, *map(" → ".join, zip(*sides, strict=True))])
    return heads, rows


def _lines(rows: Sequence[Mapping[str, Any]]) -> dict[str, Line]:
    """Of each method of the paper its first line; variants of it come after that."""
    found: dict[str, Line] = {}
    for line in bench_table(rows).lines if rows else ():
        if line.paper and "recall_0" in line.cells:
            found.setdefault(line.paper, line)
    return found


def _side(line: Line | None, n_classes: int) -> list[str]:
    if line is None:
        return ["–"] * (n_classes + 3)
    names = ["accuracy", *(f"recall_{i}" for i in range(n_classes))]
    ranked = stable(line.cells[_RANKED]) if _RANKED in line.cells else "–"
    only = f"{one_class(line)} of {len(line.cells['accuracy'].values)}"
    return [*(stable(line.cells[name]) for name in names), only, ranked]
