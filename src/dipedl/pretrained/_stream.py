"""One pass over a loader: the density learns from most rows, some are held out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..held_out import nearest_of_class
from ..maths.array_namespace import to_numpy
from ..nn.batches import Arguments, Batch, Unpack, as_call, batches, binds, mapped, tensors
from ._feature_source import FeatureSource

_GOLDEN = (5**0.5 - 1) / 2


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

    def taken(self, mask: Tensor) -> Rows:
        return Rows(self.features[mask], self.logits[mask], self.labels[mask])


@dataclass
class HeldOutRows:
    """Which rows are held out, by their place alone: a share of them, spread evenly.

    Row i, from 1, is held out if the fraction of i times the golden ratio is below the share: as
    even as every tenth row, and in step with no period of the data. Where more than `most` are
    held, half of them go back to the density, and half as many are taken from then on.
    """

    share: float
    most: int
    _seen: int = 0
    _kept: list[tuple[Rows, np.ndarray]] = field(default_factory=list)

    def split(self, rows: Rows) -> Iterator[Rows]:
        """Give the rows that the density learns from; keep the others."""
        places = np.arange(self._seen + 1, self._seen + len(rows) + 1)
        self._seen += len(rows)
        yield from self._parted(rows, places)
        while sum(len(kept) for kept, _ in self._kept) > self.most:
            self.share /= 2
            everything, self._kept = self._kept, []
            for kept, where in everything:
                yield from self._parted(kept, where)

    def rows(self) -> list[Rows]:
        return [rows for rows, _ in self._kept]

    def _parted(self, rows: Rows, places: np.ndarray) -> Iterator[Rows]:
        held = places * _GOLDEN % 1.0 < self.share
        mask = torch.from_numpy(held).to(rows.labels.device)
        if held.any():
            self._kept.append((rows.taken(mask), places[held]))
        if not held.all():
            yield rows.taken(~mask)


def passes(
    source: FeatureSource,
    loader: Any,
    unpack: Unpack | None,
    device: torch.device,
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
            yield replace(rows, between=_between(source, inputs, rows, left)) if left > 0 else rows
    if not count:
        raise ValueError(
            f"{name} gave no rows; pass a loader with at least one batch (a generator that was "
            "read before is empty: make it anew, or pass a DataLoader)"
        )


def _between(source: FeatureSource, inputs: Arguments, rows: Rows, most: int) -> Tensor | None:
    """Logits half-way from at most so many rows to the nearest of their class in the batch.

    None where there is no half-way: of inputs other than rows of numbers.
    """
    parts = list(tensors(inputs))
    if not all(part.is_floating_point() and part.shape[:1] == (len(rows),) for part in parts):
        return None
    near = torch.from_numpy(nearest_of_class(to_numpy(rows.features), rows.labels.cpu().numpy()))

    def middle(part: Tensor) -> Tensor:
        return (part[:most] + part[near[:most].to(part.device)]) / 2

    args, kwargs = mapped(inputs, middle)
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
        raise _too_large(inputs, error) from error
    except (AttributeError, RuntimeError, TypeError) as error:
        # The allocator of the CPU has no type of its own.
        if "can't allocate memory" in str(error) or "not enough memory" in str(error):
            raise _too_large(inputs, error) from error
        misnamed = None if isinstance(error, RuntimeError) else _misnamed(inputs, source, batch)
        if misnamed is not None:
            raise misnamed from error
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


def _misnamed(inputs: Arguments, source: FeatureSource, batch: Batch | None) -> TypeError | None:
    """The error of names that a network does not take; None if it takes all."""
    args, kwargs = inputs
    alone = args[0] if len(args) == 1 and isinstance(args[0], Mapping) else {}
    names = list(kwargs or alone)
    unknown = [name for name in names if not binds(source.call, **{name: None})]
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


def _too_large(inputs: Arguments, error: Exception) -> MemoryError:
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
            raise _not_finite(what, found, finite, where)
    low, high = int(rows.labels.min()), int(rows.labels.max())
    if low < 0 or high >= k:
        raise ValueError(
            f"labels of {where} must be class indices 0..{k - 1}, as the network gives {k} logits, "
            f"got {low}..{high}; number the classes from 0, and give their names as classes="
        )


def _not_finite(what: str, found: Tensor, finite: Tensor, where: str) -> ValueError:
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
