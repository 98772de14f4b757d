"""Features: what the density sees of the inputs, as a finite array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from .seeds import seeded_clone

_SPARSE = (
    "X is sparse, and the default features standardise dense inputs; pass X.toarray() or a "
    "transformer that gives dense features, such as features=TruncatedSVD(50)"
)


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
