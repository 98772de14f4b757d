"""Checks of settings and tensors; errors name the argument, what came and the remedy."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = []

_ROUNDING = 1e-6


def check_pixels(name: str, X: Any, use: str = "", remedy: str = "") -> None:
    """Raise ValueError unless X holds values in [0, 1], up to rounding."""
    low, high = float(X.min()), float(X.max())
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        raise ValueError(
            f"{name} must hold pixels in [0, 1]{use}, got values from {low:g} to {high:g}; divide "
            f"images of 0..255 by 255{remedy}"
        )


def label_mask(alpha: Tensor, y: Any) -> Tensor:
    """True at the label of each row of `alpha` (n, k), shape (n, k); y (n,) is checked."""
    n, k = alpha.shape
    if not isinstance(y, Tensor) or y.dtype != torch.int64:
        raise TypeError(f"y must be a tensor of int64, got {getattr(y, 'dtype', type(y))}")
    if y.shape != (n,):
        raise ValueError(f"y must have one label per row, shape ({n},), got {tuple(y.shape)}")
    if not (y.is_cuda and torch.cuda.is_current_stream_capturing()):  # a recording may not wait
        check_class_indices("y", y, k)
    return F.one_hot(y, k).bool()


def check_class_indices(name: str, y: Tensor, k: int) -> None:
    """Raise ValueError unless the integers y (n,) lie in 0..k-1."""
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < k:
        raise ValueError(
            f"{name} must be class indices 0..{k - 1}, got {int(y.min())}..{int(y.max())}; number "
            "the classes from 0"
        )


def check_finite_rows(name: str, values: Tensor) -> None:
    """Raise ValueError if a number of `values` (n, p) is not finite; names the first such row."""
    finite = torch.isfinite(values).all(dim=1)
    if bool(finite.all()):
        return
    row = int(torch.nonzero(~finite)[0])
    bad = values[row][~torch.isfinite(values[row])][0].item()
    remedy = "drop such inputs, or mend the network (its weights, a division by zero)"
    if values.dtype == torch.float16:
        remedy = (
            "float16 overflows at 65504: use bfloat16 (torch.autocast(device, "
            "dtype=torch.bfloat16)) or float32"
        )
    raise ValueError(f"{name} must be finite, and row {row} holds {bad}; {remedy}")


def check_data(name: str, data: Any) -> None:
    """Raise unless `data` is a tuple of tensors with the same number of rows, at least one."""
    if not isinstance(data, tuple) or not all(isinstance(part, Tensor) for part in data):
        raise TypeError(f"{name} must be a tuple of tensors (inputs, *targets), got {type(data)}")
    lengths = [len(part) for part in data]
    if not lengths or min(lengths) == 0 or len(set(lengths)) > 1:
        raise ValueError(
            f"{name} must hold tensors with one and the same number of rows, at least 1, got rows "
            f"{lengths}"
        )
