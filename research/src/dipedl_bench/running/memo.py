"""A classifier that is fitted once on the same rows and predicts once for the same inputs.

Not `joblib.Memory`: that pickles every result to disk, and does not tell what a result that it
found would have cost; here methods share the fitted objects, and each is charged in full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted


@dataclass
class Seconds:
    """Wall and processor seconds."""

    wall: float = 0.0
    processor: float = 0.0

    @classmethod
    def until_now(cls) -> Seconds:
        """Return the times of both clocks; differences of them count."""
        return cls(time.perf_counter(), time.process_time())

    @contextmanager
    def count(self) -> Iterator[None]:
        """Add what passes inside."""
        start = self.until_now()
        yield
        passed = self.until_now() - start
        self.wall += passed.wall
        self.processor += passed.processor

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.wall + other.wall, self.processor + other.processor)

    def __sub__(self, other: Seconds) -> Seconds:
        return Seconds(self.wall - other.wall, self.processor - other.processor)


def as_seconds(steps: Mapping[str, Seconds], digits: int) -> dict[str, dict[str, float]]:
    """Seconds and processor seconds of steps, as rows and receipts have them."""
    return {
        "seconds": {name: round(spent.wall, digits) for name, spent in steps.items()},
        "cpu_seconds": {name: round(spent.processor, digits) for name, spent in steps.items()},
    }


def weight_argument(model: Any, w: Any) -> dict[str, Any]:
    """Return the argument of ``model.fit`` with weights of the rows; none without weights."""
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    return {} if w is None else {f"{step}sample_weight": w}


@dataclass(repr=False)
class Memory:
    """Fits and predictions of classifiers, by the rows that they were fitted on and applied to."""

    known: dict[str, tuple[Any, Seconds]] = field(default_factory=dict)
    #: What everything would have taken, had nothing been shared: of that, `fitting` for fits.
    alone: Seconds = field(default_factory=Seconds)
    fitting: Seconds = field(default_factory=Seconds)
    #: What it took in truth.
    here: Seconds = field(default_factory=Seconds)

    def __repr__(self) -> str:
        return "Memory()"  # it stands in messages of errors

    def __sklearn_clone__(self) -> Memory:
        return self

    def fit(self, estimator: Any, X: Any, y: Any, w: Any = None) -> Any:
        """A copy of the classifier, fitted on X, y and weights, if any."""
        weights = weight_argument(estimator, w)
        key = " ".join([f"fit {estimator!r}", *map(joblib.hash, (X, y, *weights.values()))])
        model, spent = self._compute_once(key, lambda: clone(estimator).fit(X, y, **weights))
        self.fitting = self.fitting + spent
        return model

    def predict(self, model: Any, method: str, X: Any) -> np.ndarray:
        """A copy of what a method of a fitted model, which is stored elsewhere, gives for X."""
        key = f"{method} {id(model)} {joblib.hash(X)}"
        return np.array(self._compute_once(key, lambda: getattr(model, method)(X))[0])

    def keep(self, model: Any, method: str, X: Any, answer: np.ndarray) -> None:
        """Give `predict` the answer, of which the time is not known."""
        self.known[f"{method} {id(model)} {joblib.hash(X)}"] = answer, Seconds()

    def _compute_once(self, key: str, make: Callable[[], Any]) -> tuple[Any, Seconds]:
        with self.here.count():
            if key not in self.known:
                spent = Seconds()
                with spent.count():
                    made = make()
                self.known[key] = made, spent
        entry = self.known[key]
        self.alone = self.alone + entry[1]
        return entry


def _shared_method(name: str) -> Any:
    def predict(self: SharedClassifier, X: Any) -> np.ndarray:
        return self.memory.predict(self.model_, name, X)

    predict.__name__, predict.__doc__ = name, f"``{name}`` of the classifier for inputs X (n, d)."
    return predict


class SharedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose fits and predictions are looked up in a memory, shared by all copies.

    Ablations of a method fit the same classifier, with a seed, on the same rows and folds, and
    apply it to the same inputs. All of them are given the same fitted objects, so they are compared
    on equal terms, and it costs time only once.
    """

    def __init__(self, estimator: Any, memory: Memory) -> None:
        self.estimator = estimator
        self.memory = memory

    @classmethod
    def of(cls, model: Any, memory: Memory) -> SharedClassifier:
        """One around a classifier that is fitted already."""
        return cls(model, memory)._around(model)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on X (n, d), y (n,) and weights (n,), or take what was fitted on them before."""
        return self._around(self.memory.fit(self.estimator, X, y, sample_weight))

    predict = _shared_method("predict")
    predict_proba = _shared_method("predict_proba")

    def __getattr__(self, name: str) -> Any:
        # What only some classifiers have: a network gives logits and features.
        inner: Any = self.__dict__.get("model_", self.__dict__.get("estimator"))
        if name in ("decision_function", "logits", "transform") and hasattr(inner, name):
            return _shared_method(name).__get__(self)
        if name == "linear_head" and hasattr(inner, name):
            return inner.linear_head
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __sklearn_tags__(self) -> Tags:
        """Return the keywords that the classifier takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def _around(self, model: Any) -> Self:
        check_is_fitted(model)
        self.model_, self.classes_ = model, model.classes_
        self.n_features_in_ = model.n_features_in_
        return self
