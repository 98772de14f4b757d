"""UCI Segment: seven outdoor surfaces, the sky left out."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets.dataset import Dataset, stratified

from ..files.fetch import fetch
from ..files.sources import PROVENANCE

__all__ = ["load_segment"]

_N_INPUTS = 18
_N_CLASSES = 6


def load_segment(
    *, test_size: float = 0.2, random_state: int = 0, data_dir: str | os.PathLike[str] | None = None
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
    X, y = _rows(fetch("tabular/segment_id.csv", data_dir))
    sky, _ = _rows(fetch("tabular/segment_ood_sky.csv", data_dir))
    train, test = stratified(X, y, test_size, random_state)
    return Dataset(
        "segment",
        *train,
        *test,
        ood={"sky": sky},
        target_names=tuple("012345"),
        provenance=(PROVENANCE["segment"],),
    )


def _rows(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Inputs and labels of one file: a number, the inputs and the label in each line.

    The first line numbers the columns; the last three hold the numbers of rows, inputs and classes.
    """
    with open(path, newline="", encoding="ascii") as stream:
        lines = [line[1:] for line in csv.reader(stream)][1:]
    content, counts = lines[:-3], [float(line[0]) for line in lines[-3:]]
    if counts != [len(content), _N_INPUTS, _N_CLASSES]:
        raise ValueError(
            f"{str(path)!r} must end with its numbers of rows, inputs and classes, "
            f"{[len(content), _N_INPUTS, _N_CLASSES]}, got {counts}; replace it by another copy"
        )
    table = np.array(content, dtype=np.float64)
    return np.ascontiguousarray(table[:, :_N_INPUTS]), table[:, _N_INPUTS].astype(np.int64)
