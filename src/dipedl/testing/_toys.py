"""Toy data, and densities and methods fitted on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ..density.base import as_density
from ..maths.seeds import seeded_clone

METHODS = ("predict", "predict_proba", "uncertainty")
#: Room for the last digits of a network in float32.
ROUNDING = 1e-4


def two_classes(seed: int, n: int = 80, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes with unlike units: X (n, p) and labels y (n,)."""
    y = np.arange(n) % 2
    noise = np.random.default_rng(seed).normal(size=(n, p))
    return noise * np.linspace(0.5, 2.0, p) + np.where(y, 1.5, -1.5)[:, None], y


def images(X: Any = None, y: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The given data, or 60 rows of three classes: noise about one 4 x 4 image each."""
    if X is not None:
        return np.array(X, dtype=np.float64), np.array(y)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    centres = rng.uniform(0.1, 0.9, size=(3, 16))
    return np.clip(centres[y] + rng.normal(scale=0.05, size=(60, 16)), 0, 1), y


def fit_density(model: Any, X: Any, y: np.ndarray) -> Any:
    return model.fit(X, y) if has_fit_parameter(model, "y") else model.fit(X)


def fitted_density(density: Any, X: Any, y: np.ndarray, random_state: int) -> Any:
    return fit_density(as_density(density, random_state), X, y)


def fitted_method(estimator: Any, X: Any, y: np.ndarray) -> Any:
    return seeded_clone(estimator, 0).fit(X, y)


@dataclass(frozen=True, eq=False)
class Toy:
    """A density or a method under test, as the checks of both see it.

    `new` makes an unfitted copy, `methods` are what a fitted copy answers, `other` is another data
    set, and `rounding` is what two equal fits may differ by.
    """

    X: np.ndarray
    y: np.ndarray
    other: tuple[np.ndarray, np.ndarray]
    new: Callable[[], Any]
    methods: tuple[str, ...] = ("score_samples",)
    rounding: float = 1e-12
    allows_nan: bool = False

    @classmethod
    def of(cls, thing: Any, *given: Any) -> Toy:
        """Of a method, with data to fit on; or of a density, with a seed."""
        if hasattr(thing, "uncertainty"):
            X, y = images(*given)
            tags = get_tags(thing).input_tags
            new, other = lambda: seeded_clone(thing, 0), (X[::-1], np.roll(y, 1))
            return cls(X, y, other, new, METHODS, ROUNDING, tags.allow_nan)
        seed = given[0] if given else 0
        other = two_classes(seed + 1, p=3)
        return cls(*two_classes(seed), other, lambda: as_density(thing, seed))

    def fitted(self, X: Any = None, y: Any = None) -> Any:
        """A copy fitted on the data of its own, or on those given."""
        return fit_density(self.new(), *((self.X, self.y) if X is None else (X, y)))

    def numbers(self, model: Any) -> dict[str, Callable[[Any], np.ndarray]]:
        """The methods of a fitted copy that answer with numbers, by name."""
        return {name: getattr(model, name) for name in self.methods if name != "predict"}
