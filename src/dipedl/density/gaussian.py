"""Gaussian densities: one for all rows, one per class, the distance to the nearest, a log-ratio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from ..gaussians.factor import (
    GaussianFactor,
    class_factors,
    explain_nearest,
    explain_rows,
    factorise,
    leave_one_out_densities,
    mixture_log_density,
    squared_distances,
)
from ..gaussians.moments import (
    LEDOIT_WOLF,
    Moments,
    Shrinkage,
    add_moments,
    align_classes,
    check_shrinkage,
    class_moments,
    class_shrinkages,
    mean_variance,
    pool,
    rank,
    shrinkage_intensity,
    weights_of,
)
from ..inputs import FLOATS
from ..maths.arrays import check_choice
from ..protocols import atomic
from ..writing.text import plain_labels
from .base import (
    LogDensityMixin,
    as_density,
    blank_union,
    check_rows,
    check_training_rows,
    clone_with_selected,
    fit_copy,
    fit_density,
    leave_one_out,
    log_density,
    requires_labels,
)

__all__ = ["GDADensity", "GaussianDensity", "MahalanobisDensity", "RelativeDensity"]

_DIAGONAL = {"full": False, "diag": True}
_SHARED_BASIS = "shared-basis"
_ALLOWED = {
    "covariance_type": ("full", "tied", "diag", _SHARED_BASIS),
    "class_weights": ("equal", "empirical"),
}


class GaussianDensity(LogDensityMixin, BaseEstimator):
    """Gaussian density with mergeable moments.

    ``log p(x) = -(p log 2 pi + log det C + (x - m)^T C^-1 (x - m)) / 2``.

    Parameters
    ----------
    covariance_type : {"full", "diag"}, default="full"
        Form of the covariance.
    shrinkage : None, float or {"oas", "ledoit-wolf"}, default="oas"
        Shrinkage of the covariance towards ``trace / p`` times the identity. With None a singular
        covariance is refused.

    Attributes
    ----------
    moments_ : Moments
        Everything learned; ``a + b`` merges two fitted densities.
    shrinkage_ : float
        Shrinkage intensity used.
    n_features_in_ : int
        Number of features p.

    See Also
    --------
    GDADensity : one Gaussian per class.

    References
    ----------
    Ledoit, Wolf (2004); Chen, Wiesel, Eldar, Hero, "Shrinkage algorithms for MMSE covariance
    estimation", IEEE TSP 58 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import GaussianDensity
    >>> X = np.array([[0.0], [2.0]])
    >>> GaussianDensity().fit(X).score_samples(np.array([[1.0], [3.0]])).round(3)
    array([-0.919, -2.919])
    """

    _dtypes: Any = FLOATS
    _factor_: GaussianFactor | None

    def __init__(self, covariance_type: str = "full", shrinkage: Shrinkage = "oas") -> None:
        self.covariance_type = covariance_type
        self.shrinkage = shrinkage

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_choice("covariance_type", self.covariance_type, _DIAGONAL)
        check_shrinkage(self.shrinkage)

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit on features X (n, p); y is ignored; `sample_weight` (n,) counts rows that often."""
        X, _, weights = check_training_rows(self, X, None, sample_weight)
        return self.fit_checked(X, None, weights)

    def fit_checked(self, Z: np.ndarray, y: Any, w: np.ndarray | None) -> Self:
        """Fit on features Z (n, p) and weights (n,) that were checked before; y is ignored."""
        self._set_moments(self._moments_of(Z, w))
        self.factor_  # noqa: B018  refuses a singular covariance
        return self

    @atomic
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add the rows of X (n, p) to those fitted before; any chunking gives the same density."""
        first = not hasattr(self, "moments_")
        X, _, weights = check_training_rows(self, X, None, sample_weight, reset=first)
        new = self._moments_of(X, weights)
        self._set_moments(new if first else self.moments_ + new)
        return self

    def __add__(self, other: GaussianDensity) -> GaussianDensity:
        """The density fitted on the rows of both."""
        if not isinstance(other, GaussianDensity):
            return NotImplemented
        merged: GaussianDensity = blank_union(self, other)
        merged._set_moments(self.moments_ + other.moments_)
        return merged

    def with_moments(self, moments: Moments) -> Self:
        """Return a copy as fitted on rows of these moments."""
        density = copy(self)
        density._set_moments(moments)
        return density

    def clone_with_selected(self) -> Self:
        """Return an unfitted copy with the shrinkage that all rows settled on."""
        unfitted: Self = clone(self)
        if isinstance(self.shrinkage, str):
            unfitted.set_params(shrinkage=self.shrinkage_)
        return unfitted

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        return self.factor_.log_density(Z)

    def leave_one_out(self, Z: np.ndarray, y: Any, w: np.ndarray | None) -> np.ndarray | None:
        """Return `log_density` of rows Z (n, p) of the fit, each by the fit to all others, (n,).

        None for a diagonal covariance. y is ignored.
        """
        if self.covariance_type != "full":
            return None
        parts = [self.factor_], [self.moments_], np.array([self.shrinkage_])
        return leave_one_out_densities(*parts, Z, np.zeros(len(Z), int), w)[:, 0]

    def explain_rows(self, X: Any, top: int = 5) -> list[dict[str, Any]]:
        """Return for each row of X (n, p) its distance and the `top` features that make it far.

        As `GDADensity.explain_rows`, without a class.
        """
        X, factor = check_rows(self, X), self.factor_
        return list(explain_rows(factor.mean, factor.contributions(X), X, top))

    @property
    def factor_(self) -> GaussianFactor:
        """Mean and factor of the covariance."""
        # Lazy, so that a stream of small chunks pays for one factorisation, not for one a chunk.
        if self._factor_ is None:
            target = mean_variance(self.moments_)
            self._factor_ = factorise(self.moments_, self.shrinkage_, target, "GaussianDensity")
        return self._factor_

    @property
    def rank_(self) -> int:
        """Rank of the covariance before shrinkage (of features scaled to unit variance)."""
        check_is_fitted(self, "moments_")
        return rank(self.moments_)

    def _moments_of(self, X: np.ndarray, weights: np.ndarray | None) -> Moments:
        self.check_parameters()
        diagonal, higher = _DIAGONAL[self.covariance_type], self.shrinkage == LEDOIT_WOLF
        return Moments.of(X, weights, diagonal=diagonal, higher=higher)

    def _set_moments(self, moments: Moments) -> None:
        self.moments_ = moments
        self.shrinkage_ = shrinkage_intensity(moments, self.shrinkage)
        self._factor_ = None


def _adds_up(density: ClassConditionalGaussians) -> bool:
    """Return True, or raise AttributeError that says why batches cannot be added."""
    if density.covariance_type == _SHARED_BASIS:
        raise AttributeError(
            f"covariance_type={_SHARED_BASIS!r} is no sum over rows: it needs all of them for the "
            "basis, then again for what lies along it; call fit with all rows, or use 'tied', "
            "'full' or 'diag'"
        )
    return True


class ClassConditionalGaussians(BaseEstimator):
    """Base of densities made of one Gaussian per class; `GDADensity` names parameters and more."""

    _dtypes: Any = FLOATS
    _factors_: Sequence[GaussianFactor] | None
    classes_: np.ndarray
    moments_: Sequence[Moments]
    shrinkage_: np.ndarray
    target_: np.ndarray
    covariance_type: str
    shrinkage: Shrinkage | tuple[float, ...]

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        if isinstance(self.shrinkage, np.ndarray | list):
            raise TypeError(
                f"shrinkage of each class must be a tuple, got {self.shrinkage!r}; give "
                "tuple(shrinkage)"
            )
        check_shrinkage(self.shrinkage)
        for name, allowed in _ALLOWED.items():
            check_choice(name, getattr(self, name, allowed[0]), allowed)

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on features X (n, p), labels y (n,); `sample_weight` (n,) counts rows that often.

        MemoryError, before anything is made, where the covariances cannot fit in this machine.
        """
        return self.fit_checked(*check_training_rows(self, X, y, sample_weight))

    def fit_checked(self, Z: np.ndarray, y: Any, w: np.ndarray | None) -> Self:
        """Fit on features Z (n, p), labels and weights (n,) that were checked before."""
        self._check_fit(y)
        classes = np.unique(y if w is None else y[w > 0])
        self._set_moments(classes, self._moments_of(Z, y, w, classes))
        self.factors_  # noqa: B018  refuses a singular covariance
        return self

    @available_if(_adds_up)  # type: ignore[untyped-decorator]
    @atomic
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
        first = not hasattr(self, "moments_")
        self._check_fit(y)
        X, y, weights = check_training_rows(self, X, y, sample_weight, reset=first)
        known = np.unique(y if classes is None else classes) if first else self.classes_
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(
                f"classes must stay {known.tolist()} after the first call, "
                f"got {np.unique(classes).tolist()}"
            )
        if len(unseen := np.setdiff1d(y, known)):
            raise ValueError(
                f"y holds labels {unseen.tolist()} that are not among classes "
                f"{known.tolist()}; name every label in classes= at the first partial_fit"
            )
        new = self._moments_of(X, y, weights, known)
        self._set_moments(known, new if first else add_moments(self.moments_, new))
        return self

    @available_if(_adds_up)  # type: ignore[untyped-decorator]
    def __add__(self, other: ClassConditionalGaussians) -> Self:
        """The density fitted on the rows of both; a class may be missing from either."""
        if not isinstance(other, ClassConditionalGaussians):
            return NotImplemented
        merged: Self = blank_union(self, other)
        classes = unique_labels(self.classes_, other.classes_)
        parts = [align_classes(d.moments_, d.classes_, classes) for d in (self, other)]
        merged._set_moments(classes, reduce(add_moments, parts))
        return merged

    def with_moments(self, classes: np.ndarray, moments: Sequence[Moments]) -> Self:
        """Return a copy as fitted on rows of `classes` (k,) with these moments, one a class."""
        density = copy(self)
        density._set_moments(classes, moments)
        return density

    def explain_rows(self, X: Any, top: int = 5) -> list[dict[str, Any]]:
        """Return for each row of X (n, p) its nearest class and the features that make it far."""
        X = check_rows(self, X)
        return explain_nearest(self.factors_, plain_labels(self.classes_), X, top)

    @property
    def factors_(self) -> Sequence[GaussianFactor]:
        """Mean and factor of the covariance of each class."""
        # Lazy, so that a stream of small chunks pays for one factorisation, not for one a chunk.
        if self._factors_ is None:
            if not hasattr(self, "shrinkage_"):
                self._check_complete()
            dates = self.classes_.dtype.kind == "M"
            labels = self.classes_.astype(str) if dates else self.classes_
            who = [f"class {c!r}" for c in labels.tolist()]
            parts = self.moments_, self.shrinkage_, self.target_, who
            self._factors_ = class_factors(self.covariance_type, *parts)
        return self._factors_

    @property
    def rank_(self) -> np.ndarray:
        """Rank of each class's covariance before shrinkage, shape (k,)."""
        self._check_complete()
        if self.covariance_type == "tied":
            return np.full(len(self.classes_), rank(pool(self.moments_)))
        return np.array([rank(m) for m in self.moments_])

    def __sklearn_tags__(self) -> Tags:
        """Labels are required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check_fit(self, y: Any) -> None:
        self.check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "without labels use GaussianDensity"
            )

    def _moments_of(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray
    ) -> Sequence[Moments]:
        higher = self.shrinkage == LEDOIT_WOLF
        return class_moments(self.covariance_type, X, y, weights, classes, higher=higher)

    def _set_moments(self, classes: np.ndarray, moments: Sequence[Moments]) -> None:
        self.classes_, self.moments_, self._factors_ = classes, moments, None
        # An announced class without samples is refused when scoring.
        if (weights_of(moments) > 0).all():
            tied = self.covariance_type == "tied"
            self.shrinkage_, self.target_ = class_shrinkages(moments, self.shrinkage, tied=tied)

    def clone_with_selected(self) -> Self:
        """Return an unfitted copy with the shrinkage that all rows settled on.

        Where features are redundant the log-density follows it: estimated anew in each fold,
        held-out scores would be those of another density.
        """
        unfitted: Self = clone(self)
        if isinstance(self.shrinkage, str):
            unfitted.set_params(shrinkage=tuple(self.shrinkage_.tolist()))
        return unfitted

    def _check_complete(self) -> None:
        check_is_fitted(self, "moments_")
        empty = self.classes_[weights_of(self.moments_) == 0].tolist()
        if empty:
            raise ValueError(
                f"classes {empty} were announced but no sample of them came; partial_fit them first"
            )


@dataclass(eq=False, repr=False)
class GDADensity(LogDensityMixin, ClassConditionalGaussians):
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

    covariance_type: str = "full"
    shrinkage: Shrinkage | tuple[float, ...] = "oas"
    class_weights: str = "equal"

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        return mixture_log_density(self.factors_, self.log_weights_, Z)

    def leave_one_out(self, Z: np.ndarray, y: Any, w: np.ndarray | None) -> np.ndarray | None:
        """Return `log_density` of rows Z (n, p) of the fit, each by the fit to all others, (n,).

        `y` (n,) and `w` (n,) are their labels and weights. None where that takes new fits: for
        diagonal covariances and a shared basis.
        """
        if self.covariance_type not in ("full", "tied"):
            return None
        own = np.searchsorted(self.classes_, y)
        parts = self.factors_, self.moments_, self.shrinkage_
        joint = leave_one_out_densities(*parts, Z, own, w)
        if self.class_weights == "equal":
            joint += self.log_weights_
        else:
            left = np.tile(weights_of(self.moments_), (len(Z), 1))
            left[np.arange(len(Z)), own] -= 1.0 if w is None else w
            with np.errstate(divide="ignore"):  # of a row alone in its class
                joint += np.log(left.clip(0.0) / left.sum(axis=1, keepdims=True))
        return np.asarray(special.logsumexp(joint, axis=1))

    @property
    def log_weights_(self) -> np.ndarray:
        """Logarithms of the mixture weights, shape (k,)."""
        if self.class_weights == "equal":
            return _equal_log_weights(len(self.classes_))
        # An announced class without samples is refused when scoring.
        weights = weights_of(self.moments_)
        return np.asarray(np.log(weights / weights.sum()))


@cache
def _equal_log_weights(k: int) -> np.ndarray:
    weights = np.ones(k)
    return np.asarray(np.log(weights / weights.sum()))


@dataclass(eq=False, repr=False)
class MahalanobisDensity(LogDensityMixin, ClassConditionalGaussians):
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

    covariance_type: str = "tied"
    shrinkage: Shrinkage | tuple[float, ...] = "oas"

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return minus half the squared distance of features Z (n, p) to the nearest mean, (n,)."""
        return np.asarray(-0.5 * squared_distances(self.factors_, Z).min(axis=1))

    def squared_distance(self, X: Any) -> np.ndarray:
        """Squared Mahalanobis distance of each row of X (n, p) to each class mean, (n, k)."""
        X = check_rows(self, X)
        with np.errstate(all="ignore"):
            return squared_distances(self.factors_, X)


class RelativeDensity(LogDensityMixin, BaseEstimator):
    """Log-density minus that of a background, which takes off what all inputs have in common.

    ``s(x) = log p(x) - log p0(x)``: a log-ratio in nats, not a log-density; nothing makes it
    integrate to one.

    Parameters
    ----------
    density : density estimator, optional
        p, the foreground; None is ``GDADensity("tied")``. A copy is fitted; one in
        `sklearn.frozen.FrozenEstimator` is used as it is.
    background : density estimator, optional
        p0; None is ``GaussianDensity()``, of the same rows without their labels. A frozen one may
        come from other rows: a broader collection, or perturbed inputs.

    Attributes
    ----------
    density_, background_ : density estimator
        The fitted parts.
    n_features_in_ : int
        Number of features p.

    Notes
    -----
    With the defaults this is the relative Mahalanobis score: with M_c and M_0 the squared
    Mahalanobis distances to class c and to the mean of all rows,
    ``s(x) = log mean_c exp(-(M_c - M_0) / 2) + constant``.

    A ratio sees only what tells the classes from the background. Along a direction in which the
    class means agree it stays the same, however far the row; a row that is far in such a direction
    alone is not flagged. Where the foreground is zero, or either distance overflows, the score is
    ``-inf``.

    References
    ----------
    Ren et al., "Likelihood ratios for out-of-distribution detection", NeurIPS (2019), equation 3;
    Ren, Fort, Liu, Roy, Padhy, Lakshminarayanan, "A simple fix to Mahalanobis distance for
    improving near-OOD detection", arXiv:2106.09022 (2021), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import RelativeDensity
    >>> X = np.array([[-5.0], [-4.0], [4.0], [5.0]])
    >>> density = RelativeDensity().fit(X, [0, 0, 1, 1])
    >>> density.score_samples([[4.5], [0.0]]).round(1)
    array([  2. , -38.3])
    """

    normalized = False

    def __init__(self, density: Any = None, background: Any = None) -> None:
        self.density = density
        self.background = background

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit both parts on features X (n, p), with labels y (n,) for those that take them.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Features.
        y : array-like, shape (n,), optional
            Labels; the default foreground needs them.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often; refused if a part does not take weights.
        """
        return self.fit_checked(*check_training_rows(self, X, y, sample_weight))

    def fit_checked(self, Z: np.ndarray, y: Any, w: np.ndarray | None) -> Self:
        """Fit on features Z (n, p), labels and weights (n,) that were checked before."""
        foreground, background = self._templates()
        self.density_ = fit_copy(foreground, Z, y, w)
        self.background_ = fit_density(as_density(background, name="background"), Z, y, w)
        return self

    def share_foreground(self, densities: Iterable[Any]) -> None:
        """Take the foreground from densities of the same rows, if one of them is that very fit."""
        for density in densities:
            if type(density) is type(self.density_) is GDADensity:
                if density.get_params() == self.density_.get_params():
                    self.density_ = density

    def clone_with_selected(self) -> Self:
        """Return an unfitted copy with the settings that each part has selected on all rows."""
        foreground, background = self._templates()
        unfitted: Self = clone(self).set_params(
            density=clone_with_selected(self.density_, foreground),
            background=clone_with_selected(self.background_, background),
        )
        return unfitted

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-ratio in nats of features Z (n, p) that were checked before, (n,)."""
        return self.log_ratio(log_density(self.density_, Z), Z)

    def log_ratio(self, foreground: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return `log_density` of features Z (n, p) whose scores by the foreground are known."""
        return _log_ratio(foreground, log_density(self.background_, Z))

    def leave_one_out(self, Z: np.ndarray, y: Any, w: np.ndarray | None) -> np.ndarray | None:
        """Return `log_density` of rows Z (n, p) of the fit, each by the fit to all others, (n,).

        None where one of the parts cannot tell without new fits.
        """
        near, far = (leave_one_out(part, Z, y, w) for part in (self.density_, self.background_))
        return None if near is None or far is None else _log_ratio(near, far)

    def __sklearn_tags__(self) -> Tags:
        """Labels are required if a part requires them; the default foreground does."""
        tags = super().__sklearn_tags__()
        foreground = self.density is None or requires_labels(self.density)
        tags.target_tags.required = foreground or requires_labels(self.background)
        return tags

    def _templates(self) -> tuple[Any, Any]:
        """Return foreground and background before they are cloned and fitted."""
        foreground = GDADensity("tied") if self.density is None else self.density
        return foreground, GaussianDensity() if self.background is None else self.background


def _log_ratio(foreground: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return the difference of log-densities (n,); -inf where either is."""
    # Both are -inf where distances overflow: there a row is far from everything.
    finite = np.isfinite(foreground) & np.isfinite(background)
    score = np.full(len(foreground), -np.inf)
    return np.asarray(np.subtract(foreground, background, out=score, where=finite))
