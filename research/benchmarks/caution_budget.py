"""Cost of doubt on new rows beside the caution budget, by number of held-out rows.

    python benchmarks/caution_budget.py

Calibrated probabilities of four classes, scores that say nothing of them: the budget is fitted to m
held-out rows, and what doubt costs is measured on many new ones, as a share of what the budget is
a share of.
"""

import harness
import numpy as np

from dipedl.evidence import CautionBudget

HELD_OUT, NEW, REPETITIONS, SEED = (100, 300, 1_000, 10_000), 50_000, 400, 0
BUDGET, CONFIDENCES, SHARPNESS, TRAINING_ROWS, CLASSES = 0.02, (0.5, 0.95), 2.0, 1_000, 4

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def draw_rows(rng: np.random.Generator, m: int) -> Rows:
    """Scores (m,), probabilities (m, 4) and labels (m,) drawn from them."""
    weights = np.exp(SHARPNESS * rng.normal(size=(m, CLASSES)))
    proba = weights / weights.sum(axis=1, keepdims=True)
    y = np.minimum((proba.cumsum(axis=1) < rng.random((m, 1))).sum(axis=1), CLASSES - 1)
    return rng.normal(size=m), proba, y


def brier(proba: np.ndarray, y: np.ndarray, evidence: np.ndarray | float) -> float:
    """Brier score of the posterior mean."""
    alpha = 1 + np.reshape(evidence, (-1, 1)) * proba
    gaps = alpha / alpha.sum(axis=1, keepdims=True) - np.eye(CLASSES)[y]
    return float((gaps**2).sum(axis=1).mean())


def costs(m: int, confidence: float, new: Rows, rng: np.random.Generator) -> np.ndarray:
    """Return the cost on new rows of the doubt of each fit to m rows, shape (repetitions,)."""
    s, proba, y = new
    full = brier(proba, y, TRAINING_ROWS)
    unit = min(full, brier(proba, y, 0.0) - full)
    found = []
    for _ in range(REPETITIONS):
        held_out, p, labels = draw_rows(rng, m)
        caution = CautionBudget(BUDGET, confidence=confidence)
        caution.fit(held_out, proba=p, y=labels, n=TRAINING_ROWS, prior=np.ones(CLASSES))
        found.append((brier(proba, y, TRAINING_ROWS * np.exp(caution.transform(s))) - full) / unit)
    return np.array(found)


def measure() -> harness.Values:
    rng, values = np.random.default_rng(SEED), {}
    new = draw_rows(rng, NEW)
    for confidence in CONFIDENCES:
        for m in HELD_OUT:
            cost = costs(m, confidence, new, rng)
            values[f"{m} rows, confidence {confidence}"] = {
                "mean": round(float(cost.mean()), 4),
                "sd": round(float(cost.std(ddof=1)), 4),
                "above budget": round(float((cost > BUDGET).mean()), 4),
            }
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
