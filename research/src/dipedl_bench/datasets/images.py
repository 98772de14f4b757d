"""Data sets of images: one loader for all of them, and the readers of their formats.

The table `sources.toml` holds for each its format, the files of its parts, the shape of an image,
the names of its classes and the sets that it may have as OOD.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets import Dataset

from .files import PROVENANCE, TABLES, DataDir, fetch

__all__ = ["load_cifar10", "load_fashion_mnist", "load_images", "load_mnist"]

_PARTS = {"test": ("test",), "train": ("train",), "all": ("train", "test")}


class Images(NamedTuple):
    """Images (n, ...) in bytes, labels (n,), and the names of the classes if a file has them."""

    images: NDArray[np.uint8]
    labels: NDArray[Any]
    names: Sequence[str] = ()


def load_images(
    name: str,
    *,
    split: str = "test",
    ood: Iterable[str] = (),
    inverted: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load a published data set of images, by the name of its table in ``sources.toml``.

    Files are downloaded once and kept in the user's cache directory, or in ``DIPEDL_CACHE``; with
    `data_dir`, or the environment variable ``DIPEDL_DATA``, nothing is downloaded.

    Parameters
    ----------
    name : str
        - "mnist": 60,000 + 10,000 handwritten digits, 28 x 28 pixels, white on black [1]_
        - "kmnist": 60,000 + 10,000 cursive Japanese characters of ten kinds, in MNIST's format [2]_
        - "fashion_mnist": 60,000 + 10,000 articles of clothing, in MNIST's format [3]_; the files
          of Debian's package dataset-fashion-mnist are accepted too
        - "omniglot": the evaluation split, 13,180 drawings of 659 characters [4]_, resized from
          105 x 105 to 28 x 28 as is usual beside MNIST (bilinear, antialiased), in order of their
          paths, as test images; dark strokes on white, or `inverted`
        - "cifar10": 50,000 + 10,000 colour photographs of ten classes, 3 x 32 x 32; 740 MB [5]_
        - "cifar100": the same of a hundred classes, none in CIFAR-10; labels are the fine ones
        - "svhn": cropped colour photographs of house numbers, 73,257 + 26,032, 3 x 32 x 32 [6]_;
          the label is the digit in the middle (the file's label 10 is the digit 0)
        - "gtsrb": 12,630 photographs of traffic signs, 43 kinds, the benchmark's test images [7]_,
          resized to 32 x 32 by a third party. No official mirror has them in this form, so they
          cannot be downloaded. Report results as "GTSRB (third-party 32x32 resize)"; they are not
          those of SVHN, nor of GTSRB as published
    split : {"test", "train", "all"}, default="test"
        Parts to load; the other part has no rows.
    ood : iterable of str, default=()
        Other data sets, of which the test images are attached as OOD sets. "omniglot_inverted" is
        Omniglot in white on black.
    inverted : bool, default=False
        Load ``1 - X``: a negative.
    data_dir : path-like or None, default=None
        Directory that holds the folders of the data sets, with the official file names.

    Returns
    -------
    Dataset
        Inputs (n, d), float32 in [0, 1] (pixel / 255), channel by channel; labels (n,), int64;
        ``image_shape`` (28, 28) or (3, 32, 32).

    Raises
    ------
    ValueError
        If `split` or a name in `ood` is unknown, or a file does not have the published checksum.
    FileNotFoundError
        If `data_dir` or ``DIPEDL_DATA`` is given and a file is missing there.
    PermissionError, ConnectionError
        If the cache cannot be written to; if no mirror can be reached.
    ImportError
        If Pillow (for Omniglot and GTSRB) is missing.

    References
    ----------
    .. [1] LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document
       recognition", Proc. IEEE 86, 1998.
    .. [2] Clanuwat et al., "Deep Learning for Classical Japanese Literature", arXiv:1812.01718.
    .. [3] Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine
       learning algorithms", arXiv:1708.07747.
    .. [4] Lake, Salakhutdinov and Tenenbaum, "Human-level concept learning through probabilistic
       program induction", Science 350, 2015.
    .. [5] Krizhevsky, "Learning multiple layers of features from tiny images", University of
       Toronto, 2009.
    .. [6] Netzer, Wang, Coates, Bissacco, Wu, Ng, "Reading digits in natural images with
       unsupervised feature learning", NIPS workshop on deep learning, 2011.
    .. [7] Stallkamp, Schlipsing, Salmen and Igel, "Man vs. computer: benchmarking machine learning
       algorithms for traffic sign recognition", Neural Networks 32, 2012.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_images
    >>> load_images("mnist", split="all", ood=["kmnist"])  # doctest: +SKIP
    Dataset('mnist', X_train=(60000, 784), X_test=(10000, 784), n_classes=10, ood={'kmnist': 10000})
    """
    known = [other for other, table in TABLES.items() if "format" in table]
    if name not in known:
        raise ValueError(f"name must be one of {sorted(known)}, got {name!r}")
    table = TABLES[name]
    splits = [choice for choice, parts in _PARTS.items() if set(parts) <= set(table["parts"])]
    if split not in splits:
        raise ValueError(f"split must be one of {splits} for {name!r}, got {split!r}")
    others = (ood,) if isinstance(ood, str) else tuple(ood)
    allowed = table.get("ood", ())
    unknown = [other for other in others if other not in allowed]
    if unknown:
        raise ValueError(
            f"ood must be names out of {sorted(allowed)}, got {unknown}; pass () for none"
        )
    shape = tuple(table["shape"])
    nothing = np.empty((0, math.prod(shape)), np.float32), np.empty(0, np.int64)
    parts = {"train": nothing, "test": nothing}
    target_names: tuple[str, ...] = ()
    for part in _PARTS[split]:
        images, labels, names = read_part(name, part, data_dir)
        X = images.reshape(len(images), math.prod(shape)) / np.float32(255)
        parts[part] = (1 - X if inverted else X), labels
        target_names = tuple(names)
    attached = [_out_of_distribution(other, data_dir) for other in others]
    origins = (origin for data in attached for origin in data.provenance)
    return Dataset(
        f"{name}_inverted" if inverted else name,
        *parts["train"],
        *parts["test"],
        ood={other: data.X_test for other, data in zip(others, attached, strict=True)},
        target_names=target_names,
        image_shape=shape,
        provenance=(PROVENANCE[name], *origins),
    )


def _out_of_distribution(name: str, data_dir: DataDir) -> Dataset:
    base = name.removesuffix("_inverted")
    return load_images(base, inverted=base != name, data_dir=data_dir)


def load_mnist(*, ood: Iterable[str] = ("kmnist", "omniglot"), data_dir: DataDir = None) -> Dataset:
    """Load MNIST with OOD sets "kmnist", "omniglot" or "omniglot_inverted", see `load_images`.

    Almost any density separates Omniglot as published, dark on white, from MNIST by the background
    alone; the inverted one is the harder and fairer test.
    """
    return load_images("mnist", split="all", ood=ood, data_dir=data_dir)


def load_fashion_mnist(
    *, ood: Iterable[str] = ("mnist", "kmnist"), data_dir: DataDir = None
) -> Dataset:
    """Load Fashion-MNIST with OOD sets "mnist" or "kmnist", see `load_images`.

    Against MNIST it is the classic failure of likelihoods: densities of its pixels give digits,
    which are simpler, a higher density than clothes.
    """
    return load_images("fashion_mnist", split="all", ood=ood, data_dir=data_dir)


def load_cifar10(*, ood: Iterable[str] = ("cifar100",), data_dir: DataDir = None) -> Dataset:
    """Load CIFAR-10 with OOD sets "cifar100", "svhn" or "gtsrb", see `load_images`.

    CIFAR-100 is near to it; SVHN, the paper's choice, far; GTSRB is a stand-in where SVHN is
    missing, not comparable with it.
    """
    return load_images("cifar10", split="all", ood=ood, data_dir=data_dir)


def read_part(name: str, part: str, data_dir: DataDir = None) -> Images:
    """Read part "train" or "test" of a data set: images in bytes as published, labels, names.

    Files have the published checksum, so that nothing of their content is checked again.
    """
    table = TABLES[name]
    paths = [fetch(file, data_dir) for file in table["parts"][part]]
    content = READERS[table["format"]](paths, table)
    images = content.images.reshape(-1, *table["shape"])
    return Images(images, content.labels.astype(np.int64), content.names or table["classes"])


# Readers of formats: images in any shape, labels of any type


def _read_idx_pair(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    """Read IDX, the format of MNIST."""
    return Images(read_idx(paths[0]), read_idx(paths[1]))


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of unsigned bytes of any rank from an IDX file, gzip-compressed or not.

    The format: two zero bytes, the type of number (0x08: unsigned byte), the rank r, r sizes as
    big-endian 32-bit integers, then the numbers in C order.
    """
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    rank = content[3]
    shape = struct.unpack(f">{rank}I", content[4 : 4 + 4 * rank])
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _Unpickler(pickle.Unpickler):
    """Unpickler that allows only the types of numeric arrays: no code of a file runs."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        if name == "_reconstruct":  # NumPy 2 has moved it
            return np.empty(0).__reduce__()[0]
        return getattr(np, name)


def _read_batches(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    """Read pickles of CIFAR: images (n, 3072), channel by channel, and a list of labels."""
    batches = [_Unpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load() for path in paths]
    labels = [np.array(batch[table["labels"].encode()]) for batch in batches]
    return Images(np.concatenate([batch[b"data"] for batch in batches]), np.concatenate(labels))


def _read_matlab(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    """Read MATLAB 5, of SVHN: X (rows, columns, channels, n) in bytes, y (n, 1) from 1 to 10."""
    from scipy.io import loadmat  # no other format needs it

    content = loadmat(paths[0], variable_names=["X", "y"])
    return Images(content["X"].transpose(3, 2, 0, 1), content["y"][:, 0].astype(np.int64) % 10)


def _read_sheet(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    """Read a lossless WebP of all images, row by row, and a .npy of labels: the form of GTSRB."""
    from PIL import Image

    labels = np.load(paths[1], allow_pickle=False)
    channels, side, _ = table["shape"]
    with Image.open(paths[0]) as image:
        pixels = np.asarray(image.convert("RGB"))
    grid = pixels.reshape(-1, side, table["columns"], side, channels).transpose(0, 2, 4, 1, 3)
    return Images(grid.reshape(-1, channels, side, side)[: len(labels)], labels)


def _read_drawings(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    """Read a zip of drawings, one folder per class: the form of Omniglot."""
    images, files = read_drawings(paths[0], paths[0].stat().st_mtime_ns)
    digest = hashlib.sha256(images.tobytes()).hexdigest()
    if digest != table["sha256"]:  # resized here, by the Pillow that is installed
        raise ValueError(
            f"the drawings of {str(paths[0])!r} must have the SHA-256 {table['sha256']} once "
            f"resized, got {digest}: is Pillow another build?"
        )
    characters = [file.rpartition("/")[0].partition("/")[2] for file in files]
    names, labels = np.unique(characters, return_inverse=True)
    return Images(images, labels, [str(name) for name in names])


@lru_cache(maxsize=1)  # the time of change is part of the key; 10 MB
def read_drawings(path: Path, mtime_ns: int) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Read the drawings (n, 28, 28) of a zip and their paths, in order of the paths."""
    with zipfile.ZipFile(path) as archive:
        files = tuple(sorted(name for name in archive.namelist() if name.endswith(".png")))
        images = np.stack([_resize(archive.read(name)) for name in files])
    images.flags.writeable = False
    return images, files


def _resize(png: bytes) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("L").resize((28, 28), Image.Resampling.BILINEAR))


READERS: dict[str, Callable[[Sequence[Path], dict[str, Any]], Images]] = {
    "idx": _read_idx_pair,
    "pickle": _read_batches,
    "matlab": _read_matlab,
    "sheet": _read_sheet,
    "drawings": _read_drawings,
}
