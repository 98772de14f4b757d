"""A held-out sample whose truth is known: calibrated probabilities, normal scores."""

import numpy as np


def held_out(rng, m=400, k=4, sharpness=2.0):
    """Scores (m,), probabilities (m, k) and labels (m,) drawn from them."""
    logits = sharpness * rng.normal(size=(m, k))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) < rng.random((m, 1))).sum(axis=1)
    return rng.normal(size=m), proba, np.minimum(y, k - 1)


def shrunk_mean(z, proba, n, prior, gamma=1.0):
    """The posterior mean, row by row, by the definition of the Dirichlet."""
    mean = []
    for zi, p in zip(z, proba, strict=True):
        alpha = prior + n * gamma * np.exp(zi) * p
        mean.append(alpha / alpha.sum())
    return np.array(mean)


def brier(mean, y):
    return sum(((m - np.eye(len(m))[c]) ** 2).sum() for m, c in zip(mean, y, strict=True)) / len(y)


def nll(mean, y):
    return -sum(np.log(m[c]) for m, c in zip(mean, y, strict=True)) / len(y)


MEASURES = {"brier": brier, "nll": nll}
