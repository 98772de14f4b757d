"""Densities: their common base, how they are fitted and called, and any object as a density."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
)

from ..inputs import (
    NotComputableError,
    check_weights,
    one_thread,
    require_fitted,
    route_weights,
    validate_features,
    validate_fit_features,
    validate_labels,
    weight_argument,
)
from ..maths.arrays import is_tensor, to_numpy
from ..maths.seeds import clone_with_seed
from ..protocols import atomic, public_names

__all__ = ["CustomDensity"]

_SCORERS = ("score_samples", "log_prob")
#: A length below this is left as it is, as in scikit-learn.
_NO_LENGTH = 10 * float(np.finfo(np.float64).eps)


class LogDensityMixin(DensityMixin):
    """Base of our densities: `score_samples` checks rows, `log_density` takes them as they are.

    So does `fit_checked`, where there is one, beside ``fit``.
    """

    #: Types of features that `log_density` takes; others become the first.
    _dtypes: Any = np.float64

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, p), shape (n,); -inf if a distance overflows."""
        Z = check_rows(self, X)
        with one_thread(Z, blas=True), np.errstate(all="ignore"):
            return self.log_density(Z)

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return `score_samples` of features Z (n, p) that were checked before.

        What overflows is ``-inf``; callers keep NumPy from warning of it.
        """
        raise TypeError(f"{type(self).__name__} must define log_density")

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density in nats of the rows of X (n, p); y is ignored."""
        return float(self.score_samples(X).mean())


def check_rows(density: Any, X: Any) -> np.ndarray:
    """Return rows X (n, p), checked against those that a density was fitted on."""
    require_fitted(density, "n_features_in_")
    return validate_features(density, X, density._dtypes)


def check_training_rows(
    density: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return rows X (n, p), labels (n,) or None, and weights of a fit to a density, checked."""
    X = validate_fit_features(density, X, reset=reset, dtype=density._dtypes)
    if y is not None:
        y = validate_labels(y)
        check_consistent_length(X, y)
        if requires_labels(density):
            check_classification_targets(y)
    return X, y, check_weights(sample_weight, X)


def blank_union(a: Any, b: Any) -> Any:
    """Return an unfitted copy of density a with its features, if b can be merged with it."""
    for part in (a, b):
        check_is_fitted(part, "moments_")
    if a.get_params() != b.get_params():
        raise ValueError(f"cannot merge densities with different parameters: {a} and {b}")
    blank = clone(a)
    for name in ("n_features_in_", "feature_names_in_"):
        mine, theirs = getattr(a, name, None), getattr(b, name, None)
        if np.asarray(mine).tolist() != np.asarray(theirs).tolist():
            raise ValueError(f"cannot merge densities of different features: {mine} and {theirs}")
        if mine is not None:
            setattr(blank, name, mine)
    return blank


class CustomDensity(LogDensityMixin, BaseEstimator):
    """Any object with ``score_samples`` or ``log_prob`` as a density: a flow, your own class.

    Parameters
    ----------
    model : object
        Has ``score_samples(X)`` or ``log_prob(X)`` giving log-densities in nats, shape (n,). If it
        has ``fit`` a copy of it is fitted; else it is taken as fitted already, and of a module of
        PyTorch in training mode a copy in eval mode.
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

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of the model on features X (n, p), with labels if its ``fit`` takes ``y``."""
        if isinstance(self.model, type) or _scorer(self.model) is None:
            kind = type(self.model).__name__
            got = f"the class {self.model.__name__}" if isinstance(self.model, type) else kind
            raise TypeError(f"model must have a method score_samples or log_prob, got {got}")
        X = validate_fit_features(self, X)
        self.model_ = self.model
        if hasattr(self.model, "fit"):
            self.model_ = clone(self.model, safe=False)
            labels = {"y": y} if "y" in signature(self.model_.fit).parameters else {}
            self.model_.fit(self._as_tensor(X), **labels)
        if getattr(self.model_, "training", False) is True:
            # A module, in which batch normalisation would answer by the batch, dropout at random.
            self.model_ = deepcopy(self.model_).eval()
        return self

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the scores of the model for features Z (n, p), shape (n,)."""
        score = getattr(self.model_, str(_scorer(self.model_)))(self._as_tensor(Z))
        return to_numpy(score) if is_tensor(score) else np.asarray(score, dtype=np.float64)

    def _as_tensor(self, X: np.ndarray) -> Any:
        if self.dtype is None:
            return X
        import torch

        return torch.as_tensor(X, dtype=self.dtype)


def _scorer(model: Any) -> str | None:
    return next((name for name in _SCORERS if hasattr(model, name)), None)


def as_density(density: Any, random_state: Any = None, name: str = "density") -> Any:
    """Return an unfitted estimator: a clone of `density`, or a wrapper of an object that scores."""
    check_density(density, name)
    if not is_estimator(density):
        return CustomDensity(density)
    return clone(density) if random_state is None else clone_with_seed(density, random_state)


def check_density(density: Any, name: str = "density") -> None:
    """Raise TypeError unless `density` is an object that scores."""
    if isinstance(density, type) or _scorer(density) is None:
        classes = [n for n in sorted(public_names(Path(__file__).parent)) if n[0].isupper()]
        raise TypeError(
            f"{name} must be an object with a method score_samples or log_prob, got "
            f"{density!r}; dipedl.density has {', '.join(classes)}, to be given as "
            f"{name}=dipedl.density.KNNDensity()"
        )


def is_estimator(density: Any) -> bool:
    """Return whether a density is fitted as it is; other objects are wrapped in `CustomDensity`."""
    return isinstance(density, BaseEstimator) and _fit_takes(density.__class__, "y")


def is_frozen(density: Any) -> bool:
    """Return whether `density` is fitted already and stays as it is."""
    return isinstance(density, FrozenEstimator) or (
        density is not None and not hasattr(density, "fit")
    )


def requires_labels(density: Any) -> bool:
    """Return whether an unfitted density cannot be fitted without labels."""
    return isinstance(density, BaseEstimator) and get_tags(density).target_tags.required


def fit_density(
    model: Any, Z: np.ndarray, y: np.ndarray, w: np.ndarray | None, proba: np.ndarray | None = None
) -> Any:
    """Fit the unfitted density itself; `proba` (n, k) for a ``fit`` that asks for it."""
    extra = {} if proba is None else {"proba": proba}
    if isinstance(model, FrozenEstimator):
        return model.fit(Z, y, **extra)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if w is not None and not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"sample_weight was given but {type(last).__name__}.fit does not take it; "
            "use a Gaussian or kernel density, or drop the weights"
        )
    if density_after_normalizer(model) is not None:
        model.steps[0][1].fit(Z)
        fit_density(last, unit_rows(Z), y, w)
        return model
    kind: Any = type(model)
    if _defines_first(kind, "fit_checked", "fit"):
        model.n_features_in_ = Z.shape[1]
        return model.fit_checked(Z, y, w)
    if w is None:
        return model.fit(Z, y, **extra)
    with route_weights(model):
        return model.fit(Z, y, **weight_argument(model, w), **extra)


def fit_copy(
    density: Any, Z: np.ndarray, y: Any, w: np.ndarray | None, random_state: Any = None
) -> Any:
    """Fit a copy of a density, or of an object that scores, on features Z (n, p) and labels."""
    return fit_density(as_density(density, random_state), Z, y, w)


def add_rows(model: Any, X: np.ndarray, y: Any, classes: Any, weights: Any) -> Any:
    """Call ``model.partial_fit`` with as many arguments as it takes; a frozen model stays."""
    if isinstance(model, FrozenEstimator):
        return model
    takes = signature(model.partial_fit).parameters
    if weights is not None and "sample_weight" not in takes:
        raise ValueError(
            f"sample_weight was given but {type(model).__name__}.partial_fit does not take it; "
            "drop the weights"
        )
    arguments = {"y": y, "classes": classes, "sample_weight": weights}
    return model.partial_fit(X, **{name: v for name, v in arguments.items() if name in takes})


def merge_densities(a: Any, b: Any) -> Any:
    """Return ``a + b``; of two frozen densities, which must be the same, the one."""
    if not isinstance(a, FrozenEstimator):
        return a + b
    if not isinstance(b, FrozenEstimator) or a.estimator is not b.estimator:
        raise ValueError(f"cannot merge densities with different frozen parts: {a} and {b}")
    return a


def clone_with_selected(fitted: Any, template: Any) -> Any:
    """Return the density to fit in folds: with the settings selected by the fit on all rows."""
    # A frozen one hands on every attribute of what it holds, and is to stay as it is.
    if isinstance(fitted, FrozenEstimator) or not hasattr(fitted, "clone_with_selected"):
        return template
    return fitted.clone_with_selected()


def exclude_self(density: Any) -> Any:
    """Return a fitted density, or a pipeline that ends in one, as it scores the rows of its fit."""
    if isinstance(density, Pipeline):
        name, last = density.steps[-1]
        return Pipeline([*density.steps[:-1], (name, exclude_self(last))])
    frozen = isinstance(density, FrozenEstimator)
    return density.exclude_self() if not frozen and hasattr(density, "exclude_self") else density


def leave_one_out(
    density: Any, Z: np.ndarray, y: np.ndarray, w: np.ndarray | None
) -> np.ndarray | None:
    """Return scores of rows Z (n, p) of the fit, each by the fit to all others; None if unknown.

    Known to densities with a method `leave_one_out`, and to pipelines of a ``Normalizer`` and one.
    """
    if (behind := density_after_normalizer(density)) is not None:
        return leave_one_out(behind, unit_rows(Z), y, w)
    if isinstance(density, FrozenEstimator) or not hasattr(density, "leave_one_out"):
        return None
    with np.errstate(all="ignore"):
        scores = density.leave_one_out(Z, y, w)
    return None if scores is None else np.asarray(scores, dtype=np.float64)


def takes_proba(density: Any) -> bool:
    """Return whether a density takes class probabilities; a fitted one, if it was given them."""
    inner: Any = density.estimator if isinstance(density, FrozenEstimator) else density
    kind: Any = type(inner)
    return _fit_takes(kind, "proba") and bool(getattr(inner, "with_classifier_", True))


@cache
def _fit_takes(kind: Any, argument: str) -> bool:
    return hasattr(kind, "fit") and argument in signature(kind.fit).parameters


def log_density(density: Any, Z: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
    """Return log-densities of checked features Z (n, p): one per row, no NaN, not +inf.

    `proba` (n, k) are given to densities that take the classifier's probabilities, and no other.
    """
    # What overflows is -inf or refused; other libraries would warn of it.
    with np.errstate(all="ignore"):
        return _log_density(density, Z, proba)


def _log_density(density: Any, Z: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
    inner = density.estimator if isinstance(density, FrozenEstimator) else density
    if (behind := density_after_normalizer(inner)) is not None:
        return _log_density(behind, unit_rows(Z))
    kind: Any = type(inner)
    score = (
        inner.log_density
        if _defines_first(kind, "log_density", "score_samples")
        else density.score_samples
    )
    arguments = {"proba": proba} if proba is not None and takes_proba(density) else {}
    scores = np.asarray(score(Z, **arguments), dtype=np.float64)
    if scores.shape == (len(Z),) and (scores < np.inf).all():
        return scores
    name = type(getattr(density, "model", density)).__name__
    if scores.shape != (len(Z),):
        raise ValueError(
            f"density {name} must give one log-density per row, shape ({len(Z)},), "
            f"got {scores.shape}"
        )
    bad = np.flatnonzero(~(scores < np.inf))
    raise NotComputableError(
        f"density {name} gave {scores[bad[0]]} for row {bad[0]} ({len(bad)} of {len(Z)} rows); "
        "a log-density is finite, or -inf where the density is zero: "
        "check the density's fit and scaling"
    )


def score_parts(parts: Mapping[str, Any], Z: np.ndarray) -> dict[str, np.ndarray]:
    """Return `log_density` of checked features Z (n, p) by each of several densities.

    What two of them need, as the rows of unit length, is computed once.
    """
    scores: dict[str, np.ndarray] = {}
    unit: np.ndarray | None = None
    names = {id(part): name for name, part in parts.items()}
    with np.errstate(all="ignore"):
        for name, part in parts.items():
            behind = density_after_normalizer(part)
            known = names.get(id(part.density_), "") if hasattr(part, "log_ratio") else ""
            if known in scores:
                scores[name] = part.log_ratio(scores[known], Z)
            elif behind is None:
                scores[name] = _log_density(part, Z)
            else:
                unit = unit_rows(Z) if unit is None else unit
                scores[name] = _log_density(behind, unit)
    return scores


def density_after_normalizer(part: Any) -> Any:
    """Return the density of a pipeline ``Normalizer() -> density``; None for any other part."""
    if type(part) is not Pipeline or len(part.steps) != 2:
        return None
    first, last = part.steps[0][1], part.steps[1][1]
    return last if type(first) is Normalizer and first.norm == "l2" else None


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Divide each row of X (n, p) by its length, as ``Normalizer().transform(X)`` does."""
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    lengths[lengths < _NO_LENGTH] = 1.0
    return np.asarray(X / lengths[:, None])


@cache
def _defines_first(kind: Any, unchecked: str, checked: str) -> bool:
    """Return whether a type has the first method, and no subclass another one of the second."""
    owners = [{unchecked, checked} & vars(base).keys() for base in kind.__mro__]
    return unchecked in next(filter(None, owners), ())
