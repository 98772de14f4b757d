"""A model of this library as a detector in the terms of PyOD."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from ...classifier import DIPClassifier
from ...detector import OODDetector
from ...protocols import atomic

__all__ = ["PyODDetector"]


class PyODDetector(BaseEstimator):
    """`OODDetector` with the names and signs of PyOD: higher scores and label 1 are outliers.

    For tools of PyOD that take detectors, such as ``LSCP``. It takes all training rows as known,
    where detectors of PyOD expect a share of outliers among them.

    Parameters
    ----------
    estimator : DIPClassifier, default=DIPClassifier()
        Template: its density and features are fitted. With ``fit(X, y)`` the density knows classes.
    contamination : float, default=0.1
        Share of new rows like the training rows that may be flagged.

    Attributes
    ----------
    detector_ : OODDetector
        The fitted detector.
    decision_scores_ : ndarray, shape (n,)
        Scores of the training rows.
    threshold_ : float
        Score above which a row is an outlier, from rows held out of the fit.
    labels_ : ndarray of int, shape (n,)
        1 for the training rows above the threshold, 0 for the others.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.apps.adapters import PyODDetector
    >>> detector = PyODDetector(contamination=0.05).fit(load_iris().data)
    >>> detector.predict([[5.0, 3.4, 1.5, 0.2], [50.0, 34.0, 15.0, 2.0]])
    array([0, 1])
    """

    def __init__(self, estimator: DIPClassifier | None = None, contamination: float = 0.1) -> None:
        self.estimator = estimator
        self.contamination = contamination

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on known rows X (n, d), with or without their classes y (n,)."""
        self.detector_ = OODDetector(self.estimator, self.contamination).fit(X, y)
        self.threshold_ = -self.detector_.offset_
        self.decision_scores_ = self.decision_function(X)
        self.labels_ = (self.decision_scores_ > self.threshold_).astype(int)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Outlier score of each row of X (n, d), shape (n,): the negated log-density, in nats."""
        return -self.detector_.score_samples(X)

    def predict(self, X: Any) -> np.ndarray:
        """1 for outliers, 0 for the other rows of X (n, d), shape (n,)."""
        return (self.decision_function(X) > self.threshold_).astype(int)
