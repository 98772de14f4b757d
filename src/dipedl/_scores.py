"""Uncertainty scores of class probabilities: of one prediction, and of several samples of it."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from ._gamma import log_ratio

_TINY = np.finfo(np.float64).tiny


def max_prob(P: np.ndarray) -> np.ndarray:
    """One minus the largest of the class probabilities P (n, k), shape (n,), in [0, 1 - 1/k]."""
    # Summed over the other classes: 1 - max is 0 for every confident row, and they all tie.
    others = np.sort(P, axis=1)[:, :-1]
    return np.asarray(others.sum(axis=1))


def confidence(P: np.ndarray) -> np.ndarray:
    """Minus the logarithm of `max_prob`, in nats, shape (n,): higher is surer, at most 27.6."""
    return np.asarray(-np.log(np.maximum(max_prob(P), 1e-12)))


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
