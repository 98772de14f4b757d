"""Training of a network: settings, the one loop, schedule, checkpoints, deadline and record."""

from __future__ import annotations

import hashlib
import io
import math
import re
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from torch import Tensor, nn

from ..maths.arrays import check_choice, check_flag, check_integer, check_number
from ..writing.files import writable_target, write_file
from ..writing.progress import LiveLine
from .checks import check_data
from .device import (
    device_type,
    limit_threads,
    memory_errors,
    random_states,
    resolve_device,
    seed_generators,
    set_random_states,
    tune_kernels,
)
from .step_graph import StepGraph

__all__ = ["History", "TextProgress", "Training", "TrainingPaused", "train"]


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
    optimizer : {"adam", "adamw", "sgd"} or callable, default="adam"
        "sgd" has Nesterov momentum. "adam" and "sgd" couple the weight decay, "adamw" does not. A
        function ``(module, settings) -> torch.optim.Optimizer`` makes another one.
    learning_rate : float, default=1e-3
        Initial rate; the peak for "one-cycle".
    momentum : float, default=0.9
        Of "sgd".
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
        AVX512-BF16 or AMX to gain by it. On other devices
        it changes nothing. On CUDA cuDNN also tries its kernels and keeps the fastest: equal seeds
        then give equal numbers up to rounding only.
    compile : bool or "graph", default=False
        Train a compiled form of the module (``torch.compile``): slower to start, then
        faster steps. "graph" records a step in each epoch as a CUDA graph and replays it, for
        networks of small layers: see Notes. On other devices it changes nothing. The returned
        module and every checkpoint are the plain ones.
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

    A replayed step runs none of the Python code of module and loss, only their kernels. They must
    not read a number from the GPU or copy a tensor to it, must change buffers in place, and may
    depend on the epoch but on no counter of their own. Dropout and learning rates are as without.

    Examples
    --------
    >>> from dipedl.networks import Training
    >>> Training(epochs=20, optimizer="sgd", learning_rate=0.1, schedule="one-cycle").epochs
    20
    >>> Training(epochs=0)
    Traceback (most recent call last):
    ValueError: epochs must be an integer >= 1, got 0; raise it
    """

    epochs: int = 10
    batch_size: int = 128
    optimizer: str | Callable[[nn.Module, Training], torch.optim.Optimizer] = "adam"
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
    compile: bool | str = False
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "step_size", "validate_every", "patience", "n_jobs"):
            if name not in ("patience", "n_jobs") or getattr(self, name) is not None:
                check_integer(name, getattr(self, name))
        for name in ("restore_best", "amp"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.compile, bool | np.bool_) and self.compile != "graph":
            raise TypeError(f"compile must be True, False or 'graph', got {self.compile!r}")
        if self.compile == "graph" and callable(self.optimizer):
            raise ValueError(
                "compile='graph' needs an optimizer that is given by its name, got "
                f"{self.optimizer!r}; give compile=True, or the name"
            )
        if isinstance(self.optimizer, type):
            raise TypeError(
                "optimizer must be a name or a function (module, settings), got the class "
                f"{self.optimizer.__name__}: give lambda module, settings: "
                f"{self.optimizer.__name__}(module.parameters(), lr=settings.learning_rate)"
            )
        if not callable(self.optimizer):
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
        object.__setattr__(self, "device", str(self.device))  # of a torch.device too


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
    >>> from dipedl.networks import History
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


class TrainingPaused(Exception):
    """Training stopped before its deadline; the checkpoint has the state to resume.

    Parameters
    ----------
    epoch : int
        Epochs done.
    epochs : int
        Total number of epochs.
    seconds_left : float
        Time that was left, less than the duration of an epoch.

    Examples
    --------
    >>> from dipedl.networks import TrainingPaused
    >>> print(TrainingPaused(3, 10, 4.2))
    paused after epoch 3 of 10 with 4.2 s left; the same call with a later deadline goes on
    """

    def __init__(self, epoch: int, epochs: int, seconds_left: float) -> None:
        # all three in args, from which an exception is rebuilt in another process
        super().__init__(epoch, epochs, seconds_left)
        self.epoch, self.epochs, self.seconds_left = epoch, epochs, seconds_left

    def __str__(self) -> str:
        return (
            f"paused after epoch {self.epoch} of {self.epochs} with {self.seconds_left:.1f} s "
            "left; the same call with a later deadline goes on"
        )


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
        File written after every epoch; one of over 100 MB at most twice a minute and in a tenth of
        the time, and at the end. If it exists the run resumes from it, with the same bits as an
        uninterrupted run.
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
        If the loss, the score or a weight is NaN or infinite; they are checked after the epoch.
    ValueError
        If data, device or checkpoint do not match, or the module has no weights that the optimiser
        trains; the message says what differs.
    MemoryError
        If the device runs out of memory, with the batch size to try.
    OSError
        If the checkpoint cannot be written.
    RuntimeError
        If a step cannot be recorded for ``compile="graph"``.
    TrainingPaused
        If the deadline passed before the last epoch.

    Notes
    -----
    After any exception the module holds the weights of the last whole epoch.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import Training, train
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
    if deadline is not None:
        expected = "of seconds of time.monotonic(), or None"
        check_number("deadline", deadline, expected, lambda _: True)
        if checkpoint is None:
            raise ValueError(
                "deadline needs a checkpoint, got checkpoint=None: what was trained would be "
                "lost; pass a path"
            )
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
    with (
        limit_threads(settings.n_jobs),
        seed_generators(streams[0], device),
        tune_kernels(settings.amp),
    ):
        run = Run(module, loss, data, settings, device, streams[1:], validation, score)
        path = None if checkpoint is None else Path(checkpoint)
        run.go(Checkpoints(path, {} if path is None else _identity(run, seed)), progress, deadline)
    return run.history


def _identity(run: Run, seed: int) -> dict[str, str]:
    """Settings and data that must be equal to resume a run, as text, by name."""
    settings = {
        f"settings.{f.name}": _text_of(getattr(run.settings, f.name))
        for f in fields(run.settings)
        if f.name not in _FREE
    }
    shapes = {
        f"weights of {name}": str(tuple(value.shape))
        for name, value in run.module.state_dict().items()
    }
    return {
        **shapes,
        "the layers": _text_of(run.module),
        **settings,
        "the loss": _text_of(run.loss),
        "the score": _text_of(run.score),
        "the device": run.device.type,
        "seed": str(seed),
        "data": _digest(run.data),
        "validation": "None" if run.validation is None else _digest(run.validation),
    }


def _text_of(thing: Any) -> str:
    """Return the repr without addresses and settings that may differ between two runs."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
    return re.sub(rf"({'|'.join(sorted(_FREE))})='?[\w:]+'?(, )?", "", text)


def _digest(data: tuple[Tensor, ...]) -> str:
    digest = hashlib.sha256()
    for part in data:
        digest.update(part.detach().contiguous().cpu().numpy().data)
    shapes = " ".join(f"{tuple(part.shape)} {part.dtype}" for part in data)
    return f"{shapes} sha256:{digest.hexdigest()[:16]}"


#: Factor of the batch size without gradients, which need most of the memory.
_CHUNK_PER_BATCH = 4

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
#: Devices with a fused optimiser kernel, which takes half the time, and a bfloat16 not slower.
_FAST = ("cpu", "cuda")


@dataclass(eq=False)
class Run:
    """State of one training run, with save and restore."""

    module: nn.Module
    loss: Callable[..., Tensor]
    data: tuple[Tensor, ...]
    settings: Training
    device: torch.device
    seeds: Sequence[int]
    validation: tuple[Tensor, ...] | None
    score: Callable[..., Any] | None
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        self.home = next((p.device for p in self.module.parameters()), torch.device("cpu"))
        self.shuffler = torch.Generator("cpu").manual_seed(self.seeds[0])
        self.augmenter = torch.Generator(self.device).manual_seed(self.seeds[1])
        self.best_score, self.without_gain = float("inf"), 0
        self.best: dict[str, Tensor] | None = None
        self.called: Callable[[Tensor], Tensor] = self.module
        self.graph: StepGraph | None = None

    def go(
        self,
        checkpoints: Checkpoints,
        progress: Callable[[dict[str, Any]], object] | None,
        deadline: float | None = None,
    ) -> None:
        """Run the remaining epochs, from the checkpoint if there is one."""
        last_good: dict[str, Tensor] | None = self._weights()
        try:
            self.module.to(self.device)
            self._start()
            state = checkpoints.load()
            if state is not None:
                self._load(state)
            while not self._is_done():
                last_good = self._weights()
                self._pause_before(deadline, checkpoints)
                smaller = "try Training(batch_size={})"
                alone = "use a smaller network, or device='cpu'"
                with memory_errors(self.settings.batch_size, smaller, alone):
                    self._epoch()
                last_good = None
                checkpoints.save(self._state)
                if progress is not None:
                    progress(self._report())
            checkpoints.flush(self._state)
            if self.settings.restore_best and self.best is not None:
                self.module.load_state_dict(self.best)
        except BaseException:
            if last_good is not None:
                self.module.load_state_dict(last_good)
            raise
        finally:
            self.module.to(self.home).eval()

    def _pause_before(self, deadline: float | None, checkpoints: Checkpoints) -> None:
        """Raise TrainingPaused if the next epoch would probably end after the deadline."""
        if deadline is None:
            return
        left = deadline - time.monotonic()
        if left < self._seconds_per_epoch():
            checkpoints.flush(self._state)
            raise TrainingPaused(self.history.epochs, self.settings.epochs, left)

    def _seconds_per_epoch(self) -> float:
        """Mean so far, of this process if it has finished an epoch; 0 before the first one."""
        done = self.history.epochs - self.epochs_before
        if done:
            return (time.perf_counter() - self.began) / done
        return float(np.mean(self.history.seconds)) if self.history.seconds else 0.0

    def _weights(self) -> dict[str, Tensor]:
        return deepcopy(self.module.state_dict())

    def _start(self) -> None:
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        if not parameters:
            raise ValueError(
                f"module must have weights to train, and {type(self.module).__name__} has none; "
                "add a layer, or unfreeze one with layer.requires_grad_(True)"
            )
        self.optimizer = _optimizer(self.module, parameters, self.settings, self.device)
        self.parameters = parameters
        # The module itself is unchanged; states, checkpoints and predictions use it.
        # Each shape is compiled: there are two, of a full batch and of the last one.
        if self.settings.compile == "graph":
            if self.device.type == "cuda":
                self.graph = StepGraph(self._descend, self.module, self.optimizer, self.device)
        elif self.settings.compile:
            self.called = torch.compile(self.module, dynamic=False)
        self.feed = Feed(self.data, self.device)
        self.began, self.epochs_before = time.perf_counter(), self.history.epochs

    def _is_done(self) -> bool:
        return self.history.stopped_early or self.history.epochs >= self.settings.epochs

    def _epoch(self) -> None:
        start, epoch = time.perf_counter(), self.history.epochs
        self.module.train()
        batches = self.feed.batches(self.settings.batch_size, self.shuffler)
        losses = []
        for i, rows in enumerate(batches):
            rate = learning_rate(self.settings, epoch * len(batches) + i, len(batches))
            losses.append(self._step(self.feed.take(rows), rate, epoch).detach())
        mean = _mean_loss(losses, batches, epoch)
        if not bool(torch.stack([p.isfinite().all() for p in self.parameters]).all()):
            raise _not_finite("a weight", epoch, float("nan"), ", after its last step")
        score = self._validate(epoch)
        self.history.loss.append(mean)
        self.history.score.append(score)
        self.history.learning_rate.append(rate)
        self.history.seconds.append(time.perf_counter() - start)

    def _step(self, batch: list[Tensor], rate: float, epoch: int) -> Tensor:
        inputs, *targets = batch
        if self.settings.augment is not None:
            inputs = self.settings.augment(inputs, self.augmenter)
        if self.graph is not None:
            return self.graph([inputs, *targets], rate, epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return self._descend([inputs, *targets], epoch)

    def _descend(self, batch: list[Tensor], epoch: int) -> Tensor:
        inputs, *targets = batch
        self.optimizer.zero_grad()
        loss = self.loss(self._outputs(self.called, inputs), *targets, epoch=epoch)
        if not isinstance(loss, Tensor) or loss.ndim:
            came = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss)
            raise TypeError(f"loss must return a scalar tensor, the mean of a batch; got {came}")
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.settings.clip_norm)
        self.optimizer.step()
        return loss

    def _outputs(self, module: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        """Outputs of the module, in float32 at least, since losses need it."""
        amp = self.settings.amp and self.device.type in _FAST
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=amp):
            outputs = module(inputs)
        return outputs.float() if outputs.dtype in (torch.bfloat16, torch.float16) else outputs

    def _validate(self, epoch: int) -> float | None:
        last = epoch + 1 == self.settings.epochs
        if self.validation is None or not (last or (epoch + 1) % self.settings.validate_every == 0):
            return None
        score = self._mean_score(epoch)
        if not np.isfinite(score):
            raise _not_finite("the validation score", epoch, score, "")
        if score < self.best_score:
            self.best_score, self.history.best_epoch, self.without_gain = score, epoch, 0
            if self.settings.restore_best:
                self.best = self._weights()
        else:
            self.without_gain += 1
        patience = self.settings.patience
        self.history.stopped_early = patience is not None and self.without_gain >= patience
        return score

    def _mean_score(self, epoch: int) -> float:
        data = self.validation or ()
        n, size = len(data[0]), _CHUNK_PER_BATCH * self.settings.batch_size
        self.module.eval()
        total = 0.0
        with torch.no_grad():
            for start in range(0, n, size):
                inputs, *targets = (p[start : start + size].to(self.device) for p in data)
                outputs = self._outputs(self.module, inputs)
                value = (
                    self.loss(outputs, *targets, epoch=epoch)
                    if self.score is None
                    else self.score(outputs, *targets)
                )
                total += float(value) * len(inputs)
        return total / n

    def _report(self) -> dict[str, Any]:
        history = self.history
        left = 0 if self._is_done() else self.settings.epochs - history.epochs
        lists = ("loss", "score", "learning_rate", "seconds")
        return {
            "epoch": history.epochs,
            "epochs": self.settings.epochs,
            **{name: getattr(history, name)[-1] for name in lists},
            "rows_per_second": len(self.data[0]) / history.seconds[-1],
            "seconds_left": left * self._seconds_per_epoch(),
            "stopped_early": history.stopped_early,
        }

    def _state(self) -> dict[str, Any]:
        return {
            "module": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "shuffler": self.shuffler.get_state(),
            "augmenter": self.augmenter.get_state(),
            "random": random_states(self.device),
            "history": asdict(self.history),
            "best": self.best,
            "best_score": self.best_score,
            "without_gain": self.without_gain,
        }

    def _load(self, state: dict[str, Any]) -> None:
        self.module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.shuffler.set_state(state["shuffler"])
        self.augmenter.set_state(state["augmenter"])
        set_random_states(state["random"], self.device)
        self.history = History(**state["history"])
        self.best, self.best_score = state["best"], state["best_score"]
        self.without_gain = state["without_gain"]
        self.epochs_before = self.history.epochs


def _optimizer(
    module: nn.Module, parameters: list[nn.Parameter], settings: Training, device: torch.device
) -> torch.optim.Optimizer:
    if callable(settings.optimizer):
        made = settings.optimizer(module, settings)
        if not isinstance(made, torch.optim.Optimizer):
            raise TypeError(
                "optimizer must return a torch.optim.Optimizer of the module's parameters, got "
                f"{type(made).__name__}"
            )
        return made
    options: dict[str, Any] = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
    if settings.optimizer == "sgd":
        options |= {"momentum": settings.momentum, "nesterov": settings.momentum > 0}
    return OPTIMIZERS[settings.optimizer](parameters, fused=device.type in _FAST, **options)


def _mean_loss(losses: list[Tensor], batches: list[Tensor], epoch: int) -> float:
    """Return the mean over the rows of an epoch; FloatingPointError if a loss is not finite."""
    total = 0.0
    # One transfer, the only wait for a GPU in an epoch.
    for step, (loss, rows) in enumerate(zip(torch.stack(losses).tolist(), batches, strict=True), 1):
        if not math.isfinite(loss):
            raise _not_finite("loss", epoch, loss, f", step {step} of {len(losses)}")
        total += loss * len(rows)
    return total / sum(map(len, batches))


def _not_finite(what: str, epoch: int, value: float, where: str) -> FloatingPointError:
    return FloatingPointError(
        f"{what} is {value} in epoch {epoch + 1}{where}; the module holds the weights of the end "
        "of the last good epoch. Lower learning_rate, set clip_norm=1.0, or check the inputs"
    )


_WARM_UP = 0.3
_START = 1 / 25
_END = 1 / 25e4


def learning_rate(settings: Training, step: int, steps_per_epoch: int) -> float:
    """Return the rate of gradient step `step`, counted from 0 over all epochs."""
    total = settings.epochs * steps_per_epoch
    factor = SCHEDULES[settings.schedule](settings, step // steps_per_epoch, step, total)
    return settings.learning_rate * float(factor)


def _one_cycle(step: int, total: int) -> float:
    """Up over the first 30 % of the steps, then down to 0, each by half a cosine."""
    peak = _WARM_UP * total - 1
    if step <= peak:
        return _interpolate(_START, 1.0, step / max(peak, 1))
    return _interpolate(1.0, _END, min((step - peak) / max(total - 1 - peak, 1), 1.0))


def _interpolate(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


#: Factor of the rate in a step of an epoch; "one-cycle" alone changes within an epoch.
SCHEDULES: dict[str, Callable[[Training, int, int, int], float]] = {
    "constant": lambda settings, epoch, step, total: 1.0,
    "one-cycle": lambda settings, epoch, step, total: _one_cycle(step, total),
    "cosine": lambda s, epoch, step, total: (1 + math.cos(math.pi * epoch / s.epochs)) / 2,
    "step": lambda settings, epoch, step, total: settings.decay ** (epoch // settings.step_size),
    "exponential": lambda settings, epoch, step, total: settings.decay**epoch,
}


#: Share of the free GPU memory before training that the data may take; the rest is for weights,
#: optimiser and activations.
_SHARE = 0.5


class Feed:
    """Batches of tensors from the CPU: kept on a GPU if all fit, else copied one by one."""

    def __init__(self, data: tuple[Tensor, ...], device: torch.device) -> None:
        self.device = device
        self.is_resident = device.type == "cuda" and _fits(data, device)
        self.data = tuple(part.to(device) for part in data) if self.is_resident else data

    def batches(self, size: int, generator: torch.Generator) -> list[Tensor]:
        """Return row numbers, shuffled, in batches for `take`; a single last one joins another."""
        rows = torch.randperm(len(self.data[0]), generator=generator, device=generator.device)
        rows = rows.to(self.data[0].device)
        parts = list(torch.split(rows, size))
        if len(parts) > 1 and size > 1 and len(parts[-1]) == 1:
            parts[-2:] = [torch.cat(parts[-2:])]
        return parts

    def take(self, rows: Tensor) -> list[Tensor]:
        """Return these rows of every tensor, on the device."""
        parts = [part[rows] for part in self.data]
        if self.device.type == "cuda" and not self.is_resident:
            # a copy from pinned memory runs during the computation
            return [part.pin_memory().to(self.device, non_blocking=True) for part in parts]
        return [part.to(self.device) for part in parts]


def _fits(data: tuple[Tensor, ...], device: torch.device) -> bool:
    free, _ = torch.cuda.mem_get_info(device)
    return sum(part.numel() * part.element_size() for part in data) <= _SHARE * free


_FORMAT = 1
#: A file of more bytes is written at most once per so many seconds, and per so many times as long
#: as a write takes: WRN-28-10 has 290 MB and, on a GPU, epochs of 7 s; the paper's flow has 7 GB.
_LARGE = 100_000_000
_PERIOD, _WRITES = 30.0, 10


class Checkpoints:
    """Checkpoint of one run: a small one is written every epoch, a large one less often."""

    def __init__(self, path: Path | None, identity: dict[str, str]) -> None:
        if path is not None:
            writable_target(path)  # now, and not after the first epoch
        self.path, self.identity = path, identity
        self.size, self.next, self.is_newest = 0, 0.0, True

    def load(self) -> dict[str, Any] | None:
        """The state in the file, if there is one; it must not be damaged or of another run."""
        path = self.path
        if path is None or not path.exists():
            return None
        with path.open("rb") as file:
            try:
                content = torch.load(file, map_location="cpu", weights_only=True)
                version, stored, state = content["format"], content["fingerprint"], content["state"]
            except Exception as error:
                what = type(error).__name__
                raise ValueError(
                    f"checkpoint {path} cannot be read ({what}); delete it to start again"
                ) from error
        if version != _FORMAT:
            raise ValueError(
                f"checkpoint {path} has format {version}, this version reads {_FORMAT}; delete it"
            )
        _check_same(path, stored, self.identity)
        return dict(state)

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state, unless the file is large and was just written."""
        self.is_newest = False
        if self.size <= _LARGE or time.monotonic() >= self.next:
            self.flush(state)

    def flush(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state unless the file has it."""
        if self.path is not None and not self.is_newest:
            start = time.monotonic()
            self._write(self.path, state())
            end = time.monotonic()
            self.next, self.is_newest = end + max(_PERIOD, _WRITES * (end - start)), True

    def _write(self, path: Path, state: dict[str, Any]) -> None:
        """Replace the file at once; after a failure the old one remains."""
        # Through memory: torch.save to a full disk raises an unclear RuntimeError.
        buffer = io.BytesIO()
        torch.save({"format": _FORMAT, "fingerprint": self.identity, "state": state}, buffer)
        self.size = buffer.tell()
        try:
            write_file(path, buffer.getbuffer())
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}. The checkpoint needs {max(self.size / 1e6, 0.1):.1f} MB: free "
                "some space or pass another path. The module holds the last epoch",
            ) from error


def _check_same(path: Path, stored: dict[str, str], expected: dict[str, str]) -> None:
    for name in [*expected, *stored]:
        before, now = stored.get(name, "absent"), expected.get(name, "absent")
        if before != now:
            # Of several lines, such as the layers, the first that differs.
            pairs = zip_longest(before.splitlines(), now.splitlines(), fillvalue="nothing")
            unequal = ((x.strip(), y.strip()) for x, y in pairs if x != y)
            before, now = next(unequal, (before, now))
            raise ValueError(
                f"checkpoint {path} is of another run: {name} was {before} there and is {now} "
                "here; pass another checkpoint path, or delete the file to start again"
            )


@dataclass(frozen=True)
class TextProgress:
    """Shows epoch, loss, score, speed and remaining time; pass it as `progress`.

    In a terminal and in a notebook one line is rewritten; a log gets a line every ten seconds, and
    that of the last epoch.

    Parameters
    ----------
    label : str, default=""
        Prefix of the line.
    stream : file, optional
        Output; None is standard error, or the output of the notebook's cell.

    Examples
    --------
    >>> import sys
    >>> from dipedl.networks import TextProgress
    >>> show = TextProgress("digits", sys.stdout)
    >>> show({"epoch": 10, "epochs": 10, "loss": 0.25, "score": None, "rows_per_second": 1930.0,
    ...       "seconds_left": 0.0, "stopped_early": False})
    digits epoch 10/10  loss 0.25  1,930 rows/s  0 s left
    """

    label: str = ""
    stream: TextIO | None = None

    def __call__(self, report: dict[str, Any]) -> None:
        """Show an epoch; `report` comes from `dipedl.networks.train`."""
        parts = [
            *([f"member {report['member']}/{report['members']}"] if "member" in report else []),
            f"epoch {report['epoch']:>{len(str(report['epochs']))}}/{report['epochs']}",
            f"loss {report['loss']:.4g}",
            *([] if report["score"] is None else [f"score {report['score']:.4g}"]),
            f"{report['rows_per_second']:,.0f} rows/s",
            "stopped early"
            if report["stopped_early"]
            else f"{_clock(report['seconds_left'])} left",
        ]
        last = report["stopped_early"] or report["epoch"] == report["epochs"]
        self._line.show(f"{self.label} {'  '.join(parts)}".lstrip(), last=last)

    @cached_property
    def _line(self) -> LiveLine:
        return LiveLine(self.stream)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
