"""Tests of differences between methods: over rows, over seeds, and over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = [
    "AurocDifference",
    "Ranking",
    "adjust_holm",
    "average_ranks",
    "compare_aurocs",
    "compare_over_data_sets",
    "compare_over_seeds",
    "rank_methods",
]

Floats = npt.NDArray[np.float64]
#: Uncertainties of known rows (n_in,) and of OOD rows (n_out,).
Scores = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class AurocDifference:
    """Difference of two AUROCs on the same rows, its standard error, and the two-sided p-value."""

    difference: float
    standard_error: float
    p_value: float


def compare_aurocs(
    first: Sequence[Sequence[Scores]], second: Sequence[Sequence[Scores]]
) -> AurocDifference:
    r"""Return the paired DeLong test of two methods, scored on the same rows.

    `first` and `second` hold for each OOD set, for each seed, the uncertainties of known and of OOD
    rows; row i is the same input in both methods and all seeds. Compared are means of the AUROC
    over sets and seeds. With the share :math:`V` of the other side that a row is ranked rightly
    against (its placement), and :math:`D` the difference of the placements of both methods,

    .. math::
        \mathrm{var} = \frac{s^2(\bar D_{in})}{n_{in}}
        + \frac1{m^2} \sum_{\text{sets}} \frac{s^2(D_{out})}{n_{out}}

    for m sets; placements are means over seeds. The test covers the choice of the rows, and neither
    that of the seeds nor that of the sets.

    References
    ----------
    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, "Comparing the areas under two or more
    correlated receiver operating characteristic curves: a nonparametric approach", *Biometrics* 44,
    1988, equations 4 to 6.

    Examples
    --------
    >>> import numpy as np
    >>> good = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.6, 0.7])
    >>> poor = np.array([0.1, 0.6, 0.3, 0.8]), np.array([0.5, 0.6, 0.7])
    >>> round(compare_aurocs([[good]], [[poor]]).difference, 3)
    0.375
    """
    inside, outside, variance = [], [], 0.0
    for of_first, of_second in zip(first, second, strict=True):
        ones, others = ([_placements(*of) for of in seeds] for seeds in (of_first, of_second))
        of_set = [
            np.mean([ranks[side] for ranks in ones], axis=0)
            - np.mean([ranks[side] for ranks in others], axis=0)
            for side in (0, 1)
        ]
        inside.append(of_set[0])
        outside.append(of_set[1].mean())
        variance += of_set[1].var(ddof=1) / len(of_set[1]) / len(first) ** 2
    of_known = np.mean(inside, axis=0)
    error = float(np.sqrt(variance + of_known.var(ddof=1) / len(of_known)))
    difference = float(np.mean(outside))
    if error == 0.0:
        return AurocDifference(difference, error, float(difference == 0.0))
    return AurocDifference(difference, error, float(2 * stats.norm.sf(abs(difference) / error)))


def _placements(u_in: np.ndarray, u_out: np.ndarray) -> tuple[Floats, Floats]:
    """Share of the other side that each row is ranked rightly against; a tie counts one half."""

    def below(rows: np.ndarray, other: np.ndarray) -> Floats:
        ordered = np.sort(other)
        lower, upper = (np.searchsorted(ordered, rows, side) for side in ("left", "right"))
        return np.asarray((lower + upper) / (2 * len(other)), dtype=np.float64)

    return 1 - below(u_in, u_out), below(u_out, u_in)


def adjust_holm(p_values: npt.ArrayLike) -> Floats:
    """Return p-values (m,) adjusted for m comparisons: reject where they are at most the level.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", *Scandinavian Journal of
    Statistics* 6, 1979.

    Examples
    --------
    >>> adjust_holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def compare_over_seeds(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value of Student's paired test, of one value per seed."""
    gaps = np.subtract(first, second)
    if np.ptp(gaps) == 0:
        return float(gaps[0] == 0)
    return float(stats.ttest_rel(first, second).pvalue)


def compare_over_data_sets(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed ranks, of one value per data set.

    Pratt's treatment: data sets without a difference take part in the ranking.
    """
    gaps = np.subtract(first, second)
    if not gaps.any():
        return 1.0
    return float(stats.wilcoxon(gaps, zero_method="pratt").pvalue)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Average ranks of k methods on N data sets, and what is needed to tell them apart.

    `statistic` is Friedman's, corrected for ties, in the form of Iman and Davenport, `p_value` that
    of all methods being equal; two methods differ at the level if their ranks are
    `critical_difference` apart.
    """

    ranks: Floats
    n_data_sets: int
    statistic: float
    p_value: float
    critical_difference: float


def average_ranks(values: npt.ArrayLike, higher_is_better: bool) -> Floats:
    """Return the mean rank (k,) of methods over data sets, from values (N, k); 1 is the best."""
    signed = -np.asarray(values, dtype=np.float64) if higher_is_better else values
    return np.asarray(stats.rankdata(signed, axis=1).mean(axis=0), dtype=np.float64)


def rank_methods(values: npt.ArrayLike, higher_is_better: bool, level: float = 0.05) -> Ranking:
    """Return the Friedman test of values (N, k), N data sets by k methods, and Nemenyi's distance.

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", *JMLR* 7, 2006,
    sections 3.2.1 and 3.2.2.
    """
    table = np.asarray(values, dtype=np.float64)
    n, k = table.shape
    if n < 2 or k < 3:
        raise ValueError(
            f"values must have at least two data sets and three methods, got shape {table.shape}; "
            "compare two methods by compare_over_data_sets"
        )
    ranks = average_ranks(table, higher_is_better)
    far_apart = stats.studentized_range.ppf(1 - level, k, np.inf) / np.sqrt(2)
    critical = float(far_apart * np.sqrt(k * (k + 1) / (6 * n)))
    if (table == table[:, :1]).all():
        return Ranking(ranks, n, 0.0, 1.0, critical)
    chi2 = float(stats.friedmanchisquare(*table.T).statistic)
    rest = n * (k - 1) - chi2
    statistic = (n - 1) * chi2 / rest if rest > 1e-9 else np.inf
    p_value = float(stats.f.sf(statistic, k - 1, (k - 1) * (n - 1)))
    return Ranking(ranks, n, float(statistic), p_value, critical)
