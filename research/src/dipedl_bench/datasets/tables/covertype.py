"""Covertype: kinds of forest from map data, one kind left out."""

from __future__ import annotations

import os

import numpy as np

from dipedl.datasets.dataset import Dataset
from dipedl.datasets.left_out import leave_class_out

from ..files.fetch import fetch
from ..files.sources import PROVENANCE

__all__ = ["load_covertype"]

_NAMES = tuple(
    "Spruce/Fir,Lodgepole Pine,Ponderosa Pine,Cottonwood/Willow,Aspen,Douglas-fir,Krummholz".split(
        ","
    )
)


def load_covertype(
    *,
    left_out: int = 4,
    test_size: float = 0.2,
    random_state: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
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

    if left_out not in range(1, len(_NAMES) + 1):
        raise ValueError(
            f"left_out must be the number of a kind of forest, 1 to {len(_NAMES)}, "
            f"got {left_out!r}; 4 is Cottonwood/Willow"
        )
    with np.load(fetch("tabular/covtype_15k.npz", data_dir), allow_pickle=False) as content:
        data = Bunch(data=content["X"], target=content["y"], target_names=_NAMES)
    return leave_class_out(
        data,
        _NAMES[left_out - 1],
        name="covertype",
        test_size=test_size,
        random_state=random_state,
        provenance=(PROVENANCE["covertype"],),
    )
