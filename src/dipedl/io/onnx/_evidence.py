"""Calibrators, normalisers, prior and threshold as parts of a graph.

What exports: ``calibrator`` `dipedl.calibration.Temperature` (of probabilities) and "passthrough";
``normalizer`` `CautionBudget`, `QuantileEvidence`, `ZScore`, `RobustZScore`, `RankNormal` and
`Identity`. Anything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...calibration.rehearsal import Rehearsal
from ...calibration.temperature import Temperature
from ...dirichlet import DISPLAYED
from ...evidence import CautionBudget, Identity, QuantileEvidence, RankNormal, RobustZScore, ZScore
from ._nodes import Tensor, interpolate, sigmoid, soft_plus, softmax


def calibrate(
    P: Tensor, calibrator: Any, scores: Tensor, sharpening: tuple[float, float]
) -> Tensor:
    """Class probabilities P (n, k) after a fitted calibrator, for inputs of `scores` (n,)."""
    if calibrator is None:
        return P
    if type(calibrator) is not Temperature:
        raise TypeError(
            f"calibrator {calibrator!r} cannot be exported to ONNX; "
            "use Temperature() (the default) or calibrator='passthrough'"
        )
    if calibrator.temperature_ == 1:
        return P
    log_p, steepness = P.apply("Log"), 1 / calibrator.temperature_
    if steepness < 1:
        return softmax(log_p * steepness)
    low, high = sharpening
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


def normal_scores(scores: Tensor, normalizers: Sequence[RankNormal]) -> Tensor:
    """Normal scores (n, c): each column of `scores` (n, c) by its own table."""
    inside = interpolate(
        scores, [n.knots_ for n in normalizers], [n.normal_scores_ for n in normalizers]
    )
    low, high = (np.array([n.knots_[end] for n in normalizers]) for end in (0, -1))
    scale = np.array([n.scale_ for n in normalizers])
    # Each clipped on its own side, so that an infinite score meets no inf - inf.
    below, above = scores.at_most(low) - low, scores.at_least(high) - high
    return inside + below / scale + above / scale


def log_evidence(z: Tensor, n: float, gamma: float, max_evidence: float | None) -> Tensor:
    """Log pseudo-counts (n,)."""
    value = z + float(np.log(n) + np.log(gamma))
    return value if max_evidence is None else value.at_most(float(np.log(max_evidence)))


def supported_strength(log_evidence: Tensor, spread: Any) -> Tensor:
    """Strength (n,) that a fitted `Rehearsal` supports at log-evidence (n,)."""
    if type(spread) is not Rehearsal:
        raise TypeError(
            f"spread {type(spread).__name__} cannot be exported to ONNX; use "
            "dipedl.calibration.Rehearsal() or spread=None"
        )
    low = min(spread.strength_, 1.0)
    gap = (log_evidence - spread.log_evidence_).at_most(0.0)
    return (gap / 3.0).apply("Exp") * (spread.strength_ - low) + low


def dirichlet(evidence: Tensor, P: Tensor, prior: np.ndarray) -> tuple[Tensor, Tensor]:
    """Posterior mean (n, k) and vacuity (n,) of ``prior + exp(evidence) P``."""
    counts = evidence.at_most(DISPLAYED).apply("Exp").unsqueeze(1)
    concentration = counts * P + prior
    mean = concentration / concentration.reduce("Sum", 1, keep=True)
    return mean, sigmoid(-evidence + float(np.log(prior.sum())))
