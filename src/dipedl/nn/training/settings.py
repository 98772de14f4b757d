"""Settings and history of training, and `train`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import check_choice, check_data, check_flag, check_integer, check_number, check_seed
from ._device import device_type, resolve_device, seeded, threads, tuned
from ._loop import OPTIMIZERS, Run
from ._schedule import SCHEDULES
from .deadline import check_deadline

__all__ = ["History", "Training", "train"]


@dataclass(frozen=True)
class Training:
    """Settings of the optimisation of a network.

    Parameters
    ----------
    epochs : int, default=10
        Passes over the training rows.
    batch_size : int, default=128
        Rows of a gradient step. A last batch of one row joins the batch before it: batch
        normalisation has no variance of one row.
    optimizer : {"adam", "adamw", "sgd"}, default="adam"
        "sgd" has Nesterov momentum. "adam" and "sgd" couple the weight decay, "adamw" does not.
    learning_rate : float, default=1e-3
        Initial rate; the peak for "one-cycle".
    momentum : float, default=0.9
        Of "sgd"; the others do not use it.
    weight_decay : float, default=0.0
        L2 penalty on all parameters.
    schedule : {"constant", "one-cycle", "cosine", "step", "exponential"}, default="constant"
        "one-cycle" rises from a 25th of the peak over the first 30 % of the steps and falls to 0,
        changing every step. The others change between epochs: "cosine" falls to 0, "step"
        multiplies by `decay` every `step_size` epochs, "exponential" every epoch.
    step_size : int, default=10
        Epochs between two decays of "step".
    decay : float, default=0.5
        Factor of "step" and "exponential".
    clip_norm : float, optional
        Largest norm of the gradient; longer ones are scaled down.
    patience : int, optional
        Number of validation checks without a better score after which training stops.
    restore_best : bool, default=False
        Whether to end with the weights of the best validation check, not the last.
    validate_every : int, default=1
        Epochs between two validation checks.
    augment : callable, optional
        ``(inputs (b, d), generator) -> (b, d)``, applied to every training batch.
    device : str, default="auto"
        "auto" (a CUDA GPU where there is one, else the CPU), "cpu", "cuda", "cuda:0", "mps".
    amp : bool, default=False
        Run the module in bfloat16 on CUDA and on the CPU; losses stay in float32. A CPU needs
        AVX512-BF16 or AMX to gain by it (a convolution then takes half the time). On other devices
        it changes nothing. On CUDA cuDNN also tries its kernels and keeps the fastest: equal seeds
        then give equal numbers up to rounding only.
    compile : bool, default=False
        Train a compiled form of the module (``torch.compile``): about a minute at the start, then
        faster steps. The returned module and every checkpoint are the plain ones.
    n_jobs : int, optional
        Threads of PyTorch while it trains; None keeps its setting.

    Raises
    ------
    TypeError, ValueError
        If a setting is invalid.

    Notes
    -----
    bfloat16, not float16: it has the range of float32, so losses need no scaling and a checkpoint
    needs no scaler state.

    Examples
    --------
    >>> from dipedl.nn import Training
    >>> Training(epochs=20, optimizer="sgd", learning_rate=0.1, schedule="one-cycle").epochs
    20
    >>> Training(epochs=0)
    Traceback (most recent call last):
    ValueError: epochs must be an integer >= 1, got 0
    """

    epochs: int = 10
    batch_size: int = 128
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: str = "constant"
    step_size: int = 10
    decay: float = 0.5
    clip_norm: float | None = None
    patience: int | None = None
    restore_best: bool = False
    validate_every: int = 1
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None
    device: str = "auto"
    amp: bool = False
    compile: bool = False
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "step_size", "validate_every"):
            check_integer(name, getattr(self, name))
        for name in ("patience", "n_jobs"):
            check_integer(name, getattr(self, name), optional=True)
        for name in ("restore_best", "amp", "compile"):
            check_flag(name, getattr(self, name))
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_number("learning_rate", self.learning_rate, "> 0", lambda x: x > 0)
        check_number("weight_decay", self.weight_decay, ">= 0", lambda x: x >= 0)
        check_number("momentum", self.momentum, "in [0, 1)", lambda x: 0 <= x < 1)
        check_number("decay", self.decay, "in (0, 1]", lambda x: 0 < x <= 1)
        if self.clip_norm is not None:
            check_number("clip_norm", self.clip_norm, "> 0, or None", lambda x: x > 0)
        if self.augment is not None and not callable(self.augment):
            raise TypeError(
                "augment must be None or a callable (inputs, generator) -> inputs, "
                f"got {self.augment!r}"
            )
        device_type(self.device)


@dataclass
class History:
    """Record of a training run, one entry per epoch.

    Parameters
    ----------
    loss : list of float
        Mean training loss over the rows, while the weights change.
    score : list of float or None
        Validation score, lower is better; None where it was not computed.
    learning_rate : list of float
        Rate of the last step of the epoch.
    seconds : list of float
        Wall time of the epoch, validation included.
    best_epoch : int, optional
        Epoch (from 0) of the best score; None without validation.
    stopped_early : bool
        Whether `patience` ended the training.

    Attributes
    ----------
    epochs : int
        Epochs done.

    Examples
    --------
    >>> from dipedl.nn import History
    >>> History(loss=[0.5, 0.4], score=[0.6, 0.5]).epochs
    2
    """

    loss: list[float] = field(default_factory=list)
    score: list[float | None] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    stopped_early: bool = False

    @property
    def epochs(self) -> int:
        """Epochs done."""
        return len(self.loss)


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
        loss at the current epoch; needed for an annealed loss, which
        cannot be compared between epochs.
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
        If data, device or checkpoint do not match; the message says what differs.
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
    check_seed(seed)
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
        run = Run(module, loss, data, settings, device, streams[1:], validation, score, History())
        run.go(seed, None if checkpoint is None else Path(checkpoint), progress, deadline)
    return run.history
