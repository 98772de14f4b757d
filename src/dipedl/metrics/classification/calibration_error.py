"""Expected calibration error with bins of equal width."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._metric import metric
from .._validation import check_count
from ._binning import binned_gap, top_label

__all__ = ["ece"]


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
    return binned_gap(confidence, hit, np.searchsorted(edges, confidence, side="left"))
