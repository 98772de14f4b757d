"""Methods that predict a single class: as published, and in a healthy configuration beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..spec.captions import captions_of
from .formatting import stable
from .table import Line, bench_table

if TYPE_CHECKING:
    from pandas import DataFrame

#: A class is lost where a classifier finds less than this share of its rows.
LOST = 0.1
#: What a reader looks at: whether OOD rows are ranked at all.
_RANKED = "auroc/stars"


@dataclass(frozen=True)
class CollapseLine:
    """A method as published and healthy: lines of two tables; None where there are no rows.

    `cause` says what is weak in its settings as published, `cure` what the healthy configuration
    does otherwise.
    """

    published: Line | None
    healthy: Line | None
    cause: str = ""
    cure: str = ""

    @property
    def line(self) -> Line:
        """The line of the method, as published where there is one."""
        line = self.published or self.healthy
        assert line is not None
        return line

    @property
    def loses_class(self) -> bool:
        """Return whether it loses a class in any seed as published."""
        return self.published is not None and lost(self.published) > 0


def one_class(line: Line) -> int:
    """Return seeds in which it says one class only: all rows of it are found, none of others."""
    return sum(max(r) == 1 and sum(r) == 1 for r in _recalls(line))


def lost(line: Line) -> int:
    """Return seeds in which it finds less than a tenth of some class."""
    return sum(min(r) < LOST for r in _recalls(line))


def _recalls(line: Line) -> list[tuple[float, ...]]:
    """Recall of each class, by seed."""
    names = [name for name in line.cells if name.startswith("recall_") and "/" not in name]
    return list(zip(*(line.cells[name].values for name in names), strict=True))


def collapse_lines(
    published: Sequence[Mapping[str, Any]], healthy: Sequence[Mapping[str, Any]]
) -> list[CollapseLine]:
    """Return one line for each method of the paper that either set of rows holds.

    Rows of one profile each, on the same spectra: with features, networks and schedules as
    published, and healthy ones. Either may be empty. Variants of a method are left out.
    """
    broken, sound = _by_method(published), _by_method(healthy)
    reasons = captions_of((*published, *healthy)[0]["suite"]).collapse if broken | sound else {}
    return [
        CollapseLine(
            broken.get(method),
            sound.get(method),
            **reasons[method].model_dump() if method in reasons else {},
        )
        for method in sound | broken
    ]


def _by_method(rows: Sequence[Mapping[str, Any]]) -> dict[str, Line]:
    """Return of each method of the paper its first line; variants of it come after that."""
    lines: dict[str, Line] = {}
    for line in bench_table(rows).lines if rows else ():
        if line.paper and "recall_0" in line.cells:
            lines.setdefault(line.paper, line)
    return lines


def collapse_summary(lines: Iterable[CollapseLine]) -> str:
    """Say how many methods lose a class as published, and healthy; "" with nothing to say."""
    broken = [line for line in lines if line.published is not None]
    if not broken:
        return ""
    named = [line.line.title for line in broken if line.loses_class]
    sound = [line.healthy for line in lines if line.healthy is not None]
    still = sum(lost(line) > 0 for line in sound)
    titles = f" ({', '.join(named)})" if named else ""
    return (
        f"As published, {len(named)} of {len(broken)} methods lose a class in some seed{titles}; "
        f"in the healthy configuration {still} of {len(sound)}."
    )


def collapse_frame(lines: Iterable[CollapseLine], classes: Sequence[str]) -> DataFrame:
    """Return the table as text: as published, then healthy, in one cell."""
    from pandas import DataFrame

    def side(line: Line | None) -> dict[str, str]:
        if line is None:
            return dict.fromkeys(heads, "–")
        cells = {head: line.cells.get(name) for head, name in heads.items()}
        texts = {head: stable(cell) if cell else "–" for head, cell in cells.items()}
        only = f"{one_class(line)} of {len(line.cells['accuracy'].values)}"
        return texts | {"seeds that say one class only": only}

    heads = {"accuracy": "accuracy"}
    heads |= {f"recall of {name}": f"recall_{i}" for i, name in enumerate(classes)}
    heads |= {"seeds that say one class only": "", "AUROC, stars": _RANKED}
    rows = []
    for line in lines:
        ours, theirs = side(line.published), side(line.healthy)
        rows.append({"method": line.line.title} | {h: f"{ours[h]} → {theirs[h]}" for h in heads})
    return DataFrame(rows, columns=["method", *heads])
