"""Trained parts that answer from stored arrays, so that what builds on them trains nothing again.

A method on top of a classifier or a density is fitted and applied through its public interface, but
its inputs are row numbers: `row_numbers` lays the splits one after the other, and a cached part
looks up what it answered to that row when it was trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

#: How far logits in float32 may be from those of the head, relative to the largest.
_TOLERANCE = 1e-3


def row_numbers(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Split -> inputs (n, 1) for cached parts: the numbers of its rows among all rows.

    Numbers below 2**24 are exact in float32 too, should a method convert its inputs.
    """
    numbers = np.arange(sum(sizes.values()), dtype=np.float64)[:, None]
    parts = np.split(numbers, np.cumsum([*sizes.values()])[:-1])
    return dict(zip(sizes, parts, strict=True))


def stack(
    arrays: Mapping[str, Mapping[str, np.ndarray]], splits: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the arrays that all splits have, by name, one split after the other."""
    names = set.intersection(*(set(arrays[split]) for split in splits))
    return {name: np.concatenate([arrays[split][name] for split in splits]) for name in names}


def head_of(
    weights: Mapping[str, np.ndarray], features: np.ndarray, logits: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Weight (k, p) and bias (k,) with which a network makes logits (n, k) of features (n, p).

    `weights` are those of the network by name. A head may divide its outputs by a constant, which
    is found from the rows. None if it is not one linear layer.
    """
    names = [name for name, of in weights.items() if name.startswith("head.") and of.ndim == 2]
    if len(names) != 1:
        return None
    weight = weights[names[0]].astype(np.float64)
    bias = weights.get(names[0].removesuffix("weight") + "bias", np.zeros(len(weight)))
    if weight.shape != (logits.shape[1], features.shape[1]):
        return None
    outputs = features.astype(np.float64) @ weight.T + bias
    scale = (outputs * logits).sum() / np.square(outputs).sum()
    if np.abs(scale * outputs - logits).max() > _TOLERANCE * np.abs(logits).max():
        return None
    return scale * weight, scale * bias.astype(np.float64)


class _Fitted(BaseEstimator):
    """An estimator that is fitted from the start."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: it is fitted."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _Stored(_Fitted):
    """Something of which `stored` answers by name are looked up by the number of a row."""

    def __init__(self, stored: Mapping[str, np.ndarray]) -> None:
        self.stored = stored

    def _of(self, name: str, X: np.ndarray) -> np.ndarray:
        if name not in self.stored:
            raise ValueError(
                f"the method needs {name}, which its classifier does not have; "
                f"of arrays pass {name} for all sets, else use a network of dipedl.networks"
            )
        return np.asarray(self.stored[name][np.asarray(X)[:, 0].astype(np.int64)])


class CachedClassifier(ClassifierMixin, _Stored):
    """A network: "probabilities" (n, k), and "logits" (n, k) and "features" (n, p) if it has them.

    Inputs X (n, 1) are row numbers; `head` is the last layer, see `head_of`.
    """

    def __init__(
        self,
        stored: Mapping[str, np.ndarray],
        classes: np.ndarray,
        head: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        super().__init__(stored)
        self.classes = self.classes_ = classes
        self.head = head

    @property
    def has_features(self) -> bool:
        """Return whether there are features."""
        return "features" in self.stored

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return class probabilities."""
        return self._of("probabilities", X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable labels."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return logits."""
        return self._of("logits", X)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return features."""
        return self._of("features", X)

    def linear_head(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weight (k, p) and bias (k,) of the last layer."""
        if self.head is None:
            raise ValueError(
                "the method needs the last layer of its classifier as one linear layer, which is "
                "not there; of arrays pass features, head_weight and head_bias, else use a network "
                "of dipedl.networks"
            )
        weight, bias = self.head
        return weight.copy(), bias.copy()


class HeadClassifier(ClassifierMixin, _Fitted):
    """The last layer of a network, fitted: inputs X (n, p) are the features that it takes.

    What it returns are copies: a method that changes them in place harms no other.
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
        self.weight = weight
        self.bias = bias
        self.classes_ = np.arange(len(weight))

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return logits (n, k)."""
        return np.asarray(X @ self.weight.T + self.bias)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return class probabilities (n, k)."""
        return np.asarray(softmax(self.logits(X), axis=1))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable labels (n,)."""
        return np.asarray(self.classes_[self.logits(X).argmax(axis=1)])

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the features, which are the inputs."""
        return np.array(X)

    def linear_head(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weight (k, p) and bias (k,)."""
        return self.weight.copy(), self.bias.copy()


class CachedDensity(_Stored):
    """A density: "log_density" (n,), in nats. Inputs X (n, 1) are row numbers."""

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return log-densities."""
        return self._of("log_density", X)
