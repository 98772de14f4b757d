"""`train`: the one training loop, for every network of the library."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from .._checks import check_data, check_integer
from ._checkpoint import Checkpoints
from ._device import resolve_device, seeded, threads, tuned
from ._loop import Run
from .deadline import check_deadline
from .settings import History, Training

__all__ = ["train"]

#: Settings that may differ between machines: they do not change the result.
_FREE = {"n_jobs", "device", "compile"}


def train(
    module: nn.Module,
    loss: Callable[..., Tensor],
    data: tuple[Tensor, ...],
    settings: Training,
    *,
    seed: int,
    validation: tuple[Tensor, ...] | None = None,
    score: Callable[..., Any] | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[dict[str, Any]], object] | None = None,
    deadline: float | None = None,
) -> History:
    """Train a module in place.

    Everything random (shuffling, augmentation, dropout) comes from `seed`; PyTorch's global
    generators and its number of threads are restored afterwards. On one machine with one thread,
    equal arguments give equal bits.

    Parameters
    ----------
    module : torch.nn.Module
        Called as ``module(inputs)``. It ends in eval mode, on its original device.
    loss : callable
        ``loss(outputs, *targets, epoch=epoch)``: mean over the batch, a scalar tensor. It never
        runs in half precision. `epoch` counts from 0, for annealing.
    data : tuple of Tensor
        Inputs and targets with the same first dimension, on the CPU. A CUDA device gets all of them
        once if they fill no more than half of its free memory; else batches move there.
    settings : Training
        How.
    seed : int
        Seed, >= 0.
    validation : tuple of Tensor, optional
        As `data`; needed by `patience` and `restore_best`.
    score : callable, optional
        ``score(outputs, *targets)``: mean over the rows of a chunk, lower is better. Default: the
        loss at the current epoch; needed for an annealed loss, which cannot be compared between
        epochs.
    checkpoint : path, optional
        File written after every epoch; one of over 100 MB twice a minute, and at the end. If it
        exists the run resumes from it, with the same bits as an uninterrupted run.
    progress : callable, optional
        Called after every epoch with a dict; `TextProgress` prints it.
    deadline : float, optional
        A time of ``time.monotonic()``. An epoch that would probably end after it, by the mean
        duration so far, is not started: the checkpoint, which must be given, is written and
        `TrainingPaused` raised. The same call with a later deadline resumes.

    Returns
    -------
    History
        One entry per epoch.

    Raises
    ------
    FloatingPointError
        If the loss, the score or a weight is NaN or infinite; on CUDA losses are checked after the
        epoch, so that no step waits.
    ValueError
        If data, device or checkpoint do not match, or the module has no weights that the optimiser
        trains; the message says what differs.
    MemoryError
        If the device runs out of memory, with the batch size to try.
    OSError
        If the checkpoint cannot be written.
    TrainingPaused
        If the deadline passed before the last epoch.

    Notes
    -----
    After any exception the module holds the weights of the last whole epoch.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import Training, train
    >>> x = torch.linspace(-1, 1, 64)[:, None]
    >>> module = torch.nn.Linear(1, 1)
    >>> def loss(outputs, targets, epoch):
    ...     return (outputs - targets).square().mean()
    >>> settings = Training(epochs=20, optimizer="sgd", learning_rate=0.1, batch_size=16)
    >>> history = train(module, loss, (x, 3 * x), settings, seed=0)
    >>> round(module.weight.item(), 2), history.epochs
    (3.0, 20)
    """
    check_integer("seed", seed, 0)  # None would make the run unrepeatable
    check_deadline(deadline, checkpoint)
    check_data("data", data)
    if validation is not None:
        check_data("validation", validation)
    elif settings.patience is not None or settings.restore_best:
        raise ValueError(
            "patience and restore_best need validation data, got validation=None; pass "
            "validation=(inputs, *targets)"
        )
    device = resolve_device(settings.device)
    streams = [int(word) for word in np.random.SeedSequence(seed).generate_state(3)]
    with threads(settings.n_jobs), seeded(streams[0], device), tuned(settings.amp):
        run = Run(module, loss, data, settings, device, streams[1:], validation, score)
        checkpoints = (
            Checkpoints(None, {})
            if checkpoint is None
            else Checkpoints(Path(checkpoint), _identity(run, seed))
        )
        run.go(checkpoints, progress, deadline)
    return run.history


def _identity(run: Run, seed: int) -> dict[str, str]:
    """Settings and data that must be equal to resume a run, as text, by name."""
    settings = {
        f"settings.{f.name}": _described(getattr(run.settings, f.name))
        for f in fields(run.settings)
        if f.name not in _FREE
    }
    shapes = {
        f"weights of {name}": str(tuple(value.shape))
        for name, value in run.module.state_dict().items()
    }
    return {
        **shapes,
        "the layers": _described(run.module),
        **settings,
        "the loss": _described(run.loss),
        "the score": _described(run.score),
        "the device": run.device.type,
        "seed": str(seed),
        "data": _digest(run.data),
        "validation": "None" if run.validation is None else _digest(run.validation),
    }


def _described(thing: Any) -> str:
    """Its repr without addresses and settings that may differ between two runs."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
    return re.sub(rf"({'|'.join(sorted(_FREE))})='?[\w:]+'?(, )?", "", text)


def _digest(data: tuple[Tensor, ...]) -> str:
    digest = hashlib.sha256()
    for part in data:
        digest.update(part.detach().contiguous().cpu().numpy().data)
    shapes = " ".join(f"{tuple(part.shape)} {part.dtype}" for part in data)
    return f"{shapes} sha256:{digest.hexdigest()[:16]}"
