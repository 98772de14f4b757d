"""Accuracy of the most probable class."""

# This file is not called accuracy.py: importing such a submodule would put the module, not the
# function, at `dipedl.metrics.accuracy`. No file of this folder has a public name.

from __future__ import annotations

import numpy.typing as npt

from .._metric import metric
from ._binning import top_label

__all__ = ["accuracy"]


@metric(higher_is_better=True, kind="id")
def accuracy(y: npt.ArrayLike, proba: npt.ArrayLike) -> float:
    r"""Share of inputs whose most probable class is the true one.

    .. math:: \frac1n \sum_i 1[\arg\max_k p_{ik} = y_i]

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities; rows sum to one.

    Returns
    -------
    float
        In [0, 1]. Higher is better.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other or ``proba`` is not on the simplex.

    Notes
    -----
    Ties: among equally probable classes the lowest index is the prediction, as in ``numpy.argmax``
    and in scikit-learn's ``predict``. A constant uniform prediction therefore has the accuracy of
    "always class 0".

    References
    ----------
    C. M. Bishop, *Pattern Recognition and Machine Learning*, Springer, 2006, section 1.5.1.

    Examples
    --------
    >>> from dipedl.metrics import accuracy
    >>> accuracy([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    0.6666666666666666
    """
    _, hit = top_label(y, proba)
    return float(hit.mean())
