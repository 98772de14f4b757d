"""Classifiers of scikit-learn as parts of a graph, and boosters.

Those of `_CLASSIFIERS`, pipelines and boosters in float64 throughout. Everything else that
skl2onnx converts goes through it, in the input type (float64, else float32) in which its graph
agrees with the classifier; a classifier that agrees in neither is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression

from .._fitted import is_network
from .._nodes.builder import Tensor
from .._nodes.ops import interpolated, sigmoid, softmax, two_classes
from .boosters import booster
from .networks import network_outputs
from .skl2onnx_models import converted
from .transformers import Data, last_step
from .trees import RAW_SCORES, TREES


def probabilities(classifier: Any, X: Data) -> Tensor:
    """Class probabilities (n, k) of a fitted classifier, in the order of its classes."""
    classifier, X = last_step(classifier, X)
    if is_network(classifier):
        return network_outputs(X.tensor, classifier)["probabilities"]
    own = _CLASSIFIERS.get(type(classifier))
    P = booster(classifier, X.tensor) if own is None else own(classifier, X)
    return converted(classifier, "predict_proba", X.tensor, X.rows) if P is None else P


def margins(classifier: Any, X: Data) -> Tensor | None:
    """``decision_function``, (n, k), or (n, 1) of two classes; probabilities without one.

    None if it has no graph.
    """
    classifier, X = last_step(classifier, X)
    if type(classifier) in _LINEAR:
        return _decision(classifier, X)
    if type(classifier) in RAW_SCORES:
        return RAW_SCORES[type(classifier)](classifier, X.tensor)
    if hasattr(classifier, "decision_function"):
        return None
    P = probabilities(classifier, X)
    return P.columns(np.array([1])) if len(classifier.classes_) == 2 else P


def _decision(model: Any, X: Data) -> Tensor:
    return X.tensor @ _float64(model.coef_).T + _float64(model.intercept_)


def _float64(learned: Any) -> np.ndarray:
    """Return learned numbers in the type of the graph; from inputs in float32 it is float32."""
    return np.asarray(learned, dtype=np.float64)


def _linear(model: Any, X: Data) -> Tensor | None:
    if getattr(model, "solver", None) == "liblinear" and len(model.classes_) > 2:
        return None
    decision = _decision(model, X)
    return two_classes(decision) if len(model.classes_) == 2 else softmax(decision)


def _voting(model: VotingClassifier, X: Data) -> Tensor | None:
    if model.voting != "soft":
        return None
    parts = [probabilities(part, X) for part in model.estimators_]
    weights = np.ones(len(parts)) if model.weights is None else np.asarray(model._weights_not_none)
    return _weighted_mean(parts, weights)


def _bagging(model: BaggingClassifier, X: Data) -> Tensor | None:
    k = len(model.classes_)
    if not all(np.array_equal(part.classes_, np.arange(k)) for part in model.estimators_):
        return None
    parts = [
        probabilities(part, X.columns(np.asarray(chosen)))
        for part, chosen in zip(model.estimators_, model.estimators_features_, strict=True)
    ]
    return _weighted_mean(parts, np.ones(len(parts)))


def _weighted_mean(parts: list[Tensor], weights: np.ndarray) -> Tensor:
    total = parts[0] * float(weights[0])
    for part, weight in zip(parts[1:], weights[1:].tolist(), strict=True):
        total = total + part * weight
    return total / float(weights.sum())


def _calibrated(model: CalibratedClassifierCV, X: Data) -> Tensor | None:
    parts = [_calibrated_part(part, model.classes_, X) for part in model.calibrated_classifiers_]
    known = [part for part in parts if part is not None]
    return _weighted_mean(known, np.ones(len(known))) if len(known) == len(parts) else None


def _calibrated_part(part: Any, classes: np.ndarray, X: Data) -> Tensor | None:
    """One classifier and its calibrators, one per class (a single one for two classes)."""
    if part.method not in _CALIBRATIONS or not np.array_equal(part.estimator.classes_, classes):
        return None
    scores = margins(part.estimator, X)
    if scores is None:
        return None
    P = _CALIBRATIONS[part.method](part.calibrators, scores)
    if len(classes) == 2:
        return P.graph.op("Concat", 1.0 - P, P, axis=1)
    total = P.reduce("Sum", 1, keep=True)
    return (total > 0.0).where(P / total, 1 / len(classes))


def _sigmoids(calibrators: Sequence[Any], scores: Tensor) -> Tensor:
    slope = np.array([c.a_ for c in calibrators])
    return sigmoid(-(scores * slope + np.array([c.b_ for c in calibrators])))


def _isotonic(calibrators: Sequence[Any], scores: Tensor) -> Tensor:
    # A single step has one point: a second makes a table of it.
    pairs = [(_float64(c.X_thresholds_), _float64(c.y_thresholds_)) for c in calibrators]
    knots = [np.append(x, x[0] + 1.0) if len(x) == 1 else x for x, _ in pairs]
    values = [np.append(y, y[0]) if len(y) == 1 else y for _, y in pairs]
    return interpolated(scores, knots, values)


def _on_tensor(convert: Callable[[Any, Tensor], Tensor | None]) -> Callable[..., Tensor | None]:
    return lambda model, X: convert(model, X.tensor)


_CALIBRATIONS = {"sigmoid": _sigmoids, "isotonic": _isotonic}
_LINEAR = (LogisticRegression, LinearDiscriminantAnalysis)
_CLASSIFIERS: dict[type, Callable[[Any, Data], Tensor | None]] = {
    **dict.fromkeys(_LINEAR, _linear),
    VotingClassifier: _voting,
    BaggingClassifier: _bagging,
    CalibratedClassifierCV: _calibrated,
    **{kind: _on_tensor(convert) for kind, convert in TREES.items()},
}
