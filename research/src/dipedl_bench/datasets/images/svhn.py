"""SVHN: photographed house numbers, far from CIFAR-10."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets.dataset import Dataset, unit_pixels

from ..files.cifar import IMAGE_SHAPE, bad
from ..files.fetch import DataDir, fetch
from ..parts import image_set

__all__ = ["load_svhn"]

_SHAPE = (32, 32, 3)


def load_svhn(*, split: str = "test", data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Street View House Numbers: colour photographs of digits, 32 x 32 pixels, cropped.

    A file is downloaded and kept as those of `load_mnist` (the test images: 64 MB, the training
    images: 182 MB).

    Parameters
    ----------
    split : {"test", "train", "all"}, default="test"
        What to load: 26,032 test images, 73,257 training images, or both. The other part has no
        rows.
    data_dir : path-like or None, default=None
        Directory that holds ``svhn/test_32x32.mat`` or ``svhn/train_32x32.mat``, as published.

    Returns
    -------
    Dataset
        Inputs (n, 3072), float32 in [0, 1] (pixel / 255), channel by channel; labels (n,), int64,
        the digit in the middle (the file's label 10 is the digit 0); ``image_shape=(3, 32, 32)``;
        no ood sets.

    Raises
    ------
    ValueError
        If `split` is unknown, or a file does not have the published checksum or form.
    FileNotFoundError, PermissionError, ConnectionError, ImportError
        As `load_mnist`.

    References
    ----------
    Netzer, Wang, Coates, Bissacco, Wu, Ng, "Reading digits in natural images with unsupervised
    feature learning", NIPS workshop on deep learning and unsupervised feature learning, 2011.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_svhn
    >>> load_svhn()  # doctest: +SKIP
    Dataset('svhn', X_train=(0, 3072), X_test=(26032, 3072), n_classes=10, ood={})
    """
    read = partial(_part, data_dir=data_dir)
    return image_set("svhn", read, tuple("0123456789"), IMAGE_SHAPE, split=split)


def _part(part: str, data_dir: DataDir) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Inputs and labels of one file: X (32, 32, 3, n) in bytes, y (n, 1) from 1 to 10."""
    path = fetch(f"svhn/{part}_32x32.mat", data_dir)
    images, labels = _variables(path)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != _SHAPE:
        raise bad(path, "bytes X of shape (32, 32, 3, n)", f"{images.dtype} {images.shape}")
    n = images.shape[3]
    if labels.shape != (n, 1):
        raise bad(path, f"labels y of shape ({n}, 1)", labels.shape)
    wrong = labels[~np.isin(labels, range(1, 11))]
    if wrong.size:
        raise bad(path, "labels 1 to 10 (10 is the digit 0)", wrong[:3].tolist())
    # rows, columns, channels, images -> images, channels, rows, columns
    return unit_pixels(images.transpose(3, 2, 0, 1)), labels[:, 0].astype(np.int64) % 10


def _variables(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    # imported here: no other loader needs it
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=["X", "y"])
    except Exception as error:  # a damaged file may raise anything
        raise bad(path, "variables of MATLAB 5", f"{type(error).__name__}: {error}") from error
    missing = {"X", "y"} - set(content)
    if missing:
        found = sorted(name for name in content if not name.startswith("__"))
        raise bad(path, "the variables X and y", found)
    return np.asarray(content["X"]), np.asarray(content["y"])
