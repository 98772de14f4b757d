"""The whole contract between the parts: density, normaliser, uncertainty classifier; their fits."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from .dirichlet import Dirichlet

__all__ = ["Density", "EvidentialClassifier", "Normalizer", "UncertaintyClassifier"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


@runtime_checkable
class Density(Protocol):
    """A density estimator over feature rows; any object with these two methods will do.

    Optional: ``partial_fit`` and ``+`` for streaming, a ``y`` argument of ``fit`` for densities
    that use labels, ``sample_weight``, ``clone_with_selected()``, an unfitted copy with the
    settings that this fit has selected, and ``explain_rows(X, top)``, one dict per row for
    `dipedl.explanation`. Row i of the result must not depend on row j.
    """

    def fit(self, X: np.ndarray, /) -> Any:
        """Fit on features (n, p)."""
        ...

    def score_samples(self, X: np.ndarray, /) -> np.ndarray:
        """Log-density in nats of each row of (n, p), shape (n,); higher is more typical."""
        ...


@runtime_checkable
class Normalizer(Protocol):
    """A strictly increasing map from log-density in nats to a dimensionless z."""

    def fit(
        self, log_density: np.ndarray, sample_weight: np.ndarray | None = None, *, source: str = ""
    ) -> Any:
        """Learn from ID log-densities, shape (n,); `source` says where they came from."""
        ...

    def transform(self, log_density: np.ndarray, /) -> np.ndarray:
        """Return z, shape (n,)."""
        ...


@runtime_checkable
class UncertaintyClassifier(Protocol):
    """A method as metrics, tables and plots see it: they call nothing else."""

    classes_: np.ndarray

    def predict(self, X: Any, /) -> np.ndarray:
        """Labels, shape (n,)."""
        ...

    def predict_proba(self, X: Any, /) -> np.ndarray:
        """Class probabilities, shape (n, k)."""
        ...

    def uncertainty(self, X: Any, /) -> np.ndarray:
        """Uncertainty, shape (n,); higher is less sure, always."""
        ...


@runtime_checkable
class EvidentialClassifier(UncertaintyClassifier, Protocol):
    """A method that gives a whole Dirichlet per input."""

    def predict_dirichlet(self, X: Any, /) -> Dirichlet:
        """Dirichlets over the class probabilities of (n, d) inputs."""
        ...


def atomic(fit: _Method) -> _Method:
    """Return the fit run on a copy of the model, which takes the new state over at once.

    Another thread sees the model of before or that of after, and an error leaves it as it was.
    Parameters that it sets meanwhile stay set. Of two fits at once the later to end counts.
    """

    @wraps(fit)
    def fit_copy(model: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(model))
        learned = object.__new__(type(model))
        vars(learned).update(before)
        fit(learned, *args, **kwargs)
        meanwhile = {
            name: value
            for name, value in vars(model).items()
            if not name.endswith("_") and value is not before.get(name, value)
        }
        model.__dict__ = vars(learned) | meanwhile
        return model

    return cast(_Method, fit_copy)
