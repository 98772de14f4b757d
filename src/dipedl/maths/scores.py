"""AUROC and its variance, scores moved by what rounding may, and the interval of a share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Share of a score in float64 that rounding may change: a sum's depends on the rows beside it.
_ROUNDING = 1e-9
#: Standard errors on each side of a 95 % interval.
Z95 = 1.959963984540054


def round_down(scores: npt.ArrayLike) -> np.ndarray:
    """Lower scores by as much as rounding may: computed beside other rows none comes out lower."""
    s = np.asarray(scores)
    return np.asarray(s - np.where(np.isfinite(s), _ROUNDING * np.abs(s), 0.0))


def round_up(scores: npt.ArrayLike) -> np.ndarray:
    """Raise scores by as much as rounding may: computed beside other rows none comes out higher."""
    return -round_down(np.negative(scores))


def auroc(
    typical: np.ndarray,
    departed: np.ndarray,
    weights: np.ndarray | None = None,
    departed_weights: np.ndarray | None = None,
) -> float:
    """Probability that a score of `typical` rows is above one of `departed` ones; ties count half.

    What differs by rounding alone is a tie. Weights say how often each row counts. NaN without rows
    on either side.
    """
    if not len(typical) or not len(departed):
        return float("nan")
    return float(1 - np.average(placements(typical, departed, weights), weights=departed_weights))


def auroc_variance(typical: np.ndarray, departed: np.ndarray) -> float:
    """Variance of `auroc`, from the placements of each set in the other; 1/4 for single rows.

    DeLong, DeLong, Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves",
    Biometrics 44 (1988).
    """
    if min(len(typical), len(departed)) < 2:
        return 0.25
    both_ways = ((typical, departed), (departed, typical))
    return float(sum(placements(a, b).var(ddof=1) / len(b) for a, b in both_ways))


def placements(
    among: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Share of the weight of `among` that lies below each of `scores`, ties half, shape (n,)."""
    order = np.argsort(among, kind="stable")
    own = np.ones(len(order)) if weights is None else weights[order]
    total = np.concatenate([[0.0], np.cumsum(own)])
    ranked = among[order]
    below = total[np.searchsorted(round_up(ranked), scores, side="left")]
    not_above = total[np.searchsorted(round_down(ranked), scores, side="right")]
    return np.asarray((below + not_above) / (2 * total[-1]))


def wilson(share: npt.ArrayLike, n: npt.ArrayLike) -> np.ndarray:
    """Both ends of the 95 % interval of shares (...) of n rows (Wilson, 1927), shape (2, ...)."""
    p, a = np.asarray(share), Z95**2 / (2 * np.asarray(n))
    # Exactly 0 below a share of 0, and 1 above one of 1.
    below, above = (q + a - np.sqrt(a * (a + 2 * q * (1 - q))) for q in (p, 1 - p))
    return np.stack([below / (1 + 2 * a), 1 - above / (1 + 2 * a)])
