"""Metrics of labelled inputs: accuracy and recall, proper scores, calibration error."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..maths.arrays import check_integer
from .metric import Floats, check_labels, metric, top_label

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "brier_score",
    "class_recall",
    "ece",
    "nll",
]


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
    labels, rows = check_labels(y, proba)
    hit, k = rows.argmax(axis=1) == labels, rows.shape[1]
    with np.errstate(invalid="ignore"):
        return np.bincount(labels, weights=hit, minlength=k) / np.bincount(labels, minlength=k)


@metric(higher_is_better=True, kind="id")
def balanced_accuracy(y: npt.ArrayLike, proba: npt.ArrayLike) -> float:
    r"""Mean recall over the classes: every class counts the same, however rare it is.

    .. math:: \frac1K \sum_k r_k

    Parameters
    ----------
    y, proba : array-like, shapes (n,) and (n, k)
        As of `accuracy`.

    Returns
    -------
    float
        In [0, 1]. Higher is better. A classifier that always predicts one class has 1/K, whatever
        the class frequencies.

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


@metric(higher_is_better=False, kind="id")
def brier_score(y: npt.ArrayLike, proba: npt.ArrayLike) -> float:
    r"""Mean squared distance between the class probabilities and the true class.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - 1[y_i = k])^2

    Parameters
    ----------
    y, proba : array-like, shapes (n,) and (n, k)
        As of `accuracy`.

    Returns
    -------
    float
        In [0, 2]. Lower is better.

    Notes
    -----
    This is Brier's original sum over *all* classes. For two classes it is twice the binary form
    ``mean((p_1 - y)**2)`` that scikit-learn's ``brier_score_loss`` gives by default. The uniform
    prediction scores (k-1)/k. A proper score: the true class probabilities minimise its
    expectation.

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
    labels, rows = check_labels(y, proba)
    return float(np.square(rows - np.eye(rows.shape[1])[labels]).sum(axis=1).mean())


@metric(higher_is_better=False, kind="id")
def nll(y: npt.ArrayLike, proba: npt.ArrayLike) -> float:
    r"""Mean negative log-probability of the true class, in nats.

    .. math:: -\frac1n \sum_i \log p_{i y_i}

    Parameters
    ----------
    y, proba : array-like, shapes (n,) and (n, k)
        As of `accuracy`.

    Returns
    -------
    float
        In [0, inf] nats. Lower is better. The uniform prediction scores log k.

    Notes
    -----
    A single true class with probability 0 makes the result ``inf``. Nothing is clipped: a clipped
    value would measure the clip (scikit-learn's ``log_loss`` clips at the machine epsilon of the
    dtype, 36 nats per row in float64). A model that underflows needs log-probabilities or a prior.

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
    labels, rows = check_labels(y, proba)
    with np.errstate(divide="ignore"):  # log 0 = -inf is intended
        log_proba = np.log(rows[np.arange(len(labels)), labels])
    # + 0.0 turns the -0.0 of a perfect prediction into 0.0
    return float(-log_proba.mean() + 0.0)


@metric(higher_is_better=False, kind="id")
def ece(y: npt.ArrayLike, proba: npt.ArrayLike, *, n_bins: int = 15) -> float:
    r"""Mean gap between the confidence in the top class and its accuracy, in bins of equal width.

    .. math:: \sum_b \frac{n_b}{n} \, |\mathrm{acc}_b - \mathrm{conf}_b|

    Parameters
    ----------
    y, proba : array-like, shapes (n,) and (n, k)
        As of `accuracy`.
    n_bins : int, default=15
        Number of bins; bin b holds the confidences in (b/n_bins, (b+1)/n_bins].

    Returns
    -------
    float
        In [0, 1]. Lower is better.

    Raises
    ------
    ValueError, TypeError
        As of `accuracy`, or if ``n_bins`` < 1.

    Notes
    -----
    The number depends on ``n_bins``, is biased upwards for few inputs, and a constant prediction of
    the class frequencies scores 0: read it beside the accuracy and the Brier score.

    Ties: among equally probable classes the lowest index is the prediction. A confidence on an edge
    belongs to the bin below it; rounded to float32 it may lie above, so compare in one dtype.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", ICML
    2017, equation 3.

    Examples
    --------
    >>> from dipedl.metrics import ece
    >>> y, proba = [0, 1, 1, 0], [[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.7, 0.3]]
    >>> round(ece(y, proba), 4)  # accuracy 1/2 at confidence 0.9, 1 at 0.7
    0.35
    """
    confidence, hit = top_label(y, proba)
    check_integer("n_bins", n_bins)
    # i/n, not linspace: the edge is the float that a user writes, so equal confidences tie with it
    edges = np.arange(1, n_bins) / n_bins
    bins = np.searchsorted(edges, confidence, side="left")
    # With n_b in front, the two means of a bin become sums: an empty bin adds zero.
    return float(np.abs(np.bincount(bins, weights=hit - confidence)).sum() / len(confidence))
