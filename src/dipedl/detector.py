"""The evidence side of a `DIPClassifier` as a scikit-learn outlier detector."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .answers import snapshot_of
from .classifier import DIPClassifier, sparse_by_default
from .evidence import RankNormal
from .evidence_model import EvidenceModel
from .inputs import (
    validate_fit_inputs,
    validate_groups,
    validate_inputs,
    validate_inputs_and_labels,
)
from .maths.arrays import check_rate
from .protocols import atomic

__all__ = ["OODDetector"]


@dataclass(eq=False, repr=False)
class OODDetector(OutlierMixin, BaseEstimator):
    """Out-of-distribution detector: the density, features and threshold of a `DIPClassifier`.

    Around a fitted classifier it works at once and shares its fit. ``fit`` fits a new evidence side
    on X with the classifier's parameters; the classifier itself is never refitted.

    Parameters
    ----------
    estimator : DIPClassifier, default=DIPClassifier()
        Fitted, or a template for ``fit``.
    false_alarm_rate : float, optional
        Share of ID inputs that may be flagged; default: the classifier's.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``, in nats.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier, OODDetector
    >>> X, y = load_iris(return_X_y=True)
    >>> detector = OODDetector(DIPClassifier().fit(X, y), false_alarm_rate=0.01)
    >>> detector.predict([[5.0, 3.4, 1.5, 0.2], [50.0, 34.0, 15.0, 2.0]])
    array([ 1, -1])
    """

    estimator: DIPClassifier | None = None
    false_alarm_rate: float | None = None

    @atomic
    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit features, density and threshold.

        Parameters
        ----------
        X, y : array-like or DataFrame, shape (n, d), and array-like, shape (n,), optional
            In-distribution inputs and their labels; without labels all are one class.
        groups : array-like, shape (n,), optional
            Person, device or site of each row, as for `DIPClassifier.fit`: folds hold out whole
            groups.
        """
        template = DIPClassifier() if self.estimator is None else self.estimator
        if isinstance(template, FrozenEstimator):
            raise ValueError(
                "a frozen estimator is not fitted again: use the detector without fit, or call "
                "calibrate(X) on the classifier to set the threshold by other inputs"
            )
        if isinstance(template, type) or not hasattr(template, "evidence_model"):
            raise TypeError(
                f"estimator must be a DIPClassifier, got {template!r}; give it the classifier, "
                "as OODDetector(DIPClassifier(forest))"
            )
        if self.false_alarm_rate is not None:
            check_rate(self.false_alarm_rate)
        if y is None:
            X = validate_fit_inputs(self, X)
            labels = np.zeros(X.shape[0])
        else:
            X, labels = validate_inputs_and_labels(self, X, y)
        groups = validate_groups(groups, len(labels))
        # No classifier stands behind it: z is not asked for, only the score and its threshold.
        model = template.evidence_model().set_params(normalizer=RankNormal())
        self.evidence_: EvidenceModel = model.fit(X, labels, groups, estimator=template.estimator)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of the features of each input, shape (n,); higher is more typical."""
        check_is_fitted(self)
        if hasattr(self, "evidence_"):
            evidence = self.evidence_
            return evidence.predict(validate_inputs(self, X, evidence.columns_))[2]
        return self.estimator.score_samples(X)  # type: ignore[union-attr]

    def decision_function(self, X: Any) -> np.ndarray:
        """Nats above the threshold, shape (n,); negative for inputs that are flagged."""
        # Scores and threshold of one state: another thread may calibrate the classifier inside.
        now = snapshot_of(self)
        if not hasattr(now, "evidence_") and hasattr(now.estimator, "evidence_"):
            now.estimator = snapshot_of(now.estimator)
        scores, offset = now.score_samples(X), now.offset_
        return np.where(scores == offset, 0.0, scores - offset)

    def predict(self, X: Any) -> np.ndarray:
        """+1 for inputs like the training data, -1 for the others, shape (n,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def export_onnx(self, path: str | Path, **options: Any) -> None:
        """Write the fitted detector as one ONNX graph; see `dipedl.export_onnx`."""
        from .io.onnx import export_onnx

        export_onnx(self, path, **options)

    @property
    def offset_(self) -> float:
        """Log-density in nats below which an input is flagged."""
        check_is_fitted(self)
        model = self.evidence_ if hasattr(self, "evidence_") else self.estimator.evidence_  # type: ignore[union-attr]
        if self.false_alarm_rate is None:
            return float(model.offset_)
        return model.held_out_.threshold(check_rate(self.false_alarm_rate))

    def __sklearn_tags__(self) -> Any:
        """Return tags: sparse inputs are taken by the default features."""
        template = DIPClassifier() if self.estimator is None else self.estimator
        return sparse_by_default(super().__sklearn_tags__(), getattr(template, "features", None))

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` was called, or the classifier inside is fitted."""
        return hasattr(self, "evidence_") or hasattr(self.estimator, "evidence_")
