"""German traffic signs at 32 x 32 pixels: far from CIFAR-10."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets.dataset import Dataset, unit_pixels
from dipedl.plugins import optional

from ..files.fetch import fetch
from ..parts import image_set

__all__ = ["load_gtsrb"]

_SIDE = 32
_COLUMNS = 113
_N_CLASSES = 43


def load_gtsrb(*, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """GTSRB (third-party 32x32 resize): 12,630 photographs of German traffic signs.

    They are the benchmark's test images, resized by a third party. **No official mirror has them in
    this form, so they cannot be downloaded**: the two files must lie in `data_dir` or in the
    directory named by ``DIPEDL_DATA``. Report results under the name above; they are not those of
    SVHN, nor of GTSRB as published.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Directory that holds ``gtsrb/gtsrb_test_32x32.webp``, one lossless sheet of 113 columns, and
        ``gtsrb/labels.npy``.

    Returns
    -------
    Dataset
        Inputs (12630, 3072) in `X_test`, float32 in [0, 1] (pixel / 255), channel by channel;
        `y_test` (12630,), int64, one of 43 kinds of sign; `X_train` has no rows;
        ``image_shape=(3, 32, 32)``; no ood sets.

    Raises
    ------
    ValueError
        If a file does not have the known checksum, or sheet and labels do not fit together.
    FileNotFoundError
        If a file is missing.
    ImportError
        If Pillow is missing: ``pip install 'dipedl[data]'``.

    References
    ----------
    Stallkamp, Schlipsing, Salmen and Igel, "Man vs. computer: benchmarking machine learning
    algorithms for traffic sign recognition", Neural Networks 32, 2012.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_gtsrb
    >>> load_gtsrb()  # doctest: +SKIP
    Dataset('gtsrb', X_train=(0, 3072), X_test=(12630, 3072), n_classes=43, ood={})
    """
    sheet = fetch("gtsrb/gtsrb_test_32x32.webp", data_dir)
    y = np.load(fetch("gtsrb/labels.npy", data_dir), allow_pickle=False).astype(np.int64)
    images = _images(sheet, len(y))
    names = tuple(map(str, range(_N_CLASSES)))
    return image_set(
        "gtsrb", lambda part: (unit_pixels(images), y), names, images.shape[1:], split="test"
    )


def _images(path: Path, n: int) -> NDArray[np.uint8]:
    """Cut the first n images (n, 3, 32, 32) out of the sheet, row by row."""
    with optional("PIL.Image", "load_gtsrb").open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    rows, rest = divmod(pixels.shape[0], _SIDE)
    if rest or pixels.shape[1] != _COLUMNS * _SIDE or rows * _COLUMNS < n:
        raise ValueError(
            f"{str(path)!r} must be a sheet of {_COLUMNS} columns of {_SIDE} x {_SIDE} pixels with "
            f"{n} images or more, got {pixels.shape[1]} x {pixels.shape[0]} pixels; "
            "take sheet and labels from the same place"
        )
    grid = pixels.reshape(rows, _SIDE, _COLUMNS, _SIDE, 3).transpose(0, 2, 4, 1, 3)
    return grid.reshape(rows * _COLUMNS, 3, _SIDE, _SIDE)[:n]
