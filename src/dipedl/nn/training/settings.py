"""Settings and history of training: `Training` and `History`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .._checks import check_choice, check_flag, check_integer, check_number
from ._device import device_type

__all__ = ["History", "Training"]

OPTIMIZER_NAMES = ("adam", "adamw", "sgd", "muon")
SCHEDULE_NAMES = ("constant", "one-cycle", "cosine", "step", "exponential")


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
    optimizer : {"adam", "adamw", "sgd", "muon"}, default="adam"
        "sgd" has Nesterov momentum. "adam" and "sgd" couple the weight decay, "adamw" does not.
        "muon" is "sgd" for all but the kernels of convolutions, which step along orthogonal
        matrices (see Notes); without a convolution it is an error.
    learning_rate : float, default=1e-3
        Initial rate; the peak for "one-cycle".
    momentum : float, default=0.9
        Of "sgd", and of "muon" but for kernels; the others do not use it.
    weight_decay : float, default=0.0
        L2 penalty on all parameters but the kernels of "muon".
    schedule : {"constant", "one-cycle", "cosine", "step", "exponential"}, default="constant"
        "one-cycle" rises from a 25th of the peak over the first 30 % of the steps and falls to 0,
        changing every step. The others change between epochs: "cosine" falls to 0, "step"
        multiplies by `decay` every `step_size` epochs, "exponential" every epoch.
    step_size : int, default=10
        Epochs between two decays of "step".
    decay : float, default=0.5
        Factor of "step" and "exponential".
    clip_norm : float, optional
        Largest norm of the gradient; longer ones are scaled down. Kernels of "muon" count in it,
        but it does not shorten their steps.
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
        AVX512-BF16 or AMX to gain by it. On other devices
        it changes nothing. On CUDA cuDNN also tries its kernels and keeps the fastest: equal seeds
        then give equal numbers up to rounding only.
    compile : bool, default=False
        Train a compiled form of the module (``torch.compile``): slower to start, then
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

    Muon makes every singular value of a kernel's Nesterov momentum (of 0.6) about 1 and steps by
    ``0.2 learning_rate`` of the kernel's norm, which it sets to the square root of its first
    dimension. The kernel is taken as one matrix, of that dimension and all others; one with fewer
    columns than rows, as of a depthwise convolution, steps less. A rate near 1
    needs a normalisation after every convolution; without any take 0.3 or less, and do not go on
    from trained weights: the first step changes their norm. Jordan et al., "Muon: an optimizer for
    hidden layers in neural networks" (2024).

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
        check_choice("optimizer", self.optimizer, OPTIMIZER_NAMES)
        check_choice("schedule", self.schedule, SCHEDULE_NAMES)
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
