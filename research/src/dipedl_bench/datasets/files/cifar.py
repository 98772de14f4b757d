"""Safe reader of the pickles of CIFAR-10 and CIFAR-100: it runs no code from them."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

IMAGE_SHAPE = (3, 32, 32)
N_PIXELS = 3 * 32 * 32
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


def read_pickle(path: Path) -> dict[bytes, Any]:
    """Dictionary in a pickle of arrays, lists, strings and numbers; strings come as bytes."""
    try:
        content = _Unpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except Exception as error:  # a damaged pickle may raise anything
        raise bad(path, "a pickle of plain NumPy arrays, lists and strings", error) from error
    if not isinstance(content, dict):
        raise bad(path, "a dictionary", type(content).__name__)
    return content


def read_batch(
    path: Path, label_key: bytes, n_classes: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, 3072) in bytes, channel by channel, and labels (n,) of one pickle."""
    content = read_pickle(path)
    images, labels = content.get(b"data"), content.get(label_key)
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise bad(path, "an array of bytes under b'data'", getattr(images, "dtype", type(images)))
    if images.ndim != 2 or images.shape[1] != N_PIXELS:
        raise bad(path, f"images of shape (n, {N_PIXELS})", images.shape)
    if not isinstance(labels, list) or len(labels) != len(images):
        got = len(labels) if isinstance(labels, list) else type(labels).__name__
        raise bad(path, f"a list of one label per image, {len(images)}", got)
    wrong = [x for x in labels if not isinstance(x, int) or not 0 <= x < n_classes]
    if wrong:
        raise bad(path, f"labels 0 to {n_classes - 1}", wrong[:3])
    return images, np.array(labels, np.int64)


def bad(path: Path, expected: str, got: object) -> ValueError:
    """Return the error of a damaged file."""
    return ValueError(
        f"{str(path)!r} must hold {expected}, got: {got}; replace it by the official file"
    )
