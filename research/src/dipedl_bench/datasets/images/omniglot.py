"""Omniglot: hand-drawn characters of many alphabets."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets.dataset import Dataset, no_rows, unit_pixels
from dipedl.plugins import optional

from ..files import idx
from ..files.fetch import DataDir, fetch
from ..files.sources import PROVENANCE

__all__ = ["load_omniglot"]

# of the 13,180 resized images, (n, 28, 28) bytes in order of their paths
_SHA256 = "d46a9e1f7847fd090c2b8bcc39997fa78d210aeedfa5b2a1fbdbe675c957d9e9"


def load_omniglot(
    *, inverted: bool = False, data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """Omniglot's evaluation split: 13,180 drawings of 659 characters, 28 x 28 pixels.

    The 105 x 105 drawings are resized as is usual beside MNIST (bilinear, antialiased) and come in
    order of their paths. They are unpacked once per process. The archive is
    downloaded once (6 MB) and kept in the user's cache directory, or in ``DIPEDL_CACHE``; with
    `data_dir`, or ``DIPEDL_DATA``, nothing is downloaded.

    Parameters
    ----------
    inverted : bool, default=False
        False gives the drawings as published, dark strokes on white, which almost any density
        separates from MNIST by the background alone; True gives ``1 - X``, white strokes on black,
        the harder and fairer test.
    data_dir : path-like or None, default=None
        Directory that holds ``omniglot/images_evaluation.zip``.

    Returns
    -------
    Dataset
        Inputs (13180, 784) in `X_test`, float32 in [0, 1]; `y_test` (13180,), int64, the character
        drawn; `X_train` has no rows; ``image_shape=(28, 28)``; no ood sets.

    Raises
    ------
    ValueError
        If the archive does not have a known checksum, or its images do not come out as recorded.
    FileNotFoundError, PermissionError, ConnectionError, ImportError
        As `load_mnist`.

    References
    ----------
    Lake, Salakhutdinov and Tenenbaum, "Human-level concept learning through probabilistic program
    induction", Science 350, 2015.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_omniglot
    >>> load_omniglot(inverted=True)  # doctest: +SKIP
    Dataset('omniglot_inverted', X_train=(0, 784), X_test=(13180, 784), n_classes=659, ood={})
    """
    images, names = _drawings(data_dir)
    X = unit_pixels(images)
    characters = [name.rpartition("/")[0].partition("/")[2] for name in names]
    target_names, y = np.unique(characters, return_inverse=True)
    return Dataset(
        "omniglot_inverted" if inverted else "omniglot",
        *no_rows(X.shape[1]),
        1 - X if inverted else X,
        y.astype(np.int64),
        target_names=tuple(str(name) for name in target_names),
        image_shape=idx.IMAGE_SHAPE,
        provenance=(PROVENANCE["omniglot"],),
    )


def _drawings(data_dir: DataDir) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    path = fetch("omniglot/images_evaluation.zip", data_dir)
    return _unpacked(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=1)  # time of change is part of the key; 10 MB
def _unpacked(path: Path, mtime_ns: int) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Images (13180, 28, 28) in bytes, as published, and their paths, in order of the paths."""
    with zipfile.ZipFile(path) as archive:
        names = tuple(sorted(name for name in archive.namelist() if name.endswith(".png")))
        images = np.stack([_resized(archive.read(name)) for name in names])
    found = hashlib.sha256(images.tobytes()).hexdigest()
    if found != _SHA256:
        raise ValueError(
            f"{str(path)!r} must give 13,180 images with SHA-256 {_SHA256}, "
            f"got {len(names)} with {found}; "
            "download the archive again, and install Pillow from the package index"
        )
    images.flags.writeable = False
    return images, names


def _resized(png: bytes) -> NDArray[np.uint8]:
    Image = optional("PIL.Image", "load_omniglot")
    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("L").resize(idx.IMAGE_SHAPE, Image.Resampling.BILINEAR)
    return np.asarray(small)
