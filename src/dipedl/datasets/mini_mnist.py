"""The bundled mini set: real images, no download."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset, Provenance, unit_pixels

__all__ = ["load_mini_mnist"]

FILE = Path(__file__).with_name("_mini") / "mnist_mini.npz"
_DRAWN = "drawn by research/scripts/make_mini.py"
# of its arrays, by fingerprint
SHA256 = "ae0e68c7d18b91d6079af80ff2eea0cefcf8661d62c33ef191d9ca49a4f9d41e"


def load_mini_mnist() -> Dataset:
    """Real images inside the package: 2,000 MNIST digits, and ood images of K-MNIST and Omniglot.

    1,500 digits to train and 500 to test: a balanced draw from the official sets by a fixed seed
    (``research/scripts/make_mini.py``), for quick trials offline. Numbers are not comparable with
    full MNIST.

    Returns
    -------
    Dataset
        Inputs (n, 784), float32 in [0, 1] (pixel / 255); labels (n,), int64;
        ``image_shape=(28, 28)``. The ood sets, 200 images each: "kmnist" (K-MNIST test),
        "omniglot" (evaluation split as published: dark on white) and "omniglot_inverted" (the same
        drawings, white on black).

    Raises
    ------
    ValueError
        If the bundled file is damaged.

    Notes
    -----
    The images are under their publishers' licences (CC BY-SA and MIT), not under this package's:
    see `provenance`, and ``_mini/LICENSES.md`` beside this file.

    Examples
    --------
    >>> from dipedl.datasets import load_mini_mnist
    >>> data = load_mini_mnist()
    >>> data.X_train.shape, data.X_test.shape
    ((1500, 784), (500, 784))
    >>> sorted(data.ood)
    ['kmnist', 'omniglot', 'omniglot_inverted']
    """
    arrays = read_arrays()
    omniglot = unit_pixels(arrays["omniglot"])
    return Dataset(
        "mini_mnist",
        unit_pixels(arrays["X_train"]),
        arrays["y_train"].astype(np.int64),
        unit_pixels(arrays["X_test"]),
        arrays["y_test"].astype(np.int64),
        ood={
            "kmnist": unit_pixels(arrays["kmnist"]),
            "omniglot": omniglot,
            "omniglot_inverted": 1 - omniglot,
        },
        target_names=tuple("0123456789"),
        image_shape=(28, 28),
        provenance=(
            Provenance(
                "MNIST (Y. LeCun, C. Cortes, C. J. C. Burges)",
                urls=("https://ossci-datasets.s3.amazonaws.com/mnist/",),
                licence="CC BY-SA 3.0, as commonly stated",
                notes=f"1,500 training and 200 test images {_DRAWN}",
            ),
            Provenance(
                '"KMNIST Dataset" (created by CODH), adapted from "Kuzushiji Dataset" '
                "(created by NIJL and others), doi:10.20676/00000341",
                urls=("https://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
                licence="CC BY-SA 4.0",
                notes=f"200 test images {_DRAWN}",
            ),
            Provenance(
                "Omniglot, evaluation split (B. Lake)",
                urls=("https://raw.githubusercontent.com/brendenlake/omniglot/master/python/",),
                licence="MIT, Copyright (c) 2015 Brenden Lake",
                notes=f"200 drawings {_DRAWN}; resized from 105 x 105 to 28 x 28 pixels "
                "(bilinear, antialiased)",
            ),
        ),
    )


def read_arrays() -> dict[str, NDArray[Any]]:
    """Images (n, 28, 28) and labels (n,) in bytes."""
    try:
        with np.load(FILE, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        actual = fingerprint(arrays)
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        actual = str(error)
    if actual != SHA256:
        raise ValueError(
            f"the bundled file {str(FILE)!r} must have arrays with SHA-256 {SHA256}, "
            f"got {actual}; install dipedl again"
        )
    return arrays


def fingerprint(arrays: dict[str, NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and contents; independent of the compression."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
