"""Proper scores of labelled (in-distribution) inputs: Brier score and log-likelihood."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import check_labelled

__all__ = ["brier_score", "nll"]


@metric(higher_is_better=False, kind="id")
def brier_score(y: npt.ArrayLike, proba: npt.ArrayLike) -> float:
    r"""Mean squared distance between the class probabilities and the true class.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - 1[y_i = k])^2

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities; rows sum to one.

    Returns
    -------
    float
        In [0, 2]. Lower is better.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other or ``proba`` is not on the simplex.

    Notes
    -----
    This is Brier's original sum over *all* classes. For two classes it is twice the binary form
    ``mean((p_1 - y)**2)`` that scikit-learn's ``brier_score_loss`` gives by default. The uniform
    prediction scores (k-1)/k. A proper score: the true class probabilities minimise its
    expectation.

    Ties: none arise, no ranking is involved.

    References
    ----------
    G. W. Brier, "Verification of forecasts expressed in terms of probability", *Monthly Weather
    Review* 78, 1950, equation 2.

    Examples
    --------
    >>> from dipedl.metrics import brier_score
    >>> round(brier_score([0, 1], [[0.9, 0.1], [0.4, 0.6]]), 4)
    0.17
    """
    labels, rows = check_labelled(y, proba)
    rows[np.arange(len(labels)), labels] -= 1
    return float(np.square(rows).sum(axis=1).mean())


@metric(higher_is_better=False, kind="id")
def nll(y: npt.ArrayLike, proba: npt.ArrayLike) -> float:
    r"""Mean negative log-probability of the true class, in nats.

    .. math:: -\frac1n \sum_i \log p_{i y_i}

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities; rows sum to one.

    Returns
    -------
    float
        In [0, inf] nats. Lower is better. The uniform prediction scores log k.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other or ``proba`` is not on the simplex.

    Notes
    -----
    A single true class with probability 0 makes the result ``inf``. Nothing is clipped: a clipped
    value would measure the clip (scikit-learn's ``log_loss`` clips at the machine epsilon of the
    dtype, 36 nats per row in float64). A model that underflows needs log-probabilities or a prior.

    Ties: none arise, no ranking is involved.

    References
    ----------
    I. J. Good, "Rational decisions", *Journal of the Royal Statistical Society B* 14, 1952.

    Examples
    --------
    >>> from dipedl.metrics import nll
    >>> round(nll([0, 1], [[0.9, 0.1], [0.4, 0.6]]), 4)
    0.3081
    >>> nll([0, 1], [[0.9, 0.1], [1.0, 0.0]])
    inf
    """
    labels, rows = check_labelled(y, proba)
    with np.errstate(divide="ignore"):  # log 0 = -inf is intended
        log_proba = np.log(rows[np.arange(len(labels)), labels])
    # + 0.0 turns the -0.0 of a perfect prediction into 0.0
    return float(-log_proba.mean() + 0.0)
