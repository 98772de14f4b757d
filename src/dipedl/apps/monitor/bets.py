"""Bets against "nothing has changed": large wealth is evidence, whenever one looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

#: The share of the wealth that never bets: it waits for a change.
_WAITING = 0.5
#: Sizes of the bets on a mean, as shares of the wealth that a number of 0 takes.
_STAKES = (0.02, 0.06, 0.2, 0.5)
BETTORS = len(_STAKES)
#: Sizes of the bets for the bound of a mean, as shares of the wealth that a number of 1 takes.
_BOUND_STAKES = 0.98 * 2.0 ** -np.arange(8)
_HALVINGS = 30
#: Shares of the reference rows below the cuts; those above the median only for fresh rows.
_LOW = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_HIGH = (0.8, 0.9, 0.95, 0.99)
#: Shares of the rows that bettors take for strange ones.
_STRANGE = (0.01, 0.03, 0.1, 0.3, 0.9)
#: Rows that other bettors think they know; they learn the shares of all ranges from the batch.
_KNOWN = (10.0, 100.0, 1000.0)


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
        """Return the wealth before the first bet."""
        return cls(_shares(bettors))

    @property
    def log_total(self) -> Any:
        """Logarithm of the wealth of all bettors together; nats of evidence."""
        top = self.logs.max(axis=-1)
        return top + np.log(np.exp(self.logs - top[..., None]).sum(axis=-1))

    def after(self, gains: np.ndarray) -> Wealth:
        """Return the wealth after a bet that multiplies each by ``exp(gains)``, (..., bettors)."""
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


def upper_bound(values: np.ndarray, weights: np.ndarray | None, level: float) -> float:
    """Above the mean of the population that values (N,) in [0, 1] are of, but for a chance `level`.

    The smallest m that the values refute: bets ``1 - b (x - m)`` gain nothing on average if the
    mean is m or more, so that they multiply the wealth by ``1 / level`` with probability `level` at
    most. Holds for every N and every distribution, also if large values are rare and were not seen.
    Weights count rows, as many as Kish's effective number.

    References
    ----------
    I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", *JRSS B*
    86, 2024.
    """
    w = np.ones(len(values)) if weights is None else weights * weights.sum() / (weights**2).sum()
    low, high = float(np.average(values, weights=w)), 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        stakes = _BOUND_STAKES / max(1 - middle, 1e-9)
        logs = np.log1p(-stakes[:, None] * (values - middle)) @ w
        refuted = np.logaddexp.reduce(logs) - np.log(len(stakes)) >= -np.log(level)
        low, high = (low, middle) if refuted else (middle, high)
    return high


def mean_gains(values: np.ndarray, most: Any) -> np.ndarray:
    """Logarithms of what bettors gain on each row (..., n) if the mean is above `most`, (...).

    Returns shape (..., bettors, n).

    A bet multiplies the wealth by ``1 + b (x - most)``, which gains nothing on average while the
    mean is at most `most`, whatever else the distribution is. Gains on several rows add.
    """
    bound = np.maximum(most, 1e-9)[..., None, None]
    stakes = np.array(_STAKES)[:, None] / bound
    return np.asarray(np.log1p(stakes * (values[..., None, :] - bound)))


@dataclass(frozen=True, eq=False)
class ReferenceRanks:
    r"""Reference rows by their typicality, cut into K ranges of ranks.

    A new row is equally likely to fall into each of the N + 1 gaps between N reference rows, and
    the next one falls into a gap with a probability that is proportional to 1 plus the rows that
    fell there: a Pólya urn. This holds for every continuous distribution and every N, if
    reference rows and new rows are exchangeable, so nothing need be estimated, and a long stream
    does not find out that the reference was finite. Cut into ranges of ``sizes`` gaps,

    .. math:: P(x) = \frac{B(\text{sizes} + \text{seen} + x)}{B(\text{sizes} + \text{seen})},

    with B the multivariate beta function, is the probability of a batch with x rows per range.

    Attributes
    ----------
    cuts, ties : ndarray, shape (K - 1,)
        Typicality of the reference rows at the cuts, and random numbers that order equal ones.
    sizes : ndarray, shape (K,)
        Gaps in each range; their sum is N + 1.
    both : bool
        Whether to bet on rows that are too typical, too.

    References
    ----------
    V. Vovk, I. Nouretdinov, A. Gammerman, "Testing exchangeability on-line", ICML 2003 (smoothed
    conformal p-values are independent and uniform, which is the urn); D. Blackwell,
    J. B. MacQueen, "Ferguson distributions via Pólya urn schemes", *Annals of Statistics* 1, 1973.
    """

    cuts: np.ndarray
    ties: np.ndarray
    sizes: np.ndarray
    both: bool

    @classmethod
    def of(
        cls,
        typicality: np.ndarray,
        weights: np.ndarray | None,
        rng: np.random.Generator,
        both: bool,
    ) -> ReferenceRanks:
        """Rank reference rows (N,), higher = more typical; with weights of Kish's effective number.

        `rng` orders equal rows; with `both` there are cuts above the median too.
        """
        ties = rng.random(len(typicality))
        order = np.lexsort((ties, typicality))
        w = np.ones(len(typicality)) if weights is None else weights[order]
        below = np.cumsum(w * w.sum() / (w**2).sum())
        shares = np.array(_LOW + _HIGH if both else _LOW)
        at = np.unique(np.searchsorted(below, shares * (below[-1] + 1) - 1e-9))
        at = at[at < len(below)]
        sizes = np.diff(below[at], prepend=0.0, append=below[-1] + 1)
        return cls(typicality[order][at], ties[order][at], sizes, both)

    def place(self, typicality: np.ndarray, ties: np.ndarray) -> np.ndarray:
        """Range 0..K-1 of each row, shape (n,)."""
        left = np.searchsorted(self.cuts, typicality, side="left")
        right = np.searchsorted(self.cuts, typicality, side="right")
        where = left.copy()
        for i in np.flatnonzero(left < right):
            where[i] += int((self.ties[left[i] : right[i]] < ties[i]).sum())
        return where

    def gains(self, seen: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Logarithms of what bettors gain on a batch after rows `seen`, (..., K) -> (..., bettors).

        A bettor takes a share of the rows for strange ones, which all fall into the lowest or the
        highest ranges, and the others for rows like those before. Some learn from the batch.
        """
        urn = self.sizes + seen
        usual = urn / urn.sum(axis=-1, keepdims=True)
        within = self._ranges().T
        share = np.array(_STRANGE)[:, None]
        # A bet on a row is usual(row) (1 - share), and share usual(row) / usual(range) more within.
        more = np.log(1 - share + share / (usual @ within)[..., None, :])
        inside = (batch @ within)[..., None, :]
        outside = batch.sum(axis=-1)[..., None, None] - inside
        gains = inside * more + outside * np.log(1 - share)
        gains += (batch * np.log(usual)).sum(axis=-1)[..., None, None]
        learning = [log_urn(known * usual, batch) for known in _KNOWN]
        flat = gains.reshape(*gains.shape[:-2], -1)
        made = np.concatenate([flat, np.stack(learning, axis=-1)], axis=-1)
        return np.asarray(made - log_urn(urn, batch)[..., None])

    @property
    def bettors(self) -> int:
        """Number of bettors on the ranks of a batch."""
        return len(_STRANGE) * len(self._ranges()) + len(_KNOWN)

    def _ranges(self) -> np.ndarray:
        """Return the ranges that bettors take for strange, one a row, (r, K)."""
        k = len(self.sizes)
        lowest = np.tri(k - 1, k)
        return np.vstack([lowest, lowest[: len(_HIGH), ::-1]]) if self.both else lowest


def log_urn(urn: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Log-probability of rows in an order, of which `batch` fall into each range, (..., K)."""
    drawn = special.gammaln(urn + batch) - special.gammaln(urn)
    total = urn.sum(axis=-1)
    whole = special.gammaln(total + batch.sum(axis=-1)) - special.gammaln(total)
    return np.asarray(drawn.sum(axis=-1) - whole)
