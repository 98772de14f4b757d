"""Where rows fall among reference rows: exactly how probable that is if all are exchangeable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

#: Shares of the reference rows below the cuts; those above the median only for fresh rows.
_LOW = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_HIGH = (0.8, 0.9, 0.95, 0.99)
#: Shares of the rows that bettors take for strange ones.
_STRANGE = (0.01, 0.03, 0.1, 0.3, 0.9)
#: Rows that other bettors think they know; they learn the shares of all ranges from the batch.
_KNOWN = (10.0, 100.0, 1000.0)


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
        """Of reference rows (N,), higher = more typical; with weights of Kish's effective number.

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
        return len(_STRANGE) * len(self._ranges()) + len(_KNOWN)

    def _ranges(self) -> np.ndarray:
        """The ranges that bettors take for strange, one a row, (r, K)."""
        k = len(self.sizes)
        lowest = np.tri(k - 1, k)
        return np.vstack([lowest, lowest[: len(_HIGH), ::-1]]) if self.both else lowest


def log_urn(urn: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Log-probability of rows in an order, of which `batch` fall into each range, (..., K)."""
    drawn = special.gammaln(urn + batch) - special.gammaln(urn)
    total = urn.sum(axis=-1)
    whole = special.gammaln(total + batch.sum(axis=-1)) - special.gammaln(total)
    return np.asarray(drawn.sum(axis=-1) - whole)
