"""`partial_fit` and ``a + b`` of `DIPClassifier`."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from .._fold import like
from .._validation import (
    FLOATS,
    check_weights,
    known_classes,
    label_array,
    learned_rows,
    prior_vector,
)
from ..density._fitting import as_density
from ..density.gda import GDADensity
from ..evidence_model import EvidenceModel
from ..fitting.classifiers import FittedClassifier, require_proba, unfitted_classifier
from ..fitting.progress import warn_caller
from ..fitting.refusals import explain_dtype_error
from ..fitting.seeds import seed
from .row_sample import RowSample, in_share, row_keys
from .stream import BY_CONTENT, Stream, can_be_standardised, same_content

#: Share of the rows that is held out, and how many of these at most.
HELD_SHARE, HELD_MOST = 0.1, 5000
#: Rows are held out by keys of another seed than that of any fold.
KEY_SEED = 0x5EED


def _can_stream(model: Any) -> bool:
    """True, or an AttributeError that says which part has no partial_fit."""
    frozen = isinstance(model.estimator, FrozenEstimator)
    density = GDADensity() if model.density is None else model.density
    for name, part, remedy in (
        ("estimator", model.estimator, "SGDClassifier(loss='log_loss') or GaussianNB()"),
        ("density", density, "GDADensity()"),
    ):
        if not hasattr(part, "partial_fit") and not (name == "estimator" and frozen):
            raise AttributeError(
                f"partial_fit of DIPClassifier needs it of the {name} too, and {part!r} has none; "
                f"give {name}={remedy}, or call fit with all rows"
            )
    return True


class Streaming:
    """Fits in batches, and merges of what was fitted apart."""

    if TYPE_CHECKING:
        estimator: Any
        density: Any
        features: Any
        prior: Any
        random_state: Any
        estimator_: Any
        classes_: np.ndarray
        stream_: Stream

        evidence_model: Any
        _classifier: Any

    @available_if(_can_stream)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to what was fitted before.

        A tenth of the rows, 5,000 at most, is held out of everything. Which rows these are, a hash
        of their content decides, so chunks of any sizes and in any order give the same evidence;
        what a classifier makes of their order is its own. What is learned from held-out rows is
        learned at the first prediction after a batch.

        Parameters
        ----------
        X, y : array-like or DataFrame of numbers, shape (n, d), and array-like, shape (n,)
            In-distribution inputs without gaps, and their labels.
        classes : array-like, shape (k,), optional
            Every label that will ever come. Default: the labels of the first batch.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often.

        Raises
        ------
        AttributeError
            If the classifier or the density has no ``partial_fit``; a frozen classifier stays.
        ValueError
            If `features` would have to learn, or if a label is not among the classes.

        Notes
        -----
        ``density=None`` stands for `GDADensity`, a Gaussian per class. ``features=None``
        standardises by the moments of all rows so far, those before included: it needs `GDADensity`
        or another Gaussian. Other features are "passthrough", or frozen. After `fit`
        all begins anew.
        """
        model = copy(self)
        model._learn_batch(X, y, classes, sample_weight)
        # At once: another thread sees the model of before, or this one.
        self.__dict__ = vars(model)
        return self

    def __add__(self, other: Any) -> Self:
        """The model that has seen the rows of both; settings are those of the first.

        Both must have been fitted by `partial_fit` or by `dipedl.engines.fit`, on the same features
        and with the same classifier: frozen, or fitted on the same rows.
        """
        if not isinstance(other, Streaming):
            return NotImplemented
        self._check_merge(other)
        merged = copy(self)
        merged.stream_ = self.stream_.merged(other.stream_, self.classes_)
        blank = copy(self.evidence_)
        vars(merged).pop("evidence_", None)
        if "Z" in merged.stream_.held.rows:
            merged.evidence_ = merged.stream_.learned(blank, self._classifier())
        return merged

    @cached_property
    def evidence_(self) -> EvidenceModel:
        """The fitted evidence side; after `partial_fit` it is learned when it is asked for."""
        stream: Stream | None = vars(self).get("stream_")
        if stream is None:
            raise AttributeError(f"{type(self).__name__} has no evidence_ before it is fitted")
        blank = self.evidence_model(prior_vector(self.prior, len(self.classes_)))
        names = getattr(self, "feature_names_in_", None)
        return stream.learned(blank, FittedClassifier(self.estimator_, self.classes_), names)

    def _learn_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Take in one batch, replacing attributes and changing none in place."""
        if getattr(self, "spread", None) is not None:
            raise ValueError(
                "spread is learned by fits to all rows, which partial_fit does not keep: set "
                "spread=None, or use fit"
            )
        first = not hasattr(self, "stream_")
        if not first and "Z" in self.stream_.held.rows:
            raise ValueError(
                "partial_fit does not go on with what dipedl.engines.fit began: fit the new "
                "rows by fit(like(model), ...), and add both models"
            )
        vars(self).pop("spread_", None)
        if first and hasattr(self, "estimator_"):
            warn_caller(
                "partial_fit goes on with what partial_fit began: what fit has learned is "
                "dropped, and this is the first batch"
            )
        rows = learned_rows(self, X, reset=first, dtype=FLOATS)
        labels = label_array(y)
        check_consistent_length(rows, labels)
        given = check_weights(sample_weight, rows)
        if first:
            self._begin(labels if classes is None else np.unique(classes), rows.dtype)
        self._check_labels(labels, classes)
        weights = np.ones(len(rows)) if given is None else given
        stream, freed, fitted = self._held_apart(rows, labels, weights)
        for part in (freed, fitted):
            stream = stream.with_rows(part.rows["X"], part.labels, self.classes_, part.counts)
        if not isinstance(self.estimator_, FrozenEstimator):
            self.estimator_ = deepcopy(self.estimator_)
        for part in (freed, fitted):
            self._teach(part, X)
        self._drop_learned()
        self.stream_ = stream

    def _begin(self, classes: np.ndarray, dtype: np.dtype[Any]) -> None:
        """Set out with no rows, to hold some of a dtype."""
        template = unfitted_classifier(self.estimator, self.random_state)
        self.classes_ = known_classes(template, classes)
        if len(self.classes_) < 2:
            raise ValueError(
                f"classes must name at least 2 labels, got {self.classes_.tolist()}: name every "
                "label that will come in classes= at the first call of partial_fit"
            )
        given = GDADensity() if self.density is None else self.density
        density = as_density(given, self.random_state)
        frozen = isinstance(self.features, FrozenEstimator)
        if not (self.features is None or frozen or _is_passthrough(self.features)):
            raise ValueError(
                f"features must not learn from batches, got {self.features!r}: give None, "
                "'passthrough', or FrozenEstimator(...) of a fitted transformer"
            )
        if self.features is None and not can_be_standardised(density):
            raise ValueError(
                f"features=None standardises by moments, which {density!r} does not hold: give "
                "features='passthrough' or a frozen transformer, or density=GDADensity()"
            )
        self.estimator_ = template
        no_rows = np.empty((0, self.n_features_in_), dtype)  # type: ignore[attr-defined]
        held = RowSample.of(
            np.empty(0, np.uint64), self.classes_[:0], {"X": no_rows}, HELD_MOST, share=HELD_SHARE
        )
        features = self.features if frozen else None
        self.stream_ = Stream(density, features, held, 0.0, self.features is None)

    def _drop_learned(self) -> None:
        """Forget what was learned from held-out rows, which are others now."""
        learned = vars(self).pop("evidence_", None)
        if learned is not None and not learned.held_out_.source.endswith(BY_CONTENT):
            warn_caller(
                "what calibrate has learned is dropped: partial_fit learns from the rows that it "
                "holds out itself; call calibrate after the last batch"
            )

    def _check_labels(self, labels: np.ndarray, classes: Any) -> None:
        unseen = np.setdiff1d(labels, self.classes_)
        if len(unseen) or (classes is not None and len(np.setxor1d(classes, self.classes_))):
            came = unseen if len(unseen) else np.unique(classes)
            raise ValueError(
                f"y or classes hold {came.tolist()} where the classes are "
                f"{self.classes_.tolist()}: name every label in classes= at the first call of "
                "partial_fit"
            )

    def _held_apart(
        self, X: np.ndarray, y: np.ndarray, w: np.ndarray
    ) -> tuple[Stream, RowSample, RowSample]:
        """The stream with new held-out rows; rows that are held out no more; and all others."""
        held, keys = self.stream_.held, row_keys(X, y, seed(self.random_state) + KEY_SEED)
        rows = RowSample(keys, y, w, {"X": X}, held.most, share=held.share)
        candidate, counts = in_share(keys, held.share), w > 0
        kept, freed = held.merged(rows.taken(np.flatnonzero(candidate & counts)))
        rest = rows.taken(np.flatnonzero(~candidate & counts))
        return replace(self.stream_, held=kept), freed, rest

    def _teach(self, rows: RowSample, X: Any) -> None:
        """Let the classifier see rows, in the form of X."""
        if isinstance(self.estimator_, FrozenEstimator) or not len(rows):
            return
        weights = {} if (rows.counts == 1).all() else {"sample_weight": rows.counts}
        form = rows.rows["X"]
        if isinstance(X, np.ndarray) or hasattr(X, "columns"):
            form = like(X, form)
        with explain_dtype_error(form):
            self.estimator_.partial_fit(form, rows.labels, classes=self.classes_, **weights)
        require_proba(self.estimator_)

    def _check_merge(self, other: Streaming) -> None:
        """Raise ValueError with the reason if the two cannot be merged."""
        why = ""
        if not all(hasattr(model, "stream_") for model in (self, other)):
            why = (
                "one of them keeps no held-out rows, or has a density that does not add up: fit "
                "both by partial_fit or dipedl.engines.fit, with density=GDADensity()"
            )
        elif any(getattr(model, "spread", None) is not None for model in (self, other)):
            why = "spread does not add up: fit both with spread=None"
        elif self._inputs() != other._inputs():
            why = f"their inputs differ: {self._inputs()} and {other._inputs()}"
        elif set(self.classes_.tolist()) != set(other.classes_.tolist()):
            why = f"their classes differ: {self.classes_.tolist()} and {other.classes_.tolist()}"
        elif not same_content(self.estimator_, other.estimator_):
            why = (
                "their classifiers were fitted apart: fit the second with FrozenEstimator of the "
                "first one's estimator_, by `dipedl fit --like` on the command line"
            )
        elif self.stream_.standardised != other.stream_.standardised or not same_content(
            self.stream_.features, other.stream_.features
        ):
            why = "their features differ: fit the second with FrozenEstimator of the first one's"
        elif self.stream_.same_rows(other.stream_):
            why = "both have seen the same rows, which would count twice: give each model once"
        if why:
            raise ValueError(f"cannot merge the two models: {why}")

    def _inputs(self) -> list[str] | int:
        """Names of the inputs, or their number."""
        names = getattr(self, "feature_names_in_", None)
        return int(self.n_features_in_) if names is None else list(names)  # type: ignore[attr-defined]


def _is_passthrough(features: Any) -> bool:
    return isinstance(features, str) and features == "passthrough"
