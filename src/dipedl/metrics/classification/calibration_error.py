"""Expected calibration error with bins of equal width, or of equal mass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import Bools, Floats, Ints, check_count, top_label

__all__ = ["adaptive_ece", "ece"]


@metric(higher_is_better=False, kind="id")
def ece(y: npt.ArrayLike, proba: npt.ArrayLike, *, n_bins: int = 15) -> float:
    r"""Mean gap between the confidence in the top class and its accuracy, in bins of equal width.

    .. math:: \sum_b \frac{n_b}{n} \, |\mathrm{acc}_b - \mathrm{conf}_b|

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities; rows sum to one.
    n_bins : int, default=15
        Number of bins; bin b holds the confidences in (b/n_bins, (b+1)/n_bins].

    Returns
    -------
    float
        In [0, 1]. Lower is better.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other, ``proba`` is not on the simplex or ``n_bins`` < 1.

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
    n_bins = check_count("n_bins", n_bins)
    # i/n, not linspace: the edge is the float that a user writes, so equal confidences tie with it
    edges = np.arange(1, n_bins) / n_bins
    return _binned_gap(confidence, hit, np.searchsorted(edges, confidence, side="left"))


@metric(higher_is_better=False, kind="id")
def adaptive_ece(y: npt.ArrayLike, proba: npt.ArrayLike, *, n_bins: int = 15) -> float:
    r"""Mean gap between the confidence in the top class and its accuracy, in bins of equal mass.

    .. math:: \sum_b \frac{n_b}{n} \, |\mathrm{acc}_b - \mathrm{conf}_b|

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities; rows sum to one.
    n_bins : int, default=15
        Number of bins. An input with r less confident ones goes into bin floor(n_bins r / n);
        without ties, the sizes of two bins differ by one at most.

    Returns
    -------
    float
        In [0, 1]. Lower is better.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not fit each other, ``proba`` is not on the simplex or ``n_bins`` < 1.

    Notes
    -----
    Modern networks crowd near confidence 1, where bins of equal width put almost all inputs in one
    bin; bins of equal mass resolve that region. With ``n_bins`` >= n each distinct confidence is
    its own bin.

    Ties: inputs with equal confidence share r, hence a bin (the one their first would get), so the
    order of the inputs cannot matter; with many ties the bins are fewer and unequal. Among equally
    probable classes the lowest index is the prediction.

    References
    ----------
    K. Nguyen, B. O'Connor, "Posterior calibration and exploratory analysis for natural language
    processing models", EMNLP 2015. J. Nixon, M. W. Dusenberry, L. Zhang, G. Jerfel, D. Tran,
    "Measuring calibration in deep learning", CVPR workshops 2019 (whose ACE does the same class by
    class).

    Examples
    --------
    >>> from dipedl.metrics import adaptive_ece
    >>> y, proba = [0, 1, 1, 0], [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> round(adaptive_ece(y, proba, n_bins=2), 4)  # 2 of 2 right below 0.7, 1 of 2 above
    0.35
    """
    confidence, hit = top_label(y, proba)
    rank = np.searchsorted(np.sort(confidence), confidence, side="left")
    return _binned_gap(confidence, hit, rank * check_count("n_bins", n_bins) // len(confidence))


def _binned_gap(confidence: Floats, hit: Bools, bins: Ints) -> float:
    """Add up n_b / n * |accuracy_b - confidence_b| over the bins.

    ``bins`` (n,) is the bin of each input. With n_b in front, the two means of a bin become sums,
    so an empty bin adds zero and needs no special case.
    """
    return float(np.abs(np.bincount(bins, weights=hit - confidence)).sum() / len(confidence))
