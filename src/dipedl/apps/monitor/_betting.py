"""Wealth of bettors against a hypothesis: large wealth is evidence, whenever one looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: The share of the wealth that never bets: it waits for a change.
_WAITING = 0.5


@dataclass(frozen=True, eq=False)
class Wealth:
    r"""Logarithms of the wealth of several bettors, who started with 1 together.

    At step t a share 1/t of all wealth is dealt out anew, so that a change at any time is followed.
    If a bet gains nothing on average under the hypothesis, the total is a nonnegative martingale:
    it ever reaches 1/alpha with probability alpha at most (Ville). With one bettor this is the
    Shiryaev-Roberts statistic whose possible changes at time t have the prior weight
    ``t^(-3/2)``, about.

    Attributes
    ----------
    logs : ndarray, shape (..., bettors + 1)
        The last is the part that waits. Streams may stand side by side, ``...`` of them.
    steps : int
        Bets so far.
    highest : float or ndarray, shape (...)
        Largest logarithm of the total so far.

    References
    ----------
    J. Ville, "Étude critique de la notion de collectif", 1939; V. Vovk et al., "Retrain or not
    retrain: conformal test martingales for change-point detection", COPA 2021, Section 3 (jumps
    between bettors); J. Shin, A. Ramdas, A. Rinaldo, "E-detectors", 2024 (restarts);
    A. Ramdas, P. Grünwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe anytime-valid
    inference", *Statistical Science* 38, 2023.
    """

    logs: np.ndarray
    steps: int = 0
    highest: Any = 0.0

    @classmethod
    def of(cls, bettors: int) -> Wealth:
        """Before the first bet."""
        return cls(_shares(bettors))

    @property
    def log_total(self) -> Any:
        """Logarithm of the wealth of all bettors together; nats of evidence."""
        top = self.logs.max(axis=-1)
        return top + np.log(np.exp(self.logs - top[..., None]).sum(axis=-1))

    def after(self, gains: np.ndarray) -> Wealth:
        """The wealth after a bet that multiplies each by ``exp(gains)``, shape (..., bettors)."""
        logs = self.logs
        if self.steps:
            jump = 1 / (self.steps + 1)
            dealt = np.log(jump) + np.expand_dims(self.log_total, -1) + _shares(gains.shape[-1])
            logs = np.logaddexp(np.log1p(-jump) + logs, dealt)
        logs = np.concatenate(
            [logs[..., :-1] + gains, logs[..., -1:] + 0 * gains[..., :1]], axis=-1
        )
        made = Wealth(logs, self.steps + 1)
        return Wealth(logs, made.steps, np.maximum(self.highest, made.log_total))


def _shares(bettors: int) -> np.ndarray:
    """Logarithms of the shares of the wealth that is dealt out, shape (bettors + 1,)."""
    shares = np.full(bettors + 1, (1 - _WAITING) / bettors)
    shares[-1] = _WAITING
    return np.asarray(np.log(shares))
