"""A fitted `DIPClassifier` or `OODDetector` as one graph.

What exports: ``calibrator`` `dipedl.calibration.Temperature` (of probabilities) and "passthrough";
``normalizer`` `CautionBudget`, `QuantileEvidence`, `ZScore`, `RobustZScore`, `RankNormal` and
`Identity`. Anything else is refused by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ...calibration.spread import Spread
from ...calibration.temperature import Temperature
from ...density.base import takes_proba
from ...dirichlet import DISPLAYED
from ...evidence.caution_budget import CautionBudget
from ...evidence.normalizers import Identity, QuantileEvidence, RankNormal, RobustZScore, ZScore
from ...inputs import FittedClassifier
from ...maths.arrays import TOLERANCE
from ._check import evidence_owner, is_shared, kind_of
from ._densities import Seen, log_density, normal_scores
from ._estimators import Data, network_outputs, probabilities, transform
from ._nodes import Graph, Tensor, sigmoid, soft_plus, softmax


def model_graph(
    model: Any, rows: np.ndarray, *, opset: int, dtype: np.dtype, max_constant_mb: float
) -> ModelProto:
    """The graph of a fitted classifier or detector; `rows` (m, d) are inputs to check parts on."""
    graph = Graph(opset, max_constant_mb)
    X = Data(graph.input("X", dtype, rows.shape[1]).cast(np.float64), rows)
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
    P = calibrate(P, evidence, scores)
    mean, vacuity = dirichlet(strength, P, model.prior_)
    found = {"probabilities": mean, "vacuity": vacuity, "log_evidence": strength}
    spread = evidence.spread_
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


def calibrate(P: Tensor, evidence: Any, scores: Tensor) -> Tensor:
    """Class probabilities P (n, k) after a fitted calibrator, for inputs of `scores` (n,)."""
    calibrator = evidence.calibrator_
    if calibrator is None:
        return P
    if type(calibrator) is not Temperature:
        raise TypeError(
            f"calibrator {calibrator!r} cannot be exported to ONNX; "
            "use Temperature() (the default) or calibrator='passthrough'"
        )
    if evidence.temperature_ == 1:
        return P
    log_p, steepness = P.apply("Log"), 1 / evidence.temperature_
    if steepness < 1:
        return softmax(log_p * steepness)
    low, high = evidence.sharpening_
    share = ((scores - low) / (high - low)).at_least(0.0).at_most(1.0)
    return softmax(log_p * (share * (steepness - 1) + 1.0).unsqueeze(1))


def normalise(scores: Tensor, normalizer: Any) -> Tensor:
    """Normalised scores z (n,) of a fitted normaliser."""
    if isinstance(normalizer, ZScore | RobustZScore):
        return (scores - normalizer.location_) / normalizer.scale_
    if isinstance(normalizer, CautionBudget | QuantileEvidence):
        distance = (scores - normalizer.location_) / normalizer.scale_
        return -soft_plus(-(normalizer.log_odds_ + normalizer.slope * distance))
    if isinstance(normalizer, RankNormal):
        return normal_scores(scores.unsqueeze(1), [normalizer]).squeeze(1)
    if type(normalizer) is Identity:
        return scores
    raise TypeError(
        f"normalizer {type(normalizer).__name__} cannot be exported to ONNX; use one of "
        "dipedl.evidence: CautionBudget, QuantileEvidence, ZScore, RobustZScore, "
        "RankNormal or Identity"
    )


def log_evidence(z: Tensor, n: float, gamma: float, max_evidence: float | None) -> Tensor:
    """Log pseudo-counts (n,)."""
    value = z + float(np.log(n) + np.log(gamma))
    return value if max_evidence is None else value.at_most(float(np.log(max_evidence)))


def supported_strength(log_evidence: Tensor, spread: Spread) -> Tensor:
    """Strength (n,) that a fitted `Spread` supports at log-evidence (n,)."""
    low = min(spread.strength_, 1.0)
    gap = (log_evidence - spread.log_evidence_).at_most(0.0)
    return (gap / 3.0).apply("Exp") * (spread.strength_ - low) + low


def dirichlet(evidence: Tensor, P: Tensor, prior: np.ndarray) -> tuple[Tensor, Tensor]:
    """Posterior mean (n, k) and vacuity (n,) of ``prior + exp(evidence) P``."""
    counts = evidence.at_most(DISPLAYED).apply("Exp").unsqueeze(1)
    concentration = counts * P + prior
    mean = concentration / concentration.reduce("Sum", 1, keep=True)
    return mean, sigmoid(-evidence + float(np.log(prior.sum())))
