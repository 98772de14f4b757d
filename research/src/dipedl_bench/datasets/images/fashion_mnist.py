"""Fashion-MNIST: articles of clothing in MNIST's format."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

from dipedl.datasets.dataset import Dataset

from ..files import idx
from ..parts import Loader, chosen, image_set
from .kmnist import load_kmnist
from .mnist import load_mnist

__all__ = ["load_fashion_mnist"]

_OOD: dict[str, Loader] = {"mnist": partial(load_mnist, ood=()), "kmnist": load_kmnist}
_NAMES = tuple(
    "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot".split(",")
)


def load_fashion_mnist(
    *, ood: Iterable[str] = ("mnist", "kmnist"), data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """Fashion-MNIST, 60,000 + 10,000 articles of clothing, with ood sets of the same shape.

    Against MNIST it is the classic failure of likelihoods: densities of its pixels give digits,
    which are simpler, a higher density than clothes. Files (31 MB) are downloaded and kept as those
    of `load_mnist`.

    Parameters
    ----------
    ood : iterable of {"mnist", "kmnist"}, default=("mnist", "kmnist")
        Sets to attach: MNIST's or K-MNIST's 10,000 test images. ``()`` needs Fashion-MNIST's own
        files only.
    data_dir : path-like or None, default=None
        Directory that holds ``fashion_mnist/``, ``mnist/`` and ``kmnist/`` with the official file
        names. The files of Debian's package dataset-fashion-mnist, out of
        ``/usr/share/datasets/fashion-mnist``, are accepted too, although compressed again.

    Returns
    -------
    Dataset
        Inputs (n, 784), float32 in [0, 1] (pixel / 255); labels (n,), int64;
        ``image_shape=(28, 28)``.

    Raises
    ------
    ValueError
        If `ood` names an unknown set, or a file does not have a known checksum.
    FileNotFoundError, PermissionError, ConnectionError, ImportError
        As `load_mnist`.

    References
    ----------
    Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine
    learning algorithms", arXiv:1708.07747 (2017).

    Examples
    --------
    >>> from dipedl_bench.datasets import load_fashion_mnist
    >>> load_fashion_mnist(ood="mnist").ood["mnist"].shape  # doctest: +SKIP
    (10000, 784)
    """
    read = partial(idx.load_part, "fashion_mnist", data_dir=data_dir)
    return image_set(
        "fashion_mnist", read, _NAMES, idx.IMAGE_SHAPE, ood=chosen(ood, _OOD, data_dir)
    )
