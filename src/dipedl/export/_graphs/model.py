"""A fitted `DIPClassifier` or `OODDetector` as one graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ...density._fitting import takes_proba
from ...evidence_model import EvidenceModel
from .._estimators.networks import answers
from .._estimators.sklearn_models import probabilities
from .._estimators.transformers import Data, transformed
from .._fitted import evidence_owner, is_shared
from .._nodes.builder import Graph, Tensor
from .densities import Seen, log_density
from .evidence import calibrated, dirichlet, log_evidence, normalised

#: Name of the graph's input, (n, d).
INPUT = "X"


def classifier_model(
    model: Any, rows: np.ndarray, *, opset: int, dtype: np.dtype, max_constant_mb: float
) -> ModelProto:
    """The graph of a fitted `DIPClassifier`; `rows` (m, d) are inputs to check parts on."""
    graph = Graph(opset, max_constant_mb)
    X = _input(graph, rows, dtype)
    evidence = model.evidence_
    P, Z = _proba_and_features(model, X)
    refused = _not_finite(Z.tensor)
    P = refused.unsqueeze(1).where(model.prior_ / model.prior_.sum(), P)
    scores = _scores(evidence, Z, P, refused)
    z = normalised(scores, evidence.normalizer_)
    strength = log_evidence(z, evidence.n_, evidence.gamma, evidence.max_evidence)
    mean, vacuity = dirichlet(strength, calibrated(P, evidence.calibrator_), model.prior_)
    flagged = graph.op("Or", scores < evidence.offset_, refused)
    return graph.model(
        {
            "probabilities": (mean.cast(dtype), dtype, ["n", len(model.classes_)]),
            "vacuity": (vacuity.cast(dtype), dtype, ["n"]),
            "log_evidence": (strength.cast(dtype), dtype, ["n"]),
            "ood": (flagged, np.dtype(bool), ["n"]),
        }
    )


def detector_model(
    model: Any, rows: np.ndarray, *, opset: int, dtype: np.dtype, max_constant_mb: float
) -> ModelProto:
    """The graph of a fitted `OODDetector`; `rows` (m, d) are inputs to check parts on."""
    graph = Graph(opset, max_constant_mb)
    X = _input(graph, rows, dtype)
    known = evidence_owner(model)
    evidence = known.evidence_
    if known is model:
        P, Z = None, transformed(evidence.features_, X)
    else:
        P, Z = _proba_and_features(known, X)
    refused = _not_finite(Z.tensor)
    scores = _scores(evidence, Z, P, refused)
    flagged = graph.op("Or", scores < model.offset_, refused)
    return graph.model(
        {
            "score": (scores.cast(dtype), dtype, ["n"]),
            "ood": (flagged, np.dtype(bool), ["n"]),
        }
    )


def _input(graph: Graph, rows: np.ndarray, dtype: np.dtype) -> Data:
    return Data(graph.input(INPUT, dtype, rows.shape[1]).cast(np.float64), rows)


def _proba_and_features(model: Any, X: Data) -> tuple[Tensor, Data]:
    """Probabilities (n, k) before the calibrator, and features (n, p)."""
    features = model.evidence_.features_
    if is_shared(model.estimator_, features):
        both = answers(X.tensor, model.estimator_, features)
        return both["probabilities"], Data(both["features"], features.transform(X.rows))
    P = _in_order(probabilities(model.estimator_, X), model)
    return P / P.reduce("Sum", 1, keep=True), transformed(features, X)


def _in_order(P: Tensor, model: Any) -> Tensor:
    """P with a column for each class of the model; zero for a class that the classifier lacks."""
    given = list(getattr(model.estimator_, "classes_", model.classes_))
    known = list(model.classes_)
    if given == known:
        return P
    return P @ np.array([[float(a == b) for b in known] for a in given])


def _scores(evidence: EvidenceModel, Z: Data, P: Tensor | None, refused: Tensor) -> Tensor:
    """Scores (n,) of features Z; -inf where they are NaN."""
    seen = Seen(Z, P if takes_proba(evidence.density_) else None)
    return refused.where(-np.inf, log_density(evidence.density_, seen))


def _not_finite(Z: Tensor) -> Tensor:
    """Rows (n,) of Z (n, p) that hold NaN or an infinity: which Python refuses with an error."""
    return (Z - Z).apply("IsNaN").cast(np.float64).reduce("Max", 1) > 0.0
