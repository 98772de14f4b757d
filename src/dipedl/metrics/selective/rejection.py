"""Share of the errors avoided by rejecting the most uncertain inputs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import check_correct, check_share
from .risk_coverage import risk_coverage_curve

__all__ = ["errors_avoided"]


@metric(higher_is_better=True, kind="risk")
def errors_avoided(
    correct: npt.ArrayLike, uncertainty: npt.ArrayLike, *, rejected: float = 0.1
) -> float:
    r"""Share of all errors that lie among the most uncertain inputs.

    .. math:: 1 - \frac{(1 - q)\, r(1 - q)}{r(1)}

    where q is the share rejected and r(c) the error rate among the share c of the inputs that is
    accepted, the most certain ones.

    Parameters
    ----------
    correct : array-like of bool, shape (n,)
        Whether each prediction is right.
    uncertainty : array-like, shape (n,)
        Uncertainty of each prediction, higher = less sure. Infinities are allowed.
    rejected : float in (0, 1], default=0.1
        Share of the inputs rejected.

    Returns
    -------
    float
        In [0, 1]. Higher is better. Rejecting at random, or by a constant uncertainty, avoids
        ``rejected`` of the errors. 1 where there is no error to avoid.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other, ``correct`` is not boolean, ``uncertainty`` holds NaN,
        or ``rejected`` is outside (0, 1].

    Notes
    -----
    It cannot be more than ``rejected`` over the error rate: a classifier with many errors avoids
    only a small share of them, however well they are ranked. Read it beside the accuracy.

    Where ``rejected * n`` is not a whole number, the last input counts in part.

    Ties: expected value over all random orders of the inputs with equal uncertainty, see
    ``risk_coverage_curve``.

    References
    ----------
    R. El-Yaniv, Y. Wiener, "On the foundations of noise-free selective classification", *JMLR* 11,
    2010.

    Examples
    --------
    >>> from dipedl.metrics import errors_avoided
    >>> correct, u = [True, True, False, False], [0.1, 0.2, 0.9, 0.3]
    >>> errors_avoided(correct, u, rejected=0.25), errors_avoided(correct, u, rejected=0.5)
    (0.5, 1.0)
    """
    hits, scores = check_correct(correct, uncertainty)
    share = check_share("rejected", rejected, one_allowed=True)
    if hits.all():
        return 1.0
    curve = risk_coverage_curve(hits, scores)
    left = np.concatenate([[0.0], curve.coverage * curve.risk])
    answered = np.interp(1 - share, np.concatenate([[0.0], curve.coverage]), left)
    return float(1 - answered / left[-1])
