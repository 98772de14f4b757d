"""What comes in, batch by batch, and what other processes have seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .class_moments import ClassMoments
from .scatter import Group


@contextmanager
def exact(device: torch.device) -> Iterator[None]:
    """No gradient, no autocast, and tensors that a later batch may change in place."""
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield


def check_features(features: Any, p: int | None = None) -> None:
    """Raise unless `features` is a floating tensor of rank 2, of `p` features if that is given."""
    if not isinstance(features, Tensor) or not features.is_floating_point():
        came = features.dtype if isinstance(features, Tensor) else type(features).__name__
        raise TypeError(f"features must be a tensor of floating type, got {came}")
    if features.ndim != 2:
        raise ValueError(
            f"features must have shape (rows, features), got {tuple(features.shape)}; average maps "
            "over their positions, or flatten them"
        )
    if p is not None and features.shape[1] != p:
        raise ValueError(f"features must have {p} columns, as in the fit, got {features.shape[1]}")


def check_finite(features: Tensor) -> None:
    """Raise if `features` hold NaN or infinity, and say what half precision has to do with it."""
    wrong = ~features.isfinite()
    if not wrong.any():
        return
    rows = wrong.any(1).nonzero()[:5, 0].tolist()
    remedy = "look for NaN or overflow in the inputs or the network"
    if features.dtype == torch.float16:
        remedy = (
            "float16 overflows at 65504: compute features in bfloat16, or with autocast off while "
            "fitting"
        )
    raise ValueError(
        f"features must be finite, got {int(wrong.sum())} NaN or infinite values of "
        f"{features.dtype} (first rows {rows} of the batch); {remedy}"
    )


def check_labels(labels: Any, features: Tensor, n_classes: int) -> Tensor:
    """The labels as int64 on the device of the features; raises unless there is one a row."""
    if labels is None:
        raise ValueError(
            "a class-conditional density needs labels, got None: let the loader yield (inputs, "
            "labels)"
        )
    if not isinstance(labels, Tensor) or labels.dtype not in _INTEGERS:
        came = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"labels must be a tensor of integers (class indices), got {came}")
    if labels.shape != features.shape[:1]:
        raise ValueError(
            f"labels must have one class index a row, shape ({len(features)},), got "
            f"{tuple(labels.shape)}"
        )
    indices: Tensor = labels.to(features.device, torch.int64)
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < n_classes:
        raise ValueError(
            f"labels must be class indices 0..{n_classes - 1}, got "
            f"{int(indices.min())}..{int(indices.max())}; number the classes from 0"
        )
    return indices


_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def merged_over(
    group: Group, local: ClassMoments | None, start: Callable[[Tensor], ClassMoments]
) -> ClassMoments:
    """Moments of the rows of all processes; `start` makes those of no row, like origins (k, p)."""
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "synchronise needs a process group: call torch.distributed.init_process_group first, "
            "or do without it in a single process"
        )
    sizes: list[tuple[int, ...] | None] = [None] * dist.get_world_size(group)
    mine = None if local is None else tuple(local.origin.shape)
    dist.all_gather_object(sizes, mine, group=group)
    known = {size for size in sizes if size is not None}
    if len(known) != 1:
        raise ValueError(
            "synchronise needs rows, with the same numbers of classes and features in every "
            f"process that has any; got (classes, features) {sizes}"
        )
    if local is None:
        local = start(torch.zeros(known.pop(), dtype=torch.float64, device=_device_of(group)))
    local.all_reduce(group)
    return local


def _device_of(group: Group) -> torch.device:
    """Where the tensors of a group's collectives live, for a process without any."""
    if dist.get_backend(group) == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
