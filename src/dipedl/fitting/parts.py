"""The parts of a model: features, density and estimator, cloned, fitted and asked with checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import has_fit_parameter

from .._validation import weight_argument
from ..maths.simplex import check_simplex

_SPARSE = (
    "X is sparse, and the default features standardise dense inputs; pass X.toarray() or a "
    "transformer that gives dense features, such as features=TruncatedSVD(50)"
)


def unfitted_classifier(estimator: Any, random_state: Any = None) -> Any:
    """A clone of the classifier, checked; None stands for logistic regression."""
    if estimator is None:
        return LogisticRegression(max_iter=1000)
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be a classifier object, got {estimator!r}")
    copy = seeded_clone(estimator, random_state)
    if not hasattr(copy, "predict_proba"):
        raise TypeError(
            f"estimator must have a method predict_proba, got {estimator!r}; wrap it in "
            "CalibratedClassifierCV, or set probability=True where the classifier has it"
        )
    return copy


def fitted_classifier(estimator: Any, X: Any, y: np.ndarray, keywords: dict[str, Any]) -> Any:
    """``estimator.fit(X, y, **keywords)``, with a note on labels that some libraries refuse."""
    try:
        return estimator.fit(X, y, **keywords)
    except ValueError as error:
        classes = np.unique(y)
        if not np.array_equal(classes, np.arange(len(classes))):
            error.add_note(
                f"y holds the labels {classes.tolist()}: a classifier that wants 0..k-1, such "
                "as XGBClassifier, needs them encoded: LabelEncoder().fit_transform(y)"
            )
        raise


def class_probabilities(estimator: Any, X: Any, k: int) -> np.ndarray:
    """Class probabilities (n, k) of a fitted classifier, checked, rows summing to one."""
    P = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if P.shape != (X.shape[0], k):
        raise ValueError(
            f"predict_proba of the estimator must have shape ({X.shape[0]}, {k}), got {P.shape}"
        )
    check_simplex("predict_proba of the estimator", P)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def take_input_tags(tags: Tags, estimator: Any) -> Tags:
    """Tags of a model that hands inputs on: sparse and missing ones as `estimator` takes them."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return tags
    inner = get_tags(estimator).input_tags
    tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
    return tags


def for_folds(fitted: Any, density: Any) -> Any:
    """The density to fit in the folds: with what all rows have settled, where it can say so."""
    # A frozen one hands on every attribute of what it holds, and is to stay as it is.
    frozen = isinstance(fitted, FrozenEstimator)
    settled = None if frozen else getattr(fitted, "for_folds", None)
    return density if settled is None else settled()


def fitted_features(
    features: Any, X: Any, y: np.ndarray, w: np.ndarray | None, random_state: Any = None
) -> Any:
    """A fitted copy of the features transformer; None stands for standardised inputs."""
    if isinstance(features, str) and features == "passthrough":
        return None
    if features is not None and not hasattr(features, "transform"):
        raise TypeError(
            "features must be None, 'passthrough' or a transformer with a method transform, "
            f"got {features!r}; wrap a function in FunctionTransformer"
        )
    if features is None and sparse.issparse(X):
        raise TypeError(_SPARSE)
    if features is None:
        return _standardiser(X, w)
    transformer = seeded_clone(features, random_state)
    weighted = w is not None and has_fit_parameter(transformer, "sample_weight")
    return transformer.fit(X, y, **({"sample_weight": w} if weighted else {}))


def _standardiser(X: Any, w: np.ndarray | None) -> StandardScaler:
    # The scaler would let NaN pass, and would call an infinite variance a constant feature.
    feature_array(None, X)
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(X, sample_weight=w)
    if not np.isfinite(scaler.var_).all() or not np.isfinite(scaler.mean_).all():
        raise ValueError("X is so large that its variance overflows; rescale the inputs")
    return scaler


def feature_array(features: Any, X: Any) -> np.ndarray:
    """Features of X as a finite float64 array (n, p); an error names the first bad entry."""
    if sparse.issparse(X) and isinstance(features, StandardScaler):
        raise TypeError(_SPARSE)
    with np.errstate(over="ignore"):
        Z = X if features is None else features.transform(X)
    if sparse.issparse(Z):
        raise TypeError(
            "X or its features are sparse, and densities need dense rows; "
            "pass X.toarray() or features=TruncatedSVD(50)"
        )
    if np.iscomplexobj(Z):
        raise ValueError(f"Complex data not supported\n{Z}\n")
    try:
        Z = np.asarray(Z, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"X or its features must be numbers: {error}; impute what is missing and encode text, "
            "by the transformer given as features"
        ) from error
    if Z.ndim != 2:
        raise ValueError(f"features of X must have shape (n, p), got {Z.shape}. Reshape your data")
    if len(Z) == 0 or Z.shape[1] == 0:
        raise ValueError(
            f"X must give {len(Z)} sample(s) and {Z.shape[1]} feature(s) (shape={Z.shape}) "
            "while a minimum of 1 is required; X or its features are empty"
        )
    bad = ~np.isfinite(Z)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"X or its features must be finite, got {Z[row, column]} (NaN or inf) at row {row}, "
            f"column {column}; impute it, such as "
            "features=make_pipeline(SimpleImputer(), StandardScaler())"
        )
    return Z


def fitted_density(
    density: Any,
    Z: np.ndarray,
    y: np.ndarray,
    w: np.ndarray | None,
    random_state: Any = None,
    proba: np.ndarray | None = None,
) -> Any:
    """A fitted copy of the density; None stands for a `DensitySelector`.

    `proba` (n, k) goes to a ``fit`` that asks for the class probabilities of its rows.
    """
    model = as_density(density, random_state)
    extra = {} if proba is None else {"proba": proba}
    if w is None or isinstance(model, FrozenEstimator):
        return model.fit(Z, y, **extra)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"sample_weight was given but {type(last).__name__}.fit does not take it; "
            "use a Gaussian or kernel density, or drop the weights"
        )
    return model.fit(Z, y, **weight_argument(model, w), **extra)


def is_frozen(density: Any) -> bool:
    """Whether `density` is fitted already and stays as it is."""
    return isinstance(density, FrozenEstimator) or (
        density is not None and not hasattr(density, "fit")
    )


def as_density(density: Any, random_state: Any = None) -> Any:
    """An unfitted estimator for `density`: a clone, or a wrapper of any object that scores."""
    # The arrow back: defaults live in the plug-in folder.
    from ..density.combined.selector import DensitySelector
    from ..density.custom import CustomDensity

    if density is None:
        return DensitySelector(random_state=random_state)
    if isinstance(density, BaseEstimator) and has_fit_parameter(density, "y"):
        return seeded_clone(density, random_state)
    return CustomDensity(density)


def log_density(
    density: Any, Z: np.ndarray, extra: dict[str, np.ndarray] | None = None
) -> np.ndarray:
    """Log-densities of Z (n, p), checked: one number a row, no NaN, not +inf.

    `extra` are more arguments of ``score_samples``.
    """
    scores = np.asarray(density.score_samples(Z, **(extra or {})), dtype=np.float64)
    name = type(getattr(density, "model", density)).__name__
    if scores.shape != (len(Z),):
        raise ValueError(
            f"density {name} must give one log-density per row, shape ({len(Z)},), "
            f"got {scores.shape}"
        )
    bad = np.isnan(scores) | (scores == np.inf)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"density {name} gave {scores[row]} for row {row} ({int(bad.sum())} of {len(Z)} rows); "
            "a log-density is finite, or -inf where the density is zero: "
            "check the density's fit and scaling"
        )
    return scores


def seeded_clone(estimator: Any, random_state: Any) -> Any:
    """A clone whose unseeded parts take their seed from `random_state`, unless that is None."""
    copy = clone(estimator)
    if random_state is None or isinstance(copy, FrozenEstimator):
        return copy
    unseeded = sorted(
        name
        for name, value in copy.get_params(deep=True).items()
        if name.split("__")[-1] == "random_state" and value is None
    )
    return copy.set_params(**dict.fromkeys(unseeded, seed(random_state)))


def seed(random_state: Any) -> int:
    """An int from None (always 0: folds are reproducible), an int, a RandomState or a Generator."""
    check_seed(random_state)
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))
    return int(draw(2**31))  # type: ignore[misc]


def check_seed(random_state: Any) -> None:
    """Raise TypeError unless `seed` can make an int of `random_state`."""
    draws = hasattr(random_state, "integers") or hasattr(random_state, "randint")
    if not (random_state is None or isinstance(random_state, int | np.integer) or draws):
        raise TypeError(
            f"random_state must be None, an int, a RandomState or a Generator, got {random_state!r}"
        )
