"""Area under the ROC curve of OOD detection."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import check_scores

__all__ = ["ood_auroc"]


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
