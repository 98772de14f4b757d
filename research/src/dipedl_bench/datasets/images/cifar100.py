"""CIFAR-100: small photographs of a hundred classes, none of them in CIFAR-10."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets.dataset import Dataset, unit_pixels

from ..files import cifar
from ..files.fetch import DataDir, fetch
from ..files.sources import PROVENANCE
from ..parts import published_parts

__all__ = ["load_cifar100"]


def load_cifar100(
    *, split: str = "test", data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """CIFAR-100: colour photographs of a hundred classes, 32 x 32 pixels.

    The archive (169 MB) is downloaded, kept and read as that of `load_cifar10`.

    Parameters
    ----------
    split : {"test", "train", "all"}, default="test"
        What to load: 10,000 test images, 50,000 training images, or both. The other part has no
        rows.
    data_dir : path-like or None, default=None
        Directory that holds ``cifar100/meta`` and ``cifar100/test`` or ``cifar100/train``, the
        files in the official archive.

    Returns
    -------
    Dataset
        Inputs (n, 3072), float32 in [0, 1] (pixel / 255), channel by channel; labels (n,), int64,
        the fine ones; ``image_shape=(3, 32, 32)``; no ood sets.

    Raises
    ------
    ValueError
        If `split` is unknown, or a file does not have the published checksum.
    FileNotFoundError, PermissionError, ConnectionError, ImportError
        As `load_mnist`.

    References
    ----------
    Krizhevsky, "Learning multiple layers of features from tiny images", University of Toronto,
    2009.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_cifar100
    >>> load_cifar100()  # doctest: +SKIP
    Dataset('cifar100', X_train=(0, 3072), X_test=(10000, 3072), n_classes=100, ood={})
    """
    train, test = published_parts(split, lambda part: _part(part, data_dir), cifar.N_PIXELS)
    return Dataset(
        "cifar100",
        *train,
        *test,
        target_names=tuple(name.decode("ascii") for name in _names(data_dir)),
        image_shape=cifar.IMAGE_SHAPE,
        provenance=(PROVENANCE["cifar100"],),
    )


def _names(data_dir: DataDir) -> list[bytes]:
    names: list[bytes] = cifar.read_pickle(fetch("cifar100/meta", data_dir))[b"fine_label_names"]
    return names


def _part(part: str, data_dir: DataDir) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    path = fetch(f"cifar100/{part}", data_dir)
    images, labels = cifar.read_batch(path, b"fine_labels", len(_names(data_dir)))
    return unit_pixels(images), labels
