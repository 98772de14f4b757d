"""One code for numpy arrays and torch tensors: the array API, and functions that it lacks.

PyTorch is never imported here: a tensor can only arrive if the caller has imported it already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import is_torch_array as is_tensor
from array_api_compat import numpy as compatible_numpy
from scipy import special

__all__ = [
    "Array",
    "as_float",
    "drop_mask",
    "exclusive_sum",
    "is_tensor",
    "namespace",
    "special_functions",
    "to_numpy",
]

Array = Any  # (…) numpy array or torch tensor, of a floating dtype


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
