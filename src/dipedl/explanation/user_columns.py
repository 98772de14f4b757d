"""Readings of a density in the columns and units of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ..columns import (
    Columns,
    by_row,
    column,
    column_texts,
    first_gaps,
    is_date,
    is_frame,
    missing_entries,
    new_levels,
)
from ..features.pipelines import (
    Sources,
    input_sources,
    known_levels,
    names_after,
    sources_after,
    without_gaps,
)

#: One row as one density sees it; "kind" says which entries there are.
Reading = dict[str, Any]


@dataclass(frozen=True, eq=False)
class UserColumns:
    """The inputs of the user, and how the features of the density hang on them.

    Attributes
    ----------
    X : array-like
        Inputs (n, d) as the user gave them.
    names : list of str
        Names of their columns; none for texts and sparse rows.
    known : Columns or None
        Usual values of the columns that arrive at the model.
    arriving : dict of int to (int, callable, bool)
        Of each column that arrives as one column: which, how a number of it comes back into the
        unit of the user, and whether its gaps were filled before.
    features : list of str
        Names of the p features of the density.
    sources : list of Source or None
        Origin of each feature.
    scaler : StandardScaler or None
        The last step before the density, which is undone for readers.
    Z : ndarray, shape (n, p)
        Features of X.
    """

    X: Any
    names: list[str]
    known: Columns | None
    arriving: dict[int, tuple[int, Callable[[float], float], bool]]
    features: list[str]
    sources: Sources | None
    scaler: StandardScaler | None
    Z: np.ndarray
    _read: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def tokens(self) -> dict[str, int]:
        """Name for each feature that stands for no other, and the feature's place."""
        return {f"feature {j}": j for j in range(len(self.features))}

    def features_for(self, top: int) -> int:
        """Number of features to read for the `top` columns: all, if a column has several."""
        columns = [source.columns for source in self.sources or []]
        return top if len(set(columns)) == len(columns) else max(top, len(columns))

    def in_columns(self, reading: Reading, i: int, top: int) -> Reading:
        """Put a reading of row i, with tokens for names, in the `top` columns of the user."""
        inner: Reading = {
            k: self.in_columns(v, i, top) for k, v in reading.items() if k == "background"
        }
        if "blocks" in reading:
            inner["blocks"] = [self.in_columns(block, i, top) for block in reading["blocks"][:top]]
        if "neighbours" in reading:
            inner["neighbours"] = reading["neighbours"][:top]
        if "features" in reading:
            entries = list(self._entries(reading["features"], i))
            # A column of many levels adds much for any of them.
            entries.sort(key=lambda entry: entry["expected"] - entry["contribution"])
            inner["features"] = entries[:top]
            others = (entry["contribution"] for entry in entries[top:])
            inner["rest"] = sum(others, reading["rest"])
        return reading | inner

    def _entries(self, features: list[dict[str, Any]], i: int) -> Iterator[dict[str, Any]]:
        """Yield features of row i that are no column, and columns with what their features add."""
        sums: dict[int, tuple[float, float]] = {}
        for entry in features:
            j = self.tokens.get(entry.get("name", ""))
            source = None if self.sources is None or j is None else self.sources[j]
            if source is None or len(source.columns) != 1 or source.words:
                yield self._feature(entry, i)
            else:
                (c,) = source.columns
                contribution, expected = sums.get(c, (0.0, 0.0))
                sums[c] = contribution + entry["contribution"], expected + 1.0
        for c, (contribution, expected) in sums.items():
            yield self._column(c, contribution, expected, i)

    def _feature(self, entry: dict[str, Any], i: int) -> dict[str, Any]:
        """Return the entry of a feature that is no column, before it was standardised."""
        j, entry = self.tokens.get(entry.get("name", "")), entry | {"expected": 1.0}
        if j is None:
            return entry
        entry |= {"name": self.features[j]}
        if self.scaler is None:
            return entry
        mean, scale = float(self.scaler.mean_[j]), float(self.scaler.scale_[j])
        return entry | {"value": float(self.Z[i, j]) * scale + mean, "mean": mean}

    def _column(self, c: int, contribution: float, expected: float, i: int) -> dict[str, Any]:
        if c not in self._read:
            values = column(self.X, c)
            self._read[c] = np.asarray(values), missing_entries(values)
        values, gaps = self._read[c]
        value = None if gaps[i] else _plain(values[i])
        usual, share, unusual = "", None, False
        if self.known is not None and c in self.arriving:
            j, unit, filled = self.arriving[c]
            known = self.known[j]
            usual = known.describe_usual(unit)
            # Of filled gaps nothing tells how many there were.
            if not (filled and gaps[i]):
                share, unusual = known.share(value), known.is_unusual(value, unit)
        return {
            "name": self.names[c],
            "column": c,
            "contribution": contribution,
            "expected": expected,
            "value": value,
            "usual": usual,
            "share": share,
            "unusual": unusual,
        }


def row_news(columns: Columns | None, X: Any, before: Any) -> list[list[str]]:
    """Return the values in each row of X (n, d) that neither fit nor the steps `before` saw."""
    if before is None:
        return [[] for _ in range(X.shape[0])] if columns is None else columns.describe_new(X)
    names = _names(before, X)
    if not names:
        return [[] for _ in range(X.shape[0])]
    start = input_sources(len(names))
    news = [new_levels(names[c], column(X, c), of) for c, of in known_levels(before, start)]
    gapless = {*without_gaps(before, start), *_arriving_without_gaps(before, start, columns)}
    news += [first_gaps(names[c], column(X, c)) for c in sorted(gapless)]
    return by_row(news, X.shape[0])


def _arriving_without_gaps(before: Any, start: Sources, columns: Columns | None) -> Iterator[int]:
    """Yield the user's columns whose gaps would arrive, and of which none arrived in the fit."""
    sources = sources_after(before, start)
    if columns is None or sources is None or len(sources) != len(columns.names):
        return
    for source, share in zip(sources, columns.missing, strict=True):
        if len(source.columns) == 1 and source.back is not None and not source.filled and not share:
            yield source.columns[0]


def _plain(value: Any) -> Any:
    """Return a number, a boolean or text; a date as text."""
    if isinstance(value, np.datetime64):
        return str(np.datetime_as_string(value, unit="auto"))
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if is_date(type(value)) else value


def user_columns(
    clf: Any, X: Any, before: Any, Z: np.ndarray, features: Any, columns: Columns | None
) -> UserColumns:
    """Return the columns of X (n, d), which the steps `before` bring to `clf` and `features` to Z.

    Z has shape (n, p), and `columns` knows the usual values of the columns that arrive.
    """
    names = _names(clf if before is None else before, X)
    start = sources_after(before, input_sources(len(names))) if names else None
    last = None if start is None else sources_after(features, start)
    p, scaler = Z.shape[1], features[-1] if isinstance(features, Pipeline) else features
    arriving = {}
    if columns is not None and start is not None and len(columns.names) == len(start):
        for j, source in enumerate(start):
            if len(source.columns) == 1 and source.back is not None:
                arriving[source.columns[0]] = j, source.back, source.filled
    of_features = names if before is None else names_after(before, names or None)
    of_features = of_features if features is None else names_after(features, of_features)
    if of_features is None or len(of_features) != p:
        of_features = [f"feature {j}" for j in range(p)]
    return UserColumns(
        X,
        names,
        columns,
        arriving,
        of_features,
        last if last is not None and len(last) == p else None,
        scaler if type(scaler) is StandardScaler else None,
        Z,
    )


def _names(fitted: Any, X: Any) -> list[str]:
    """Return the names of the columns of X, those of the fit where X has none."""
    if sparse.issparse(X) or len(getattr(X, "shape", ())) != 2:
        return []
    names = None if is_frame(X) else getattr(fitted, "feature_names_in_", None)
    return column_texts(X) if names is None else [str(name) for name in names]
