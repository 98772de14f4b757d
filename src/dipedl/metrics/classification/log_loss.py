"""Negative log-likelihood of the true classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import check_labelled

__all__ = ["nll"]


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
