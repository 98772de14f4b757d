"""A fitted `DIPClassifier` or `OODDetector` as one graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ...density.base import takes_proba
from ...inputs import FittedClassifier
from ...maths.arrays import TOLERANCE
from ._densities import Seen, log_density
from ._estimators import Data, network_outputs, probabilities, transform
from ._evidence import calibrate, dirichlet, log_evidence, normalise, supported_strength
from ._fitted import evidence_owner, is_shared, kind_of
from ._nodes import Graph, Tensor

#: Name of the graph's input, (n, d).
INPUT = "X"


def model_graph(
    model: Any, rows: np.ndarray, *, opset: int, dtype: np.dtype, max_constant_mb: float
) -> ModelProto:
    """The graph of a fitted classifier or detector; `rows` (m, d) are inputs to check parts on."""
    graph = Graph(opset, max_constant_mb)
    X = Data(graph.input(INPUT, dtype, rows.shape[1]).cast(np.float64), rows)
    known = evidence_owner(model)
    density = known.evidence_.density_
    P, Z = _proba_and_features(known, X)
    unknown = _not_finite(Z.tensor)
    if P is not None:
        unknown = graph.op("Or", unknown, _no_probabilities(P))
        P = P / P.reduce("Sum", 1, keep=True)
    scores = log_density(density, Seen(Z, P if takes_proba(density) else None))
    unknown = graph.op("Or", unknown, scores.apply("IsNaN"))
    scores = unknown.where(-np.inf, scores)
    found, shapes = {"score": scores}, {}
    if kind_of(model) == "DIPClassifier":
        found = _posterior(model, P, scores, unknown)
        shapes = {"probabilities": ["n", len(model.classes_)]}
    flagged = graph.op("Or", scores < model.offset_, unknown)
    outputs = {name: (t.cast(dtype), dtype, shapes.get(name, ["n"])) for name, t in found.items()}
    return graph.model(outputs | {"ood": (flagged, np.dtype(bool), ["n"])})


def _posterior(model: Any, P: Any, scores: Tensor, unknown: Tensor) -> dict[str, Tensor]:
    """Return the outputs of a `DIPClassifier` beside the flag; the prior for an unknown row."""
    evidence = model.evidence_
    P = unknown.unsqueeze(1).where(1 / len(model.prior_), P)
    z = normalise(scores, evidence.normalizer_)
    strength = log_evidence(z, evidence.n_, evidence.gamma, evidence.max_evidence)
    P = calibrate(P, evidence.calibrator_, scores, evidence.sharpening_)
    mean, vacuity = dirichlet(strength, P, model.prior_)
    found = {"probabilities": mean, "vacuity": vacuity, "log_evidence": strength}
    spread = getattr(model, "spread_", None)
    supported = {} if spread is None else {"strength": supported_strength(strength, spread)}
    return found | supported


def _proba_and_features(model: Any, X: Data) -> tuple[Tensor | None, Data]:
    """Probabilities (n, k) before the calibrator, if there is a classifier; features (n, p)."""
    features = model.evidence_.features_
    if not hasattr(model, "estimator_"):
        return None, transform(features, X)
    if is_shared(model.estimator_, features):
        both = network_outputs(X.tensor, model.estimator_, features)
        return both["probabilities"], Data(both["features"], features.transform(X.rows))
    return _in_order(probabilities(model.estimator_, X), model), transform(features, X)


def _in_order(P: Tensor, model: Any) -> Tensor:
    """P with a column for each class of the model; zero for a class that the classifier lacks."""
    known = list(model.classes_)
    given = list(FittedClassifier(model.estimator_, model.classes_).labels())
    if given == known:
        return P
    return P @ np.array([[float(a == b) for b in known] for a in given])


def _no_probabilities(P: Tensor) -> Tensor:
    """Rows (n,) of P (n, k) that are no probabilities, which Python answers as unknown."""
    inside = P.reduce("Min", 1) >= 0.0
    off = (P.reduce("Sum", 1) - 1.0).apply("Abs")
    return P.graph.op("Not", P.graph.op("And", inside, off < TOLERANCE))


def _not_finite(Z: Tensor) -> Tensor:
    """Rows (n,) of Z (n, p) that hold NaN or an infinity: which Python refuses with an error."""
    return (Z - Z).apply("IsNaN").cast(np.float64).reduce("Max", 1) > 0.0
