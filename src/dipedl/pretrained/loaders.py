"""Rows of loaders: what a network makes of them, and which of them are held out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed

from ..calibration.crossfit import ENOUGH, IN_SAMPLE
from ..held_out import nearest_of_class
from ..maths.array_namespace import to_numpy
from ..networks.batches import (
    Arguments,
    Batch,
    Unpack,
    as_call,
    batches,
    map_tensors,
    takes_arguments,
    tensors,
)
from .features import FeatureSource

__all__ = []

_GOLDEN = (5**0.5 - 1) / 2
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Rows:
    """Features (m, p), logits (m, k) and labels (m,) of some rows.

    `between` are logits (q, k) half-way between each of the first q rows and another of its class.
    """

    features: Tensor
    logits: Tensor
    labels: Tensor
    between: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, where: np.ndarray) -> Rows:
        """Return the rows where a mask (m,) is true."""
        mask = torch.from_numpy(where).to(self.labels.device)
        return Rows(self.features[mask], self.logits[mask], self.labels[mask])


def spread_evenly(m: int, most: int) -> np.ndarray:
    """Return at most `most` of the rows 0..m-1, ascending: those of the lowest ranks."""
    return np.sort(np.argsort(_ranks(0, m), kind="stable")[:most])


def _ranks(start: int, n: int) -> np.ndarray:
    """Return the ranks, in [0, 1), by which rows start..start+n-1 are chosen, the lowest first.

    The fraction of the place, from 1, times the golden ratio: the rows of any share of the lowest
    ranks are as even as every tenth row, and in step with no period of the data.
    """
    return np.arange(start + 1, start + n + 1) * _GOLDEN % 1.0


@dataclass
class HoldOut:
    """Rows of a stream to hold out: a share of them, at most `most`, those of lowest rank."""

    share: float
    most: int
    _seen: int = 0
    _held: list[tuple[Rows, np.ndarray]] = field(default_factory=list)

    def split(self, rows: Rows) -> Iterator[Rows]:
        """Give the rows that the density learns from; keep the others."""
        ranks = _ranks(self._seen, len(rows))
        self._seen += len(rows)
        yield from self._part(rows, ranks)
        known = np.concatenate([ranks[:0], *(held for _, held in self._held)])
        if len(known) > self.most:
            # Fewer than may stay, so that not every batch to come pushes some out.
            fewer = max(1, self.most * 9 // 10)
            self.share = float(np.partition(known, fewer)[fewer])
            everything, self._held = self._held, []
            left = [part for held in everything for part in self._part(*held)]
            parts = zip(*((r.features, r.logits, r.labels) for r in left), strict=True)
            yield Rows(*map(torch.cat, parts))

    def rows(self) -> list[Rows]:
        return [rows for rows, _ in self._held]

    def _part(self, rows: Rows, ranks: np.ndarray) -> Iterator[Rows]:
        held = ranks < self.share
        if held.any():
            self._held.append((rows if held.all() else rows.select(held), ranks[held]))
        if not held.all():
            yield rows.select(~held)


def rows_to_hold_out(held: Any) -> HoldOut | None:
    """Return what a setting `held_out` asks for; None for the rows of the density."""
    if isinstance(held, str) and held == IN_SAMPLE:
        return None
    if isinstance(held, str | bool) or not isinstance(held, Real):
        raise TypeError(
            f"held_out must be a share of the rows, their number or {IN_SAMPLE!r}, got {held!r}"
        )
    integer, number = isinstance(held, Integral), float(held)
    if not (number >= 1 if integer else 0 < number < 1):
        raise ValueError(
            "held_out must be a share strictly between 0 and 1 or a number of rows >= 1, got "
            f"{held!r}"
        )
    return HoldOut(0.5, int(number)) if integer else HoldOut(number, ENOUGH)


def passes(
    source: FeatureSource,
    unpack: Unpack | None,
    device: torch.device,
    loader: Any,
    name: str,
    most_between: int = 0,
) -> Iterator[Rows]:
    """Features, logits and labels of each batch of a loader, checked.

    Of the first `most_between` rows also the logits half-way to another row of the batch.
    """
    count = 0
    for batch in batches(loader, unpack, device, name):
        inputs = as_call(source.call, batch.inputs)
        if inputs.are_empty and not len(batch.labels):
            continue
        with torch.inference_mode(), network_errors(inputs, source, batch):
            if not source.shapes:
                source.look(*inputs)
            features, logits = source(*inputs.args, **inputs.kwargs)
        rows = Rows(features, logits, batch.labels.to(features.device))
        _check_rows(rows, batch.where)
        if len(rows):
            left = most_between - count
            count += len(rows)
            yield (
                replace(rows, between=_look_between(source, inputs, rows, left))
                if left > 0
                else rows
            )
    if not count:
        raise ValueError(
            f"{name} gave no rows; pass a loader with at least one batch (a generator that was "
            "read before is empty: make it anew, or pass a DataLoader)"
        )


def _look_between(source: FeatureSource, inputs: Arguments, rows: Rows, most: int) -> Tensor | None:
    """Logits half-way from at most so many rows to the nearest of their class in the batch.

    None where there is no half-way: of inputs other than rows of numbers.
    """
    parts = list(tensors(inputs))
    if not all(part.is_floating_point() and part.shape[:1] == (len(rows),) for part in parts):
        return None
    near = torch.from_numpy(nearest_of_class(to_numpy(rows.features), rows.labels.cpu().numpy()))

    def middle(part: Tensor) -> Tensor:
        return (part[:most] + part[near[:most].to(part.device)]) / 2

    args, kwargs = map_tensors(inputs, middle)
    try:
        with torch.inference_mode():
            logits: Tensor = source(*args, **kwargs)[1]
            return logits
    except Exception:
        # A network may refuse inputs that are none of the user's.
        return None


@contextmanager
def network_errors(
    inputs: Arguments, source: FeatureSource, batch: Batch | None = None
) -> Iterator[None]:
    """Add a remedy to errors of a network, for `inputs` that came as a `batch` of a loader.

    These are: out of memory, arrays, tensors of another dtype, names that it does not take.
    """
    args, kwargs = inputs
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise _memory_error(inputs, error) from error
    except (AttributeError, RuntimeError, TypeError) as error:
        # The allocator of the CPU has no type of its own.
        if "can't allocate memory" in str(error) or "not enough memory" in str(error):
            raise _memory_error(inputs, error) from error
        wrong = None if isinstance(error, RuntimeError) else _name_error(inputs, source, batch)
        if wrong is not None:
            raise wrong from error
        if any(isinstance(value, np.ndarray) for value in (*args, *kwargs.values())):
            raise TypeError(
                "the network was given a numpy array: give torch tensors of its dtype, such as "
                "torch.as_tensor(X, dtype=torch.float32)"
            ) from None
        if "same dtype" in str(error) or "Input type" in str(error):
            error.add_note(
                "give tensors of the network's dtype: X.to(next(network.parameters()).dtype)"
            )
        raise


def _name_error(inputs: Arguments, source: FeatureSource, batch: Batch | None) -> TypeError | None:
    """The error of names that a network does not take; None if it takes all."""
    args, kwargs = inputs
    alone = args[0] if len(args) == 1 and isinstance(args[0], Mapping) else {}
    names = list(kwargs or alone)
    unknown = [name for name in names if not takes_arguments(source.call, **{name: None})]
    if not unknown:
        return None
    parameters = inspect.signature(source.call).parameters
    takes, needed = list(parameters), [p for p in parameters.values() if p.default is p.empty]
    fault = f"the network takes no argument {', '.join(map(repr, unknown))}, only {takes}"
    known = [f"{name!r}: batch[{name!r}]" for name in names if name not in unknown]
    values = [f"batch[{name!r}]" for name in names[: max(len(needed), 1)]]
    wanted = values[0] if len(values) == 1 else f"({', '.join(values)})"
    wanted = f"{{{', '.join(known)}}}" if known else wanted
    if batch is None:
        return TypeError(f"the batch has the keys {names}, and {fault}; give {wanted}")
    labels = next((f"batch[{key!r}]" for key in batch.keys if key not in names), "labels")
    return TypeError(
        f"{batch.where} has the keys {list(batch.keys or names)}, and {fault}; say which are its "
        f"inputs and labels: unpack=lambda batch: ({wanted}, {labels})"
    )


def _memory_error(inputs: Arguments, error: Exception) -> MemoryError:
    rows = inputs.rows
    advice = (
        f"try batches of {rows // 2} (batch_size={rows // 2} of the DataLoader)"
        if rows > 1
        else "the network needs a larger device, half precision or torch.autocast"
    )
    return MemoryError(f"the device is out of memory at a batch of {rows} rows; {advice}: {error}")


def _check_rows(rows: Rows, where: str) -> None:
    n, k = rows.logits.shape
    if not len(rows.features) == n == len(rows.labels):
        raise ValueError(
            f"{where}: {len(rows.features)} rows of features, {n} of logits and "
            f"{len(rows.labels)} labels; there must be one of each an input"
        )
    if not n:
        return
    for what, found in (("features", rows.features), ("logits", rows.logits)):
        finite = torch.isfinite(found).all(dim=1)
        if not bool(finite.all()):
            raise _finite_error(what, found, finite, where)
    low, high = int(rows.labels.min()), int(rows.labels.max())
    if low < 0 or high >= k:
        raise ValueError(
            f"labels of {where} must be class indices 0..{k - 1}, as the network gives {k} logits, "
            f"got {low}..{high}; number the classes from 0, and give their names as classes="
        )


def _finite_error(what: str, found: Tensor, finite: Tensor, where: str) -> ValueError:
    row = int(torch.nonzero(~finite)[0])
    bad = found[row][~torch.isfinite(found[row])][0].item()
    message = f"{what} of {where}, row {row}, hold {bad}"
    if found.dtype == torch.float16:
        return ValueError(
            f"{message}: float16 ends at 65504 and half precision overflowed; use bfloat16 "
            "(torch.autocast(device, dtype=torch.bfloat16)) or float32"
        )
    return ValueError(
        f"{message}; drop inputs that are not finite, or mend the network (its weights, a division "
        "by zero)"
    )


def process_group(group: Any) -> Any:
    """Return the process group that was asked for; None for this process alone."""
    if group is None:
        return None
    if not (distributed.is_available() and distributed.is_initialized()):
        raise ValueError(
            f"group={group!r} was given, but torch.distributed is not initialised; call "
            "torch.distributed.init_process_group first, or leave group=None"
        )
    if isinstance(group, str) and group == "world":
        return distributed.group.WORLD
    if not isinstance(group, distributed.ProcessGroup):
        raise TypeError(f"group must be None, 'world' or a ProcessGroup, got {group!r}")
    return group


def run_together(step: Callable[[], _T], group: Any) -> list[_T]:
    """Return the results of a step in every process of a group, or of this one without a group.

    Where one process fails all raise, so that none waits for it.
    """
    if group is None:
        return [step()]
    result: _T | None = None
    failure: Exception | None = None
    try:
        result = step()
    except Exception as error:
        failure = error
    message = None if failure is None else f"{type(failure).__name__}: {failure}"
    found: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(found, (result, message), group=group)
    if failure is not None:
        raise failure
    failed = [f"rank {i}: {text}" for i, (_, text) in enumerate(found) if text]
    if failed:
        raise RuntimeError(f"fit_density failed in another process: {'; '.join(failed)}")
    return [result for result, _ in found]
