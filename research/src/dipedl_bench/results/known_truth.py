"""Scores of intervals and uncertainties where class probabilities are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from dipedl.dirichlet import Dirichlet

#: Levels of the intervals, in percent; widths, scores and parts are those of the last.
LEVELS = (50, 80, 95)
#: Thirds by distance to the training rows, and by the largest probability.
BY_DENSITY, BY_CONFIDENCE = ("densest", "middle", "sparsest"), ("unsure", "between", "surest")
_NEIGHBOURS = 10
#: Quantiles of stronger Dirichlets are not exact; their intervals have no width in any case.
_STRONGEST = 1e6
#: A true probability this far outside an interval is rounding.
_ROUNDING = 1e-12

Call = tuple[str, Callable[..., float], tuple[np.ndarray, ...]]


def interval_coverage(P: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the share of the true class probabilities P (n, k) that lie in their intervals.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([[0.1, 0.2]]), np.array([[0.4, 0.6]])
    >>> interval_coverage(np.array([[0.3, 0.7]]), *ends)
    0.5
    """
    return float(((lower - _ROUNDING <= P) & (upper + _ROUNDING >= P)).mean())


def interval_score(P: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, level: float) -> float:
    r"""Return the mean width of intervals, and a penalty for each true probability outside.

    .. math:: (u - l) + \frac{2}{1 - \text{level}} \left[(l - P)_+ + (P - u)_+\right]

    At least 0. Lower is better: the quantiles of what is known minimise its expectation.

    References
    ----------
    R. L. Winkler, "A decision-theoretic approach to interval estimation", *Journal of the American
    Statistical Association* 67, 1972; T. Gneiting, A. E. Raftery, "Strictly proper scoring rules,
    prediction, and estimation", same journal 102, 2007, equation 43.
    """
    outside = np.maximum(lower - P, 0) + np.maximum(P - upper, 0)
    return float((upper - lower + 2 / (1 - level) * outside).mean())


def error_correlation(uncertainty: np.ndarray, proba: np.ndarray, P: np.ndarray) -> float:
    """Return Spearman's correlation of an uncertainty (n,) with the squared error of `proba`.

    `P` (n, k) are the true class probabilities. In [-1, 1]; higher is better. 0 if all
    uncertainties or all errors are equal.
    """
    errors = ((proba - P) ** 2).sum(axis=1)
    if np.ptp(uncertainty) == 0 or np.ptp(errors) == 0:
        return 0.0
    return float(spearmanr(uncertainty, errors).statistic)


def distances(train: np.ndarray, X: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Distance (n,) of the rows of each split to their tenth neighbour among training rows."""
    # here: reading rows must not import scikit-learn
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(train))).fit(train)
    return {split: near.kneighbors(rows)[0][:, -1] for split, rows in X.items()}


def known_truth_calls(arrays: Mapping[str, Mapping[str, Any]], prefix: str) -> Iterator[Call]:
    """Metrics, functions and arguments for each split with "truth" and "concentration".

    "coverage_95_densest" is the coverage on the third of the rows that lies nearest to the training
    rows (by "distance"), "coverage_95_unsure" on the third with the lowest confidence.
    """
    for split, named in arrays.items():
        if "truth" in named and "concentration" in named:
            end = f"/{split.removeprefix(prefix)}" if split.startswith(prefix) else ""
            dirichlet = Dirichlet(named["concentration"])
            for name, function, data in _calls(dirichlet, named["truth"], named["distance"]):
                yield f"{name}{end}", function, data


def _calls(dirichlet: Dirichlet, P: np.ndarray, distance: np.ndarray) -> Iterator[Call]:
    capped = dirichlet.with_strength(np.minimum(dirichlet.strength, _STRONGEST))
    bounds = {level: capped.credible_interval(level / 100) for level in LEVELS}
    for level, ends in bounds.items():
        yield f"coverage_{level}", interval_coverage, (P, *ends)
    low, high = bounds[LEVELS[-1]]
    for names, keys in ((BY_DENSITY, distance), (BY_CONFIDENCE, dirichlet.mean.max(axis=1))):
        thirds = np.array_split(np.argsort(keys, kind="stable"), 3)
        for name, rows in zip(names, thirds, strict=True):
            yield f"coverage_95_{name}", interval_coverage, (P[rows], low[rows], high[rows])
    yield "width_95", lambda low, high: float((high - low).mean()), (low, high)
    yield "interval_score_95", partial(interval_score, level=LEVELS[-1] / 100), (P, low, high)
    yield "error_correlation", error_correlation, (dirichlet.epistemic, dirichlet.mean, P)
    yield (
        "squared_error",
        lambda mean, P: float(((mean - P) ** 2).sum(axis=1).mean()),
        (dirichlet.mean, P),
    )
