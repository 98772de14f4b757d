"""Class-conditional Gaussian mixture: Gaussian discriminant analysis (GDA) as a density."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .._validation import check_weights, known_rows, learned_rows, require_fitted
from ..fitting.all_or_nothing import all_or_nothing
from ..gaussians.contributions import nearest_rows
from ..gaussians.factor import (
    GaussianFactor,
    condition_number,
    factorise,
    rank,
    shrunk_covariance,
)
from ..gaussians.moments import Moments, moments_by_class, pooled
from ..gaussians.shrinkage import LEDOIT_WOLF, Shrinkage, class_shrinkage
from ..maths.masks import unmasked
from ..maths.special import log_sum_exp
from ._mixin import LogDensityMixin

__all__ = ["GDADensity"]

_ALLOWED = {"covariance_type": ("full", "tied", "diag"), "class_weights": ("equal", "empirical")}


class GDADensity(LogDensityMixin, BaseEstimator):
    """Mixture of one Gaussian per class: GDA, the density of DDU, DAEDL and DIP-EDL on features.

    ``log p(x) = logsumexp_c [log w_c + log N(x; m_c, C_c)]``, in float64, with mergeable moments.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag"}, default="full"
        A covariance per class, one shared by all classes, or a diagonal per class.
    shrinkage : None, float, tuple of float or {"oas", "ledoit-wolf"}, default="oas"
        Shrinkage of each covariance towards ``trace / p`` times the identity; a tuple holds one
        number per class. A class whose samples are all the same point has no trace and takes that
        of the pooled covariance. With None a singular covariance (such as a class with fewer
        samples than features) is refused: nothing is jittered silently.
    class_weights : {"equal", "empirical"}, default="equal"
        Mixture weights w_c: the paper's (equal), or the class frequencies.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        Class labels.
    moments_ : list of Moments
        Everything learned, one a class; ``a + b`` merges two fitted densities.
    shrinkage_, target_ : ndarray, shape (k,)
        Shrinkage intensity used for each class, and the variance it shrinks towards.
    n_features_in_ : int
        Number of features p.

    References
    ----------
    Carlotti, Gligić, Farahi, section 4; Mukhoti et al., "Deep deterministic uncertainty", CVPR
    (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import GDADensity
    >>> X = np.array([[-1.0], [1.0], [9.0], [11.0]])
    >>> density = GDADensity().fit(X, ["a", "a", "b", "b"])
    >>> density.score_samples(np.array([[0.0], [10.0], [5.0]])).round(2)
    array([ -1.61,  -1.61, -13.42])
    """

    def __init__(
        self,
        covariance_type: str = "full",
        shrinkage: Shrinkage | tuple[float, ...] = "oas",
        class_weights: str = "equal",
    ) -> None:
        self.covariance_type = covariance_type
        self.shrinkage = shrinkage
        self.class_weights = class_weights

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on features X (n, p), labels y (n,); `sample_weight` (n,) counts rows that often."""
        with all_or_nothing(self):
            X, y, weights = self._validate(X, y, sample_weight, reset=True)
            seen = np.unique(y if weights is None else y[weights > 0])
            self._set_moments(seen, self._moments_of(X, y, weights, seen))
            self._factors()
            return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was fitted before; any chunking gives the same density.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Features.
        y : array-like, shape (n,)
            Labels, all among `classes`.
        classes : array-like, shape (k,), optional
            Every label that will ever come. Default: the labels of the first call.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often.
        """
        with all_or_nothing(self):
            first = not hasattr(self, "moments_")
            X, y, weights = self._validate(X, y, sample_weight, reset=first)
            known = self._known_classes(
                np.unique(y) if first and classes is None else classes, first
            )
            if len(unseen := np.setdiff1d(y, known)):
                raise ValueError(
                    f"y holds labels {unseen.tolist()} that are not among classes "
                    f"{known.tolist()}; name every label in classes= at the first call of "
                    "partial_fit"
                )
            new = self._moments_of(X, y, weights, known)
            if not first:
                new = [a + b for a, b in zip(self.moments_, new, strict=True)]
            self._set_moments(known, new)
            return self

    def __add__(self, other: GDADensity) -> GDADensity:
        """The density fitted on the rows of both; a class may be missing from either."""
        if not isinstance(other, GDADensity):
            return NotImplemented
        merged = self._blank_union(other, "moments_")
        parts = [dict(zip(d.classes_.tolist(), d.moments_, strict=True)) for d in (self, other)]
        classes = unique_labels(self.classes_, other.classes_)
        moments = [reduce(add, (p[c] for p in parts if c in p)) for c in classes.tolist()]
        merged._set_moments(classes, moments)
        return merged

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, p), shape (n,)."""
        return log_sum_exp(self.class_log_density(X) + self._log_weights())

    def class_log_density(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, p) under each class's Gaussian, shape (n, k)."""
        require_fitted(self, "moments_")
        X = known_rows(self, X)
        return np.column_stack([factor.log_density(X) for factor in self._factors()])

    def explain_rows(self, X: Any, top: int = 5) -> list[dict[str, Any]]:
        """For each row of X (n, p), its nearest class and the `top` features that make it far."""
        require_fitted(self, "moments_")
        X = known_rows(self, X)
        return nearest_rows(self._factors(), self.classes_.tolist(), X, top)

    @property
    def rank_(self) -> np.ndarray:
        """Rank of each class's covariance before shrinkage, shape (k,)."""
        self._check_complete()
        return np.array([rank(m) for m in self._covariance_moments()])

    @property
    def condition_number_(self) -> np.ndarray:
        """Condition number of each class's covariance as used, shape (k,)."""
        self._check_complete()
        parts = zip(self._covariance_moments(), self.shrinkage_, self.target_, strict=True)
        return np.array([condition_number(shrunk_covariance(*part)) for part in parts])

    def __sklearn_tags__(self) -> Tags:
        """Labels are required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _validate(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "without labels use GaussianDensity"
            )
        X = learned_rows(self, X, reset=reset)
        y = column_or_1d(unmasked("y", y), warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
        return X, y, check_weights(sample_weight, X)

    def _known_classes(self, classes: Any, first: bool) -> np.ndarray:
        given = None if classes is None else np.unique(classes)
        if not first and given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes must stay {self.classes_.tolist()} after the first call, "
                f"got {given.tolist()}"
            )
        return np.asarray(given if first else self.classes_)

    def _moments_of(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray
    ) -> list[Moments]:
        diagonal, higher = self.covariance_type == "diag", self.shrinkage == LEDOIT_WOLF
        return moments_by_class(X, y, weights, classes, diagonal=diagonal, higher=higher)

    def _set_moments(self, classes: np.ndarray, moments: list[Moments]) -> None:
        self.classes_ = classes
        self.moments_ = moments
        self._factors_: list[GaussianFactor] | None = None
        # An announced class without samples is refused when scoring.
        if all(m.weight > 0 for m in moments):
            self.shrinkage_, self.target_ = self._shrinkage()

    def _shrinkage(self) -> tuple[np.ndarray, np.ndarray]:
        """Intensity and target of each class, shapes (k,)."""
        settings = self._shrinkage_settings()
        if self.covariance_type == "tied":
            found = [class_shrinkage(pooled(self.moments_), settings[0], None)] * len(settings)
        else:
            common = None if self.shrinkage in (None, 0) else self._pooled_variance()
            pairs = zip(self.moments_, settings, strict=True)
            found = [class_shrinkage(m, setting, common) for m, setting in pairs]
        intensity, target = np.array(found).T
        return intensity, target

    def _pooled_variance(self) -> float:
        trace, weight = sum(m.trace for m in self.moments_), sum(m.weight for m in self.moments_)
        return float(trace / weight / self.n_features_in_)

    def _shrinkage_settings(self) -> tuple[Shrinkage, ...]:
        """The setting for each class."""
        k = len(self.classes_)
        if not isinstance(self.shrinkage, tuple):
            return (self.shrinkage,) * k
        if len(self.shrinkage) != k:
            raise ValueError(f"shrinkage must hold {k} numbers, got {len(self.shrinkage)}")
        return self.shrinkage

    def clone_with_selected(self) -> Self:
        """An unfitted copy with the shrinkage that all rows settled on.

        Where features are redundant the log-density follows it: estimated anew in each fold,
        held-out scores would be those of another density.
        """
        copy: Self = clone(self)
        if isinstance(self.shrinkage, str):
            copy.set_params(shrinkage=tuple(self.shrinkage_.tolist()))
        return copy

    def _covariance_moments(self) -> list[Moments]:
        """Per class, the moments whose covariance it uses."""
        if self.covariance_type == "tied":
            return [pooled(self.moments_)] * len(self.classes_)
        return self.moments_

    def _log_weights(self) -> np.ndarray:
        weights = np.array([m.weight for m in self.moments_])
        if self.class_weights == "equal":
            weights = np.ones(len(weights))
        return np.asarray(np.log(weights / weights.sum()))

    def _factors(self) -> list[GaussianFactor]:
        # Lazy, so that a stream of small chunks pays for one factorisation, not for one a chunk.
        if self._factors_ is None:
            self._factors_ = self._factorised()
        return self._factors_

    def _check_complete(self) -> None:
        check_is_fitted(self, "moments_")
        known = self.classes_.tolist()
        empty = [c for c, m in zip(known, self.moments_, strict=True) if not m.weight]
        if empty:
            raise ValueError(
                f"classes {empty} were announced but no sample of them came; partial_fit them first"
            )

    def _factorised(self) -> list[GaussianFactor]:
        self._check_complete()
        if self.covariance_type == "tied":
            intensity, target = self.shrinkage_[0], self.target_[0]
            shared = factorise(pooled(self.moments_), intensity, target, "the tied covariance")
            return [GaussianFactor.about(m, shared.whitener, shared.log_det) for m in self.moments_]
        who = [f"class {c!r}" for c in self.classes_.tolist()]
        parts = zip(self.moments_, self.shrinkage_, self.target_, who, strict=True)
        return [factorise(*part) for part in parts]
