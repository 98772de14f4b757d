"""Held-out loss of the shrunk mean ``(1 - u) p + u prior / alpha0`` of each row; a function of u.

Each loss is a value: what it needs of probabilities and labels is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class BrierLoss:
    """``|mean - onehot|^2 = bare + 2 u cross + u^2 square``, each (m,): a parabola in u."""

    bare: np.ndarray
    cross: np.ndarray
    square: np.ndarray

    @classmethod
    def of(cls, proba: np.ndarray, y: np.ndarray, base: np.ndarray) -> Self:
        """From probabilities (m, k), labels (m,) and the prior's mean (k,)."""
        gap = proba.copy()
        gap[np.arange(len(y)), y] -= 1.0
        pull = base - proba
        inner = np.einsum
        return cls(inner("ij,ij->i", gap, gap), inner("ij,ij->i", gap, pull), (pull**2).sum(axis=1))

    def __call__(self, u: np.ndarray | float) -> np.ndarray:
        """Loss of each row at vacuity u, shape (m,)."""
        return np.asarray(self.bare + u * (2 * self.cross + u * self.square))


@dataclass(frozen=True)
class LogLoss:
    """``-log((1 - u) own + u base)`` with the probabilities (m,) of the row's own class."""

    own: np.ndarray
    base: np.ndarray

    @classmethod
    def of(cls, proba: np.ndarray, y: np.ndarray, base: np.ndarray) -> Self:
        """From probabilities (m, k), labels (m,) and the prior's mean (k,)."""
        return cls(proba[np.arange(len(y)), y], base[y])

    def __call__(self, u: np.ndarray | float) -> np.ndarray:
        """Loss of each row at vacuity u, in nats, shape (m,)."""
        return np.asarray(-np.log((1 - u) * self.own + u * self.base))


LOSSES: dict[str, type[BrierLoss] | type[LogLoss]] = {"brier": BrierLoss, "nll": LogLoss}
