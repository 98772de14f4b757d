"""Inputs whose class probabilities P(Y|x) are known: one function for each family of problems.

A family takes a generator, which draws what differs from seed to seed, and its settings; it gives
how inputs are drawn, and P of inputs X (n, d), shape (n, k).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

Draw = Callable[[int, np.random.Generator], np.ndarray]
Proba = Callable[[np.ndarray], np.ndarray]
World = tuple[Draw, Proba]
#: Points on each arc that the density of a moon is summed over.
_ARC = 400


def gaussians(
    rng: np.random.Generator,
    *,
    k: int,
    d: int,
    apart: float = 2.0,
    weights: Sequence[float] | None = None,
    unequal: bool = False,
) -> World:
    """k Gaussian classes, of one width or of unequal ones, with means `apart` from each other."""
    share = np.full(k, 1 / k) if weights is None else np.asarray(weights) / np.sum(weights)
    means = rng.normal(size=(k, d)) * apart / np.sqrt(2)
    width = np.exp(0.3 * rng.normal(size=k)) if unequal else np.ones(k)

    def draw(m: int, rng: np.random.Generator) -> np.ndarray:
        c = rng.choice(k, m, p=share)
        return np.asarray(means[c] + rng.normal(size=(m, d)) * width[c][:, None])

    def logits(X: np.ndarray) -> np.ndarray:
        squared = ((X[:, None] - means) ** 2).sum(axis=2)
        return np.asarray(np.log(share) - squared / (2 * width**2) - d * np.log(width))

    return draw, _softmax_of(logits)


def logistic(
    rng: np.random.Generator, *, k: int, d: int, scale: float = 2.0, shift: float = 0.0
) -> World:
    """Logits linear in normal inputs; `shift` is that of the first class."""
    slopes = rng.normal(size=(d, k)) * scale / np.sqrt(d)
    first = shift * np.eye(k)[0]
    return partial(_normal, d), _softmax_of(lambda X: np.asarray(X @ slopes + first))


def additive(rng: np.random.Generator, *, k: int, d: int, scale: float = 2.0) -> World:
    """Logits that are sums of a sine of each uniform input."""
    height, steps = rng.normal(size=(d, k)), rng.uniform(1, 3, (d, k))
    phase = rng.uniform(0, 6.28, (d, k))

    def logits(X: np.ndarray) -> np.ndarray:
        waves = height * np.sin(steps * X[:, :, None] + phase)
        return np.asarray(1.4 * scale / np.sqrt(d) * waves.sum(axis=1))

    return partial(_uniform, d, 2.0), _softmax_of(logits)


def moons(rng: np.random.Generator, *, noise: float, flip: float) -> World:
    """Two moons with Gaussian noise, a share `flip` of whose labels is wrong."""
    grid = np.linspace(0, np.pi, _ARC)
    arcs = [_arc(grid, np.full(_ARC, moon)) for moon in range(2)]

    def draw(m: int, rng: np.random.Generator) -> np.ndarray:
        moon, angle = rng.integers(2, size=m), rng.uniform(0, np.pi, m)
        return np.asarray(_arc(angle, moon) + noise * rng.normal(size=(m, 2)))

    def proba(X: np.ndarray) -> np.ndarray:
        squared = [((X[:, None] - arc) ** 2).sum(axis=2) for arc in arcs]
        near = np.stack([logsumexp(-s / (2 * noise**2), axis=1) for s in squared], axis=1)
        return np.asarray((1 - 2 * flip) * softmax(near, axis=1) + flip)

    return draw, proba


def checker(rng: np.random.Generator, *, top: float = 0.9) -> World:
    """A board of fields in the plane, P from ``1 - top`` to `top`."""

    def proba(X: np.ndarray) -> np.ndarray:
        board = np.sin(np.pi * X[:, 0]) * np.sin(np.pi * X[:, 1])
        p = 0.5 + (top - 0.5) * np.tanh(3 * board)
        return np.column_stack([p, 1 - p])

    return partial(_uniform, 2, 1.5), proba


def rings(rng: np.random.Generator, *, k: int = 3, d: int = 4) -> World:
    """Classes by the length of normal inputs."""
    radius = np.sqrt(d) * np.linspace(0.6, 1.4, k)

    def logits(X: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(X, axis=1)[:, None]
        return np.asarray(-((length - radius) ** 2) / (2 * 0.35**2))

    return partial(_normal, d), _softmax_of(logits)


def _softmax_of(logits: Callable[[np.ndarray], np.ndarray]) -> Proba:
    return lambda X: np.exp(log_softmax(logits(X), axis=1))


def _normal(d: int, m: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(m, d))


def _uniform(d: int, reach: float, m: int, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-reach, reach, (m, d))


def _arc(angle: np.ndarray, moon: np.ndarray) -> np.ndarray:
    """Points (m, 2) on the upper moon 0 or the lower moon 1."""
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
    return np.where(moon[:, None] == 0, upper, lower)


#: Families by name.
FAMILIES: dict[str, Callable[..., Any]] = {
    "gaussians": gaussians,
    "logistic": logistic,
    "additive": additive,
    "moons": moons,
    "checker": checker,
    "rings": rings,
}
