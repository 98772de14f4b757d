"""Bring your own density."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..fitting import all_or_nothing
from ..inputs import validate_features, validate_fit_features
from ..maths.array_namespace import is_tensor, to_numpy
from ._mixin import LogDensityMixin

__all__ = ["CustomDensity"]


class CustomDensity(LogDensityMixin, BaseEstimator):
    """Any object with ``score_samples`` or ``log_prob`` as a density: a flow, your own class.

    Parameters
    ----------
    model : object
        Has ``score_samples(X)`` or ``log_prob(X)`` giving log-densities in nats, shape (n,). If it
        has ``fit`` a copy of it is fitted; else it is taken as fitted already.
    dtype : torch dtype, optional
        Give X to the model as a torch tensor of this dtype (no gradient is kept). Default: numpy
        float64.

    Attributes
    ----------
    model_ : object
        The fitted model.
    n_features_in_ : int
        Number of features p.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from dipedl.density import CustomDensity
    >>> class Normal:
    ...     def log_prob(self, X):
    ...         return stats.norm.logpdf(X).sum(axis=1)
    >>> CustomDensity(Normal()).fit(np.zeros((1, 1))).score_samples([[0.0]]).round(3)
    array([-0.919])
    """

    def __init__(self, model: Any, dtype: Any = None) -> None:
        self.model = model
        self.dtype = dtype

    @property
    def _scorer(self) -> str:
        for name in ("score_samples", "log_prob"):
            if hasattr(self.model, name):
                return name
        raise TypeError(
            f"model must have a method score_samples or log_prob, got {type(self.model).__name__}"
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of the model on features X (n, p), with labels if its ``fit`` takes ``y``."""
        with all_or_nothing(self):
            self._scorer  # noqa: B018  refuses a model that cannot score before anything is fitted
            X = validate_fit_features(self, X)
            self.model_ = self.model
            if hasattr(self.model, "fit"):
                self.model_ = clone(self.model, safe=False)
                labelled = "y" in inspect.signature(self.model_.fit).parameters
                self.model_.fit(self._given(X), **({"y": y} if labelled else {}))
            return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, p), shape (n,)."""
        check_is_fitted(self, "model_")
        X = validate_features(self, X)
        score = getattr(self.model_, self._scorer)(self._given(X))
        return to_numpy(score) if is_tensor(score) else np.asarray(score, dtype=np.float64)

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Arguments for the conformance checks."""
        from .gaussian import GaussianDensity

        return {"model": GaussianDensity()}

    def _given(self, X: np.ndarray) -> Any:
        if self.dtype is None:
            return X
        import torch

        return torch.as_tensor(X, dtype=self.dtype)
