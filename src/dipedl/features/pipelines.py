"""Pipelines of scikit-learn: their steps, and the columns that each feature comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from ..maths.arrays import is_missing

#: Sparse rows of more columns than this become components: as many as scikit-learn recommends for
#: latent semantic analysis.
COMPONENTS = 100
Back = Callable[[float], float]


@dataclass(frozen=True)
class Source:
    """Columns that a feature is made of, and the way from its value to that of the one column.

    `back` is None where the value says nothing of the column's: one level of many, a gap. `filled`
    are features whose gaps have been imputed, `words` those of texts, of which each says something.
    """

    columns: tuple[int, ...]
    back: Back | None = None
    filled: bool = False
    words: bool = False

    @property
    def column(self) -> int | None:
        """Column whose value the feature has; None if it mixes or recodes columns."""
        return self.columns[0] if len(self.columns) == 1 and self.back is not None else None


Sources = list[Source]


def input_sources(d: int) -> Sources:
    """Return the sources of d inputs: themselves."""
    return [Source((j,), float) for j in range(d)]


def sources_after(transformer: Any, sources: Sources) -> Sources | None:
    """Return sources of what a fitted transformer makes of such features; None if unknown.

    A feature of a transformer that mixes them, such as PCA, comes from all of them.
    """
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return sources
    for kind, rule in _RULES:
        if isinstance(transformer, kind):
            return rule(transformer, sources)
    names = names_after(transformer, None)
    return _mix_sources(sources, None if names is None else len(names))


def known_levels(transformer: Any, sources: Sources | None) -> Iterator[tuple[int, list[Any]]]:
    """Yield columns that an encoder reads as they are, with the levels that it knows."""
    for leaf, read in _leaves(transformer, sources):
        for source, levels in zip(read, getattr(leaf, "categories_", []), strict=False):
            if source.column is not None:
                yield source.column, list(levels)


def without_gaps(transformer: Any, sources: Sources | None) -> Iterator[int]:
    """Yield columns without a gap in the fit, as far as encoders and indicators of gaps know."""
    for leaf, read in _leaves(transformer, sources):
        for j, source in enumerate(read):
            if len(source.columns) == 1 and not source.filled and _gapless(leaf, j):
                yield source.columns[0]


def _gapless(leaf: Any, j: int) -> bool:
    """Return whether a fitted transformer knows that its input number j had no gap."""
    if hasattr(leaf, "categories_"):
        return not any(is_missing(level) for level in leaf.categories_[j])
    indicator = leaf if isinstance(leaf, MissingIndicator) else getattr(leaf, "indicator_", None)
    return indicator is not None and j not in indicator.features_


def _leaves(transformer: Any, sources: Sources | None) -> Iterator[tuple[Any, Sources]]:
    """Yield the transformers inside of a transformer, with the sources of what each reads."""
    if sources is None:
        return
    if isinstance(transformer, FrozenEstimator):
        yield from _leaves(transformer.estimator, sources)
    elif isinstance(transformer, Pipeline):
        for _, step in transformer.steps:
            yield from _leaves(step, sources)
            sources = None if sources is None else sources_after(step, sources)
    elif isinstance(transformer, FeatureUnion):
        for _, part in transformer.transformer_list:
            yield from _leaves(part, sources)
    elif isinstance(transformer, ColumnTransformer):
        for _, part, chosen in _fitted_parts(transformer, sources):
            yield from _leaves(part, chosen)
    else:
        yield transformer, sources


def names_after(transformer: Any, names: list[str] | None) -> list[str] | None:
    """Return the names that a transformer gives its features; None without any."""
    try:
        return [str(name) for name in transformer.get_feature_names_out(names)]
    except (AttributeError, ValueError):
        return None


def _mix_sources(sources: Sources, width: int | None) -> Sources | None:
    every = tuple(sorted({c for source in sources for c in source.columns}))
    words = bool(sources) and all(source.words for source in sources)
    return None if width is None else [Source(every, words=words)] * width


def _pipeline(model: Pipeline, sources: Sources | None) -> Sources | None:
    for _, step in model.steps:
        sources = None if sources is None else sources_after(step, sources)
    return sources


def _columns(model: ColumnTransformer, sources: Sources) -> Sources | None:
    result: Sources = []
    # Without features there is no account of which part they come from.
    places = getattr(model, "output_indices_", {})
    for name, transformer, chosen in _fitted_parts(model, sources):
        width = places[name].stop - places[name].start if places else 0
        if width:
            part = sources_after(transformer, chosen)
            result += (part or _mix_sources(chosen, width)) or []
    return result


def _fitted_parts(model: ColumnTransformer, sources: Sources) -> Iterator[tuple[str, Any, Sources]]:
    """Name, transformer and what it reads, of each part; one without columns was not fitted."""
    for name, transformer, _ in model.transformers_:
        chosen = [sources[j] for j in model._transformer_to_input_indices[name]]
        if chosen:
            yield name, transformer, chosen


def _union(model: FeatureUnion, sources: Sources) -> Sources | None:
    used = [part for _, part in model.transformer_list if part != "drop"]
    parts = [sources_after(part, sources) for part in used]
    return None if None in parts else [source for part in parts for source in part or []]


def _one_hot(model: OneHotEncoder, sources: Sources) -> Sources:
    widths = model._n_features_outs
    return [Source(s.columns) for s, n in zip(sources, widths, strict=True) for _ in range(n)]


def _imputer(model: SimpleImputer, sources: Sources) -> Sources:
    empty = np.array([is_missing(value) for value in model.statistics_.tolist()])
    columns = [replace(s, filled=True) for s, none in zip(sources, empty, strict=True) if not none]
    return columns + (_gaps(model.indicator_, sources) if model.add_indicator else [])


def _gaps(model: MissingIndicator, sources: Sources) -> Sources:
    return [Source(sources[j].columns, filled=True) for j in model.features_]


def _words(model: Any, sources: Sources) -> Sources:
    word = replace(sources[0], back=None, words=True)
    counted = isinstance(model, CountVectorizer)
    return [word] * (len(model.vocabulary_) if counted else model.n_features)


def _one_to_one(model: OneToOneFeatureMixin, sources: Sources) -> Sources:
    known = hasattr(model, "inverse_transform") and not hasattr(model, "categories_")
    return [
        replace(s, back=partial(_invert, model, len(sources), j, s.back))
        if known and s.back is not None
        else replace(s, back=s.back if isinstance(model, DenseRows) else None)
        for j, s in enumerate(sources)
    ]


def _function(model: FunctionTransformer, sources: Sources) -> Sources | None:
    if model.func is None:
        return sources
    one_to_one = model.feature_names_out == "one-to-one"
    return [replace(source, back=None) for source in sources] if one_to_one else None


def _invert(model: Any, width: int, j: int, back: Back, value: float) -> float:
    row = np.zeros((1, width))
    row[0, j] = value
    return back(float(model.inverse_transform(row)[0, j]))


_RULES: list[tuple[Any, Callable[[Any, Sources], Sources | None]]] = [
    (FrozenEstimator, lambda model, sources: sources_after(model.estimator, sources)),
    (Pipeline, _pipeline),
    (ColumnTransformer, _columns),
    (FeatureUnion, _union),
    (OneHotEncoder, _one_hot),
    ((CountVectorizer, HashingVectorizer), _words),
    (SimpleImputer, _imputer),
    (MissingIndicator, _gaps),
    (SelectorMixin, lambda model, sources: [sources[j] for j in model.get_support(True)]),
    (FunctionTransformer, _function),
    (OneToOneFeatureMixin, _one_to_one),
]


def steps_before_classifier(estimator: Any) -> Any:
    """Return the steps of a pipeline before its classifier as one transformer; None without.

    Those of a frozen pipeline are frozen. A search and a `CalibratedClassifierCV` are looked into.
    A `StandardScaler` at the end is left out: features are standardised after these steps anyway,
    and samplers, which drop or add rows, are no transformers.
    """
    if isinstance(estimator, FrozenEstimator):
        inner = estimator.estimator
        steps = steps_before_classifier(
            inner.best_estimator_ if isinstance(inner, BaseSearchCV) else inner
        )
        return None if steps is None else FrozenEstimator(steps)
    if isinstance(estimator, BaseSearchCV | CalibratedClassifierCV):
        return steps_before_classifier(estimator.estimator)
    steps = _steps(estimator)
    if steps and type(steps[-1][1]) is StandardScaler:
        steps = steps[:-1]
    return Pipeline(steps) if steps else None


def classifier_inside(estimator: Any) -> Any:
    """Return the classifier inside of pipelines, searches and `CalibratedClassifierCV`."""
    if isinstance(estimator, FrozenEstimator | BaseSearchCV | CalibratedClassifierCV):
        return classifier_inside(estimator.estimator)
    return (
        classifier_inside(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator
    )


def clone_with_levels(fitted: Any) -> Any:
    """Return an unfitted copy of fitted steps that knows their levels, groups of levels, words.

    Where a fold lacks a rare one there would be a feature less, and scores of densities of another
    number of features cannot be compared.
    """
    copy: Any = fitted if isinstance(fitted, str) else clone(fitted)
    if isinstance(fitted, Pipeline | FeatureUnion):
        name = "steps" if isinstance(fitted, Pipeline) else "transformer_list"
        parts = [(n, clone_with_levels(part)) for n, part in getattr(fitted, name)]
        copy.set_params(**{name: parts})
    elif isinstance(fitted, ColumnTransformer):
        # A part of no columns was not fitted.
        reads = fitted._transformer_to_input_indices
        known = {n: clone_with_levels(t) for n, t, _ in fitted.transformers_ if len(reads[n])}
        copy.set_params(transformers=[(n, known.get(n, t), of) for n, t, of in copy.transformers])
    elif isinstance(fitted, OneHotEncoder):
        # Levels, and which of them are infrequent, are all that it learns.
        copy = FrozenEstimator(fitted)
    elif isinstance(fitted, CountVectorizer):
        copy.set_params(vocabulary=fitted.vocabulary_)
    return copy


def _steps(estimator: Any) -> list[tuple[str, Any]]:
    if not isinstance(estimator, Pipeline):
        return []
    *before, (name, last) = estimator.steps
    inner = _steps(last)
    nested = [(name, Pipeline(inner))] if inner else []
    return [(n, step) for n, step in before if hasattr(step, "transform")] + nested


def learns_by_column(transformer: Any) -> bool:
    """Return whether fitted steps learn each column by itself and no labels, as scalers do.

    What they make of a row then depends little on whether the row was in the fit. Frozen ones learn
    nothing.
    """
    if transformer is None or isinstance(transformer, str | FrozenEstimator):
        return True
    if isinstance(transformer, Pipeline):
        return all(learns_by_column(step) for _, step in transformer.steps)
    if isinstance(transformer, FeatureUnion):
        return all(learns_by_column(part) for _, part in transformer.transformer_list)
    if isinstance(transformer, ColumnTransformer):
        return all(learns_by_column(part) for _, part, _ in transformer.transformers_)
    columnwise = (
        OneToOneFeatureMixin, OneHotEncoder, SimpleImputer, MissingIndicator, FunctionTransformer
    )  # fmt: skip
    return isinstance(transformer, columnwise) and not get_tags(transformer).target_tags.required


def is_narrow(X: Any) -> bool:
    """Return whether X (n, p) is sparse and of so few columns that it is made dense."""
    return bool(sparse.issparse(X) and X.shape[1] <= COMPONENTS)


class DenseRows(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Make rows dense, number by number."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of columns."""
        validate_data(self, X, skip_check_array=True)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return X (n, p), sparse or not, as a dense array (n, p)."""
        return X.toarray() if sparse.issparse(X) else np.asarray(X)
