"""Data sets of tables: Covertype, UCI Segment, and tables of OpenML with text and gaps."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets import Dataset, leave_class_out, split_stratified

from .files import PROVENANCE, DataDir, fetch

if TYPE_CHECKING:
    from sklearn.utils import Bunch

__all__ = ["load_covertype", "load_segment"]

_FORESTS = tuple(
    "Spruce/Fir,Lodgepole Pine,Ponderosa Pine,Cottonwood/Willow,Aspen,Douglas-fir,Krummholz".split(
        ","
    )
)


def load_covertype(
    *,
    left_out: int = 4,
    test_size: float = 0.2,
    random_state: int = 0,
    data_dir: DataDir = None,
) -> Dataset:
    """Covertype, 15,120 patches of forest, 2,160 of each kind; one kind is the ood set.

    Parameters
    ----------
    left_out : int, default=4
        Number of the kind that is left out, as published: 1 Spruce/Fir, 2 Lodgepole Pine,
        3 Ponderosa Pine, 4 Cottonwood/Willow, 5 Aspen, 6 Douglas-fir, 7 Krummholz.
    test_size : float, default=0.2
        Share of the other rows that goes into the test set, in (0, 1); stratified.
    random_state : int, default=0
        Seed of the split; the same seed gives the same split.
    data_dir : path-like or None, default=None
        Directory that holds ``tabular/covtype_15k.npz``. No official mirror has this selection of
        rows, so it cannot be downloaded: without `data_dir` the directory named by ``DIPEDL_DATA``
        must hold it.

    Returns
    -------
    Dataset
        Inputs (n, 54), float32, in metres, degrees and grey levels, then 44 columns of 0 and 1 for
        wilderness area and soil; labels (n,), int64; one ood set, named after the kind left out.

    Raises
    ------
    ValueError
        If `left_out` is no kind, `test_size` is not in (0, 1), or the file does not have the known
        checksum.
    FileNotFoundError
        If the file is missing.

    References
    ----------
    Blackard and Dean, "Comparative accuracies of artificial neural networks and discriminant
    analysis in predicting forest cover types from cartographic variables", Computers and
    Electronics in Agriculture 24, 1999.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_covertype
    >>> load_covertype(left_out=7).ood["Krummholz"].shape  # doctest: +SKIP
    (2160, 54)
    """
    from sklearn.utils import Bunch

    if left_out not in range(1, len(_FORESTS) + 1):
        raise ValueError(
            f"left_out must be the number of a kind of forest, 1 to {len(_FORESTS)}, "
            f"got {left_out!r}; 4 is Cottonwood/Willow"
        )
    with np.load(fetch("tabular/covtype_15k.npz", data_dir), allow_pickle=False) as content:
        data = Bunch(data=content["X"], target=content["y"], target_names=_FORESTS)
    made: Dataset = leave_class_out(
        data,
        _FORESTS[left_out - 1],
        name="covertype",
        test_size=test_size,
        random_state=random_state,
        provenance=(PROVENANCE["covertype"],),
    )
    return made


_SEGMENT_INPUTS = 18


def load_segment(
    *, test_size: float = 0.2, random_state: int = 0, data_dir: DataDir = None
) -> Dataset:
    """UCI Segment as PostNet used it: 1,980 patches of six surfaces; 330 of sky are the ood set.

    Each input was scaled to [0, 1] by its smallest and largest value over all rows of the six
    classes, test rows included, as published. About a tenth of the rows are copies of
    others; copies are in the same part.

    Parameters
    ----------
    test_size : float, default=0.2
        Share of the distinct rows that goes into the test set, in (0, 1); each class gives its
        share.
    random_state : int, default=0
        Seed of the split; the same seed gives the same split.
    data_dir : path-like or None, default=None
        Directory that holds ``tabular/segment_id.csv`` and ``tabular/segment_ood_sky.csv``. No
        official mirror has them in this form, so they cannot be downloaded: without `data_dir` the
        directory named by ``DIPEDL_DATA`` must hold them.

    Returns
    -------
    Dataset
        Inputs (n, 18), float64; labels (n,), int64; `target_names` "0" to "5", as the file numbers
        the classes; ``ood["sky"]`` (330, 18), which leaves [0, 1].

    Raises
    ------
    ValueError
        If `test_size` is not in (0, 1), or a file does not have the known checksum.
    FileNotFoundError
        If a file is missing.

    References
    ----------
    Charpentier, Zügner and Günnemann, "Posterior network: uncertainty estimation without OOD
    samples via density-based pseudo-counts", NeurIPS 2020.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_segment
    >>> load_segment().ood["sky"].shape  # doctest: +SKIP
    (330, 18)
    """
    X, y = _read_segment(fetch("tabular/segment_id.csv", data_dir))
    sky, _ = _read_segment(fetch("tabular/segment_ood_sky.csv", data_dir))
    train, test = split_stratified(X, y, test_size, random_state)
    return Dataset(
        "segment",
        *train,
        *test,
        ood={"sky": sky},
        target_names=tuple("012345"),
        provenance=(PROVENANCE["segment"],),
    )


def _read_segment(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Inputs and labels of one file: a number, the inputs and the label in each line.

    The first line numbers the columns; the last three hold the numbers of rows, inputs and classes.
    """
    with open(path, newline="", encoding="ascii") as stream:
        table = np.array([line[1:] for line in csv.reader(stream)][1:-3], dtype=np.float64)
    inputs, labels = table[:, :_SEGMENT_INPUTS], table[:, _SEGMENT_INPUTS]
    return np.ascontiguousarray(inputs), labels.astype(np.int64)


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
    """Load a table that comes with the tests of scikit-learn: inputs, labels, names of the classes.

    Every method of a suite gets the same numbers: a column of text becomes a column of 0 and 1 for
    each level; gaps in a column of numbers are filled with its median, and a further column of 0
    and 1 says where they were.
    """
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
    folder = resources.files("sklearn.datasets.tests.data.openml") / f"id_{number}"
    (file,) = (file for file in folder.iterdir() if file.name.endswith(".arff.gz"))
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data")
    attributes = (line for line in lines[:start] if line.lower().startswith("@attribute"))
    heads = [line.split()[1].strip("'") for line in attributes]
    rows = csv.reader(lines[start + 1 :], escapechar="\\", skipinitialspace=True)
    return dict(zip(heads, zip(*filter(None, rows), strict=True), strict=True))


def _encoded(values: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield the columns of numbers that stand for a column of text, see `load_openml`."""
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
