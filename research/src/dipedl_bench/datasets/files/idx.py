"""Reader of the IDX format of MNIST: a header of sizes, then the bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dipedl.datasets.dataset import unit_pixels

from .fetch import DataDir, fetch

IMAGE_SHAPE = (28, 28)
_UNSIGNED_BYTE = 0x08
_PREFIX = {"train": "train", "test": "t10k"}


def read_idx(path: str | PathLike[str]) -> NDArray[np.uint8]:
    """Array of unsigned bytes of any rank from an IDX file, gzip-compressed or not.

    The format: two zero bytes, the type of number (0x08: unsigned byte), the rank r, r sizes as
    big-endian 32-bit integers, then the numbers in C order.
    """
    path = Path(path)
    content = _unpacked(path)
    shape = _header(content, path)
    start = 4 + 4 * len(shape)
    expected, got = math.prod(shape), len(content) - start
    if got != expected:
        state = "cut short" if got < expected else "followed by other bytes"
        wanted = f"{expected} bytes of numbers for its shape {shape}"
        raise _bad(path, wanted, f"{got}: it is {state}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_part(
    folder: str, part: str, data_dir: DataDir
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read images (n, 28, 28) and labels (n,) in bytes: part "train" or "test" of a data set."""
    prefix = f"{folder}/{_PREFIX[part]}"
    image_file = fetch(f"{prefix}-images-idx3-ubyte.gz", data_dir)
    label_file = fetch(f"{prefix}-labels-idx1-ubyte.gz", data_dir)
    images, labels = read_idx(image_file), read_idx(label_file)
    if images.shape[1:] != IMAGE_SHAPE:
        wanted = f"images of shape (n, {IMAGE_SHAPE[0]}, {IMAGE_SHAPE[1]})"
        raise _bad(image_file, wanted, images.shape)
    if labels.shape != images.shape[:1]:
        raise _bad(label_file, f"one label per image, shape ({len(images)},)", labels.shape)
    return images, labels


def load_part(
    folder: str, part: str, data_dir: DataDir
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Load inputs (n, 784), float32 in [0, 1], and labels (n,), int64; see `read_part`."""
    images, labels = read_part(folder, part, data_dir)
    return unit_pixels(images), labels.astype(np.int64)


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, zlib.error, OSError) as error:  # BadGzipFile is an OSError
        raise _bad(path, "a whole gzip file", str(error)) from error


def _header(content: bytes, path: Path) -> tuple[int, ...]:
    if len(content) < 4 or content[:2] != b"\0\0":
        raise _bad(path, "an IDX file, which starts with two zero bytes", content[:4])
    kind, rank = content[2], content[3]
    if kind != _UNSIGNED_BYTE:
        raise _bad(path, f"unsigned bytes (type {_UNSIGNED_BYTE:#04x})", f"type {kind:#04x}")
    if rank == 0 or len(content) < 4 + 4 * rank:
        raise _bad(path, "one 32-bit size per dimension", f"{len(content)} bytes for rank {rank}")
    return struct.unpack(f">{rank}I", content[4 : 4 + 4 * rank])


def _bad(path: Path, expected: str, got: object) -> ValueError:
    return ValueError(
        f"{str(path)!r} must hold {expected}, got {got}; delete the file and download it again"
    )
