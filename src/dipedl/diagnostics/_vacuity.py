"""What the evidence does to the predictions on the held-out rows of a model."""

from __future__ import annotations

import numpy as np

from ..calibration.held_out import HeldOut
from ..evidence import weighted_quantile
from ..evidence_model import EvidenceModel

_MOST_DOUBLINGS = 200


def vacuity_at(evidence: EvidenceModel, scores: np.ndarray) -> np.ndarray:
    """Share of the prior in the prediction at these scores, (m,)."""
    log_e = evidence.log_evidence(np.asarray(scores, dtype=float))
    alpha0 = float(np.asarray(evidence.prior).sum())
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(log_e - np.log(alpha0), 700.0))))


def posterior_mean(evidence: EvidenceModel) -> np.ndarray:
    """Posterior mean of each labelled held-out row, (m, k)."""
    held, prior = evidence.held_out_, np.asarray(evidence.prior)
    u = vacuity_at(evidence, held.scores)[:, None]
    return np.asarray((1 - u) * held.proba + u * prior / prior.sum())


def lowest(held: HeldOut) -> float:
    """Lowest score but for those of zero density."""
    finite = held.scores[held.finite]
    return float(finite.min()) if len(finite) else 0.0


def spread(held: HeldOut) -> float:
    """From the lowest score to the highest, but for those of zero density."""
    return max(float(held.scores.max()) - lowest(held), 0.0)


def score_quantile(held: HeldOut, q: float) -> float:
    """Score with a share `q` of the inputs at or below it; never that of zero density."""
    return max(weighted_quantile(held.scores, q, held.weights), lowest(held))


def half_point(evidence: EvidenceModel) -> float:
    """Score at which half of the confidence is lost: vacuity 1/2; -inf if there is none."""
    held = evidence.held_out_
    top = float(held.scores.max())
    step = max(spread(held), 1e-12 * max(1.0, abs(top)))
    if _is_half_lost(evidence, top):
        return top
    for i in range(_MOST_DOUBLINGS):
        low = top - step * 2.0**i
        if _is_half_lost(evidence, low):
            return _bisected(evidence, low, top)
    return -np.inf


def _bisected(evidence: EvidenceModel, low: float, high: float) -> float:
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _is_half_lost(evidence, middle) else (low, middle)
    return low


def _is_half_lost(evidence: EvidenceModel, score: float) -> bool:
    return bool(vacuity_at(evidence, np.array([score]))[0] >= 0.5)
