"""A folder of images as a table: the file, its folder as the class, and features of the image.

An image without an extractor is its grey pixels. Files of PyTorch are no extractors: a TorchScript
file runs code when it is loaded, its size of input is not known, and PyTorch has deprecated it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...protocols import optional
from ...writing.files import sha256_of
from ...writing.text import printable_name
from .errors import UserError
from .reading import IMAGES, Format, Piece, RejectedRow, Table

#: Columns beside the features.
FILE, CLASS = "file", "class"
_ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
#: Without an extractor an image is so many grey pixels high and wide.
_SIDE = 16
_AT_ONCE = 500


class ImageFolder(Table):
    """A folder of images as a table of files, classes and features."""

    def read(self) -> Iterator[Piece]:
        """Yield a piece for some hundred images."""
        files, network = image_files(self.path), self.format.packed
        features = extractor(network)
        for first in range(0, len(files), _AT_ONCE):
            some = files[first : first + _AT_ONCE]
            records, rows, refused = [], [], []
            for number, file in enumerate(some, start=first + 1):
                try:
                    values = features(file)
                except ImportError:
                    raise
                except Exception as error:  # any decoder may fail in its own way on a damaged file
                    reason = f"{printable_name(file.name)} cannot be read as an image: {error}"
                    refused.append(RejectedRow(number, FILE, reason))
                    continue
                image = {FILE: printable_name(str(file)), CLASS: class_of(file, self.path)}
                p = len(values)
                names = [f"feature_{j}" for j in range(p)] if network else pixel_names(p)
                records.append(image | dict(zip(names, values.tolist(), strict=True)))
                rows.append(number)
            done = (first + len(some)) / len(files)
            yield Piece(pd.DataFrame(records), np.array(rows, dtype=int), refused, done)


def open_images(folder: Path | str, network: str = "") -> ImageFolder:
    """Open a folder of images as a table of files, classes and features.

    Parameters
    ----------
    folder : path-like
        Holds a folder for each class, or images alone.
    network : str
        Path of an ONNX network that gives features of an image; default: its grey pixels.

    Raises
    ------
    UserError
        If there is no image, or none that can be read.
    """
    folder = Path(folder)
    table = ImageFolder(folder, Format(IMAGES, network))
    first = next((piece for piece in table.pieces() if len(piece.frame)), None)
    if first is None:
        raise UserError(f"{folder}: no image can be read")
    return replace(table, names=tuple(map(str, first.frame.columns)))


def image_files(folder: Path) -> list[Path]:
    """Return all images in a folder and those below it, in order; UserError without any."""
    if not folder.is_dir():
        raise UserError(
            f"images lie in a folder with a folder for each class, and {folder} is none"
        )
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _ENDINGS)
    if not found:
        raise UserError(f"{folder} holds no image that ends in {', '.join(sorted(_ENDINGS))}")
    return found


def class_of(file: Path, folder: Path) -> str | None:
    """Return the folder that an image lies in, below the given one; None if it lies there."""
    parts = file.relative_to(folder).parts
    return printable_name(parts[0]) if len(parts) > 1 else None


def extractor(path: str) -> Callable[[Path], np.ndarray]:
    """Return the function from an image to features (p,): of an ONNX network, else grey pixels.

    These are values in [0, 1] of the image at 16 x 16, row by row.
    """
    return _network(Path(path)) if path else lambda file: _resize(file, "L", (_SIDE, _SIDE)).ravel()


def pixel_names(p: int) -> list[str]:
    """Return names of the p pixels of a square image, by line and column."""
    side = round(p**0.5)
    return [f"pixel_{j // side}_{j % side}" for j in range(p)]


def describe_features(path: str, p: int) -> str:
    """Return the features in words."""
    side = round(p**0.5)
    return f"{p} features by {Path(path).name}" if path else f"{side} x {side} grey pixels"


def checksum(path: str) -> str:
    """SHA-256 of the network's file, "" without one."""
    return sha256_of(Path(path)) if path else ""


def network_of(fitted_with: str, sha256: str, folder: Path) -> str:
    """Return the network that a model was fitted with: where it was, else beside the model."""
    if not fitted_with:
        return ""
    places = [Path(fitted_with), folder / Path(fitted_with).name]
    there = [place for place in places if place.is_file()]
    if not there:
        raise UserError(
            f"the model needs the network that it was fitted with, and {fitted_with} is not there: "
            f"put it into {folder}"
        )
    same = next((str(place) for place in there if checksum(str(place)) == sha256), None)
    if same is None:
        raise UserError(
            f"{there[0]} is not the network that the model was fitted with: put that one there, or "
            "fit again"
        )
    return same


def _network(path: Path) -> Callable[[Path], np.ndarray]:
    if not path.is_file():
        raise UserError(f"`extractor` {path}: there is no such file")
    with open(path, "rb") as file:
        if file.read(2) == b"PK":
            raise UserError(
                f"`extractor` {path} is a file of PyTorch, which can run code when it is loaded: "
                "write the network as ONNX where you trust it, by torch.onnx.export(network, "
                "(torch.zeros(1, 3, height, width),), 'network.onnx'); of TorchScript give "
                "torch.jit.load(file) as network, and dynamo=False"
            )
    try:
        session = optional("onnxruntime", "`extractor`").InferenceSession(str(path))
    except ImportError:
        raise
    except Exception as error:
        raise UserError(f"`extractor` {path} is no ONNX network: {error}") from error
    (entry, *_) = session.get_inputs()
    _, channels, *size = entry.shape if len(entry.shape) == 4 else (0, 0, 0, 0)
    if channels not in (1, 3) or not all(isinstance(side, int) and side > 0 for side in size):
        raise UserError(
            f"`extractor` {path} takes inputs of shape {entry.shape}: it must be (n, 1 or 3, "
            "height, width), with height and width fixed"
        )
    height, width = size
    mode = "L" if channels == 1 else "RGB"

    def features(file: Path) -> np.ndarray:
        image = _resize(file, mode, (width, height)).reshape(height, width, channels)
        batch = np.ascontiguousarray(image.transpose(2, 0, 1)[None])
        return np.asarray(session.run(None, {entry.name: batch})[0], np.float64).ravel()

    return features


def _resize(file: Path, mode: str, size: tuple[int, int]) -> np.ndarray:
    """Return the image as float32 in [0, 1]."""
    pillow: Any = optional("PIL.Image", "images")
    with pillow.open(file) as image:
        if image.mode.startswith("I;16"):
            # Of 16 bits Pillow would make all but the darkest 256 levels white.
            image = pillow.fromarray(np.rint(np.asarray(image) / 257).astype(np.uint8))
        if image.mode in ("I", "F"):
            raise ValueError(f"its pixels are of mode {image.mode}; write them with 8 or 16 bits")
        return np.asarray(image.convert(mode).resize(size), np.float32) / 255
