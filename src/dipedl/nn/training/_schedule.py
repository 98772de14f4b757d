"""Learning rate as a function of the step, without state."""

from __future__ import annotations

import math
from collections.abc import Callable

from .settings import Training

_WARM_UP = 0.3
_START = 1 / 25
_END = 1 / 25e4


def learning_rate(settings: Training, step: int, steps_per_epoch: int) -> float:
    """The rate of gradient step `step`, counted from 0 over all epochs."""
    total = settings.epochs * steps_per_epoch
    factor = SCHEDULES[settings.schedule](settings, step, steps_per_epoch, total)
    return settings.learning_rate * factor


def _constant(settings: Training, step: int, per_epoch: int, total: int) -> float:
    return 1.0


def _one_cycle(settings: Training, step: int, per_epoch: int, total: int) -> float:
    """Up over the first 30 % of the steps, then down to 0, each by half a cosine."""
    peak = _WARM_UP * total - 1
    if step <= peak:
        return _between(_START, 1.0, step / max(peak, 1))
    return _between(1.0, _END, min((step - peak) / max(total - 1 - peak, 1), 1.0))


def _between(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _cosine(settings: Training, step: int, per_epoch: int, total: int) -> float:
    # by whole epochs, as in the recipes of the paper
    return (1 + math.cos(math.pi * (step // per_epoch) / settings.epochs)) / 2


def _step(settings: Training, step: int, per_epoch: int, total: int) -> float:
    return float(settings.decay ** (step // per_epoch // settings.step_size))


def _exponential(settings: Training, step: int, per_epoch: int, total: int) -> float:
    return float(settings.decay ** (step // per_epoch))


SCHEDULES: dict[str, Callable[[Training, int, int, int], float]] = {
    "constant": _constant,
    "one-cycle": _one_cycle,
    "cosine": _cosine,
    "step": _step,
    "exponential": _exponential,
}
