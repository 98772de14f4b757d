"""Arrays of numpy and torch: one namespace for both, conversions, and checks of what they hold.

PyTorch is never imported here: a tensor can only arrive if the caller has imported it already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import log, pi
from numbers import Real
from sys import float_info
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import numpy as compatible_numpy
from scipy import sparse, special

Array = Any  # (…) numpy array or torch tensor, of a floating dtype
is_tensor = is_torch_array

LOG_2PI = log(2 * pi)
#: Rounding of float64.
EPS = float_info.epsilon
#: A row of probabilities may miss one by this much.
TOLERANCE = 1e-3
#: Largest number of float32, in which trees and networks compute.
_LARGEST = float(np.finfo(np.float32).max)
#: The squares of larger numbers, summed over rows, overflow.
LARGEST_SQUARED = 1e150
#: What to do about an infinite number.
CORRECT = "correct the entry, or make it NaN for an imputer"


def namespace(*arrays: Array) -> Any:
    """Return the functions of the array API for numpy arrays or torch tensors."""
    # Asked first, as array_api_compat takes longer than the sum of a short row.
    if all(type(array) is np.ndarray for array in arrays):
        return compatible_numpy
    return array_namespace(*arrays)


def special_functions(value: Array) -> Any:
    """`scipy.special` or `torch.special`, which share names: gammaln, psi, expit, log_ndtr."""
    if is_tensor(value):
        import torch

        return torch.special
    return special


def as_float(value: Array, like: Array | None = None) -> Array:
    """`value` as floats: numpy float64, or a tensor with the dtype and device of `like`."""
    if like is not None and is_tensor(like):
        import torch

        return torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if is_tensor(value) and like is not None:
        raise TypeError("torch tensors and numpy arrays do not mix here: convert one of them")
    if is_tensor(value):
        return value if value.is_floating_point() else value.double()
    return np.asarray(drop_mask("the array", value), dtype=np.float64)


def to_numpy(value: Array) -> np.ndarray:
    """`value` as a float64 numpy array on the host, without gradient."""
    if is_tensor(value):
        return np.asarray(value.detach().cpu().double().numpy())
    return np.asarray(value, dtype=np.float64)


def exclusive_sum(x: Array) -> Array:
    """Sum over the *other* entries of the last axis, without the cancellation of ``sum - x``."""
    xp = namespace(x)
    zeros = xp.zeros_like(x[..., :1])
    before = xp.cumulative_sum(x, axis=-1)[..., :-1]
    after = xp.flip(xp.cumulative_sum(xp.flip(x, axis=-1), axis=-1), axis=-1)[..., 1:]
    return xp.concat((zeros, before), axis=-1) + xp.concat((after, zeros), axis=-1)


def drop_mask(name: str, values: Any) -> Any:
    """Return `values` as they are, or as a plain array if nothing in them is masked.

    Raises
    ------
    ValueError
        If an entry is masked, also in a list of masked arrays.
    """
    if type(values) is np.ndarray:
        return values
    parts = values if isinstance(values, list | tuple) else [values]
    masked = [part for part in parts if isinstance(part, np.ma.MaskedArray)]
    hidden = sum(int(np.ma.getmaskarray(part).sum()) for part in masked)
    if hidden:
        or_impute = ", or make the entries NaN, X.filled(np.nan), for an imputer" * (name == "X")
        raise ValueError(
            f"{name} must not be masked, got {hidden} masked entries: what a mask hides is missing."
            f" Leave these rows out{or_impute}"
        )
    return np.asarray(values) if masked else values


def float_array(name: str, values: Any) -> np.ndarray:
    """Return `values` as float64; raise the error of a conversion with their name."""
    values = drop_mask(name, values)
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise ValueError(f"{name} must hold real numbers, got complex ones")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must hold numbers, got {type(values).__name__}: {error}; give an array of "
            "floats"
        ) from error


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


def class_indices(y: Array, n: int, k: int, name: str = "y") -> np.ndarray:
    """Labels as n class indices 0..k-1, checked."""
    y = np.asarray(y.detach().cpu().numpy() if is_tensor(y) else drop_mask(name, y))
    if y.shape != (n,) or y.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold {n} integer class indices, got shape {y.shape} of dtype {y.dtype}; "
            "map labels with np.searchsorted(classes, labels)"
        )
    if n and (y.min() < 0 or y.max() >= k):
        raise ValueError(
            f"{name} must hold class indices 0..{k - 1}, got {y.min()}..{y.max()}: labels of no "
            "known class; number the classes from 0"
        )
    return np.asarray(y)


def check_integer(name: str, value: object, least: int = 1) -> int:
    """Return `value` as an int; raise TypeError or ValueError unless it is one, and >= `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}; pass int(...)")
    if value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}; raise it")
    return int(value)


def check_number(name: str, value: Any, expected: str, holds: Callable[[Any], bool]) -> float:
    """Return a finite number for which `holds` is true, as a float; else raise the `expected`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = expected.removeprefix("finite and ")
        raise TypeError(f"{name} must be a number {kind}, got {value!r}")
    if not (np.isfinite(float(value)) and holds(value)):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return float(value)


def check_rate(rate: Any, name: str = "false_alarm_rate") -> float:
    """Return `rate` as a float; raise unless it lies strictly between 0 and 1."""
    return check_number(name, rate, "strictly between 0 and 1", lambda x: 0 < x < 1)


def check_positive_number(name: str, value: Any) -> None:
    """Raise unless `value` is a finite number > 0."""
    check_number(name, value, "finite and > 0", lambda x: x > 0)


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise ValueError unless `value` is among the `allowed` words."""
    if value not in tuple(allowed):
        raise ValueError(f"{name} must be one of {sorted(allowed)}, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is True or False; the string "no" would be true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_positive(name: str, value: Array) -> None:
    """Raise ValueError unless every entry of `value` is finite and > 0."""
    bad = ~(namespace(value).isfinite(value) & (value > 0))
    if bool(bad.any()):
        raise ValueError(f"{name} must be finite and > 0, got {float(value[bad][0])!r}")


def on_simplex(p: Array) -> Array:
    """Return which rows of p (n, k) are probability vectors, up to the digits of its type, (n,)."""
    p = as_float(p)
    xp = namespace(p)
    slack = max(TOLERANCE, 4 * float(xp.finfo(p.dtype).eps))
    with np.errstate(invalid="ignore", over="ignore"):
        sums = xp.sum(p, axis=-1, dtype=xp.float32 if is_tensor(p) else xp.float64)
        return (p >= 0).all(axis=1) & (xp.abs(sums - 1) <= slack)


def check_simplex(name: str, p: Array) -> None:
    """Raise ValueError with the row unless every row of `p` (n, k) is a probability vector."""
    xp = namespace(p)
    bad = ~(xp.isfinite(p) & (p >= 0))
    if bool(bad.any()):
        rows = bad.any(axis=-1)
        raise ValueError(
            f"{name} must hold finite probabilities >= 0, got {float(p[bad][0]):.6g} in row "
            f"{int(xp.argmax(xp.astype(rows, xp.int8)))}, and such entries in {int(rows.sum())} of "
            f"{len(p)} rows; apply a softmax to logits or scores, or leave these rows out"
        )
    miss = xp.abs(xp.sum(p, axis=-1) - 1)
    if bool((miss > TOLERANCE).any()):
        worst = int(miss.argmax())
        raise ValueError(
            f"rows of {name} must sum to 1, got {float(p[worst].sum()):.6g} in row {worst}; "
            "apply a softmax to scores or divide by the row sum"
        )


def check_proba(name: str, proba: Any, n: int | str = "n", k: int | str = "k") -> np.ndarray:
    """Return class probabilities (n, k), k >= 2, as float64, checked; n and k may be required."""
    P = float_array(name, proba)
    if P.ndim != 2 or P.shape[1] < 2 or n not in ("n", len(P)) or k not in ("k", P.shape[1]):
        raise ValueError(
            f"{name} must have shape ({n}, {k}), got {P.shape}; give a row for each input and a "
            "column for each class, two or more"
        )
    check_simplex(name, P)
    return P


def check_magnitude(name: str, X: Any, largest: float = _LARGEST) -> None:
    """Raise ValueError with row and column if a finite number of X (n, d) is beyond `largest`."""
    if within(X, largest):
        return

    def too_large(values: np.ndarray) -> np.ndarray:
        if float(np.finfo(values.dtype).max) <= largest:
            return np.zeros(values.shape, bool)
        return np.asarray(np.isfinite(values) & (np.abs(values) > largest))

    for row, column, value in places(X, too_large):
        raise ValueError(
            f"{name} must hold numbers up to {largest:.2g}, got {value:g} at row {row}, column "
            f"{column!r}: the computation overflows; correct the entry, or rescale the column"
        )


def within(X: Any, largest: float) -> bool:
    """Return whether X is an array of floats surely finite and up to `largest`, in one pass."""
    if type(X) is not np.ndarray or X.dtype.kind != "f" or not X.flags.forc:
        return False
    flat = X.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        # False where one is NaN; squares of float32 overflow early, and a second look is taken.
        return bool(flat @ flat <= min(largest, float(np.finfo(X.dtype).max)) ** 2)


def places(X: Any, bad: Callable[[np.ndarray], np.ndarray]) -> Iterator[tuple[int, Any, float]]:
    """Row, column and value of a bad number of each column of a table, of a matrix or an array."""
    if hasattr(X, "columns"):
        for name in X.columns:
            yield from ((row, name, v) for row, _, v in places(np.asarray(X[name]), bad))
        return
    X = X.tocoo() if sparse.issparse(X) else np.asarray(X)
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    found = np.flatnonzero(bad(values) if values.dtype.kind == "f" else ())
    if not found.size:
        return
    place = int(found[0])
    if sparse.issparse(X):
        yield int(X.row[place]), int(X.col[place]), float(values[place])
    else:
        row, *columns = (int(i) for i in np.unravel_index(place, values.shape))
        yield row, columns[0] if len(columns) == 1 else columns, float(values.flat[place])


def is_missing(value: Any) -> bool:
    """Return whether an entry is None, NaN, NaT or pandas.NA, whose comparison has no truth."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
