"""Brier score of OOD inputs, whose target is the uniform distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import check_proba

__all__ = ["ood_brier"]


@metric(higher_is_better=False, kind="ood_proba")
def ood_brier(proba: npt.ArrayLike) -> float:
    r"""Mean squared distance between the class probabilities of OOD inputs and the uniform ones.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - 1/k)^2

    Parameters
    ----------
    proba : array-like, shape (n, k)
        Class probabilities of OOD inputs; rows sum to one.

    Returns
    -------
    float
        In [0, (k-1)/k]: 0.5 at most for two classes, 0.9 for ten. Lower is better.

    Raises
    ------
    ValueError, TypeError
        If ``proba`` is not on the simplex.

    Notes
    -----
    A predictor that is always uniform scores a perfect 0: read this number only beside the
    in-distribution ``brier_score`` of the same model, which is then (k-1)/k.

    Ties: none arise, no ranking is involved.

    References
    ----------
    G. W. Brier, "Verification of forecasts expressed in terms of probability", *Monthly Weather
    Review* 78, 1950, equation 2, with the uniform distribution as the target.

    Examples
    --------
    >>> from dipedl.metrics import ood_brier
    >>> round(ood_brier([[0.9, 0.1], [0.5, 0.5]]), 4)
    0.16
    """
    rows = check_proba(proba)
    return float(np.square(rows - 1 / rows.shape[1]).sum(axis=1).mean())
