"""Trained parts that answer from stored arrays, so that what builds on them trains nothing again.

A method on top of a classifier or a density is fitted and applied through its public interface, but
its inputs are row numbers: `row_numbers` lays the splits one after the other, and a cached part
looks up what it answered to that row when it was trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


def row_numbers(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Split -> inputs (n, 1) for cached parts: the numbers of its rows among all rows.

    Numbers below 2**24 are exact in float32 too, should a method convert its inputs.
    """
    ends = np.cumsum([0, *sizes.values()])
    return {
        split: np.arange(end - n, end, dtype=np.float64)[:, None]
        for (split, n), end in zip(sizes.items(), ends[1:], strict=True)
    }


def stack(
    arrays: Mapping[str, Mapping[str, np.ndarray]], splits: Sequence[str], name: str
) -> np.ndarray | None:
    """The array `name` of all splits, one after the other; None if the part has no such array."""
    if any(name not in arrays[split] for split in splits):
        return None
    return np.concatenate([arrays[split][name] for split in splits])


class CachedClassifier(ClassifierMixin, BaseEstimator):
    """A fitted network's stored predictions.

    Of `stored`, "probabilities" are (n, k); "logits" (n, k) and "features" (n, p) are there if the
    classifier has them.
    """

    def __init__(self, classes: np.ndarray, stored: Mapping[str, np.ndarray | None]) -> None:
        self.classes = classes
        self.stored = stored
        self.classes_ = classes

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: it is fitted."""
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Stored class probabilities of the rows numbered by X (n, 1)."""
        return self._of("probabilities", X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Most probable label of the rows numbered by X (n, 1)."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Stored logits of the rows numbered by X (n, 1)."""
        return self._of("logits", X)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Stored features of the rows numbered by X (n, 1)."""
        return self._of("features", X)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _of(self, name: str, X: np.ndarray) -> np.ndarray:
        values = self.stored.get(name)
        if values is None:
            raise ValueError(
                f"the method asks its classifier for {name}, which it does not have; "
                "use a network of dipedl.networks"
            )
        return np.asarray(values[_numbers(X)])


class CachedDensity(BaseEstimator):
    """A fitted density's stored scores: `log_density` (n,), in nats."""

    def __init__(self, log_density: np.ndarray) -> None:
        self.log_density = log_density

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: it is fitted."""
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Stored log-densities of the rows numbered by X (n, 1)."""
        return np.asarray(self.log_density[_numbers(X)])

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _numbers(X: np.ndarray) -> np.ndarray:
    return np.asarray(X)[:, 0].astype(np.int64)
