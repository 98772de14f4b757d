"""The outlier score of another library as a density."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _is_fitted, check_is_fitted

from ...density.base import LogDensityMixin
from ...inputs import validate_features, validate_fit_features
from ...maths.arrays import to_numpy
from ...protocols import atomic

__all__ = ["OutlierScoreDensity"]


class OutlierScoreDensity(LogDensityMixin, BaseEstimator):
    """A detector whose scores are higher for outliers, with its sign turned: PyOD, pytorch-ood.

    Parameters
    ----------
    detector : detector
        Of PyOD: anything with ``fit(X)`` and ``decision_function(X)``. Of pytorch-ood: one that has
        ``fit_features`` and ``predict_features``, in float32. A copy is fitted.

    Attributes
    ----------
    detector_ : detector
        The fitted copy.
    n_features_in_ : int
        Number of features p.

    Raises
    ------
    TypeError
        From ``fit``: a detector that gives ``score_samples`` is a density as it is, and
        scikit-learn's ``decision_function`` is lower for outliers.

    Notes
    -----
    Scores take the place of log-densities; only their order and their normaliser count. Around a
    fitted detector of PyOD, ``FrozenEstimator(OutlierScoreDensity(detector))`` is a frozen density.
    Some detectors of PyOD (ECOD, COPOD) rank the rows of a call among one another, so that the
    score of a row depends on the rows beside it.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.adapters import OutlierScoreDensity
    >>> class Distance:
    ...     def fit(self, X):
    ...         self.middle = X.mean(axis=0)
    ...     def decision_function(self, X):
    ...         return np.linalg.norm(X - self.middle, axis=1)
    >>> OutlierScoreDensity(Distance()).fit([[0.0], [2.0]]).score_samples([[1.0], [5.0]])
    array([-0., -4.])
    """

    #: Scores need not integrate to one.
    normalized = False

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of the detector on features X (n, p), with labels if it is of pytorch-ood."""
        _check(self.detector)
        X = validate_fit_features(self, X)
        self.detector_ = clone(self.detector, safe=False)
        if _takes_features(self.detector_):
            labels = np.zeros(len(X), int) if y is None else np.unique(y, return_inverse=True)[1]
            self.detector_.fit_features(_tensor(X), _tensor(labels))
        else:
            self.detector_.fit(X)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Negated outlier score of each row of X (n, p), shape (n,); higher is more typical."""
        check_is_fitted(self)
        detector, X = getattr(self, "detector_", self.detector), validate_features(self, X)
        if _takes_features(detector):
            return -to_numpy(detector.predict_features(_tensor(X))).astype(np.float64)
        return -np.asarray(detector.decision_function(X), dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` was called, or the detector was fitted before."""
        return hasattr(self, "detector_") or _is_fitted(self.detector)


def _takes_features(detector: Any) -> bool:
    return hasattr(detector, "predict_features")


def _check(detector: Any) -> None:
    name = type(detector).__name__
    if hasattr(detector, "score_samples"):
        raise TypeError(
            f"detector must have scores that are higher for outliers, as those of PyOD, and {name} "
            f"has score_samples, higher for inliers: give it as it is, density={name}(...)"
        )
    if not _takes_features(detector) and not hasattr(detector, "decision_function"):
        raise TypeError(
            "detector must have a method decision_function, as those of PyOD, or predict_features, "
            f"as those of pytorch-ood, got {name}"
        )


def _tensor(values: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(values, dtype=torch.float32 if values.dtype.kind == "f" else torch.int64)
