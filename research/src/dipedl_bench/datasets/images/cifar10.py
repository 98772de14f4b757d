"""CIFAR-10: small photographs of animals and vehicles."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets.dataset import Dataset, unit_pixels

from ..files import cifar
from ..files.fetch import DataDir, fetch
from ..parts import Loader, chosen, image_set
from .cifar100 import load_cifar100
from .gtsrb import load_gtsrb
from .svhn import load_svhn

__all__ = ["load_cifar10"]

_OOD: dict[str, Loader] = {"cifar100": load_cifar100, "svhn": load_svhn, "gtsrb": load_gtsrb}
_BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def load_cifar10(
    *, ood: Iterable[str] = ("cifar100",), data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """CIFAR-10, 50,000 + 10,000 colour photographs of ten classes, 32 x 32 pixels.

    The archive is downloaded once (170 MB) and unpacked in the user's cache directory, or in
    ``DIPEDL_CACHE``; with `data_dir`, or the environment variable ``DIPEDL_DATA``, nothing is
    downloaded. The published pickles are read by an unpickler that allows only arrays and numbers.

    Parameters
    ----------
    ood : iterable of {"cifar100", "svhn", "gtsrb"}, default=("cifar100",)
        Sets to attach: CIFAR-100's 10,000 test images, near to CIFAR-10 (another archive of
        169 MB); SVHN's 26,032 test images, house numbers far from it (64 MB), the paper's choice;
        12,630 traffic signs, without a download (see `load_gtsrb`); a stand-in where SVHN is
        missing, not comparable with it. ``()`` needs CIFAR-10's own files only.
    data_dir : path-like or None, default=None
        Directory that holds ``cifar10/data_batch_1`` to ``data_batch_5`` and
        ``cifar10/test_batch``, the files in the official archive, and the folders of the ood sets.

    Returns
    -------
    Dataset
        Inputs (n, 3072), float32 in [0, 1] (pixel / 255), the red channel first, then green, then
        blue, each row by row; labels (n,), int64; ``image_shape=(3, 32, 32)``. It takes 740 MB.

    Raises
    ------
    ValueError
        If `ood` names an unknown set, or a file does not have the published checksum.
    FileNotFoundError, PermissionError, ConnectionError, ImportError
        As `load_mnist`.

    References
    ----------
    Krizhevsky, "Learning multiple layers of features from tiny images", University of Toronto,
    2009.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_cifar10
    >>> load_cifar10(ood=())  # doctest: +SKIP
    Dataset('cifar10', X_train=(50000, 3072), X_test=(10000, 3072), n_classes=10, ood={})
    """
    read = partial(_part, data_dir=data_dir)
    return image_set("cifar10", read, _NAMES, cifar.IMAGE_SHAPE, ood=chosen(ood, _OOD, data_dir))


def _part(part: str, data_dir: DataDir) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    paths = [fetch(f"cifar10/{name}", data_dir) for name in _BATCHES[part]]
    batches = [cifar.read_batch(path, b"labels", len(_NAMES)) for path in paths]
    images, labels = zip(*batches, strict=True)
    return unit_pixels(np.concatenate(images)), np.concatenate(labels)
