"""Area under the precision-recall curve of OOD detection: both conventions, and the baseline."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import check_count, check_positive_class
from ._thresholds import PositiveClass, counts_at_thresholds, positive_and_negative

__all__ = ["aupr_in", "aupr_out", "aupr_prevalence"]


def aupr_prevalence(n_in: int, n_out: int, *, positive: PositiveClass = "out") -> float:
    """Share of the positive class: the AUPR of a constant score, the baseline beside every AUPR.

    Parameters
    ----------
    n_in, n_out : int
        Number of in-distribution and of OOD inputs, each at least 1.
    positive : {"out", "in"}, default="out"
        Positive class: "out" for ``aupr_out``, "in" for ``aupr_in``.

    Returns
    -------
    float
        In (0, 1).

    Raises
    ------
    ValueError, TypeError
        If a count is not a positive integer or ``positive`` is neither "out" nor "in".

    References
    ----------
    T. Saito, M. Rehmsmeier, "The precision-recall plot is more informative than the ROC plot when
    evaluating binary classifiers on imbalanced datasets", *PLOS ONE* 10, 2015.

    Examples
    --------
    >>> from dipedl.metrics import aupr_prevalence
    >>> aupr_prevalence(n_in=10_000, n_out=30_000)
    0.75
    >>> aupr_prevalence(n_in=10_000, n_out=30_000, positive="in")
    0.25
    """
    check_positive_class(positive)
    counts = {"in": check_count("n_in", n_in), "out": check_count("n_out", n_out)}
    return counts[positive] / (counts["in"] + counts["out"])


def _baseline_out(uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike) -> float:
    return aupr_prevalence(np.size(uncertainty_in), np.size(uncertainty_out))


def _baseline_in(uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike) -> float:
    return aupr_prevalence(np.size(uncertainty_in), np.size(uncertainty_out), positive="in")


@metric(higher_is_better=True, kind="ood", baseline=_baseline_out)
def aupr_out(uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike) -> float:
    r"""Average precision of OOD detection, **OOD being the positive class**.

    .. math:: \sum_t (R_t - R_{t-1}) \, P_t

    over the distinct uncertainties t from high to low, where recall R and precision P flag every
    input with u >= t.

    Parameters
    ----------
    uncertainty_in : array-like, shape (n_in,)
        Uncertainty of in-distribution inputs, higher = less sure. Infinities are allowed.
    uncertainty_out : array-like, shape (n_out,)
        Uncertainty of OOD inputs, the positive class.

    Returns
    -------
    float
        In (0, 1]. Higher is better. A constant score gives the prevalence n_out / (n_in + n_out).

    Raises
    ------
    ValueError, TypeError
        If an array is empty, not one-dimensional, not numeric, or holds NaN.

    Notes
    -----
    Read it beside ``aupr_prevalence(n_in, n_out)``, which is also ``aupr_out.baseline(u_in,
    u_out)``: with 99 OOD inputs to one, a constant score has 0.99. ``aupr_in`` is the other
    convention and another number; papers often do not say which one they print.

    Step-wise average precision, as in scikit-learn. OpenOOD joins the points by straight lines
    instead, which is too optimistic because precision is not linear in recall.

    Ties: inputs with equal uncertainty are flagged together, in one step.

    References
    ----------
    J. Davis, M. Goadrich, "The relationship between precision-recall and ROC curves", ICML 2006. D.
    Hendrycks, K. Gimpel, "A baseline for detecting misclassified and out-of-distribution examples
    in neural networks", ICLR 2017 ("AUPR Out" is ours, "AUPR In" the other).

    Examples
    --------
    >>> from dipedl.metrics import aupr_out
    >>> round(aupr_out([0.1, 0.2, 0.3], [0.3, 0.4]), 4)
    0.8333
    >>> aupr_out.baseline([0.1, 0.2, 0.3], [0.3, 0.4])
    0.4
    """
    return _average_precision(uncertainty_in, uncertainty_out, "out")


@metric(higher_is_better=True, kind="ood", baseline=_baseline_in)
def aupr_in(uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike) -> float:
    r"""Average precision of recognising known inputs, **in-distribution being the positive class**.

    .. math:: \sum_t (R_t - R_{t-1}) \, P_t

    over the distinct uncertainties t from low to high, where recall R and precision P accept every
    input with u <= t.

    Parameters
    ----------
    uncertainty_in : array-like, shape (n_in,)
        Uncertainty of in-distribution inputs, the positive class; higher = less sure, as
        everywhere. Infinities are allowed.
    uncertainty_out : array-like, shape (n_out,)
        Uncertainty of OOD inputs.

    Returns
    -------
    float
        In (0, 1]. Higher is better. A constant score gives the prevalence n_in / (n_in + n_out).

    Raises
    ------
    ValueError, TypeError
        If an array is empty, not one-dimensional, not numeric, or holds NaN.

    Notes
    -----
    It takes the same arguments as ``aupr_out``; the sign is turned inside. Read it beside
    ``aupr_prevalence(n_in, n_out, positive="in")``, which is also ``aupr_in.baseline(u_in,
    u_out)``.

    Ties: inputs with equal uncertainty are accepted together, in one step.

    References
    ----------
    D. Hendrycks, K. Gimpel, "A baseline for detecting misclassified and out-of-distribution
    examples in neural networks", ICLR 2017 ("AUPR In").

    Examples
    --------
    >>> from dipedl.metrics import aupr_in
    >>> round(aupr_in([0.1, 0.2, 0.3], [0.3, 0.4]), 4)
    0.9167
    >>> aupr_in.baseline([0.1, 0.2, 0.3], [0.3, 0.4])
    0.6
    """
    return _average_precision(uncertainty_in, uncertainty_out, "in")


def _average_precision(
    uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike, positive: PositiveClass
) -> float:
    hits, alarms = counts_at_thresholds(
        *positive_and_negative(uncertainty_in, uncertainty_out, positive)
    )
    precision = hits / (hits + alarms)
    return float(np.diff(hits, prepend=0) @ precision / hits[-1])
