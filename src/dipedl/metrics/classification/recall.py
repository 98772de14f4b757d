"""Accuracy, recall per class, and balanced accuracy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import Floats, check_labelled, top_label

__all__ = ["accuracy", "balanced_accuracy", "class_recall"]


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


def class_recall(y: npt.ArrayLike, proba: npt.ArrayLike) -> Floats:
    r"""Recall per class: the share of its inputs for which it is the most probable class.

    .. math:: r_k = \frac{1}{n_k} \sum_{i: y_i = k} 1[\arg\max_j p_{ij} = k]

    Parameters
    ----------
    y, proba : array-like, shapes (n,) and (n, k)
        As of `accuracy`.

    Returns
    -------
    ndarray, shape (k,)
        In [0, 1]; NaN for a class that ``y`` does not hold.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other or ``proba`` is not on the simplex.

    Notes
    -----
    Ties: the lowest index is the prediction, as in ``accuracy``.

    References
    ----------
    C. D. Manning, P. Raghavan, H. Schütze, *Introduction to Information Retrieval*, Cambridge
    University Press, 2008, section 8.3.

    Examples
    --------
    >>> from dipedl.metrics import class_recall
    >>> class_recall([0, 0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.1, 0.9]]).tolist()
    [1.0, 0.5]
    """
    labels, rows = check_labelled(y, proba)
    _, hit = top_label(labels, rows)
    k = rows.shape[1]
    with np.errstate(invalid="ignore"):
        return np.bincount(labels, weights=hit, minlength=k) / np.bincount(labels, minlength=k)


@metric(higher_is_better=True, kind="id")
def balanced_accuracy(y: npt.ArrayLike, proba: npt.ArrayLike) -> float:
    r"""Mean recall over the classes: every class counts the same, however rare it is.

    .. math:: \frac1K \sum_k r_k

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities; rows sum to one.

    Returns
    -------
    float
        In [0, 1]. Higher is better. A classifier that always predicts one class has 1/K, whatever
        the class frequencies.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other or ``proba`` is not on the simplex.

    Notes
    -----
    The mean is over the classes that ``y`` holds, as in scikit-learn.

    Ties: the lowest index is the prediction, as in ``accuracy``.

    References
    ----------
    K. H. Brodersen, C. S. Ong, K. E. Stephan, J. M. Buhmann, "The balanced accuracy and its
    posterior distribution", ICPR 2010.

    Examples
    --------
    >>> from dipedl.metrics import accuracy, balanced_accuracy
    >>> y = [0, 0, 0, 1]  # one quasar among galaxies
    >>> proba = [[0.9, 0.1]] * 4  # "all of them are galaxies"
    >>> accuracy(y, proba), balanced_accuracy(y, proba)
    (0.75, 0.5)
    """
    return float(np.nanmean(class_recall(y, proba)))
