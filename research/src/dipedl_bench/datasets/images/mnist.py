"""MNIST: handwritten digits, with K-MNIST and Omniglot as out-of-distribution sets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

from dipedl.datasets.dataset import Dataset

from ..files import idx
from ..parts import Loader, chosen, image_set
from .kmnist import load_kmnist
from .omniglot import load_omniglot

__all__ = ["load_mnist"]

_OOD: dict[str, Loader] = {
    "kmnist": load_kmnist,
    "omniglot": load_omniglot,
    "omniglot_inverted": partial(load_omniglot, inverted=True),
}


def load_mnist(
    *, ood: Iterable[str] = ("kmnist", "omniglot"), data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """MNIST, 60,000 + 10,000 handwritten digits, with out-of-distribution sets of the same shape.

    Files are downloaded once (11.6 MB, K-MNIST test 3.0 MB, Omniglot 6 MB) and kept in the user's
    cache directory, or in ``DIPEDL_CACHE``; with `data_dir`, or the environment variable
    ``DIPEDL_DATA``, nothing is downloaded.

    Parameters
    ----------
    ood : iterable of {"kmnist", "omniglot", "omniglot_inverted"}, default=("kmnist", "omniglot")
        Sets to attach: 10,000 K-MNIST test images; the 13,180 drawings of Omniglot's evaluation
        split as published (dark on white), or inverted (white on black, like the digits). ``()``
        needs MNIST's own files only.
    data_dir : path-like or None, default=None
        Directory that holds ``mnist/``, ``kmnist/`` and ``omniglot/`` with the official file names.

    Returns
    -------
    Dataset
        Inputs (n, 784), float32 in [0, 1] (pixel / 255); labels (n,), int64;
        ``image_shape=(28, 28)``.

    Raises
    ------
    ValueError
        If `ood` names an unknown set, or a file does not have the published checksum.
    FileNotFoundError
        If `data_dir` or ``DIPEDL_DATA`` is given and a file is missing there.
    PermissionError, ConnectionError
        If the cache cannot be written to; if no mirror can be reached.
    ImportError
        If pooch (for a download) or Pillow (for Omniglot) is missing:
        ``pip install 'dipedl[data]'``.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition",
    Proc. IEEE 86, 1998.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_mnist
    >>> load_mnist(ood=["kmnist"])  # doctest: +SKIP
    Dataset('mnist', X_train=(60000, 784), X_test=(10000, 784), n_classes=10, ood={'kmnist': 10000})
    """
    read = partial(idx.load_part, "mnist", data_dir=data_dir)
    return image_set(
        "mnist", read, tuple("0123456789"), idx.IMAGE_SHAPE, ood=chosen(ood, _OOD, data_dir)
    )
