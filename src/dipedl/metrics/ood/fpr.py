"""False positive rate at a given true positive rate."""

from __future__ import annotations

import numpy.typing as npt

from .._metric import metric
from .._validation import check_share
from ._thresholds import PositiveClass, counts_at_thresholds, positive_and_negative

__all__ = ["fpr_at_tpr"]


@metric(higher_is_better=False, kind="ood")
def fpr_at_tpr(
    uncertainty_in: npt.ArrayLike,
    uncertainty_out: npt.ArrayLike,
    *,
    tpr: float = 0.95,
    positive: PositiveClass = "out",
) -> float:
    r"""Share of negatives flagged at the strictest threshold that catches ``tpr`` of positives.

    **The positive class is OOD by default**: by default this is the share of
    *in-distribution* inputs that raise a false alarm when 95 % of the OOD inputs are caught,

    .. math:: P(u_{in} \ge t), \quad t = \max \{ t : P(u_{out} \ge t) \ge \mathrm{tpr} \}

    with ``positive="in"`` it is the share of *OOD* inputs that slip through when 95 % of the
    in-distribution inputs are accepted,

    .. math:: P(u_{out} \le t), \quad t = \min \{ t : P(u_{in} \le t) \ge \mathrm{tpr} \}

    These are two different numbers and the literature prints both as "FPR95".

    Parameters
    ----------
    uncertainty_in : array-like, shape (n_in,)
        Uncertainty of in-distribution inputs, higher = less sure. Infinities are allowed.
    uncertainty_out : array-like, shape (n_out,)
        Uncertainty of OOD inputs.
    tpr : float in (0, 1], default=0.95
        Share of the positive class that must be caught.
    positive : {"out", "in"}, default="out"
        Positive class. "out" as in OpenOOD 1.5, "in" as in ODIN and most papers that follow it.

    Returns
    -------
    float
        In [0, 1]. Lower is better. A constant score gives 1: only flagging all inputs catches
        enough.

    Raises
    ------
    ValueError, TypeError
        If an array is empty, not one-dimensional, not numeric, or holds NaN; if ``tpr`` is outside
        (0, 1] or ``positive`` unknown.

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
    >>> round(fpr_at_tpr(u_in, u_out, positive="in"), 4)  # u <= 0.4 accepts 1 of 3 OOD inputs
    0.3333
    >>> fpr_at_tpr(u_in, u_out, tpr=0.6)
    0.0
    """
    pair = positive_and_negative(uncertainty_in, uncertainty_out, positive)
    hits, alarms = counts_at_thresholds(*pair)
    strictest = (hits / hits[-1] >= check_share("tpr", tpr, one_allowed=True)).argmax()
    return float(alarms[strictest] / alarms[-1])
