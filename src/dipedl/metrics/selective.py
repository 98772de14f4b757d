"""Risk-coverage curve of selective prediction, and the areas under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .metric import Floats, check_correct, metric

__all__ = ["RiskCoverageCurve", "augrc", "aurc", "risk_coverage_curve"]


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Expected error rate among the most certain inputs, for every number of inputs accepted.

    Attributes
    ----------
    coverage : ndarray, shape (n,)
        Share of inputs accepted: 1/n, 2/n, ..., 1.
    risk : ndarray, shape (n,)
        Error rate among the inputs accepted; the last value is that of the whole classifier.
    """

    coverage: Floats
    risk: Floats


def risk_coverage_curve(correct: npt.ArrayLike, uncertainty: npt.ArrayLike) -> RiskCoverageCurve:
    r"""Error rate among the m most certain inputs, for m = 1..n.

    .. math:: r_m = \frac1m \sum_{i \le m} 1[\text{wrong}_{(i)}], \; u_{(1)} \le \ldots \le u_{(n)}

    Parameters
    ----------
    correct : array-like of bool, shape (n,)
        True for each right prediction.
    uncertainty : array-like, shape (n,)
        Uncertainty of each prediction, higher = less sure. Infinities are allowed.

    Returns
    -------
    RiskCoverageCurve
        ``coverage`` (n,) and ``risk`` (n,).

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other, ``correct`` is not boolean, or ``uncertainty`` holds
        NaN.

    Notes
    -----
    Ties: the curve is the expected value over all random orders of the inputs with equal
    uncertainty. Inside a group of g tied inputs, e of them wrong, each place is wrong with
    probability e/g, so the expected number of errors grows in a straight line; a constant
    uncertainty has the flat curve of the error rate.

    References
    ----------
    R. El-Yaniv, Y. Wiener, "On the foundations of noise-free selective classification", *JMLR* 11,
    2010. Y. Geifman, G. Uziel, R. El-Yaniv, "Bias-reduced uncertainty estimation for deep neural
    classifiers", ICLR 2019.

    Examples
    --------
    >>> from dipedl.metrics import risk_coverage_curve
    >>> curve = risk_coverage_curve([True, True, False, True], [0.1, 0.2, 0.3, 0.3])
    >>> curve.coverage.tolist()
    [0.25, 0.5, 0.75, 1.0]
    >>> curve.risk.round(4).tolist()  # third input: wrong with probability 1/2
    [0.0, 0.0, 0.1667, 0.25]
    """
    hits, scores = check_correct(correct, uncertainty)
    answered = np.arange(1, len(hits) + 1)
    # P(m-th most certain input is wrong), over random orders of tied inputs.
    _, group, size = np.unique(scores, return_inverse=True, return_counts=True)
    errors = np.cumsum(np.repeat(np.bincount(group, weights=~hits) / size, size))
    return RiskCoverageCurve(answered / len(hits), errors / answered)


@metric(higher_is_better=False, kind="risk")
def aurc(correct: npt.ArrayLike, uncertainty: npt.ArrayLike) -> float:
    r"""Area under the risk-coverage curve: mean error rate over all coverages.

    .. math:: \frac1n \sum_{m=1}^n r_m

    Parameters
    ----------
    correct, uncertainty : array-like, shape (n,)
        As of `risk_coverage_curve`.

    Returns
    -------
    float
        In [0, 1]. Lower is better. A constant uncertainty gives the error rate of the classifier.

    Notes
    -----
    It mixes the accuracy of the classifier with how well the uncertainty ranks its errors: subtract
    ``aurc(correct, ~correct)``, the least at this accuracy, for the second part alone (E-AURC).

    Ties: as in ``risk_coverage_curve``.

    References
    ----------
    Y. Geifman, G. Uziel, R. El-Yaniv, "Bias-reduced uncertainty estimation for deep neural
    classifiers", ICLR 2019.

    Examples
    --------
    >>> from dipedl.metrics import aurc
    >>> round(aurc([True, True, False, True], [0.1, 0.2, 0.3, 0.3]), 4)
    0.1042
    """
    return float(risk_coverage_curve(correct, uncertainty).risk.mean())


@metric(higher_is_better=False, kind="risk")
def augrc(correct: npt.ArrayLike, uncertainty: npt.ArrayLike) -> float:
    r"""Area under the generalised risk-coverage curve: mean share of undetected errors.

    .. math::
        \int_0^1 c \, r(c) \, dc
        = (1 - \mathrm{AUROC}) \, a (1 - a) + \tfrac12 (1 - a)^2

    where r(c) is the error rate among the share c of the most certain inputs, a the accuracy, and
    AUROC that of the uncertainty for wrong against right predictions.

    Parameters
    ----------
    correct, uncertainty : array-like, shape (n,)
        As of `risk_coverage_curve`.

    Returns
    -------
    float
        In [0, 1/2]. Lower is better. A constant uncertainty gives half the error rate.

    Notes
    -----
    c r(c) is the share of all inputs that are accepted and wrong. `aurc` averages r(c) instead,
    so an error among the most certain inputs weighs more there than the rest together.

    For failures of every kind join the arrays of known and OOD inputs, with OOD inputs as wrong.

    Ties: as in ``risk_coverage_curve``.

    References
    ----------
    J. Traub, T. J. Bungert, C. T. Lüth, M. Baumgartner, K. H. Maier-Hein, L. Maier-Hein,
    P. F. Jäger, "Overcoming common flaws in the evaluation of selective classification systems",
    NeurIPS 2024.

    Examples
    --------
    >>> from dipedl.metrics import augrc
    >>> augrc([True, True, False, True], [0.1, 0.2, 0.3, 0.3])
    0.0625
    """
    curve = risk_coverage_curve(correct, uncertainty)
    undetected = curve.coverage * curve.risk
    # straight lines between the points, the first of which is (0, 0)
    return float(undetected.mean() - undetected[-1] / (2 * len(undetected)))
