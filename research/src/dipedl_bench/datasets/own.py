"""A data set of one's own: arrays in a ``.npz`` file, or a folder of pictures."""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets import Dataset

from ..names import refuse_unknown
from ..results.files import read_file

#: Keys of the known rows in a file, and what names of OOD sets begin with.
_KEYS, _OOD = ("X_train", "y_train", "X_test", "y_test"), "ood_"
#: Numbers of channels that images have.
_CHANNELS = (1, 3, 4)
#: Folders below a folder of pictures.
_PARTS, _OOD_FOLDER = ("train", "test"), "ood"
_SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
#: An OOD set may not be called as known rows are.
_KNOWN = ("train", "validation", "test")
_REMEDY = "write it again, by numpy.savez, with arrays of numbers or of text only"


def is_own(name: str) -> bool:
    """Return whether a data set of a suite is a path: a ``.npz`` file, or a folder with a "/"."""
    return name.endswith(".npz") or "/" in name


def own_ood_sets(path: str) -> tuple[str, ...]:
    """Return the names of the OOD sets of a data set of one's own; no array is read."""
    if _find(path).is_dir():
        return tuple(sorted(f.name for f in (Path(path) / _OOD_FOLDER).glob("*") if f.is_dir()))
    try:
        with zipfile.ZipFile(path) as file:
            names = [name.removesuffix(".npy") for name in file.namelist()]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path!r} is no .npz file ({error}); {_REMEDY}") from error
    return tuple(name.removeprefix(_OOD) for name in names if name.startswith(_OOD))


def own_digest(path: str) -> str:
    """Return twelve hex digits of the SHA-256 of all files, with their names, of a data set."""
    files = _pictures(Path(path)) if _find(path).is_dir() else [Path(path)]
    stats = [(file, file.stat()) for file in files]
    return _digest(path, tuple((str(f), s.st_size, s.st_mtime_ns) for f, s in stats))


@lru_cache(maxsize=16)  # size and time of change are in the key: a changed file is hashed again
def _digest(path: str, files: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _, _ in files:
        content = Path(name).read_bytes()
        digest.update(f"{Path(name).relative_to(path)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def load_own(path: str) -> Dataset:
    """Load a data set of one's own.

    Parameters
    ----------
    path : str
        A ``.npz`` file with "X_train", "X_test" and, for each OOD set, "ood_NAME": images (n,
        height, width) or (n, channels, height, width), or rows (n, d) of numbers; and "y_train",
        "y_test", labels (n,), integers or text. Or a folder with pictures in "train/CLASS/",
        "test/CLASS/" and "ood/NAME/", all of one size. Bytes become numbers in [0, 1].

    Returns
    -------
    Dataset
        Inputs (n, d), float32, images channel by channel; labels 0..k-1 in the order of the sorted
        labels of the training rows, whose names are `target_names`.

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder.
    ValueError
        If an array is missing or has another shape than its counterpart, square images have their
        channels last, a number is not finite, a
        class of the test rows is no class of the training rows, an OOD set has the name of known
        rows, or pictures are not of one size; the error names the array or the picture.
    """
    arrays = _read_folder(Path(path)) if _find(path).is_dir() else _read_arrays(path)
    X = {key: _inputs(of, f"{path}: {key}") for key, of in arrays.items() if key[0] != "y"}
    shape = arrays["X_train"].shape[1:]
    if len(shape) == 3 and shape[0] == shape[1] not in _CHANNELS and shape[2] in _CHANNELS:
        raise ValueError(
            f"{path}: images must have the shape (n, channels, height, width), got "
            f"{arrays['X_train'].shape}, with the channels last: write X.transpose(0, 3, 1, 2)"
        )
    for key in X:
        if arrays[key].shape[1:] != shape:
            raise ValueError(
                f"{path}: {key} has inputs of the shape {arrays[key].shape[1:]}, X_train {shape}; "
                "they must be the same"
            )
    classes, y_train = np.unique(_labels(arrays, "train", path), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{path}: y_train must hold two classes or more, got {classes.tolist()}")
    labels = _labels(arrays, "test", path)
    if unknown := sorted(set(labels.tolist()) - set(classes.tolist())):
        raise ValueError(
            f"{path}: y_test holds {unknown[:3]}, which y_train lacks; make rows of such classes "
            "an OOD set"
        )
    return Dataset(
        Path(path).stem,
        *(X["X_train"], y_train.astype(np.int64)),
        *(X["X_test"], np.searchsorted(classes, labels).astype(np.int64)),
        ood={key.removeprefix(_OOD): of for key, of in X.items() if key.startswith(_OOD)},
        target_names=tuple(map(str, classes)),
        image_shape=shape if len(shape) > 1 else None,
    )


def _find(path: str) -> Path:
    if not Path(path).exists():
        raise FileNotFoundError(
            f"no file or folder {path!r} of a data set; paths are below the working directory"
        )
    return Path(path)


def _read_arrays(path: str) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = read_file(Path(path), _REMEDY)
    others = [key for key in arrays if not key.startswith(_OOD)]
    refuse_unknown("array", others, (*_KEYS, f"{_OOD}NAME"), path)
    if missing := [key for key in _KEYS if key not in arrays]:
        raise ValueError(f"{path}: {missing[0]} is missing; there must be {list(_KEYS)}")
    _check_ood_names((key.removeprefix(_OOD) for key in arrays if key.startswith(_OOD)), path)
    return arrays


def _check_ood_names(names: Iterable[str], path: str) -> None:
    for name in names:
        if not name or name in _KNOWN or "/" in name:
            raise ValueError(
                f"{path}: an OOD set must have a name of its own, without '/' and not that of "
                f"known rows ({', '.join(_KNOWN)}), got {name!r}"
            )


def _inputs(array: NDArray[Any], where: str) -> NDArray[np.float32]:
    """Return inputs as rows (n, d) of finite numbers, bytes in [0, 1]."""
    if array.ndim not in (2, 3, 4) or array.dtype.kind not in "uifb" or not array.size:
        raise ValueError(
            f"{where} must be images (n, height, width) or (n, channels, height, width), or rows "
            f"(n, d) of numbers, at least one; got {array.dtype} of shape {array.shape}"
        )
    rows = array.reshape(len(array), math.prod(array.shape[1:])).astype(np.float32)
    if array.dtype == np.uint8:
        return np.asarray(rows / np.float32(255))
    if not np.isfinite(rows).all():
        row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise ValueError(f"{where} must be finite, and row {row} is not; drop such rows")
    if array.ndim > 2 and not (rows.min() >= 0 and rows.max() <= 1):
        raise ValueError(
            f"{where} must hold pixels in [0, 1], got {rows.min():g} to {rows.max():g}; divide "
            "them, or pass bytes as uint8"
        )
    return rows


def _labels(arrays: Mapping[str, NDArray[Any]], part: str, path: str) -> NDArray[Any]:
    y, n = arrays[f"y_{part}"], len(arrays[f"X_{part}"])
    if y.shape != (n,) or y.dtype.kind not in "uiUb":
        raise ValueError(
            f"{path}: y_{part} must be {n} labels, integers or text, one for each row of X_{part}; "
            f"got {y.dtype} of shape {y.shape}"
        )
    return y


# ---------------------------------------------------------------------------- a folder of pictures


def _pictures(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in _SUFFIXES)


def _read_folder(folder: Path) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    mode = ""
    for part in _PARTS:
        files = _pictures(folder / part)
        if not files:
            raise ValueError(
                f"{str(folder)!r} must hold pictures as {part}/CLASS/picture.png; there are none"
            )
        places = [file.relative_to(folder / part).parts for file in files]
        if loose := [file for file, parts in zip(files, places, strict=True) if len(parts) < 2]:
            raise ValueError(f"{str(loose[0])!r} must lie in the folder of its class")
        arrays[f"X_{part}"], mode = _read_pictures(files, mode)
        arrays[f"y_{part}"] = np.array([parts[0] for parts in places])
    names = own_ood_sets(str(folder))
    _check_ood_names(names, str(folder))
    for name in names:
        if files := _pictures(folder / _OOD_FOLDER / name):
            arrays[f"{_OOD}{name}"], _ = _read_pictures(files, mode)
    return arrays


def _read_pictures(files: list[Path], mode: str = "") -> tuple[NDArray[np.uint8], str]:
    """Return pictures (n, height, width), or (n, 3, height, width), in bytes, and their mode.

    Without a mode of Pillow that of the first picture is taken: all are grey or all in colour.
    """
    from PIL import Image

    images: list[NDArray[np.uint8]] = []
    for file in files:
        try:
            with Image.open(file) as picture:
                if picture.mode[0] in "IF":  # Pillow would clip what is above 255
                    raise OSError(f"its pixels are of mode {picture.mode}; write them with 8 bits")
                mode = mode or ("L" if picture.mode in ("1", "L", "LA") else "RGB")
                images.append(np.asarray(picture.convert(mode)))
        except OSError as error:
            raise ValueError(f"{str(file)!r} cannot be read as a picture ({error})") from error
        if images[-1].shape != images[0].shape:
            sizes = " and ".join(f"{i.shape[1]} x {i.shape[0]}" for i in (images[0], images[-1]))
            raise ValueError(
                f"pictures must all have one size, got {sizes} ({str(file)!r}); resize them"
            )
    stacked = np.stack(images)
    if mode == "RGB":
        stacked = np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
    return stacked, mode
