"""Which features make a row far from a Gaussian's mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from .class_distances import squared_distances
from .factor import GaussianFactor


class Readable(Protocol):
    """A Gaussian whose squared distance can be shared out among the features."""

    @property
    def mean(self) -> np.ndarray:
        """Mean, shape (p,)."""
        ...

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Share of each feature in the squared distance of X (n, p), shape (n, p)."""
        ...


def gaussian_rows(
    factor: Readable, X: np.ndarray, top: int, label: Any = None
) -> Iterator[dict[str, Any]]:
    """One reading for each row of X (n, p): squared distance, and the features that add most.

    The contributions of all features, ``d_j (C^-1 d)_j`` with ``d = x - m``, sum to the squared
    Mahalanobis distance. Under the Gaussian its mean is p and its standard deviation
    ``sqrt(2 p)``. One contribution may be negative: that of a feature that moves along with
    others, as their correlation has it.
    """
    p = X.shape[1]
    for x, parts in zip(X, factor.contributions(X), strict=True):
        order = np.argsort(-parts, kind="stable")[:top]
        yield {
            "kind": "gaussian",
            "class": label,
            "squared_distance": float(parts.sum()),
            "expected": float(p),
            "spread": float(np.sqrt(2 * p)),
            "features": [
                {
                    "feature": int(j),
                    "value": float(x[j]),
                    "mean": float(factor.mean[j]),
                    "contribution": float(parts[j]),
                }
                for j in order
            ],
            "rest": float(np.delete(parts, order).sum()),
        }


def nearest_rows(
    factors: Sequence[GaussianFactor], labels: Sequence[Any], X: np.ndarray, top: int
) -> list[dict[str, Any]]:
    """A reading of each row of X (n, p) by the Gaussian of least squared distance."""
    nearest = squared_distances(factors, X).argmin(axis=1)
    return [
        next(gaussian_rows(factors[c], X[i : i + 1], top, labels[c]))
        for i, c in enumerate(nearest.tolist())
    ]
