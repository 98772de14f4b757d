"""A folder of images as a table: the file, its folder as the class, and features of the image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..._plugins import optional
from .mistake import Mistake

#: Columns beside the features.
FILE, CLASS = "file", "class"
_ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
#: Without an extractor an image is so many grey pixels high and wide.
_SIDE = 16


def image_files(folder: Path) -> list[Path]:
    """All images in a folder and the folders below it, in order; Mistake if there is none."""
    if not folder.is_dir():
        raise Mistake(f"--images needs a folder with a folder for each class, and {folder} is none")
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _ENDINGS)
    if not found:
        raise Mistake(f"{folder} holds no image that ends in {', '.join(sorted(_ENDINGS))}")
    return found


def class_of(file: Path, folder: Path) -> str | None:
    """The folder that an image lies in, below the given one; None if it lies there itself."""
    parts = file.relative_to(folder).parts
    return parts[0] if len(parts) > 1 else None


def extractor(path: str) -> Callable[[Path], np.ndarray]:
    """A function from an image to its features (p,): the ONNX network in a file, else pixels."""
    return _network(Path(path)) if path else _pixels


def _pixels(file: Path) -> np.ndarray:
    """Grey values in [0, 1] of the image at 16 x 16, row by row."""
    return _resized(file, "L", (_SIDE, _SIDE)).ravel()


def _network(path: Path) -> Callable[[Path], np.ndarray]:
    if not path.is_file():
        raise Mistake(f"--extractor {path}: there is no such file")
    try:
        session = optional("onnxruntime", "--extractor").InferenceSession(str(path))
    except ImportError:
        raise
    except Exception as error:
        raise Mistake(f"--extractor {path} is no ONNX network: {error}") from error
    (given, *_) = session.get_inputs()
    _, channels, *size = given.shape if len(given.shape) == 4 else (0, 0, 0, 0)
    if channels not in (1, 3) or not all(isinstance(side, int) and side > 0 for side in size):
        raise Mistake(
            f"--extractor {path} takes inputs of shape {given.shape}: it must be (n, 1 or 3, "
            "height, width), with height and width fixed"
        )
    height, width = size
    mode = "L" if channels == 1 else "RGB"

    def features(file: Path) -> np.ndarray:
        image = _resized(file, mode, (width, height)).reshape(height, width, channels)
        batch = np.ascontiguousarray(image.transpose(2, 0, 1)[None])
        return np.asarray(session.run(None, {given.name: batch})[0], np.float64).ravel()

    return features


def _resized(file: Path, mode: str, size: tuple[int, int]) -> np.ndarray:
    """The image as float32 in [0, 1]."""
    pillow: Any = optional("PIL.Image", "--images")
    with pillow.open(file) as image:
        return np.asarray(image.convert(mode).resize(size), np.float32) / 255


def image_rows(
    folder: Path, network: str
) -> Iterator[tuple[Path, str | None, np.ndarray | None, str]]:
    """File, class and features of each image; None and the reason where it cannot be read."""
    features = extractor(network)
    for file in image_files(folder):
        kind = class_of(file, folder)
        try:
            yield file, kind, features(file), ""
        except ImportError:
            raise
        except Exception as error:  # any decoder may fail in its own way on a damaged file
            yield file, kind, None, f"{file.name} cannot be read as an image: {error}"
