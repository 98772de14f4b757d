"""Tables of OpenML with text and gaps, which come with the tests of scikit-learn.

Every method of a suite is given the same numbers: a column of text becomes a column of 0 and 1 for
each level; gaps in a column of numbers are filled with its median, and a further column of 0 and 1
says where they were.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_GAP = "?"


@dataclass(frozen=True)
class Source:
    """Number of a data set at OpenML, the column of its labels, and columns that are left out."""

    number: int
    target: str
    without: tuple[str, ...] = ()


#: Titanic without columns that name a person, and without what was known only after the wreck.
SOURCES = {
    "penguins": Source(42585, "species"),
    "titanic": Source(
        40945, "pclass", ("name", "ticket", "cabin", "boat", "body", "home.dest", "survived")
    ),
}


def load_openml(name: str) -> Bunch:
    """Inputs (n, d), labels (n,) and names of the classes, in their alphabetical order."""
    from sklearn.utils import Bunch

    source = SOURCES[name]
    columns = _columns(source.number)
    names, target = np.unique(columns.pop(source.target), return_inverse=True)
    kept = [values for column, values in columns.items() if column not in source.without]
    return Bunch(
        data=np.column_stack([column for values in kept for column in _encoded(values)]),
        target=target,
        target_names=tuple(map(str, names)),
    )


def _columns(number: int) -> dict[str, tuple[str, ...]]:
    """Columns of text as the file has them, by name in lower case."""
    folder = files("sklearn.datasets.tests.data.openml") / f"id_{number}"
    (file,) = (file for file in folder.iterdir() if file.name.endswith(".arff.gz"))
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data")
    attributes = (line for line in lines[:start] if line.lower().startswith("@attribute"))
    heads = [line.split()[1].strip("'") for line in attributes]
    rows = csv.reader(lines[start + 1 :], escapechar="\\", skipinitialspace=True)
    return dict(zip(heads, zip(*filter(None, rows), strict=True), strict=True))


def _encoded(values: Sequence[str]) -> Iterator[np.ndarray]:
    """A column as numbers, see the head of this file."""
    known = np.array([value != _GAP for value in values])
    try:
        numbers = np.array([value if value != _GAP else "nan" for value in values], dtype=float)
    except ValueError:
        for level in sorted(set(values) - {_GAP}):
            yield np.array([value == level for value in values], dtype=float)
        return
    yield np.where(known, numbers, np.nanmedian(numbers))
    if not known.all():
        yield (~known).astype(float)
