"""Metrics where the true class probabilities are known: of intervals, and of uncertainty."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["error_correlation", "interval_coverage", "interval_score"]

#: A true probability this far outside an interval is rounding.
_ROUNDING = 1e-12


def interval_coverage(truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> float:
    """Share of the true class probabilities that lie in their intervals.

    Parameters
    ----------
    truth : array-like, shape (n, k)
        True class probabilities; rows sum to one.
    lower, upper : array-like, shape (n, k)
        Ends of an interval for each, as `dipedl.Dirichlet.credible_interval` gives them.

    Returns
    -------
    float
        In [0, 1]; the level of the intervals is the best, more is caution.

    Raises
    ------
    ValueError, TypeError
        If shapes differ, or an end is NaN or above the other.

    Examples
    --------
    >>> from dipedl_bench.results.intervals import interval_coverage
    >>> interval_coverage([[0.3, 0.7]], [[0.1, 0.2]], [[0.4, 0.6]])
    0.5
    """
    P, low, high = _checked(truth, lower, upper)
    return float(((low - _ROUNDING <= P) & (high + _ROUNDING >= P)).mean())


def interval_score(
    truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike, *, level: float
) -> float:
    r"""Mean width of the intervals, and a penalty for each true probability outside.

    .. math:: (u - l) + \frac{2}{1 - \text{level}} \left[(l - P)_+ + (P - u)_+\right]

    Parameters
    ----------
    truth, lower, upper
        As for `interval_coverage`.
    level : float
        Level of the central intervals, in (0, 1).

    Returns
    -------
    float
        At least 0. Lower is better: the quantiles of what is known minimise its expectation.

    Raises
    ------
    ValueError, TypeError
        As for `interval_coverage`, or if `level` is not in (0, 1).

    References
    ----------
    R. L. Winkler, "A decision-theoretic approach to interval estimation", *Journal of the American
    Statistical Association* 67, 1972; T. Gneiting, A. E. Raftery, "Strictly proper scoring rules,
    prediction, and estimation", same journal 102, 2007, equation 43.

    Examples
    --------
    >>> from dipedl_bench.results.intervals import interval_score
    >>> round(interval_score([[0.3, 0.7]], [[0.1, 0.2]], [[0.4, 0.6]], level=0.8), 3)
    0.85
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level!r}; 0.95 is usual")
    P, low, high = _checked(truth, lower, upper)
    outside = np.maximum(low - P, 0) + np.maximum(P - high, 0)
    return float((high - low + 2 / (1 - level) * outside).mean())


def error_correlation(
    uncertainty: npt.ArrayLike, proba: npt.ArrayLike, truth: npt.ArrayLike
) -> float:
    """Rank correlation of an uncertainty with the squared error of the class probabilities.

    Parameters
    ----------
    uncertainty : array-like, shape (n,)
        Higher is less sure.
    proba, truth : array-like, shape (n, k)
        Given and true class probabilities; rows sum to one.

    Returns
    -------
    float
        Spearman's, in [-1, 1]; higher is better. 0 if all uncertainties or all errors are equal.

    Raises
    ------
    ValueError, TypeError
        If shapes differ.

    Examples
    --------
    >>> from dipedl_bench.results.intervals import error_correlation
    >>> round(error_correlation([0.1, 0.9], [[0.5, 0.5]] * 2, [[0.5, 0.5], [0.9, 0.1]]), 3)
    1.0
    """
    u, P, T = (np.asarray(given, dtype=np.float64) for given in (uncertainty, proba, truth))
    if not len(u) == len(P) or P.shape != T.shape:
        raise ValueError(
            "uncertainty, proba and truth must describe the same inputs and classes, got "
            f"shapes {u.shape}, {P.shape} and {T.shape}"
        )
    a, b = _ranks(u), _ranks(((P - T) ** 2).sum(axis=1))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks (n,), of equal values their mean."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[where])


def _checked(truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> list[np.ndarray]:
    P, low, high = (np.asarray(given, dtype=np.float64) for given in (truth, lower, upper))
    if not P.shape == low.shape == high.shape:
        raise ValueError(
            "truth, lower and upper must have one shape (n, k), got "
            f"{P.shape}, {low.shape} and {high.shape}"
        )
    if not (low <= high).all():
        raise ValueError("lower must be at most upper everywhere, and neither may hold NaN")
    return [P, low, high]
