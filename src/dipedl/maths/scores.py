"""Uncertainty scores: of class probabilities, of samples of them, and by the name of a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from .special import log_ratio

#: Least share that the other classes have in `confidence`.
LEAST_DOUBT = 1e-12
#: Share of a score in float64 that rounding may change: a sum's depends on the rows beside it.
_ROUNDING = 1e-9
_TINY = np.finfo(np.float64).tiny


def max_prob(P: np.ndarray) -> np.ndarray:
    """One minus the largest of the class probabilities P (n, k), shape (n,), in [0, 1 - 1/k]."""
    # Summed over the other classes: 1 - max is 0 for every confident row, and they all tie.
    others = np.sort(P, axis=1)[:, :-1]
    return np.asarray(others.sum(axis=1))


def confidence(P: np.ndarray) -> np.ndarray:
    """Minus the logarithm of `max_prob`, in nats, shape (n,): higher is surer, at most 27.6."""
    return np.asarray(-np.log(np.maximum(max_prob(P), LEAST_DOUBT)))


def round_down(scores: npt.ArrayLike) -> np.ndarray:
    """Lower scores by as much as rounding may: computed beside other rows none comes out lower."""
    s = np.asarray(scores)
    return np.asarray(s - np.where(np.isfinite(s), _ROUNDING * np.abs(s), 0.0))


def round_up(scores: npt.ArrayLike) -> np.ndarray:
    """Raise scores by as much as rounding may: computed beside other rows none comes out higher."""
    return -round_down(np.negative(scores))


def auroc(
    typical: np.ndarray,
    departed: np.ndarray,
    weights: np.ndarray | None = None,
    departed_weights: np.ndarray | None = None,
) -> float:
    """Probability that a score of `typical` rows is above one of `departed` ones; ties count half.

    What differs by rounding alone is a tie. Weights say how often each row counts. NaN without rows
    on either side.
    """
    if not len(typical) or not len(departed):
        return float("nan")
    return float(1 - np.average(placements(typical, departed, weights), weights=departed_weights))


def auroc_variance(typical: np.ndarray, departed: np.ndarray) -> float:
    """Variance of `auroc`, from the placements of each set in the other; 1/4 for single rows.

    DeLong, DeLong, Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves",
    Biometrics 44 (1988).
    """
    if min(len(typical), len(departed)) < 2:
        return 0.25
    found = ((typical, departed), (departed, typical))
    return float(sum(placements(a, b).var(ddof=1) / len(b) for a, b in found))


def placements(
    among: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Share of the weight of `among` that lies below each of `scores`, ties half, shape (n,)."""
    order = np.argsort(among, kind="stable")
    own = np.ones(len(order)) if weights is None else weights[order]
    total = np.concatenate([[0.0], np.cumsum(own)])
    ranked = among[order]
    below = total[np.searchsorted(round_up(ranked), scores, side="left")]
    not_above = total[np.searchsorted(round_down(ranked), scores, side="right")]
    return np.asarray((below + not_above) / (2 * total[-1]))


def entropy(P: np.ndarray) -> np.ndarray:
    """Entropy in nats of the class probabilities P (n, k), shape (n,), in [0, log k]."""
    return np.asarray(entr(P).sum(axis=1))


def mutual_information(samples: np.ndarray) -> np.ndarray:
    """Mutual information in nats of label and model, for `samples` (m, n, k) of P; shape (n,).

    ``H(mean p) - mean H(p)``, computed as the mean of KL(p || mean p), whose terms are all
    non-negative: the difference of the entropies loses its digits where the samples agree.
    """
    mean = samples.mean(axis=0)
    log = log_ratio(np.maximum(samples, _TINY), np.maximum(mean, _TINY))
    terms = samples * log - (samples - mean)
    return np.asarray(np.maximum(terms, 0.0).mean(axis=0).sum(axis=1))


DIRICHLET_KINDS = (
    "vacuity",
    "total",
    "aleatoric",
    "epistemic",
    "differential_entropy",
)
_FROM_PROBA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "max_prob": max_prob,
    "entropy": entropy,
}


def uncertainty_of(
    kind: str,
    dirichlet: Callable[[], Any],
    proba: Callable[[], np.ndarray],
    scores: Callable[[], np.ndarray],
) -> np.ndarray:
    """Uncertainty of n inputs, shape (n,), higher = less sure; asks only for what `kind` needs."""
    if kind in DIRICHLET_KINDS:
        return np.asarray(getattr(dirichlet(), kind))
    if kind in _FROM_PROBA:
        return _FROM_PROBA[kind](proba())
    if kind == "log_density":
        return -scores()
    allowed = [*DIRICHLET_KINDS, *_FROM_PROBA, "log_density"]
    raise ValueError(f"kind must be one of {allowed}, got {kind!r}")


def bare_uncertainty_of(
    kind: str, proba: Callable[[], np.ndarray], scores: Callable[[], np.ndarray]
) -> np.ndarray:
    """As `uncertainty_of`, of a model that has probabilities and a score and no Dirichlet."""
    if kind == "uncertainty":
        return -scores()
    if kind in _FROM_PROBA:
        return _FROM_PROBA[kind](proba())
    raise ValueError(f"kind must be one of {['uncertainty', *_FROM_PROBA]}, got {kind!r}")


def most_probable(concentration: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Index of the class with the largest concentration, shape (n,); `proba` breaks ties.

    Far from the data the concentration is the prior to the last bit.
    """
    largest = concentration == concentration.max(axis=1, keepdims=True)
    return np.asarray(np.where(largest, proba, -1.0).argmax(axis=1))
