"""Transformers of scikit-learn, and ours, as parts of a graph.

Those of `_TRANSFORMERS`, columns and pipelines in float64 throughout. Everything else that skl2onnx
converts (PCA, other scalers, imputers, ...) goes through it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from ....preprocessing.logit_pixels import ROUNDING, LogitPixels
from ....preprocessing.signed_power import SignedPower
from .._fitted import is_network
from .._nodes.builder import Tensor
from .._nodes.ops import log1p
from .networks import network_outputs
from .skl2onnx_models import converted


class Data(NamedTuple):
    """A tensor (n, d) of the graph, and its values (m, d) for a few rows."""

    tensor: Tensor
    rows: np.ndarray

    def columns(self, chosen: np.ndarray) -> Data:
        return Data(self.tensor.columns(chosen), self.rows[:, chosen])


def transformed(transformer: Any, X: Data) -> Data:
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
    return Data(converted(transformer, "transform", X.tensor, X.rows) if Z is None else Z, rows)


def last_step(estimator: Any, X: Data) -> tuple[Any, Data]:
    """Return the estimator inside frozen ones and at the end of pipelines, with its inputs."""
    if isinstance(estimator, FrozenEstimator):
        return last_step(estimator.estimator, X)
    if type(estimator) is Pipeline:
        for _, step in estimator.steps[:-1]:
            X = transformed(step, X)
        return last_step(estimator.steps[-1][1], X)
    return estimator, X


def _of_columns(model: ColumnTransformer, X: Data) -> Data:
    parts = []
    for name, transformer, _ in model.transformers_:
        numbers = np.asarray(model._transformer_to_input_indices[name], dtype=int)
        if len(numbers) and not (isinstance(transformer, str) and transformer == "drop"):
            parts.append(transformed(transformer, X.columns(numbers)))
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
