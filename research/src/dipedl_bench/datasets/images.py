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
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets import Dataset

from .files import PROVENANCE, TABLES, DataDir, fetch

__all__ = [
    "load_cifar10",
    "load_cifar100",
    "load_fashion_mnist",
    "load_gtsrb",
    "load_images",
    "load_kmnist",
    "load_mnist",
    "load_omniglot",
    "load_svhn",
]

_PARTS = {"test": ("test",), "train": ("train",), "all": ("train", "test")}


class Images(NamedTuple):
    """Images (n, ...) in bytes, labels (n,), and the names of the classes if a file has them.

    `source` is the file that errors name.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    source: Path
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
    `data_dir`, or the environment variable ``DIPEDL_DATA``, nothing is downloaded. Those without an
    official mirror (`load_gtsrb`) cannot be downloaded.

    Parameters
    ----------
    name : str
        One of "cifar10", "cifar100", "fashion_mnist", "gtsrb", "kmnist", "mnist", "omniglot" and
        "svhn".
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
        images, labels, _, names = read_part(name, part, data_dir)
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
    """Load MNIST, 60,000 + 10,000 handwritten digits, 28 x 28 pixels, white on black.

    The sets of `ood` are "kmnist", "omniglot", dark on white as published, which almost any density
    separates from MNIST by the background alone, and "omniglot_inverted", the harder and fairer
    test. Other parameters and errors: see `load_images`.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition",
    Proc. IEEE 86, 1998.
    """
    return load_images("mnist", split="all", ood=ood, data_dir=data_dir)


def load_kmnist(*, split: str = "test", data_dir: DataDir = None) -> Dataset:
    """Load K-MNIST, 60,000 + 10,000 cursive Japanese characters of ten kinds, in MNIST's format.

    Parameters and errors: see `load_images`.

    References
    ----------
    Clanuwat et al., "Deep Learning for Classical Japanese Literature", 2018, arXiv:1812.01718.
    """
    return load_images("kmnist", split=split, data_dir=data_dir)


def load_fashion_mnist(
    *, ood: Iterable[str] = ("mnist", "kmnist"), data_dir: DataDir = None
) -> Dataset:
    """Load Fashion-MNIST, 60,000 + 10,000 articles of clothing, in MNIST's format.

    Against MNIST it is the classic failure of likelihoods: densities of its pixels give digits,
    which are simpler, a higher density than clothes. The files of Debian's package
    dataset-fashion-mnist are accepted too. Parameters and errors: see `load_images`.

    References
    ----------
    Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine
    learning algorithms", arXiv:1708.07747 (2017).
    """
    return load_images("fashion_mnist", split="all", ood=ood, data_dir=data_dir)


def load_omniglot(*, inverted: bool = False, data_dir: DataDir = None) -> Dataset:
    """Load Omniglot's evaluation split, 13,180 drawings of 659 characters, 28 x 28 pixels.

    The 105 x 105 drawings are resized as is usual beside MNIST (bilinear, antialiased) and come in
    order of their paths, as test images; dark strokes on white, or `inverted`. Parameters and
    errors: see `load_images`.

    References
    ----------
    Lake, Salakhutdinov and Tenenbaum, "Human-level concept learning through probabilistic program
    induction", Science 350, 2015.
    """
    return load_images("omniglot", inverted=inverted, data_dir=data_dir)


def load_cifar10(*, ood: Iterable[str] = ("cifar100",), data_dir: DataDir = None) -> Dataset:
    """Load CIFAR-10, 50,000 + 10,000 colour photographs of ten classes, 3 x 32 x 32; 740 MB.

    The sets of `ood` are "cifar100", near to CIFAR-10, "svhn", house numbers far from it, the
    paper's choice, and "gtsrb", a stand-in where SVHN is missing, not comparable with it. Other
    parameters and errors: see `load_images`.

    References
    ----------
    Krizhevsky, "Learning multiple layers of features from tiny images", University of Toronto,
    2009.
    """
    return load_images("cifar10", split="all", ood=ood, data_dir=data_dir)


def load_cifar100(*, split: str = "test", data_dir: DataDir = None) -> Dataset:
    """Load CIFAR-100, 50,000 + 10,000 colour photographs of a hundred classes, none in CIFAR-10.

    Labels are the fine ones. Parameters, errors: see `load_images`; reference: see `load_cifar10`.
    """
    return load_images("cifar100", split=split, data_dir=data_dir)


def load_svhn(*, split: str = "test", data_dir: DataDir = None) -> Dataset:
    """Load SVHN, cropped colour photographs of house numbers, 73,257 + 26,032, 3 x 32 x 32.

    The label is the digit in the middle (the file's label 10 is the digit 0). Parameters and
    errors: see `load_images`.

    References
    ----------
    Netzer, Wang, Coates, Bissacco, Wu, Ng, "Reading digits in natural images with unsupervised
    feature learning", NIPS workshop on deep learning and unsupervised feature learning, 2011.
    """
    return load_images("svhn", split=split, data_dir=data_dir)


def load_gtsrb(*, data_dir: DataDir = None) -> Dataset:
    """Load GTSRB (third-party 32x32 resize): 12,630 photographs of traffic signs, 43 kinds.

    They are the benchmark's test images, resized by a third party. **No official mirror has them in
    this form, so they cannot be downloaded.** Report results under the name above; they are not
    those of SVHN, nor of GTSRB as published. Parameters and errors: see `load_images`.

    References
    ----------
    Stallkamp, Schlipsing, Salmen and Igel, "Man vs. computer: benchmarking machine learning
    algorithms for traffic sign recognition", Neural Networks 32, 2012.
    """
    return load_images("gtsrb", data_dir=data_dir)


def read_part(name: str, part: str, data_dir: DataDir = None) -> Images:
    """Read part "train" or "test" of a data set: images in bytes as published, labels, names."""
    table = TABLES[name]
    paths = [fetch(file, data_dir) for file in table["parts"][part]]
    content = READERS[table["format"]](paths, table)
    images, labels, source, names = content
    shape = tuple(table["shape"])
    if images.dtype != np.uint8 or images.shape[1:] != shape:
        form = ", ".join(map(str, ("n", *shape)))
        raise _damaged(source, f"bytes, images of shape ({form})", f"{images.dtype} {images.shape}")
    if labels.shape != (len(images),):
        raise _damaged(paths[-1], f"one label per image, {len(images)}", labels.shape)
    names = names or table["classes"]
    wrong = labels[~np.isin(labels, range(len(names)))]
    if wrong.size:
        raise _damaged(paths[-1], f"labels 0 to {len(names) - 1}", wrong[:3].tolist())
    return content._replace(labels=labels.astype(np.int64), names=names)


def _damaged(path: Path, expected: str, got: object) -> ValueError:
    return ValueError(
        f"{str(path)!r} must hold {expected}, got: {got}; replace it by the official file"
    )


# IDX, the format of MNIST: a header of sizes, then the bytes


def _read_idx_pair(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    image_file, label_file = paths
    return Images(read_idx(image_file), read_idx(label_file).astype(np.int64), image_file)


def read_idx(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Read an array of unsigned bytes of any rank from an IDX file, gzip-compressed or not.

    The format: two zero bytes, the type of number (0x08: unsigned byte), the rank r, r sizes as
    big-endian 32-bit integers, then the numbers in C order.
    """
    path = Path(path)
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error, struct.error) as error:
            raise _damaged(path, "a whole gzip file", error) from error
    if len(content) < 4 or content[:2] != b"\0\0":
        raise _damaged(path, "an IDX file, which starts with two zero bytes", content[:4])
    kind, rank = content[2], content[3]
    if kind != 0x08:
        raise _damaged(path, "unsigned bytes (type 0x08)", f"type {kind:#04x}")
    start = 4 + 4 * rank
    if rank == 0 or len(content) < start:
        size = f"{len(content)} bytes for rank {rank}"
        raise _damaged(path, "one 32-bit size per dimension", size)
    shape = struct.unpack(f">{rank}I", content[4:start])
    expected, got = math.prod(shape), len(content) - start
    if got != expected:
        raise _damaged(path, f"{expected} bytes of numbers for its shape {shape}", got)
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


# Pickles of CIFAR, read without running code from them

_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _Unpickler(pickle.Unpickler):
    """Unpickler that allows only the types of numeric arrays."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        if name == "_reconstruct":  # NumPy 2 has moved it
            return np.empty(0).__reduce__()[0]
        return getattr(np, name)


def _read_batches(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    batches = [read_batch(path, table["labels"].encode()) for path in paths]
    images, labels = zip(*batches, strict=True)
    shape = table["shape"]
    return Images(np.concatenate(images).reshape(-1, *shape), np.concatenate(labels), paths[0])


def read_batch(path: Path, label_key: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images (n, 3072) in bytes, channel by channel, and labels (n,) of one pickle."""
    try:
        content = _Unpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except Exception as error:  # a damaged pickle may raise anything
        expected = "a pickle of plain NumPy arrays, lists and strings"
        raise _damaged(path, expected, error) from error
    if not isinstance(content, dict):
        raise _damaged(path, "a dictionary", type(content).__name__)
    images, labels = content.get(b"data"), content.get(label_key)
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 2:
        found = getattr(images, "dtype", type(images))
        raise _damaged(path, "an array (n, 3072) of bytes under b'data'", found)
    if images.shape[1] != 3072:
        raise _damaged(path, "images of shape (n, 3072)", images.shape)
    if not isinstance(labels, list) or len(labels) != len(images):
        got = len(labels) if isinstance(labels, list) else type(labels).__name__
        raise _damaged(path, f"a list of one label per image, {len(images)}", got)
    if wrong := [label for label in labels if not isinstance(label, int)]:
        raise _damaged(path, "whole numbers as labels", wrong[:3])
    return images, np.array(labels, np.int64)


# MATLAB 5, of SVHN: X (rows, columns, channels, n) in bytes, y (n, 1) from 1 to 10


def _read_matlab(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    from scipy.io import loadmat  # no other format needs it

    (path,) = paths
    try:
        content = loadmat(path, variable_names=["X", "y"])
    except Exception as error:  # a damaged file may raise anything
        raise _damaged(path, "variables of MATLAB 5", f"{type(error).__name__}: {error}") from error
    if not {"X", "y"} <= set(content):
        found = sorted(name for name in content if not name.startswith("__"))
        raise _damaged(path, "the variables X and y", found)
    images, labels = np.asarray(content["X"]), np.asarray(content["y"])
    if images.ndim != 4 or labels.shape != (images.shape[3], 1):
        got = f"{images.shape} and {labels.shape}"
        raise _damaged(path, "X of shape (32, 32, 3, n) and y of shape (n, 1)", got)
    wrong = labels[~np.isin(labels, range(1, 11))]
    if wrong.size:
        raise _damaged(path, "labels 1 to 10 (10 is the digit 0)", wrong[:3].tolist())
    return Images(images.transpose(3, 2, 0, 1), labels[:, 0].astype(np.int64) % 10, path)


# A lossless WebP of all images, row by row, and a .npy of labels: the form of GTSRB


def _read_sheet(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    from PIL import Image

    sheet, label_file = paths
    labels = np.load(label_file, allow_pickle=False).astype(np.int64)
    channels, side, _ = table["shape"]
    columns = table["columns"]
    with Image.open(sheet) as image:
        pixels = np.asarray(image.convert("RGB"))
    rows, rest = divmod(pixels.shape[0], side)
    if rest or pixels.shape[1] != columns * side or rows * columns < len(labels):
        expected = f"{columns} columns of {side} x {side} pixels with {len(labels)} images or more"
        raise _damaged(sheet, expected, f"{pixels.shape[1]} x {pixels.shape[0]} pixels")
    grid = pixels.reshape(rows, side, columns, side, channels).transpose(0, 2, 4, 1, 3)
    images = grid.reshape(rows * columns, channels, side, side)[: len(labels)]
    return Images(images, labels, sheet)


# A zip of drawings, one folder per class: the form of Omniglot


def _read_drawings(paths: Sequence[Path], table: dict[str, Any]) -> Images:
    (path,) = paths
    images, files = read_drawings(path, path.stat().st_mtime_ns)
    found = hashlib.sha256(images.tobytes()).hexdigest()
    if found != table["sha256"]:
        expected = f"images with SHA-256 {table['sha256']}"
        raise _damaged(path, expected, f"{len(images)} with {found}: is Pillow another build?")
    characters = [file.rpartition("/")[0].partition("/")[2] for file in files]
    names, labels = np.unique(characters, return_inverse=True)
    return Images(images, labels, path, [str(name) for name in names])


@lru_cache(maxsize=1)  # the time of change is part of the key; 10 MB
def read_drawings(path: Path, mtime_ns: int) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Read the drawings (n, 28, 28) of a zip and their paths, in order of the paths."""
    with zipfile.ZipFile(path) as archive:
        files = tuple(sorted(name for name in archive.namelist() if name.endswith(".png")))
        images = np.stack([_resized(archive.read(name)) for name in files])
    images.flags.writeable = False
    return images, files


def _resized(png: bytes) -> NDArray[np.uint8]:
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
