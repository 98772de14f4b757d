"""The few array operations our maths needs, for numpy arrays and torch tensors alike.

PyTorch is never imported here: a tensor can only arrive if the caller has imported it already.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import special

Array = Any  # (…) numpy array or torch tensor, of a floating dtype


def is_tensor(value: object) -> bool:
    """Whether `value` is a torch tensor; never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


_NUMPY = SimpleNamespace(
    abs=np.abs,
    cumsum=np.cumsum,
    exp=np.exp,
    flip=np.flip,
    log=np.log,
    log1p=np.log1p,
    logaddexp=np.logaddexp,
    maximum=np.maximum,
    minimum=np.minimum,
    sum=np.sum,
    all=np.all,
    where=np.where,
    isfinite=np.isfinite,
    isnan=np.isnan,
    full_like=np.full_like,
    clip_max=np.minimum,
    clip_min=np.maximum,
    lgamma=special.gammaln,
    digamma=special.psi,
    sigmoid=special.expit,
)


@lru_cache(maxsize=1)
def _torch() -> SimpleNamespace:
    import torch

    return SimpleNamespace(
        abs=torch.abs,
        cumsum=torch.cumsum,
        exp=torch.exp,
        flip=lambda x, axis: torch.flip(x, (axis,)),
        log=torch.log,
        log1p=torch.log1p,
        logaddexp=torch.logaddexp,
        maximum=torch.maximum,
        minimum=torch.minimum,
        sum=torch.sum,
        all=torch.all,
        where=torch.where,
        isfinite=torch.isfinite,
        isnan=torch.isnan,
        full_like=torch.full_like,
        clip_max=lambda x, top: torch.clamp(x, max=top),
        clip_min=lambda x, bottom: torch.clamp(x, min=bottom),
        lgamma=torch.lgamma,
        digamma=torch.digamma,
        sigmoid=torch.sigmoid,
    )


def namespace(value: Array) -> SimpleNamespace:
    """The operations for the kind of array that `value` is."""
    return _torch() if is_tensor(value) else _NUMPY


def as_float(value: Array, like: Array | None = None) -> Array:
    """`value` as floats: numpy float64, or a tensor with the dtype and device of `like`."""
    if like is not None and is_tensor(like):
        import torch

        return torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if is_tensor(value) and like is not None:
        raise TypeError("torch tensors and numpy arrays do not mix here: convert one of them")
    if is_tensor(value):
        return value if value.is_floating_point() else value.double()
    return np.asarray(value, dtype=np.float64)


def to_numpy(value: Array) -> np.ndarray:
    """`value` as a float64 numpy array on the host, without gradient."""
    if is_tensor(value):
        return np.asarray(value.detach().cpu().double().numpy())
    return np.asarray(value, dtype=np.float64)


def exclusive_sum(x: Array) -> Array:
    """Sum over the *other* entries of the last axis, without the cancellation of ``sum - x``."""
    xp = namespace(x)
    zeros = x[..., :1] * 0
    before = xp.cumsum(x, axis=-1)[..., :-1]
    after = xp.flip(xp.cumsum(xp.flip(x, -1), axis=-1), -1)[..., 1:]
    return _concat(zeros, before) + _concat(after, zeros)


def _concat(left: Array, right: Array) -> Array:
    if is_tensor(left):
        import torch

        return torch.cat((left, right), dim=-1)
    return np.concatenate((left, right), axis=-1)
