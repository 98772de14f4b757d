"""The default encoding of tables with text, categories or gaps, for densities."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.utils import get_tags

from ..columns import (
    EMPTY,
    LEVEL,
    NUMBER,
    as_numbers,
    column,
    column_names,
    is_category,
    is_frame,
    is_identifier,
    is_pandas,
    kind_of,
    missing_entries,
    numbers_of,
    present_entries,
)
from ..writing.finding import warn_caller
from .pipelines import classifier_inside, input_sources, known_levels

#: Where a value is put that is missing in a column without gaps, in standard deviations.
FAR = 10.0
#: Stands for a gap beside the numbers of levels, 0, 1, ...
_GAP_CODE = 1 << 30
#: A level of a smaller share of the rows, of fewer rows, which a fold may lack, or beyond so many
#: levels has no column of its own.
_RARE, _FEWEST, _MOST_LEVELS = 0.01, 10, 20
#: A column whose next row has a new level at this probability at least: new levels are usual.
_OPEN = 0.01


def table_encoding(X: Any, estimator: Any) -> ColumnTransformer | None:
    """Return an unfitted encoder of the columns of X (n, d); None for numbers without gaps.

    Made of scikit-learn's transformers, without the labels. Gaps alone are encoded only for an
    `estimator`, at the end of a pipeline too, that takes them.

    - Numbers are standardised. Gaps get the median, and a column beside it that says so; in a
      column without gaps in the fit, a gap is put 10 standard deviations out.
    - Levels (text, categories) become one column each, a gap too: the 20 most frequent of at least
      1 % of the rows, and of 10 rows; any other level is none of them. Which these are is settled
      here, on all rows: scores by another number of features, in a fold, would not be comparable.
    - A level that the fit has not seen is put 10 standard deviations out, in a column of its own,
      unless new ones are usual: k rows of n with a level that no other row has say that a new row
      has a new one with probability k / n (Good and Turing), and from 1 % on that is usual.
    - A column without any entry tells whether there is one.
    - A text whose values hardly come twice is left out, with a warning; where they are numbers that
      are stored as text, it says so.

    Raises
    ------
    ValueError
        If nothing of any column is left.
    """
    if not is_frame(X):
        values = as_numbers(X) if isinstance(X, np.ndarray) and X.ndim == 2 else None
        if values is None or not np.isnan(values).any():
            return None
    names = column_names(X)
    parts = [column(X, j) for j in range(X.shape[1])]
    kinds = [_kind(part, name) for part, name in zip(parts, names, strict=True)]
    text = any(kind in (LEVEL, OPEN, IDENTIFIER) for kind in kinds)
    inner = classifier_inside(estimator)
    gaps = hasattr(inner, "__sklearn_tags__") and get_tags(inner).input_tags.allow_nan
    if set(kinds) == {NUMBER} or not (text or gaps):
        return None
    columns = names if all(isinstance(name, str) for name in names) else list(range(len(names)))
    by_kind = {k: [c for c, kind in zip(columns, kinds, strict=True) if kind == k] for k in kinds}
    frequent = {
        c: levels
        for c, part, kind in zip(columns, parts, kinds, strict=True)
        if kind in (LEVEL, OPEN) and (levels := _frequent(part))
    }
    chosen = [
        (name, transformer, [c for kind in of for c in by_kind.get(kind, [])])
        for name, transformer, of in _parts()
    ]
    if frequent:
        levels = OneHotEncoder(
            categories=list(frequent.values()), handle_unknown="ignore", sparse_output=False
        )
        chosen.append(("levels", levels, list(frequent)))
    seen = [part for part in chosen if part[2]]
    if not seen:
        as_text = [n for n, p in zip(names, parts, strict=True) if numbers_of(p) is not None]
        what = "numbers stored as text or categories" if as_text else "levels"
        remedy = _as_numbers(X, as_text) if as_text else "give numbers, or levels that come again"
        raise ValueError(
            f"X must have a column that a density can see, got {names} of {what}, none of which "
            f"is frequent: {remedy}"
        )
    _warn_of_levels(X, names, parts, kinds)
    return ColumnTransformer(seen, sparse_threshold=0)


def scale_with_gaps_far() -> Pipeline:
    """Standardises columns without gaps in the fit, and puts a gap 10 standard deviations out."""
    return make_pipeline(StandardScaler(), SimpleImputer(strategy="constant", fill_value=FAR))


#: What each part of the encoder does, in words.
PARTS = {
    "numbers": "numbers",
    "filled": "numbers whose gaps get the median",
    "missing": "where these have gaps",
    "levels": "a column for each frequent level",
    "new": "whether a value is new",
}
#: Kinds beside those of `columns`.
GAPS, OPEN, IDENTIFIER = "number with gaps", "level of an open set", "identifier"


def _parts() -> list[tuple[str, Any, tuple[str, ...]]]:
    """Name, transformer and kinds of columns, for all but the frequent levels."""
    gap = MissingIndicator(features="all")
    # 0 for what the fit has seen, which is all there is in the fit: such a column is not rescaled.
    new = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=_GAP_CODE
    )
    far_if_new = make_pipeline(new, Binarizer(threshold=-0.5), MinMaxScaler((0, FAR)))
    return [
        ("numbers", scale_with_gaps_far(), (NUMBER,)),
        ("filled", make_pipeline(StandardScaler(), SimpleImputer(strategy="median")), (GAPS,)),
        ("missing", make_pipeline(StandardScaler(), gap), (GAPS,)),
        ("new", far_if_new, (LEVEL, EMPTY)),
    ]


def _frequent(values: Any) -> list[Any]:
    """Return the frequent levels of a column in order; last what stands for a gap, if frequent."""
    gaps, least = missing_entries(values), max(_RARE * len(values), _FEWEST)
    counts = Counter(present_entries(values))
    enough = [level for level, count in counts.items() if count >= least]
    enough.sort(key=lambda level: (-counts[level], str(level)))
    gap = np.asarray(values)[gaps][:1].tolist() if gaps.sum() >= least else []
    return sorted(enough[: _MOST_LEVELS - len(gap)]) + gap


def _kind(values: Any, name: Any) -> str:
    kind = kind_of(values, name)
    if kind == NUMBER:
        return GAPS if missing_entries(values).any() else NUMBER
    if kind != LEVEL:
        return kind
    counts = Counter(present_entries(values))
    if is_identifier(counts):
        return IDENTIFIER
    # New rows bring new levels as often as levels came once.
    once = sum(count == 1 for count in counts.values())
    return OPEN if once >= _OPEN * len(values) else LEVEL


def warn_of_identifiers(X: Any, steps: Any) -> None:
    """Warn of columns of a table X (n, d) that fitted `steps` encode and that hardly come twice."""
    if not is_frame(X):
        return
    encoded = {j for j, _ in known_levels(steps, input_sources(X.shape[1]))}
    columns = [j for j in sorted(encoded) if is_identifier(Counter(present_entries(column(X, j))))]
    if columns:
        _warn_of_columns(
            [str(X.columns[j]) for j in columns], "sees what the estimator's steps make of them"
        )


def _as_numbers(X: Any, names: list[Any]) -> str:
    """Return the code that makes numbers of columns of texts."""
    if is_pandas(X):
        return f"make them numbers, X[{names}] = X[{names}].astype(float)"
    return f"make them numbers, X.with_columns(pl.col({names}).cast(str).cast(float))"


def _warn_of_levels(X: Any, names: list[Any], parts: list[Any], kinds: list[str]) -> None:
    """Warn of columns that are left out, and of numbers in levels."""
    as_text, left_out = [], []
    for name, part, kind in zip(names, parts, kinds, strict=True):
        many = kind == IDENTIFIER or (kind == OPEN and not is_category(part))
        if many and numbers_of(part) is not None:
            as_text.append(name)
        elif kind == IDENTIFIER:
            left_out.append(str(name))
    if as_text:
        warn_caller(
            f"X has numbers stored as text or categories in the columns {as_text}: the density "
            "takes them as levels, and would not notice a number far from all others; "
            f"{_as_numbers(X, as_text)}. Codes that are no amounts, and come again, can be of "
            "dtype category"
        )
    if left_out:
        _warn_of_columns(left_out)


def _warn_of_columns(names: list[str], what: str = "leaves them out") -> None:
    warn_caller(
        f"X has the columns {names} of levels that hardly come twice, such as names or numbers of "
        f"customers: the density {what}, and no value of a new row would be known; drop them, or "
        "make something of them that comes again"
    )
