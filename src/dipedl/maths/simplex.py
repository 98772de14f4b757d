"""Checks of probabilities, counts, labels and positive numbers, for numpy arrays and tensors."""

from __future__ import annotations

import numpy as np

from .array_namespace import Array, as_float, is_tensor, namespace
from .masks import unmasked


def rows_like(name: str, value: Array, like: Array) -> Array:
    """`value` of shape (n, k) or (k,) as (n, k), n and k those of `like`."""
    value = as_float(value, like=like)
    if tuple(value.shape) not in (tuple(like.shape), tuple(like.shape[1:])):
        raise ValueError(
            f"{name} must have shape {tuple(like.shape)} or {tuple(like.shape[1:])}, "
            f"got {tuple(value.shape)}"
        )
    return namespace(like).broadcast_to(value, like.shape)


def counts_like(counts: Array, like: Array) -> Array:
    """Label counts of shape (n, k) or (k,) as (n, k), checked."""
    counts = rows_like("counts", counts, like)
    if not bool((counts >= 0).all()) or not bool(namespace(counts).isfinite(counts).all()):
        raise ValueError("counts must be finite and >= 0")
    return counts


def class_indices(y: Array, n: int, k: int) -> np.ndarray:
    """Labels as n class indices 0..k-1, checked."""
    y = np.asarray(y.detach().cpu().numpy() if is_tensor(y) else unmasked("y", y))
    if y.shape != (n,) or y.dtype.kind not in "iu":
        raise ValueError(
            f"y must hold {n} integer class indices, got shape {y.shape} of dtype {y.dtype}; "
            "map labels with np.searchsorted(classes, labels)"
        )
    if n and (y.min() < 0 or y.max() >= k):
        raise ValueError(
            f"y must hold class indices 0..{k - 1}, got {y.min()}..{y.max()}: labels of no known "
            "class; number the classes from 0"
        )
    return np.asarray(y)


def check_positive(name: str, value: Array) -> None:
    """Raise ValueError unless every entry of `value` is finite and > 0."""
    bad = ~(namespace(value).isfinite(value) & (value > 0))
    if bool(bad.any()):
        raise ValueError(f"{name} must be finite and > 0, got {float(value[bad][0])!r}")


#: A row of probabilities may miss one by this much.
TOLERANCE = 1e-3


def on_simplex(p: Array) -> Array:
    """Which rows of p (n, k) are probability vectors, up to the digits of its type, shape (n,)."""
    p = as_float(p)
    xp = namespace(p)
    slack = max(TOLERANCE, 4 * float(xp.finfo(p.dtype).eps))
    with np.errstate(invalid="ignore", over="ignore"):
        sums = xp.sum(p, axis=-1, dtype=xp.float32 if is_tensor(p) else xp.float64)
        return (p >= 0).all(axis=1) & (xp.abs(sums - 1) <= slack)


def check_simplex(name: str, p: Array) -> None:
    """Raise ValueError unless every row of `p` (n, k) is a probability vector."""
    xp = namespace(p)
    if not bool(xp.isfinite(p).all()) or bool((p < 0).any()):
        raise ValueError(
            f"{name} must hold finite probabilities >= 0, got entries from {float(p.min()):.6g} to "
            f"{float(p.max()):.6g}; apply a softmax to logits or scores"
        )
    sums = xp.sum(p, axis=-1)
    if bool((xp.abs(sums - 1) > TOLERANCE).any()):
        worst = float(sums[int(xp.abs(sums - 1).argmax())])
        raise ValueError(
            f"rows of {name} must sum to 1, got a row that sums to {worst:.6g}; "
            "apply a softmax to scores or divide by the row sum"
        )
