"""Features: what the density sees of the inputs, as a finite array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from ..columns import NO_DATES, date_columns, is_frame, named_columns, types_of
from ..inputs import add_remedies, compute_features, refuse_dates, refuse_infinity, transform_rows
from ..maths.seeds import clone_with_seed, seed
from .encoding import table_encoding, warn_of_identifiers
from .pipelines import (
    COMPONENTS,
    DenseRows,
    clone_with_levels,
    input_sources,
    is_narrow,
    sources_after,
    steps_before_classifier,
)
from .scaling import fit_scaler

Steps = list[tuple[str, Any]]

#: Rows that each component of sparse features needs.
_ROWS_PER_COMPONENT = 10


def fit_feature_transformer(
    features: Any,
    X: Any,
    y: np.ndarray,
    w: np.ndarray | None,
    random_state: Any = None,
    estimator: Any = None,
) -> Any:
    """Return a fitted copy of the features transformer; None stands for the default.

    The default is what the preprocessing of the classifier `estimator` gives, or the inputs; made
    dense if sparse, encoded if a table or with gaps, and standardised.
    """
    if isinstance(features, str) and features == "passthrough":
        return None
    if isinstance(features, type) or not (features is None or hasattr(features, "transform")):
        raise TypeError(
            "features must be None, 'passthrough' or a transformer with a method transform, "
            f"got {features!r}; wrap a function in FunctionTransformer"
        )
    if features is None:
        return _default(X, y, w, estimator, random_state)
    transformer = clone_with_seed(features, random_state)
    weighted = w is not None and has_fit_parameter(transformer, "sample_weight")
    with add_remedies(transformer, X):
        return transformer.fit(X, y, **({"sample_weight": w} if weighted else {}))


def refit_feature_transformer(
    fitted: Any, features: Any, X: Any, y: np.ndarray, w: np.ndarray | None, random_state: Any
) -> Any:
    """Fit what `fit_feature_transformer` made of `features` to other rows in the same way."""
    if features is not None:
        return fit_feature_transformer(features, X, y, w, random_state)
    before = fitted.steps[:-1] if isinstance(fitted, Pipeline) else []
    parts, Z = _fit_steps([(name, clone_with_levels(part)) for name, part in before], X, y)
    return _standardise(parts, Z, w)


def _default(X: Any, y: np.ndarray, w: np.ndarray | None, estimator: Any, seeds: Any) -> Any:
    steps = steps_before_classifier(estimator)
    parts, Z = _fit_steps(
        [] if steps is None else [("prepare", clone_with_seed(steps, seeds))], X, y
    )
    _refuse_dates(Z, X, parts)
    for _, fitted in parts:
        warn_of_identifiers(X, fitted)
    if sparse.issparse(Z):
        dense, Z = _fit_steps(_dense(Z, seeds), Z, y)
        parts += dense
    encoding = table_encoding(Z, estimator)
    if encoding is not None:
        encoded, Z = _fit_steps([("encode", encoding)], Z, y)
        parts += encoded
    return _standardise(parts, Z, w)


def _refuse_dates(Z: Any, X: Any, parts: Steps) -> None:
    """Raise ValueError if `parts` leave dates of the inputs X (n, d) in the features Z (n, p).

    scikit-learn makes numbers of dates of polars that pass through. What else a table Z holds is
    checked where it is encoded.
    """
    dates = date_columns(X)
    sources = input_sources(X.shape[1]) if dates else None
    for _, part in parts:
        sources = None if sources is None else sources_after(part, sources)
    whole = {source.column for source in sources or []}
    left = [name for j, name in dates.items() if j in whole]
    if not left and not is_frame(Z):
        left = list(date_columns(Z).values())
    if left:
        passed = ", which the steps of the estimator leave as they are" if parts else ""
        raise ValueError(f"X has dates in column {left[0]!r}{passed}{NO_DATES}")


def _fit_steps(parts: Steps, X: Any, y: np.ndarray) -> tuple[Steps, Any]:
    """Fit the parts one after the other; return them, and what they make of X."""
    for _, part in parts:
        if isinstance(part, TruncatedSVD):
            # A fold may have fewer columns than all rows.
            part.set_params(n_components=min(part.n_components, X.shape[1]))
        try:
            part.fit(X, y)
        except (TypeError, ValueError) as error:
            _explain_columns(error, X)
            raise
        X = transform_rows(part, X)
    return parts, X


def _explain_columns(error: Exception, X: Any) -> None:
    """Add the columns of X (n, d) to an error about infinity, dates, or text among numbers."""
    if isinstance(error, ValueError):
        refuse_infinity(error, X)
    if not isinstance(error, TypeError):
        return
    refuse_dates(error, X)
    kinds = {name: types_of(values) for name, values in named_columns(X)} if is_frame(X) else {}
    text = {name for name, types in kinds.items() if any(issubclass(t, str) for t in types)}
    mixed = [name for name in kinds if name in text and len(kinds[name]) > 1]
    if mixed:
        error.add_note(
            f"X has mixed types in the columns {mixed}: make each one type, such as "
            f"X[{mixed[0]!r}] = X[{mixed[0]!r}].astype(str)"
        )


def _standardise(parts: Steps, Z: Any, w: np.ndarray | None) -> Any:
    # The scaler would let NaN pass, and would call an infinite variance a constant feature.
    compute_features(None, Z)
    scaler = fit_scaler(Z, w)
    return Pipeline([*parts, ("standardise", scaler)]) if parts else scaler


def _dense(Z: Any, seeds: Any) -> Steps:
    """Return the steps that make sparse features dense: components, where they are many."""
    if is_narrow(Z):
        return [("dense", DenseRows())]
    n = min(COMPONENTS, max(2, Z.shape[0] // _ROWS_PER_COMPONENT))
    reduce = ("reduce", TruncatedSVD(n, random_state=seed(seeds)))
    # Components are of finite numbers: where the gaps are is told by columns of their own.
    gaps = bool(np.isnan(Z.data).any()) if Z.dtype.kind == "f" else False
    return [("fill", SimpleImputer(add_indicator=True)), reduce] if gaps else [reduce]
