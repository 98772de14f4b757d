"""Metrics of OOD detection: AUROC, AUPR, false-positive rate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..maths.arrays import check_number
from .metric import Floats, Ints, check_scores, metric

__all__ = ["aupr_out", "fpr_at_tpr", "ood_auroc"]


@metric(higher_is_better=True, kind="ood")
def ood_auroc(uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike) -> float:
    r"""Probability that an OOD input is less sure than an in-distribution one.

    .. math:: P(u_{out} > u_{in}) + \tfrac12 P(u_{out} = u_{in})

    Parameters
    ----------
    uncertainty_in : array-like, shape (n_in,)
        Uncertainty of in-distribution inputs, higher = less sure. Infinities are allowed.
    uncertainty_out : array-like, shape (n_out,)
        Uncertainty of OOD inputs, the positive class.

    Returns
    -------
    float
        In [0, 1]. Higher is better. A constant score gives 0.5; exchanging the two classes gives
        one minus it.

    Raises
    ------
    ValueError, TypeError
        If an array is empty, not one-dimensional, not numeric, or holds NaN.

    Notes
    -----
    Equal to the area under the ROC curve, drawn with straight lines through ties. It does not
    depend on the ratio of OOD to in-distribution inputs; a user's false alarms do, so read AUPR and
    FPR beside it.

    Ties: a tied pair counts one half.

    References
    ----------
    J. A. Hanley, B. J. McNeil, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", *Radiology* 143, 1982. D. Hendrycks, K. Gimpel, "A baseline for
    detecting misclassified and out-of-distribution examples in neural networks", ICLR 2017.

    Examples
    --------
    >>> from dipedl.metrics import ood_auroc
    >>> ood_auroc([0.1, 0.2, 0.3], [0.3, 0.4])  # 5 pairs won, 1 tied, of 6
    0.9166666666666666
    """
    u_in = np.sort(check_scores("uncertainty_in", uncertainty_in))
    u_out = check_scores("uncertainty_out", uncertainty_out)
    below = np.searchsorted(u_in, u_out, side="left").sum()
    not_above = np.searchsorted(u_in, u_out, side="right").sum()
    return float((below + not_above) / (2 * len(u_in) * len(u_out)))


@metric(
    higher_is_better=True,
    kind="ood",
    baseline=lambda u_in, u_out: np.size(u_out) / (np.size(u_in) + np.size(u_out)),
)
def aupr_out(uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike) -> float:
    r"""Average precision of OOD detection, **OOD being the positive class**.

    .. math:: \sum_t (R_t - R_{t-1}) \, P_t

    over the distinct uncertainties t from high to low, where recall R and precision P flag every
    input with u >= t.

    Parameters
    ----------
    uncertainty_in, uncertainty_out : array-like, shapes (n_in,) and (n_out,)
        As of `ood_auroc`.

    Returns
    -------
    float
        In (0, 1]. Higher is better. A constant score gives the prevalence n_out / (n_in + n_out).

    Notes
    -----
    Read it beside the prevalence, ``aupr_out.baseline(u_in, u_out)``: with 99 OOD inputs to one, a
    constant score has 0.99 (Saito and Rehmsmeier, *PLOS ONE* 10, 2015). With in-distribution as the
    positive class, another number, it is ``aupr_out(-u_out, -u_in)``; papers often do not say which
    one they print.

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
    u_in = check_scores("uncertainty_in", uncertainty_in)
    hits, alarms = _counts_at_thresholds(check_scores("uncertainty_out", uncertainty_out), u_in)
    return float(np.diff(hits, prepend=0) @ (hits / (hits + alarms)) / hits[-1])


@metric(higher_is_better=False, kind="ood")
def fpr_at_tpr(
    uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike, *, tpr: float = 0.95
) -> float:
    r"""Share of in-distribution inputs flagged where a share ``tpr`` of the OOD inputs is.

    .. math:: P(u_{in} \ge t), \quad t = \max \{ t : P(u_{out} \ge t) \ge \mathrm{tpr} \}

    **The positive class is OOD**, as in OpenOOD 1.5. ODIN, and most papers that follow it, print
    another number as "FPR95": the share of OOD inputs that slip through where 95 % of the
    in-distribution inputs are accepted, which is ``fpr_at_tpr(-u_out, -u_in)``.

    Parameters
    ----------
    uncertainty_in, uncertainty_out : array-like, shapes (n_in,) and (n_out,)
        As of `ood_auroc`.
    tpr : float in (0, 1], default=0.95
        Share of the OOD inputs that must be caught.

    Returns
    -------
    float
        In [0, 1]. Lower is better. A constant score gives 1: only flagging all inputs catches
        enough.

    Raises
    ------
    ValueError, TypeError
        As of `ood_auroc`, or if ``tpr`` is outside (0, 1].

    Notes
    -----
    No interpolation between thresholds, so a user can set this rate. At least ``tpr`` is caught,
    often a little more.

    Ties: inputs with equal uncertainty are flagged together.

    References
    ----------
    S. Liang, Y. Li, R. Srikant, "Enhancing the reliability of out-of-distribution image detection
    in neural networks" (ODIN), ICLR 2018 (in-distribution positive). J. Zhang et al., "OpenOOD
    v1.5: enhanced benchmark for out-of-distribution detection", 2023 (OOD positive).

    Examples
    --------
    >>> from dipedl.metrics import fpr_at_tpr
    >>> u_in, u_out = [0.1, 0.2, 0.3, 0.4], [0.2, 0.5, 0.6]
    >>> fpr_at_tpr(u_in, u_out)  # all OOD inputs have u >= 0.2, and so do 3 of 4 others
    0.75
    >>> fpr_at_tpr(u_in, u_out, tpr=0.6)
    0.0
    """
    u_in = check_scores("uncertainty_in", uncertainty_in)
    hits, alarms = _counts_at_thresholds(check_scores("uncertainty_out", uncertainty_out), u_in)
    least = check_number("tpr", tpr, "in (0, 1], such as 0.95 for 95 %", lambda x: 0 < x <= 1)
    strictest = (hits / hits[-1] >= least).argmax()
    return float(alarms[strictest] / alarms[-1])


def _counts_at_thresholds(positive: Floats, negative: Floats) -> tuple[Ints, Ints]:
    """Count positives and negatives with a score >= t, for each distinct score t, highest first.

    Equal scores share one threshold, so no order among tied inputs can matter. Only comparisons are
    used, so infinities are scores like any other.
    """
    thresholds = np.unique(np.concatenate([positive, negative]))[::-1]
    hits, alarms = (
        len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")
        for scores in (positive, negative)
    )
    return hits, alarms
