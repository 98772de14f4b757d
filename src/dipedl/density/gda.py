"""Class-conditional Gaussian mixture: Gaussian discriminant analysis (GDA) as a density."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import reduce
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..fitting import all_or_nothing
from ..gaussians import by_class
from ..gaussians.factor import LEDOIT_WOLF, GaussianFactor, Shrinkage, rank
from ..gaussians.moments import Moments
from ..inputs import FLOATS, check_weights, validate_fit_features
from ..maths.array_namespace import drop_mask
from ..maths.special import log_sum_exp
from ..writing.numbers import plain_labels
from .base import LogDensityMixin

__all__ = ["GDADensity", "MahalanobisDensity"]

_SHARED_BASIS = "shared-basis"
_ALLOWED = {
    "covariance_type": ("full", "tied", "diag", _SHARED_BASIS),
    "class_weights": ("equal", "empirical"),
}


def _adds_up(density: GDADensity) -> bool:
    """Return True, or raise AttributeError that says why batches cannot be added."""
    if density.covariance_type == _SHARED_BASIS:
        raise AttributeError(
            f"covariance_type={_SHARED_BASIS!r} is no sum over rows: it needs all of them for the "
            "basis, then again for what lies along it; call fit with all rows, or use 'tied', "
            "'full' or 'diag'"
        )
    return True


class GDADensity(LogDensityMixin, BaseEstimator):
    """Mixture of one Gaussian per class: GDA, the density of DDU, DAEDL and DIP-EDL on features.

    ``log p(x) = logsumexp_c [log w_c + log N(x; m_c, C_c)]``, with mergeable moments, in float64.
    Rows of float32 are not copied, and full covariances score them in float32 where that changes
    the log-density of rows drawn from the class by less than 0.001 nats.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "shared-basis"}, default="full"
        A covariance per class, one shared by all classes, or a diagonal per class. A shared basis
        is ``C_c = U diag(l_c) U^T``: eigenvectors U of the tied covariance, and the variances of
        each class along them, shrunk towards a multiple of the tied ones. It takes two looks at all
        rows, so that it has no `partial_fit` and no ``a + b``.
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
    moments_ : sequence of Moments
        Everything learned, one a class; ``a + b`` merges two fitted densities. A tied covariance
        holds one scatter for all (with "ledoit-wolf" one a class), a shared basis the basis and the
        moments along it.
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

    _dtypes: Any = FLOATS
    _factors_: Sequence[GaussianFactor] | None
    shrinkage_: np.ndarray
    target_: np.ndarray

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
        """Fit on features X (n, p), labels y (n,); `sample_weight` (n,) counts rows that often.

        MemoryError, before anything is made, where the covariances cannot fit in this machine.
        """
        with all_or_nothing(self):
            X, y, weights = self._validate(X, y, sample_weight, reset=True)
            classes = np.unique(y if weights is None else y[weights > 0])
            self._set_moments(classes, self._moments_of(X, y, weights, classes))
            self.factors_  # noqa: B018  refuses a singular covariance
            return self

    @available_if(_adds_up)  # type: ignore[untyped-decorator]
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
                    f"{known.tolist()}; name every label in classes= at the first partial_fit"
                )
            new = self._moments_of(X, y, weights, known)
            self._set_moments(known, new if first else by_class.add_moments(self.moments_, new))
            return self

    @available_if(_adds_up)  # type: ignore[untyped-decorator]
    def __add__(self, other: GDADensity) -> GDADensity:
        """The density fitted on the rows of both; a class may be missing from either."""
        if not isinstance(other, GDADensity):
            return NotImplemented
        merged = self._blank_union(other, "moments_")
        classes = unique_labels(self.classes_, other.classes_)
        parts = [by_class.align_classes(d.moments_, d.classes_, classes) for d in (self, other)]
        merged._set_moments(classes, reduce(by_class.add_moments, parts))
        return merged

    def with_moments(self, classes: np.ndarray, moments: Sequence[Moments]) -> Self:
        """Return a copy as fitted on rows of `classes` (k,) with these moments, one a class."""
        density = copy(self)
        density._set_moments(classes, moments)
        return density

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        log_weights, factors, found = self.log_weights_, self.factors_, np.empty(len(Z))
        for rows in by_class.row_blocks(len(Z), len(log_weights)):
            found[rows] = log_sum_exp(by_class.log_densities(factors, Z[rows]) + log_weights)
        return found

    def class_log_density(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, p) under each class's Gaussian, shape (n, k)."""
        X = self._check_rows(X)
        return by_class.log_densities(self.factors_, X)

    def explain_rows(self, X: Any, top: int = 5) -> list[dict[str, Any]]:
        """For each row of X (n, p), its nearest class and the `top` features that make it far."""
        X = self._check_rows(X)
        return by_class.explain_nearest(self.factors_, plain_labels(self.classes_), X, top)

    @property
    def factors_(self) -> Sequence[GaussianFactor]:
        """Mean and factor of the covariance of each class."""
        # Lazy, so that a stream of small chunks pays for one factorisation, not for one a chunk.
        if self._factors_ is None:
            self._check_complete()
            who = [f"class {c!r}" for c in plain_labels(self.classes_)]
            parts = self.moments_, self.shrinkage_, self.target_, who
            self._factors_ = by_class.class_factors(self.covariance_type, *parts)
        return self._factors_

    @property
    def log_weights_(self) -> np.ndarray:
        """Logarithms of the mixture weights, shape (k,)."""
        weights = by_class.weights_of(self.moments_)
        weights = np.ones_like(weights) if self.class_weights == "equal" else weights
        return np.asarray(np.log(weights / weights.sum()))

    @property
    def rank_(self) -> np.ndarray:
        """Rank of each class's covariance before shrinkage, shape (k,)."""
        self._check_complete()
        return np.array([rank(m) for m in self._covariance_moments()])

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
        X = validate_fit_features(self, X, reset=reset, dtype=FLOATS)
        y = column_or_1d(drop_mask("y", y), warn=True)
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
    ) -> Sequence[Moments]:
        higher = self.shrinkage == LEDOIT_WOLF
        return by_class.class_moments(self.covariance_type, X, y, weights, classes, higher=higher)

    def _set_moments(self, classes: np.ndarray, moments: Sequence[Moments]) -> None:
        self.classes_ = classes
        self.moments_ = moments
        self._factors_ = None
        # An announced class without samples is refused when scoring.
        if (by_class.weights_of(moments) > 0).all():
            tied = self.covariance_type == "tied"
            self.shrinkage_, self.target_ = by_class.class_shrinkages(
                moments, self.shrinkage, tied=tied
            )

    def clone_with_selected(self) -> Self:
        """Return an unfitted copy with the shrinkage that all rows settled on.

        Where features are redundant the log-density follows it: estimated anew in each fold,
        held-out scores would be those of another density.
        """
        unfitted: Self = clone(self)
        if isinstance(self.shrinkage, str):
            unfitted.set_params(shrinkage=tuple(self.shrinkage_.tolist()))
        return unfitted

    def _covariance_moments(self) -> Sequence[Moments]:
        """Per class, the moments whose covariance it uses."""
        if self.covariance_type == "tied":
            return [by_class.pool(self.moments_)] * len(self.classes_)
        return self.moments_

    def _check_complete(self) -> None:
        check_is_fitted(self, "moments_")
        empty = self.classes_[by_class.weights_of(self.moments_) == 0].tolist()
        if empty:
            raise ValueError(
                f"classes {empty} were announced but no sample of them came; partial_fit them first"
            )


class MahalanobisDensity(GDADensity):
    """Squared Mahalanobis distance to the nearest class mean, as a score.

    ``s(x) = -min_c (x - m_c)^T C_c^-1 (x - m_c) / 2``: the exponent of the nearest class's
    Gaussian, in nats, without its log-determinant. No density: it does not integrate to one.

    Parameters
    ----------
    covariance_type : {"tied", "full", "diag", "shared-basis"}, default="tied"
        One covariance of the residuals from the class means, as published; one per class, where a
        wide class is as near as a narrow one at the same number of standard deviations; a diagonal
        per class; or one along a shared basis.
    shrinkage : None, float, tuple of float or {"oas", "ledoit-wolf"}, default="oas"
        As in `GDADensity`.

    Attributes
    ----------
    classes_, moments_, shrinkage_, target_, n_features_in_
        As in `GDADensity`.

    See Also
    --------
    GDADensity : the whole Gaussians, mixed.
    RelativeDensity : takes off the distance to the mean of all rows; with this one as foreground it
        is the relative Mahalanobis score as published, up to a constant.
    dipedl.baselines.Mahalanobis : the distance on the features of a classifier.

    References
    ----------
    Lee et al., "A simple unified framework for detecting out-of-distribution samples and
    adversarial attacks", NeurIPS (2018), equations 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import MahalanobisDensity
    >>> X = np.array([[-1.0], [1.0], [9.0], [11.0]])
    >>> density = MahalanobisDensity(shrinkage=None).fit(X, [0, 0, 1, 1])
    >>> density.score_samples([[10.0], [12.0]])
    array([-0., -2.])
    """

    normalized = False
    #: A minimum has no weights; the parent asks.
    class_weights = "equal"

    def __init__(
        self,
        covariance_type: str = "tied",
        shrinkage: Shrinkage | tuple[float, ...] = "oas",
    ) -> None:
        self.covariance_type = covariance_type
        self.shrinkage = shrinkage

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return minus half the squared distance of features Z (n, p) to the nearest mean, (n,)."""
        return np.asarray(-0.5 * by_class.squared_distances(self.factors_, Z).min(axis=1))

    def squared_distance(self, X: Any) -> np.ndarray:
        """Squared Mahalanobis distance of each row of X (n, p) to each class mean, (n, k)."""
        X = self._check_rows(X)
        return by_class.squared_distances(self.factors_, X)
