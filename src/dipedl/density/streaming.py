"""Rows that come in batches, and evidence that adds up: `partial_fit` and ``a + b``.

A tenth of the rows is held out by a hash of what they hold, or a tenth of their groups by their
names (`RowSample`); all others are in a density that adds up (`Stream`).
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from ..calibration.crossfit import row_hash
from ..columns import rows_in_form_of
from ..gaussians.moments import Moments, TiedMoments
from ..inputs import (
    FLOATS,
    FittedClassifier,
    add_remedies,
    check_column_names,
    check_weights,
    class_totals,
    clone_classifier,
    compute_features,
    from_arrow,
    group_names,
    known_classes,
    prior_of_rows,
    require_proba,
    validate_fit_features,
    validate_labels,
)
from ..maths.seeds import seed
from ..writing.finding import warn_caller
from .base import add_rows, as_density, merge_densities
from .gaussian import ClassConditionalGaussians, GaussianDensity, GDADensity

#: Share of the rows that is held out, and how many of these at most.
HELD_SHARE, HELD_MOST = 0.1, 5000
#: Rows are held out by keys of another seed than that of any fold.
KEY_SEED = 0x5EED
#: Fewer held-out rows than this are too few to learn anything from.
_FEWEST = 2
#: How the source of these rows ends.
BY_CONTENT = "rows that were held out by their content"
BY_NAME = "groups that were held out by their names"
#: Part of a sample that is held out by groups: a number of each.
GROUPS = "groups"
#: Bits of a key that a float64 holds.
_FLOAT_BITS = 53
_GAUSSIANS = (ClassConditionalGaussians, GaussianDensity)
_SPACE = 2.0**64


def row_keys(X: Any, labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return a 64-bit key of each row and its label, uniform, equal for copies alone, (n,).

    Parameters
    ----------
    X, labels : array-like, shape (n, d), and ndarray, shape (n,)
        Rows, or the one column that names them.
    seed : int, default=0
        Keys of different seeds are independent.
    """
    names, which = np.unique(labels.astype(str), return_inverse=True)
    of_labels = row_hash(names.astype(object)[:, None], seed + 1)[which]
    mixed = row_hash(X, seed) ^ of_labels * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))


def group_keys(names: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return a 64-bit key of the group of each row, by its name (n,)."""
    texts, which = np.unique(names.astype(str), return_inverse=True)
    return row_keys(texts.astype(object)[:, None], np.zeros(len(texts)), seed)[which]


def group_numbers(keys: np.ndarray) -> np.ndarray:
    """Return keys (n,) as numbers that a sample keeps, shape (n, 1)."""
    return (keys >> np.uint64(64 - _FLOAT_BITS)).astype(np.float64)[:, None]


def in_share(keys: np.ndarray, share: float) -> np.ndarray:
    """Return which keys (n,) belong to the lowest share of all, shape (n,)."""
    return np.asarray(keys.astype(np.float64) < share * _SPACE)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Sample of the rows with the lowest keys; ``a + b`` is that of the rows of both.

    Copies have equal keys: one is kept, with their number. Which rows are kept depends on what
    came, and neither on its order nor on its parts.

    Attributes
    ----------
    keys, labels, counts : ndarray, shape (m,)
        By ascending key; `counts` is how many rows, or what weight, a row stands for.
    rows : dict
        What is kept of the rows, by name; each with m entries.
    most, each, share : int, int and float
        Kept are so many rows of the lowest keys, if they are in this share of all keys; and so many
        of each class.
    """

    keys: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    rows: dict[str, Any]
    most: int
    each: int = 0
    share: float = 1.0

    @classmethod
    def of(
        cls,
        keys: np.ndarray,
        labels: np.ndarray,
        rows: dict[str, Any],
        most: int,
        *,
        each: int = 0,
        share: float = 1.0,
    ) -> Self:
        """Return the sample of n rows."""
        some = cls(keys, labels, np.ones(len(keys)), rows, most, each, share)
        return some.sample()

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: Self) -> Self:
        """Return the sample of the rows of both."""
        return self._with(other).sample()

    def merge(self, other: Self) -> tuple[Self, Self]:
        """Return the sample of the rows of both, and the rows that are in it no more."""
        both = self._with(other)
        return both.sample(), both.sample(others=True)

    def _with(self, other: Self) -> Self:
        mine, theirs = ((s.most, s.each, s.share, [*s.rows]) for s in (self, other))
        if mine != theirs:
            raise ValueError(
                f"cannot merge samples that were drawn in two ways, {mine} and {theirs} (most, "
                "each, share, parts): draw both in the same way"
            )
        return replace(
            self,
            keys=np.concatenate([self.keys, other.keys]),
            labels=np.concatenate([self.labels, other.labels]),
            counts=np.concatenate([self.counts, other.counts]),
            rows={
                name: self.concatenate([self.rows[name], other.rows[name]]) for name in self.rows
            },
        )

    def sample(self, *, others: bool = False) -> Self:
        """Return the rows of the sample by ascending key, copies counted; or the other rows."""
        keys, first, which = np.unique(self.keys, return_index=True, return_inverse=True)
        counts = np.bincount(which, self.counts, minlength=len(keys))
        chosen = (np.arange(len(keys)) < self.most) & in_share(keys, self.share)
        labels = self.labels[first]
        for label in np.unique(labels) if self.each else ():
            chosen[np.flatnonzero(labels == label)[: self.each]] = True
        at = np.flatnonzero(chosen != others)
        return replace(self.take(first[at]), counts=counts[at])

    def take(self, at: np.ndarray) -> Self:
        """Return some of the rows, by their places."""
        rows = {name: _safe_indexing(part, at) for name, part in self.rows.items()}
        return replace(
            self, keys=self.keys[at], labels=self.labels[at], counts=self.counts[at], rows=rows
        )

    @staticmethod
    def concatenate(parts: list[Any]) -> Any:
        """Return parts of the rows, one below the other."""
        return np.concatenate(parts)


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
        the classifier does not learn any more. If a share of the groups is held out and not one of
        the rows, also their numbers, "groups" (m, 1).
    n : float
        Rows in the density, or their weight.
    totals : ndarray, shape (k,)
        Rows of each class, or their weight: those in the density and those that are held out.
    standardised : bool
        Whether features are the inputs, standardised by the moments of all rows of the density.
    """

    density: Any
    features: Any
    held: RowSample
    n: float
    totals: np.ndarray
    standardised: bool

    @property
    def source(self) -> str:
        """Origin of its held-out rows, in words."""
        if self.by_group:
            return f"{len(self.held)} rows of {self.n_groups} {BY_NAME}"
        return f"{len(self.held)} {BY_CONTENT}"

    @property
    def by_group(self) -> bool:
        """True if whole groups are held out."""
        return GROUPS in self.held.rows

    @property
    def n_groups(self) -> int:
        """Number of groups that are held out."""
        return len(np.unique(self.held.rows[GROUPS]))

    def with_rows(self, X: np.ndarray, y: np.ndarray, classes: np.ndarray, w: np.ndarray) -> Self:
        """Return the stream with more rows X (n, d), none of them held out, labels and weights."""
        Z = compute_features(self.features, X) if len(X) else X
        return self._with_features(Z, y, classes, w)

    def merge(self, other: Stream, classes: np.ndarray) -> Self:
        """Return the sum of both; rows that are held out no more are in the density.

        But not those of groups that are held out.
        """
        held, freed = self.held.merge(other.held)
        # A density of no rows adds nothing.
        densities = [stream.density for stream in (self, other) if stream.n] or [other.density]
        merged = replace(
            self,
            density=reduce(merge_densities, densities),
            held=held,
            n=self.n + other.n,
            totals=self.totals + other.totals,
        )
        if self.by_group:
            return merged
        part, add = ("Z", merged._with_features) if "Z" in freed.rows else ("X", merged.with_rows)
        return add(freed.rows[part], freed.labels, classes, freed.counts)

    def same_rows(self, other: Stream) -> bool:
        """Return whether both have seen the same rows: as many, and the same are held out."""
        a, b = self.held, other.held
        alike = self.n == other.n and len(a) > 0 and np.array_equal(a.keys, b.keys)
        return alike and all(
            name in b.rows and np.array_equal(rows, b.rows[name]) for name, rows in a.rows.items()
        )

    def fitted_parts(self, names: Any = None) -> tuple[Any, Any]:
        """Return the fitted features, with `names` (d,) of the inputs, and the density of these."""
        if len(self.held) < _FEWEST or not self.n:
            raise ValueError(
                f"too few rows came so far: {len(self.held)} are held out, and {self.n:g} are in "
                "the density; give partial_fit more rows before the first prediction"
            )
        if self.by_group and self.n_groups < _FEWEST:
            raise ValueError(
                f"groups must be so many that a tenth of them is {_FEWEST} or more, and "
                f"{self.n_groups} came so far that is held out; give rows of more groups, or leave "
                "groups out and calibrate(X, y, groups=groups) by rows of other groups"
            )
        if not self.standardised:
            return self.features, self.density
        scaler = scaler_of(self.density)
        if names is not None:
            scaler.feature_names_in_ = names
        return scaler, _standardise_density(self.density, scaler)

    def _with_features(
        self, Z: np.ndarray, y: np.ndarray, classes: np.ndarray, w: np.ndarray
    ) -> Self:
        """Return the stream with more rows by their features Z (n, p)."""
        if not len(Z):
            return self
        density = add_rows(copy(self.density), Z, y, classes, None if (w == 1).all() else w)
        return replace(self, density=density, n=self.n + float(w.sum()))


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


def _standardise_density(density: Any, scaler: StandardScaler) -> Any:
    """Return the density of inputs as that of what the scaler makes of them."""
    moments, scale = density.moments_, (scaler.mean_, scaler.scale_)
    many = isinstance(moments, list)
    moved: Any = [m.standardise(*scale) for m in moments] if many else moments.standardise(*scale)
    if isinstance(density, GaussianDensity):
        return density.with_moments(moved)
    return density.with_moments(density.classes_, moved)


def merge(model: Any, other: Any) -> Any:
    """Return the classifier that has seen the rows of both."""
    _check_merge(model, other)
    merged = copy(model)
    merged.stream_ = model.stream_.merge(other.stream_, model.classes_)
    blank = copy(model.evidence_)
    vars(merged).pop("evidence_", None)
    if "Z" in merged.stream_.held.rows:
        blank.prior = _prior_of_all(merged)
        merged.evidence_ = blank.learn_stream(merged.stream_, model.fitted_classifier())
    return merged


def learn_evidence(model: Any) -> Any:
    """Return what the held-out rows of a stream teach about its density."""
    blank = model.evidence_model(_prior_of_all(model))
    names = getattr(model, "feature_names_in_", None)
    classifier = FittedClassifier(model.estimator_, model.classes_)
    return blank.learn_stream(model.stream_, classifier, names)


def _prior_of_all(model: Any) -> np.ndarray:
    """Prior (k,) by all rows that a model has seen."""
    return prior_of_rows(model.prior, model.classes_, model.stream_.totals)


def fit_batch(
    model: Any, X: Any, y: Any, classes: Any, sample_weight: Any, groups: Any = None
) -> Any:
    """Add a batch to a `DIPClassifier`, replacing attributes and changing none in place."""
    if not (model.random_state is None or isinstance(model.random_state, int | np.integer)):
        raise TypeError(
            "random_state must be None or an int for partial_fit, which holds rows out by the same "
            f"seed in every batch, got {model.random_state!r}"
        )
    model.check_parameters()
    first = not hasattr(model, "stream_")
    if not first and "Z" in model.stream_.held.rows:
        raise ValueError(
            "partial_fit does not go on with what dipedl.apps.large.fit began: fit the new "
            "rows by fit(like(model), ...), and add both models"
        )
    if first and hasattr(model, "estimator_"):
        warn_caller(
            "partial_fit goes on with what partial_fit began: what fit has learned is "
            "dropped, and this is the first batch"
        )
    X = from_arrow(X)
    check_column_names(X)
    rows = validate_fit_features(model, X, reset=first, dtype=FLOATS)
    labels = validate_labels(y)
    check_consistent_length(rows, labels)
    weights = check_weights(sample_weight, rows)
    weights = np.ones(len(rows)) if weights is None else weights
    names = None if groups is None else group_names(groups, len(rows))
    if first:
        known = labels if classes is None else np.unique(classes)
        _begin(model, known, rows.dtype, by_group=names is not None)
    elif model.stream_.by_group != (names is not None):
        had = "had" if names is None else "had none"
        raise ValueError(
            f"groups must be given with every batch or with none, and those before {had}"
        )
    unseen = np.setdiff1d(labels, model.classes_)
    if len(unseen) or (classes is not None and len(np.setxor1d(classes, model.classes_))):
        unknown = unseen if len(unseen) else np.unique(classes)
        raise ValueError(
            f"y or classes hold {unknown.tolist()} where the classes are "
            f"{model.classes_.tolist()}: name every label in classes= at the first call of "
            "partial_fit"
        )
    held = model.stream_.held
    number, counts, parts = seed(model.random_state) + KEY_SEED, weights > 0, {"X": rows}
    keys = row_keys(rows, labels, number)
    candidates = in_share(keys, held.share)
    if names is not None:
        # All rows of a tenth of the groups; equal rows of two groups are two.
        of_groups = group_keys(names, number)
        keys, candidates = keys ^ of_groups, in_share(of_groups, HELD_SHARE)
        parts[GROUPS] = group_numbers(of_groups)
    batch = RowSample(keys, labels, weights, parts, held.most, share=held.share)
    sample, freed = held.merge(batch.take(np.flatnonzero(candidates & counts)))
    fitted = batch.take(np.flatnonzero(~candidates & counts))
    totals = model.stream_.totals + class_totals(labels, weights, model.classes_)
    stream = replace(model.stream_, held=sample, totals=totals)
    if not isinstance(model.estimator_, FrozenEstimator):
        model.estimator_ = deepcopy(model.estimator_)
    for part in (freed, fitted) if names is None else (fitted,):
        stream = stream.with_rows(part.rows["X"], part.labels, model.classes_, part.counts)
        _teach(model, part, X)
    # What was learned from held-out rows is forgotten: these are others now.
    learned = vars(model).pop("evidence_", None)
    if learned is not None and not learned.held_out_.source.endswith((BY_CONTENT, BY_NAME)):
        warn_caller(
            "what calibrate has learned is dropped: partial_fit learns from the rows that it "
            "holds out itself; call calibrate after the last batch"
        )
    model.stream_ = stream
    return model


def _begin(model: Any, classes: np.ndarray, dtype: np.dtype[Any], by_group: bool) -> None:
    """Set out with no rows, to hold some of a dtype."""
    template = clone_classifier(model.estimator, model.random_state)
    model.classes_ = known_classes(template, classes)
    if len(model.classes_) < 2:
        raise ValueError(
            f"classes must name at least 2 labels, got {model.classes_.tolist()}: name every "
            "label that will come in classes= at the first call of partial_fit"
        )
    density = as_density(
        GDADensity() if model.density is None else model.density, model.random_state
    )
    frozen = isinstance(model.features, FrozenEstimator)
    passed = isinstance(model.features, str) and model.features == "passthrough"
    if not (model.features is None or frozen or passed):
        raise ValueError(
            f"features must not learn from batches, got {model.features!r}: give None, "
            "'passthrough', or FrozenEstimator(...) of a fitted transformer"
        )
    # Gaussians of inputs give those of standardised ones; not so their shrinkage by Ledoit-Wolf.
    moved = isinstance(density, _GAUSSIANS) and density.shrinkage != "ledoit-wolf"
    if model.features is None and not moved:
        raise ValueError(
            f"features=None standardises by moments, which {density!r} does not hold: give "
            "features='passthrough' or a frozen transformer, or density=GDADensity()"
        )
    model.estimator_ = template
    no_rows = {"X": np.empty((0, model.n_features_in_), dtype)}
    if by_group:
        no_rows[GROUPS] = np.empty((0, 1))
    share = 1.0 if by_group else HELD_SHARE
    held = RowSample.of(np.empty(0, np.uint64), model.classes_[:0], no_rows, HELD_MOST, share=share)
    features = model.features if frozen else None
    totals = np.zeros(len(model.classes_))
    model.stream_ = Stream(density, features, held, 0.0, totals, model.features is None)


def _teach(model: Any, rows: RowSample, X: Any) -> None:
    """Let the classifier see rows, in the form of X."""
    if isinstance(model.estimator_, FrozenEstimator) or not len(rows):
        return
    weights = {} if (rows.counts == 1).all() else {"sample_weight": rows.counts}
    form = rows.rows["X"]
    if isinstance(X, np.ndarray) or hasattr(X, "columns"):
        form = rows_in_form_of(X, form)
    with add_remedies(model.estimator, form):
        model.estimator_.partial_fit(form, rows.labels, classes=model.classes_, **weights)
    require_proba(model.estimator_)


def _check_merge(model: Any, other: Any) -> None:
    """Raise ValueError with the reason if the two cannot be merged."""
    why = ""
    if not all(hasattr(part, "stream_") for part in (model, other)):
        why = (
            "one of them keeps no held-out rows, or has a density that does not add up: fit "
            "both by partial_fit or dipedl.apps.large.fit, with density=GDADensity()"
        )
    elif _inputs(model) != _inputs(other):
        why = f"their inputs differ: {_inputs(model)} and {_inputs(other)}"
    elif set(model.classes_.tolist()) != set(other.classes_.tolist()):
        why = f"their classes differ: {model.classes_.tolist()} and {other.classes_.tolist()}"
    elif not same_content(model.estimator_, other.estimator_):
        why = (
            "their classifiers were fitted apart: fit the second with FrozenEstimator of the "
            "first one's estimator_"
        )
    elif model.stream_.standardised != other.stream_.standardised or not same_content(
        model.stream_.features, other.stream_.features
    ):
        why = "their features differ: fit the second with FrozenEstimator of the first one's"
    elif model.stream_.same_rows(other.stream_):
        why = "both have seen the same rows, which would count twice: give each model once"
    if why:
        raise ValueError(f"cannot merge the two models: {why}")


def _inputs(model: Any) -> list[str] | int:
    """Names of the inputs, or their number."""
    names = getattr(model, "feature_names_in_", None)
    return int(model.n_features_in_) if names is None else list(names)
