"""Classifiers, transformers and networks as parts of a graph.

Those of `_CLASSIFIERS` and `_TRANSFORMERS`, pipelines, columns and boosters in float64 throughout.
Everything else that skl2onnx converts (PCA, imputers, naive Bayes, ...) goes through it, in the
input type (float64, else float32) in which its graph agrees with the estimator; one that agrees in
neither is refused by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from ...plugins import explain_missing
from ...preprocessing.logit_pixels import ROUNDING, LogitPixels
from ...preprocessing.signed_power import SignedPower
from ._fitted import is_network
from ._nodes import ML_DOMAIN, ML_OPSET, Tensor, interpolate, log1p, sigmoid, softmax, two_classes
from ._trees import RAW_SCORES, TREES, booster


def network_outputs(X: Tensor, classifier: Any = None, features: Any = None) -> dict[str, Tensor]:
    """Probabilities of the classifier and features, by name, for inputs X (n, d)."""
    from ._torch import network_graph

    model = network_graph(classifier, features, opset=X.graph.opset)
    wanted = model.graph.input[0]
    is_double = wanted.type.tensor_type.elem_type == 11  # onnx.TensorProto.DOUBLE
    found = X.graph.embed(model, {wanted.name: X.cast(np.float64 if is_double else np.float32)})
    return {name: tensor.cast(np.float64) for name, tensor in found.items()}


#: Largest difference, relative to the largest entry of a column, between an estimator and its
#: graph. Errors of conversion are far larger, those of float32 smaller.
_TOLERANCE = 5e-6
_PACKAGES = ("xgboost", "lightgbm", "catboost")


def convert(estimator: Any, method: str, X: Tensor, rows: np.ndarray) -> Tensor:
    """Output (n, c) of ``estimator.predict_proba`` or ``estimator.transform`` on X (n, d).

    Graph and fitted estimator are compared on `rows` (m, d). TypeError if skl2onnx has no
    converter, or none that agrees.
    """
    known = _output(estimator, method, rows)
    tried = []
    for dtype in (np.float64, np.float32):
        try:
            model, output = _to_onnx(estimator, method, rows.shape[1], X.graph.opset, dtype)
            difference = _difference(_run(model, output, rows.astype(dtype)), known)
        except ImportError:
            raise
        except Exception as error:
            tried.append(f"{np.dtype(dtype)}: {type(error).__name__}: {str(error)[:200]}")
            continue
        if difference <= _TOLERANCE:
            found = X.graph.embed(model, {"X": X.cast(dtype)})[output].cast(np.float64)
            return X.graph.op("Reshape", found, np.array([-1, known.shape[1]]))
        tried.append(f"{np.dtype(dtype)}: its output differs by up to {difference:.2g}")
    raise TypeError(_refusal(estimator, method, tried))


def _refusal(estimator: Any, method: str, tried: list[str]) -> str:
    name, package = type(estimator).__name__, type(estimator).__module__.split(".")[0]
    remedy = (
        f"install the package 'onnxmltools' and register its converter of {name} by "
        "skl2onnx.update_registered_converter"
        if package in _PACKAGES
        else "use one of scikit-learn's, such as LogisticRegression, RandomForestClassifier or "
        "HistGradientBoostingClassifier, or register a converter by "
        "skl2onnx.update_registered_converter"
        if method == "predict_proba"
        else "use one of scikit-learn's, such as StandardScaler or PCA, or register a converter by "
        "skl2onnx.update_registered_converter"
    )
    return f"{name} cannot be exported to ONNX; skl2onnx gave, with inputs of\n  " + "\n  ".join(
        [*tried, remedy]
    )


def _output(estimator: Any, method: str, rows: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(estimator, method)(rows), dtype=np.float64)


def _to_onnx(estimator: Any, method: str, width: int, opset: int, dtype: type) -> tuple[Any, str]:
    """skl2onnx's model and the name of its output."""
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError as error:
        raise explain_missing(error, "export_onnx") from error
    kind = DoubleTensorType if dtype is np.float64 else FloatTensorType
    options = {id(estimator): {"zipmap": False}} if method == "predict_proba" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = convert_sklearn(
            estimator,
            initial_types=[("X", kind([None, width]))],
            options=options,
            target_opset={"": opset, ML_DOMAIN: ML_OPSET},
        )
    return model, model.graph.output[1 if method == "predict_proba" else 0].name


def _run(model: Any, output: str, rows: np.ndarray) -> np.ndarray:
    from ._check import session

    return np.asarray(session(model).run([output], {"X": rows})[0], dtype=np.float64)


def _difference(found: np.ndarray, known: np.ndarray) -> float:
    if found.size != known.size:
        raise ValueError(f"output of shape {found.shape}, expected {known.shape}")
    scale = np.maximum(np.abs(known).max(axis=0), 1.0)
    gap = np.abs(found.reshape(known.shape) - known) / scale
    return float(np.inf if np.isnan(gap).any() else gap.max())


class Data(NamedTuple):
    """A tensor (n, d) of the graph, and its values (m, d) for a few rows."""

    tensor: Tensor
    rows: np.ndarray

    def columns(self, chosen: np.ndarray) -> Data:
        return Data(self.tensor.columns(chosen), self.rows[:, chosen])


def transform(transformer: Any, X: Data) -> Data:
    """Output of a fitted transformer, (n, p); "passthrough" and None change nothing."""
    transformer, X = last_step(transformer, X)
    if transformer is None or isinstance(transformer, str):
        return X
    if type(transformer) is ColumnTransformer:
        return _of_columns(transformer, X)
    with warnings.catch_warnings():
        # Only the whole model knows the names of columns.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        rows = np.asarray(transformer.transform(X.rows), dtype=np.float64)
    if is_network(transformer):
        return Data(network_outputs(X.tensor, features=transformer)["features"], rows)
    own = _TRANSFORMERS.get(type(transformer))
    Z = None if own is None else own(transformer, X.tensor)
    return Data(convert(transformer, "transform", X.tensor, X.rows) if Z is None else Z, rows)


def last_step(estimator: Any, X: Data) -> tuple[Any, Data]:
    """Return the estimator inside frozen ones and at the end of pipelines, with its inputs."""
    if isinstance(estimator, FrozenEstimator):
        return last_step(estimator.estimator, X)
    if type(estimator) is Pipeline:
        for _, step in estimator.steps[:-1]:
            X = transform(step, X)
        return last_step(estimator.steps[-1][1], X)
    return estimator, X


def _of_columns(model: ColumnTransformer, X: Data) -> Data:
    parts = []
    for name, transformer, _ in model.transformers_:
        numbers = np.asarray(model._transformer_to_input_indices[name], dtype=int)
        if len(numbers) and not (isinstance(transformer, str) and transformer == "drop"):
            parts.append(transform(transformer, X.columns(numbers)))
    whole = X.tensor.graph.op("Concat", *[part.tensor for part in parts], axis=1)
    return Data(whole, np.hstack([part.rows for part in parts]))


def _standard(model: StandardScaler, X: Tensor) -> Tensor:
    X = X if model.mean_ is None or not model.with_mean else X - model.mean_
    return X if model.scale_ is None else X / model.scale_


def _unit(model: Normalizer, X: Tensor) -> Tensor | None:
    if model.norm != "l2":
        return None
    length = X.reduce("SumSquare", 1, keep=True).apply("Sqrt")
    # scikit-learn treats a length of rounding size as zero, and leaves the row unchanged.
    return X / (length < 10 * np.finfo(np.float64).eps).where(1.0, length)


def _logit(model: LogitPixels, X: Tensor) -> Tensor:
    inside = X.at_least(0.0).at_most(1.0)
    cell = (inside * (model.levels - 1.0) + 0.5) / float(model.levels)
    level = cell * (1 - 2 * model.lam) + model.lam
    # Values that the transformer refuses become NaN here, and the row is flagged.
    outside = (X - 0.5).apply("Abs") > 0.5 + ROUNDING
    return outside.where(np.nan, level.apply("Log") - log1p(-level))


def _signed_power(model: SignedPower, X: Tensor) -> Tensor:
    size = X.apply("Abs")
    power = X.graph.op("Pow", size, float(model.exponent)) if model.exponent else log1p(size)
    return X.apply("Sign") * power


_TRANSFORMERS: dict[type, Callable[[Any, Tensor], Tensor | None]] = {
    StandardScaler: _standard,
    Normalizer: _unit,
    LogitPixels: _logit,
    SignedPower: _signed_power,
}


def probabilities(classifier: Any, X: Data) -> Tensor:
    """Class probabilities (n, k) of a fitted classifier, in the order of its classes."""
    classifier, X = last_step(classifier, X)
    if is_network(classifier):
        return network_outputs(X.tensor, classifier)["probabilities"]
    own = _CLASSIFIERS.get(type(classifier))
    P = booster(classifier, X.tensor) if own is None else own(classifier, X)
    return convert(classifier, "predict_proba", X.tensor, X.rows) if P is None else P


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
    return interpolate(scores, knots, values)


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
