"""Wealth of bettors against a hypothesis: large wealth is evidence, whenever one looks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

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
    logs : ndarray, shape (bettors + 1,)
        The last is the part that waits.
    steps : int
        Bets so far.
    highest : float
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
    highest: float = 0.0

    @classmethod
    def of(cls, bettors: int) -> Wealth:
        """Before the first bet."""
        return cls(_shares(bettors))

    @property
    def log_total(self) -> float:
        """Logarithm of the wealth of all bettors together; nats of evidence."""
        return float(special.logsumexp(self.logs))

    def after(self, gains: np.ndarray) -> Wealth:
        """The wealth after a bet that multiplies each by ``exp(gains)``, shape (bettors,)."""
        logs = self.logs
        if self.steps:
            jump = 1 / (self.steps + 1)
            dealt = np.log(jump) + self.log_total + _shares(len(gains))
            logs = np.logaddexp(np.log1p(-jump) + logs, dealt)
        made = Wealth(logs + np.append(gains, 0.0), self.steps + 1)
        return Wealth(made.logs, made.steps, max(self.highest, made.log_total))


def _shares(bettors: int) -> np.ndarray:
    """Logarithms of the shares of the wealth that is dealt out, shape (bettors + 1,)."""
    each = np.full(bettors, np.log((1 - _WAITING) / bettors))
    return np.append(each, np.log(_WAITING))
