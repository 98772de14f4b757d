"""The training loop over epochs and batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ._checkpoint import Checkpoints
from ._device import random_states, set_random_states
from ._feed import EpochLosses, Feed, NotFiniteLoss
from ._muon import Muon, kernels
from ._schedule import learning_rate
from .deadline import TrainingPaused
from .settings import History, Training

#: Factor of the batch size without gradients, which need most of the memory.
_CHUNK_PER_BATCH = 4

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "muon": Muon,
}
#: Devices with a fused optimiser kernel, which takes half the time, and a bfloat16 not slower.
_FAST = ("cpu", "cuda")


class Run:
    """State of one training run, with save and restore."""

    def __init__(
        self,
        module: nn.Module,
        loss: Callable[..., Tensor],
        data: tuple[Tensor, ...],
        settings: Training,
        device: torch.device,
        seeds: Sequence[int],
        validation: tuple[Tensor, ...] | None,
        score: Callable[..., Any] | None,
    ) -> None:
        self.module, self.loss, self.data, self.settings = module, loss, data, settings
        self.device, self.validation, self.score = device, validation, score
        self.home = next((p.device for p in module.parameters()), torch.device("cpu"))
        self.shuffler = torch.Generator("cpu").manual_seed(seeds[0])
        self.augmenter = torch.Generator(device).manual_seed(seeds[1])
        self.history = History()
        self.best_score, self.without_gain = float("inf"), 0
        self.best: dict[str, Tensor] | None = None

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
            while not self._finished():
                last_good = self._weights()
                self._pause_before(deadline, checkpoints)
                with _memory(self.settings.batch_size):
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
        compiled = self.settings.compile
        self.called = torch.compile(self.module, dynamic=False) if compiled else self.module
        self.feed = Feed(self.data, self.device)
        self.began, self.epochs_before = time.perf_counter(), self.history.epochs

    def _finished(self) -> bool:
        return self.history.stopped_early or self.history.epochs >= self.settings.epochs

    def _epoch(self) -> None:
        start, epoch = time.perf_counter(), self.history.epochs
        self.module.train()
        batches = self.feed.batches(self.settings.batch_size, self.shuffler)
        losses = EpochLosses([len(rows) for rows in batches], self.device)
        try:
            for i, rows in enumerate(batches):
                rate = learning_rate(self.settings, epoch * len(batches) + i, len(batches))
                losses.add(i, self._step(self.feed.take(rows), rate, epoch))
            mean = losses.mean()
        except NotFiniteLoss as error:
            step, value = error.args
            where = f", step {step + 1} of {len(batches)}"
            raise _not_finite("loss", epoch, value, where) from None
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
        for group in self.optimizer.param_groups:
            group["lr"] = rate
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
        left = 0 if self._finished() else self.settings.epochs - history.epochs
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
    options: dict[str, Any] = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
    if settings.optimizer in ("sgd", "muon"):
        options |= {"momentum": settings.momentum, "nesterov": settings.momentum > 0}
    if settings.optimizer == "muon":
        options["kernels"] = kernels(module)
    return OPTIMIZERS[settings.optimizer](parameters, fused=device.type in _FAST, **options)


def _not_finite(what: str, epoch: int, value: float, where: str) -> FloatingPointError:
    return FloatingPointError(
        f"{what} is {value} in epoch {epoch + 1}{where}; the module holds the weights of the end "
        "of the last good epoch. Lower learning_rate, set clip_norm=1.0, or check the inputs"
    )


@contextmanager
def _memory(batch_size: int) -> Iterator[None]:
    """Turn running out of memory into an error with the batch size to try."""
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate" not in str(error):
            raise
        remedy = (
            f"try Training(batch_size={batch_size // 2})"
            if batch_size > 1
            else "use a smaller network, or device='cpu'"
        )
        raise MemoryError(f"out of memory with batch_size={batch_size}; {remedy}") from error
