"""Data sets of tables: Covertype, UCI Segment, and tables of OpenML with text and gaps."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dipedl.datasets import Dataset, leave_class_out, split_stratified

from .files import fetch, read_arrays

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from sklearn.utils import Bunch

__all__ = ["load_covertype", "load_segment"]

_FORESTS = (
    "Spruce/Fir",
    "Lodgepole Pine",
    "Ponderosa Pine",
    "Cottonwood/Willow",
    "Aspen",
    "Douglas-fir",
    "Krummholz",
)


def load_covertype(*, left_out: int = 4, random_state: int = 0) -> Dataset:
    """Covertype, 15,120 patches of forest, 2,160 of each kind; one kind is the ood set.

    No official mirror has this selection of rows: the folder named by ``DIPEDL_DATA`` must hold
    ``tabular/covtype_15k.npz``.

    Parameters
    ----------
    left_out : int, default=4
        Number of the kind that is left out, as published: 1 Spruce/Fir, 2 Lodgepole Pine,
        3 Ponderosa Pine, 4 Cottonwood/Willow, 5 Aspen, 6 Douglas-fir, 7 Krummholz.
    random_state : int, default=0
        Seed of the split; the same seed gives the same split. A fifth of the other rows,
        stratified, are test rows.

    Returns
    -------
    Dataset
        Inputs (n, 54), float32, in metres, degrees and grey levels, then 44 columns of 0 and 1 for
        wilderness area and soil; labels (n,), int64; one ood set, named after the kind left out.

    Raises
    ------
    ValueError
        If `left_out` is no kind, or the file does not have the known checksum.
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
    if left_out not in range(1, len(_FORESTS) + 1):
        raise ValueError(
            f"left_out must be the number of a kind of forest, 1 to {len(_FORESTS)}, "
            f"got {left_out!r}; 4 is Cottonwood/Willow"
        )
    from sklearn.utils import Bunch

    arrays = read_arrays("tabular/covtype_15k.npz")
    data = Bunch(data=arrays["X"], target=arrays["y"], target_names=_FORESTS)
    options = {"name": "covertype", "test_size": 0.2, "random_state": random_state}
    made: Dataset = leave_class_out(data, _FORESTS[left_out - 1], **options)
    return made


def load_segment(*, random_state: int = 0) -> Dataset:
    """UCI Segment as PostNet used it: 1,980 patches of six surfaces; 330 of sky are the ood set.

    Each input was scaled to [0, 1] by its smallest and largest value over all rows of the six
    classes, test rows included, as published. About a tenth of the rows are copies of
    others; copies are in the same part. No official mirror has the files in this form: the folder
    named by ``DIPEDL_DATA`` must hold ``tabular/segment_id.csv`` and
    ``tabular/segment_ood_sky.csv``.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the split; the same seed gives the same split. A fifth of the distinct rows of each
        class are test rows.

    Returns
    -------
    Dataset
        Inputs (n, 18), float64; labels (n,), int64; `target_names` "0" to "5", as the file numbers
        the classes; ``ood["sky"]`` (330, 18), which leaves [0, 1].

    Raises
    ------
    ValueError
        If a file does not have the known checksum.
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
    X, y = _read_segment("id")
    train, test = split_stratified(X, y, 0.2, random_state)
    return Dataset(
        "segment",
        *train,
        *test,
        ood={"sky": _read_segment("ood_sky")[0]},
        target_names=tuple("012345"),
    )


def _read_segment(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a file.

    Its first line and column number columns and rows; the last three lines hold the numbers of
    rows, inputs and classes.
    """
    path = fetch(f"tabular/segment_{name}.csv")
    values = np.genfromtxt(path, delimiter=",", skip_header=1, skip_footer=3)
    return np.ascontiguousarray(values[:, 1:-1]), values[:, -1].astype(np.int64)


class Source(NamedTuple):
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
    table = _read_openml(source.number)
    names, target = np.unique(table.pop(source.target), return_inverse=True)
    inputs = table.drop(columns=list(source.without))
    columns = [column for _, values in inputs.items() for column in _encode(values)]
    return Bunch(data=np.column_stack(columns), target=target, target_names=tuple(map(str, names)))


def _read_openml(number: int) -> DataFrame:
    """Columns of text as the file has them, gaps as NaN."""
    from pandas import read_csv

    folder = resources.files("sklearn.datasets.tests.data.openml") / f"id_{number}"
    (file,) = (file for file in folder.iterdir() if file.name.endswith(".arff.gz"))
    text = gzip.decompress(file.read_bytes()).decode()
    head, rows = re.split(r"^@data\s*$", text, flags=re.MULTILINE | re.IGNORECASE)
    lines = (line for line in head.splitlines() if line.lower().startswith("@attribute"))
    return read_csv(
        io.StringIO(rows),
        names=[line.split()[1].strip("'") for line in lines],
        dtype=str,
        na_values="?",
        keep_default_na=False,
        escapechar="\\",
        skipinitialspace=True,
    )


def _encode(values: Series) -> Iterator[np.ndarray]:
    """Yield the columns of numbers that stand for a column of text, see `load_openml`."""
    from pandas import to_numeric

    try:
        numbers = to_numeric(values)
    except ValueError:
        for level in sorted(values.dropna().unique()):
            yield (values == level).to_numpy(float)
        return
    yield numbers.fillna(numbers.median()).to_numpy(float)
    if numbers.isna().any():
        yield numbers.isna().to_numpy(float)
