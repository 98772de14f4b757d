"""Answers on rows that were held out: of the density, of the classifier, and on departures."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import has_fit_parameter

from ..fitting.classifier_view import ClassifierView
from ..fitting.parts import feature_array, log_density
from .components import stacked_components
from .held_out import Calibration
from .pseudo_outliers import synthetic_departures

#: Held-out rows that suffice; more folds than they need are not fitted.
ENOUGH = 5000


@dataclass(frozen=True, eq=False)
class Asked:
    """A fitted density and a fitted classifier, with rows that neither has seen.

    Attributes
    ----------
    density : density estimator
        Fitted; one with ``settle`` has only its parts fitted.
    features : transformer or None
        From inputs to what the density sees.
    view : ClassifierView or None
        The classifier.
    X, y, w : array-like (m, d), ndarray (m,), ndarray (m,) or None
        Inputs, labels (class indices if there is a classifier) and weights.
    Z : ndarray, shape (m, p)
        Features of X.
    """

    density: Any
    features: Any
    view: ClassifierView | None
    X: Any
    y: np.ndarray | None
    w: np.ndarray | None
    Z: np.ndarray

    @property
    def staged(self) -> bool:
        """Whether the density learns from held-out rows how to use its components."""
        return is_staged(self.density)

    def proba(self) -> np.ndarray | None:
        """Class probabilities of the rows, if there is a classifier."""
        return None if self.view is None else self.view.proba(self.X)

    def departures(self, random_state: int) -> dict[str, dict[str, np.ndarray]]:
        """Components of synthetic departures from the rows, by kind.

        With a warning, without the kinds that the features or the classifier refuse: between two
        codes of a category there may be no third.
        """
        labels = np.zeros(self.X.shape[0]) if self.y is None else self.y
        rows = _numbers(self.X)
        made = synthetic_departures(rows, labels, sample_weight=self.w, random_state=random_state)
        asked = {kind: self._asked(kind, _like(self.X, rows)) for kind, rows in made.items()}
        return {
            kind: self.density.component_scores(*given)
            for kind, given in asked.items()
            if given is not None
        }

    def _asked(self, kind: str, X: Any) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Features and class probabilities of X; None if it is refused."""
        try:
            proba = None if self.view is None else self.view.proba(X)
            return feature_array(self.features, X), proba
        except (TypeError, ValueError) as error:
            warnings.warn(
                f"synthetic departures of kind {kind!r} are left out of the choice of a density: "
                f"features or classifier refuse them ({type(error).__name__}: {error})",
                UserWarning,
                stacklevel=2,
            )
            return None


def _numbers(X: Any) -> Any:
    """The numbers in a DataFrame or an array of objects; anything else as it is."""
    if hasattr(X, "iloc") and any(_is_category_or_text(dtype) for dtype in X.dtypes):
        return X
    values = X.to_numpy() if hasattr(X, "iloc") else X
    if getattr(getattr(values, "dtype", None), "kind", None) != "O":
        return values
    try:
        # Numbers that are spelt out stay text.
        numeric = np.asarray(values.tolist()).dtype.kind in "biuf"
    except ValueError:
        return values
    return values.astype(np.float64) if numeric else values


def _is_category_or_text(dtype: Any) -> bool:
    return not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") == "O"


def _like(X: Any, rows: np.ndarray) -> Any:
    """The rows in the form of X."""
    return type(X)(rows, columns=X.columns) if hasattr(X, "iloc") else rows


def scored(density: Any, Z: np.ndarray, proba: np.ndarray | None) -> np.ndarray:
    """Scores of features Z (n, p) by a fitted density that may want probabilities."""
    return log_density(density, Z, {} if proba is None else {"proba": proba})


def collected(asked: Sequence[Asked], density: Any, source: str, random_state: int) -> Calibration:
    """Held-out answers of all of `asked`; a staged `density` learns from them first."""
    probas = [a.proba() for a in asked]
    proba, labels = _stack(probas), _stack([a.y for a in asked])
    weights = _stack([a.w for a in asked])
    if not asked[0].staged:
        takes = has_proba(density)
        given = [P if takes else None for P in probas]
        answers = [scored(a.density, a.Z, P) for a, P in zip(asked, given, strict=True)]
        return Calibration(np.concatenate(answers), source, weights, proba, labels)
    density.keep_parts([a.density for a in asked])
    found = [a.density.component_scores(a.Z, P) for a, P in zip(asked, probas, strict=True)]
    density.drop_unsteady(found)
    components = stacked_components(found, density.parts_)
    density.settle(
        components,
        np.zeros(len(next(iter(components.values()))), int) if labels is None else labels,
        # Errors of the classifier are known only where labels are.
        proba=None if labels is None else proba,
        sample_weight=weights,
        departures=asked[0].departures(random_state),
    )
    return Calibration(
        density.combine(components),
        source,
        weights,
        proba,
        labels,
        np.column_stack(list(components.values())),
        tuple(components),
    )


def is_staged(density: Any) -> bool:
    """Whether a density has its parts fitted first and settles how to use them; frozen, it has."""
    return hasattr(density, "settle") and not isinstance(density, FrozenEstimator)


def has_proba(density: Any) -> bool:
    """Whether a density takes the classifier's probabilities; frozen, whether it was given them."""
    inner = density.estimator if isinstance(density, FrozenEstimator) else density
    takes = hasattr(inner, "fit") and has_fit_parameter(inner, "proba")
    return takes and bool(getattr(inner, "with_classifier_", True))


def enough(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first folds, as many as hold out `ENOUGH` rows."""
    taken, rows = [], 0
    for train, held in pairs:
        taken.append((train, held))
        rows += len(held)
        if rows >= ENOUGH:
            break
    return taken


def _stack(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    return None if parts[0] is None else np.concatenate([p for p in parts if p is not None])
