"""Standardisation that a few rows cannot spoil, and a warning of the rows that would have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ..columns import as_numbers, column_names, is_frame
from ..evidence.normalizers import weighted_quantile
from ..writing.finding import warn_caller
from .pipelines import Back, Source, input_sources, known_levels, names_after, sources_after

#: What is far from the data, in spreads of a column: a value beyond `FENCE` has no part in the
#: scale; one beyond `GROSS` gets a warning, and its row is left out of the fits of the default
#: density, unless more than a share `FEW` of the rows is. Neither holds in a column of which more
#: than `_TAIL` lies outside: that is its own tail, or, if nearly all of these values (`_CODE`) are
#: the same, a code. `RANGES` is for inputs: ranges of a feature beyond which one is out of reach.
FENCE, GROSS, RANGES = 30.0, 100.0, 3.0
FEW, _TAIL, _CODE = 0.05, 0.1, 0.9
#: Less than a half by more than rounding.
_MOST = 0.49
_NAMED = 5


def fit_scaler(X: Any, w: np.ndarray | None = None) -> StandardScaler:
    """Mean and standard deviation of each column of X (n, d), of all but values far outside.

    A value farther than `FENCE` spreads from the median of its column is left out, where the spread
    is the median distance from there of the values elsewhere: of a normal that is at 20 standard
    deviations, of a column of zeros and a few amounts at 30 typical amounts. Where no value lies
    beyond, or more than a tenth of them, this is scikit-learn's scaler to the last bit.

    Raises
    ------
    ValueError
        If the variance of a column overflows.
    """
    scaler, values = fit_standard_scaler(X, w), np.asarray(X, dtype=np.float64)
    outside = outside_of(*limits(values, w, FENCE), values)
    if outside.any():
        inner = StandardScaler().fit(np.where(outside, np.nan, values), sample_weight=w)
        scaler.mean_, scaler.var_, scaler.scale_ = inner.mean_, inner.var_, inner.scale_
    return scaler


def fit_standard_scaler(X: Any, w: np.ndarray | None = None) -> StandardScaler:
    """Fit scikit-learn's scaler on X (n, d), of scale 1 for a constant column; refuse an overflow.

    Raises
    ------
    ValueError
        If the variance of a column overflows: scikit-learn would take it for a constant.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(X, sample_weight=w)
    overflowing = np.flatnonzero(~(np.isfinite(scaler.var_) & np.isfinite(scaler.mean_)))
    if len(overflowing):
        raise ValueError(
            f"the variance of features {overflowing[:5].tolist()} overflows; rescale the features"
        )
    return scaler


def spread(distance: np.ndarray, w: np.ndarray | None = None) -> float:
    """Median of the distances (n,) from the median of a column that are not zero; 1 if all are."""
    away = distance > 0
    return _median(distance[away], None if w is None else w[away]) if away.any() else 1.0


def warn_of_gross_outliers(
    Z: np.ndarray, w: np.ndarray | None, X: Any, features: Any, numbers: np.ndarray | None = None
) -> None:
    """Warn of rows with a feature beyond `GROSS` spreads, by the columns of X and in their units.

    Parameters
    ----------
    Z, w : ndarray, shape (n, p), and ndarray, shape (n,), or None
        Features and weights.
    X, features
        The inputs (n, d), and the fitted transformer that makes their features.
    numbers : ndarray, shape (n,), optional
        Numbers that the rows have for the user; default: 0 to n - 1.
    """
    gross = outside_of(*limits(Z, w, codes=True), Z)
    units = _names_and_units(X, features, Z.shape[1]) if gross.any() else []
    gross[:, [j for j, (name, _) in enumerate(units) if name is None]] = False
    if not gross.any():
        return
    rows, columns = np.flatnonzero(gross.any(axis=1)), np.flatnonzero(gross.any(axis=0))
    first = int(gross[rows[0]].argmax())
    column, unit = units[first]
    typical = Z[~gross[:, first], first]
    low, high = sorted((unit(float(typical.min())), unit(float(typical.max()))))
    names = _shorten(list(dict.fromkeys(units[j][0] for j in columns)))
    place = f"column {column!r}, where others range from {low:g} to {high:g}"
    value = f"{unit(float(Z[rows[0], first])):g}"
    numbered = rows if numbers is None else numbers[rows]
    warn_caller(FarRowsWarning(numbered.tolist(), len(Z), names, value, place))


class FarRowsWarning(UserWarning):
    """Rows with values far from the rest: their names, of how many, columns, a value, its place.

    Names are the numbers of the rows, unless a sixth argument says what else they are.
    """

    def __str__(self) -> str:
        """Return the finding and its remedy."""
        rows, n, columns, value, place, kind = (*self.args, "row")[:6]
        return (
            f"{len(rows)} of {n} rows of X hold values far from the rest: "
            f"{kind}s {_shorten(rows)}, columns {columns}; such as {value} in {kind} {rows[0]}, "
            f"{place}. A few such rows are left out of the default density, many make what is as "
            "far look known: correct or drop them, impute codes of missing values, take logarithms "
            "of a skewed column"
        )

    def rename(self, names: Sequence[Any] | np.ndarray, kind: str = "row") -> FarRowsWarning:
        """Return the warning with the name, or number, that row i has elsewhere, ``names[i]``."""
        rows, *others = self.args[:5]
        return FarRowsWarning(np.asarray(names)[rows].tolist(), *others, kind)


def limits(
    X: np.ndarray, w: np.ndarray | None = None, fence: float = GROSS, *, codes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the median of each column of X (n, d), and how far from there is outside, (d,).

    At `fence` spreads; inf in a column of which more than a tenth lies outside, unless, with
    `codes`, nearly all of these values are the same.
    """
    centre, limit = np.empty(X.shape[1]), np.full(X.shape[1], np.inf)
    for j, column in enumerate(X.T):
        centre[j] = _median(column, w)
        with np.errstate(over="ignore"):
            distance = np.abs(column - centre[j])
        # The spread is larger if most values are farther away than this; counting is fast.
        if np.average(distance <= distance.max() / fence, weights=w) < _MOST:
            continue
        bound = fence * spread(distance, w)
        far = distance > bound
        if np.average(far, weights=w) <= _TAIL or (codes and _is_code(column[far])):
            limit[j] = bound
    return centre, limit


def outside_of(centre: np.ndarray, limit: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return where X (n, d) lies farther from the centre (d,) than the limit (d,)."""
    beyond = np.zeros(X.shape, dtype=bool)
    for j in np.flatnonzero(np.isfinite(limit)):
        with np.errstate(over="ignore"):
            beyond[:, j] = np.abs(X[:, j] - centre[j]) > limit[j]
    return beyond


def _is_code(values: np.ndarray) -> bool:
    """Return whether nearly all values (n,) are the same."""
    return bool(np.unique(values, return_counts=True)[1].max() > _CODE * len(values))


def _names_and_units(X: Any, features: Any, p: int) -> list[tuple[Any, Back]]:
    """Return for each feature a name, and the way to its unit: of a column of X, or its own.

    None for a mixture of columns that are not all numbers, for the steps or by themselves, and for
    components of sparse rows: there one of a rare level is far from all.
    """
    if isinstance(features, Pipeline) and "reduce" in features.named_steps:
        return [(None, float)] * p
    labels = column_names(X) if len(X.shape) == 2 else []
    inputs = input_sources(len(labels))
    sources = sources_after(features, inputs) if labels else None
    levels = {j for j, _ in known_levels(features, inputs)} if labels else set()
    own = names_after(features, [str(label) for label in labels] if is_frame(X) else None)
    mixed = [None] * p if as_numbers(X) is None else [f"feature {j}" for j in range(p)]
    scaler = features[-1] if isinstance(features, Pipeline) else features

    def unscale(j: int, value: float) -> float:
        return value * float(scaler.scale_[j]) + float(scaler.mean_[j])

    places: list[tuple[Any, Back]] = []
    for j in range(p):
        source = Source(()) if sources is None or len(sources) != p else sources[j]
        if source.back is not None:
            places.append((labels[source.columns[0]], source.back))
            continue
        named = len(source.columns) == 1 or mixed[j] is not None
        name = own[j] if named and own is not None else mixed[j]
        unknown = source.words or levels.intersection(source.columns)
        places.append((None if unknown else name, partial(unscale, j)))
    return places


def _median(values: np.ndarray, w: np.ndarray | None) -> float:
    """Return the lower median of values (n,), each counted `w` times."""
    if w is None:
        middle = (len(values) - 1) // 2
        return float(np.partition(values, middle)[middle])
    return weighted_quantile(values, 0.5, w)


def _shorten(items: list[Any]) -> str:
    """Return the first few of a list, in words."""
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return f"{items[:_NAMED]}{more}"
