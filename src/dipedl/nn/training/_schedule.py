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
    factor = SCHEDULES[settings.schedule](settings, step // steps_per_epoch, step, total)
    return settings.learning_rate * float(factor)


def _one_cycle(step: int, total: int) -> float:
    """Up over the first 30 % of the steps, then down to 0, each by half a cosine."""
    peak = _WARM_UP * total - 1
    if step <= peak:
        return _between(_START, 1.0, step / max(peak, 1))
    return _between(1.0, _END, min((step - peak) / max(total - 1 - peak, 1), 1.0))


def _between(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


#: Factor of the rate in a step of an epoch; "one-cycle" alone changes within an epoch.
SCHEDULES: dict[str, Callable[[Training, int, int, int], float]] = {
    "constant": lambda settings, epoch, step, total: 1.0,
    "one-cycle": lambda settings, epoch, step, total: _one_cycle(step, total),
    "cosine": lambda s, epoch, step, total: (1 + math.cos(math.pi * epoch / s.epochs)) / 2,
    "step": lambda settings, epoch, step, total: settings.decay ** (epoch // settings.step_size),
    "exponential": lambda settings, epoch, step, total: settings.decay**epoch,
}
