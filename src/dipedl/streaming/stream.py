"""A summary of rows that come in batches: sums, and rows that are held out of them."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

from ..columns import Columns
from ..density.base import add_rows, log_density, merge_densities
from ..density.gaussian import ClassConditionalGaussians, GaussianDensity
from ..evidence_model import EvidenceModel
from ..gaussians.moments import Moments, TiedMoments
from ..held_out import HeldOut
from ..inputs import FittedClassifier, compute_features
from .row_sample import RowSample

#: Fewer held-out rows than this are too few to learn anything from.
_FEWEST = 2
#: How the source of these rows ends.
BY_CONTENT = "rows that were held out by their content"
_GAUSSIANS = (ClassConditionalGaussians, GaussianDensity)


@dataclass(frozen=True, eq=False)
class Stream:
    """A density that adds up, and rows that are held out of it; ``a + b`` has seen what both have.

    Attributes
    ----------
    density : density estimator
        Of the features of all rows that are not held out; of the inputs if `standardised`.
    features : transformer or None
        From inputs to features; it does not learn.
    held : RowSample
        Held-out rows: inputs "X" (m, d); or features "Z" (m, p) and probabilities "P" (m, k), where
        the classifier does not learn any more.
    n : float
        Rows in the density, or their weight.
    standardised : bool
        Whether features are the inputs, standardised by the moments of all rows of the density.
    """

    density: Any
    features: Any
    held: RowSample
    n: float
    standardised: bool

    def with_rows(self, X: np.ndarray, y: np.ndarray, classes: np.ndarray, w: np.ndarray) -> Self:
        """The same with rows X (n, d), none of them held out, labels and weights."""
        Z = compute_features(self.features, X) if len(X) else X
        return self._with_features(Z, y, classes, w)

    def merged(self, other: Stream, classes: np.ndarray) -> Self:
        """Return the sum of both; rows that are held out no more are in the density."""
        held, freed = self.held.merged(other.held)
        merged = replace(self, density=_sum(self, other), held=held, n=self.n + other.n)
        if "Z" in freed.rows:
            return merged._with_features(freed.rows["Z"], freed.labels, classes, freed.counts)
        return merged.with_rows(freed.rows["X"], freed.labels, classes, freed.counts)

    def same_rows(self, other: Stream) -> bool:
        """Return whether both have seen the same rows: as many, and the same are held out."""
        a, b = self.held, other.held
        alike = self.n == other.n and len(a) > 0 and np.array_equal(a.keys, b.keys)
        return alike and all(
            name in b.rows and np.array_equal(rows, b.rows[name]) for name, rows in a.rows.items()
        )

    def learned(
        self, blank: EvidenceModel, classifier: FittedClassifier, names: Any = None
    ) -> EvidenceModel:
        """A copy of `blank` with this density, and what is learned from the held-out rows.

        `names` (d,) are those of the inputs, if they have any.
        """
        if len(self.held) < _FEWEST or not self.n:
            raise ValueError(
                f"too few rows came so far: {len(self.held)} are held out, and {self.n:g} are in "
                "the density; give partial_fit more rows before the first prediction"
            )
        evidence = copy(blank)
        evidence.features_, evidence.density_ = self._in_use(names)
        Z, P = self._seen(evidence.features_, classifier)
        if not hasattr(evidence, "columns_"):
            columns = Columns.learn(self.held.rows["X"])
            if columns is not None and names is not None:
                columns = replace(columns, names=list(names))
            evidence.columns_ = columns
        counts = self.held.counts
        held = HeldOut(
            log_density(evidence.density_, Z),
            f"{len(self.held)} {BY_CONTENT}",
            None if (counts == 1).all() else counts,
            P,
            classifier.indices(self.held.labels),
            origin="given",
        )
        return evidence.learn(held, n=self.n)

    def _with_features(
        self, Z: np.ndarray, y: np.ndarray, classes: np.ndarray, w: np.ndarray
    ) -> Self:
        """The same with rows by their features Z (n, p)."""
        if not len(Z):
            return self
        density = add_rows(copy(self.density), Z, y, classes, None if (w == 1).all() else w)
        return replace(self, density=density, n=self.n + float(w.sum()))

    def _in_use(self, names: Any) -> tuple[Any, Any]:
        """Features and density of new inputs."""
        if not self.standardised:
            return self.features, self.density
        scaler = scaler_of(self.density)
        if names is not None:
            scaler.feature_names_in_ = names
        return scaler, _of_standardised(self.density, scaler)

    def _seen(self, features: Any, classifier: FittedClassifier) -> tuple[np.ndarray, np.ndarray]:
        """Features (m, p) and class probabilities (m, k) of the held-out rows."""
        if "Z" in self.held.rows:
            return self.held.rows["Z"], self.held.rows["P"]
        X = self.held.rows["X"]
        with warnings.catch_warnings():
            # A classifier that was given frames: columns are in the same order here.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return compute_features(features, X), classifier.proba(X)


def can_be_standardised(density: Any) -> bool:
    """Return whether an unfitted density of inputs gives that of standardised ones."""
    return isinstance(density, _GAUSSIANS) and density.shrinkage != "ledoit-wolf"


def scaler_of(density: Any) -> StandardScaler:
    """Standardises by the moments of all rows of a fitted Gaussian density."""
    moments = density.moments_
    if isinstance(moments, TiedMoments):
        moments = moments.whole
    whole: Moments = moments if isinstance(moments, Moments) else reduce(add, moments)
    scaler = StandardScaler()
    scaler.mean_, scaler.var_ = whole.mean, np.asarray(whole.variance)
    constant = scaler.var_ <= (10 * np.finfo(float).eps * np.abs(scaler.mean_)) ** 2
    scaler.scale_ = np.where(constant, 1.0, np.sqrt(scaler.var_))
    scaler.n_samples_seen_, scaler.n_features_in_ = whole.weight, len(scaler.mean_)
    return scaler


def same_content(a: Any, b: Any) -> bool:
    """Return whether two fitted parts hold the same numbers; a frozen one is what it holds."""
    a, b = (part.estimator if isinstance(part, FrozenEstimator) else part for part in (a, b))
    return a is b or joblib.hash(a) == joblib.hash(b)


def _of_standardised(density: Any, scaler: StandardScaler) -> Any:
    """The density of inputs as that of what the scaler makes of them."""
    held, parts = density.moments_, (scaler.mean_, scaler.scale_)
    many = isinstance(held, list)
    moved: Any = [m.standardise(*parts) for m in held] if many else held.standardise(*parts)
    if isinstance(density, GaussianDensity):
        return density.with_moments(moved)
    return density.with_moments(density.classes_, moved)


def _sum(a: Stream, b: Stream) -> Any:
    """The density of the rows of both; one of no rows adds nothing."""
    if not a.n or not b.n:
        return a.density if a.n else b.density
    return merge_densities(a.density, b.density)
