"""Estimators that skl2onnx converts, with the input type in which its graph is right."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ....plugins import explain_missing
from .._nodes.builder import ML_DOMAIN, ML_OPSET, Tensor

#: Largest difference, relative to the largest entry of a column, between an estimator and its
#: graph. Errors of conversion are far larger, those of float32 smaller.
_TOLERANCE = 5e-6
_PACKAGES = ("xgboost", "lightgbm", "catboost")


def converted(estimator: Any, method: str, X: Tensor, rows: np.ndarray) -> Tensor:
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
    from .._check import session

    return np.asarray(session(model).run([output], {"X": rows})[0], dtype=np.float64)


def _difference(found: np.ndarray, known: np.ndarray) -> float:
    if found.size != known.size:
        raise ValueError(f"output of shape {found.shape}, expected {known.shape}")
    scale = np.maximum(np.abs(known).max(axis=0), 1.0)
    gap = np.abs(found.reshape(known.shape) - known) / scale
    return float(np.inf if np.isnan(gap).any() else gap.max())
