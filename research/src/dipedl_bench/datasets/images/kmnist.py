"""K-MNIST: cursive Japanese characters in MNIST's format."""

from __future__ import annotations

import os
from functools import partial

from dipedl.datasets.dataset import Dataset

from ..files import idx
from ..parts import image_set

__all__ = ["load_kmnist"]

_NAMES = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")


def load_kmnist(*, split: str = "test", data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """K-MNIST (Kuzushiji-MNIST): ten cursive Japanese characters, 28 x 28 pixels, white on black.

    Files are downloaded and kept as those of `load_mnist`.

    Parameters
    ----------
    split : {"test", "train", "all"}, default="test"
        What to load: 10,000 test images (3.0 MB), 60,000 training images (18 MB), or both. The
        other part has no rows.
    data_dir : path-like or None, default=None
        Directory that holds ``kmnist/`` with the official file names.

    Returns
    -------
    Dataset
        Inputs (n, 784), float32 in [0, 1] (pixel / 255); labels (n,), int64;
        ``image_shape=(28, 28)``; no ood sets.

    Raises
    ------
    ValueError
        If `split` is unknown, or a file does not have the published checksum.
    FileNotFoundError, PermissionError, ConnectionError, ImportError
        As `load_mnist`.

    References
    ----------
    Clanuwat et al., "Deep Learning for Classical Japanese Literature", 2018, arXiv:1812.01718.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_kmnist
    >>> load_kmnist()  # doctest: +SKIP
    Dataset('kmnist', X_train=(0, 784), X_test=(10000, 784), n_classes=10, ood={})
    """
    read = partial(idx.load_part, "kmnist", data_dir=data_dir)
    return image_set("kmnist", read, _NAMES, idx.IMAGE_SHAPE, split=split)
