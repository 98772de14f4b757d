"""`partial_fit` and ``a + b`` of `DIPClassifier`."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_consistent_length

from ..columns import rows_in_form_of
from ..density.base import as_density
from ..density.gaussian import GDADensity
from ..evidence_model import EvidenceModel
from ..inputs import (
    FLOATS,
    FittedClassifier,
    check_weights,
    clone_classifier,
    explain_dtype,
    known_classes,
    prior_vector,
    require_proba,
    validate_fit_features,
    validate_labels,
)
from ..maths.seeds import seed
from ..writing.finding import warn_caller
from .row_sample import RowSample, in_share, row_keys
from .stream import BY_CONTENT, Stream, can_be_standardised, same_content

#: Share of the rows that is held out, and how many of these at most.
HELD_SHARE, HELD_MOST = 0.1, 5000
#: Rows are held out by keys of another seed than that of any fold.
KEY_SEED = 0x5EED


def merge(model: Any, other: Any) -> Any:
    """Return the classifier that has seen the rows of both."""
    _check_merge(model, other)
    merged = copy(model)
    merged.stream_ = model.stream_.merged(other.stream_, model.classes_)
    blank = copy(model.evidence_)
    vars(merged).pop("evidence_", None)
    if "Z" in merged.stream_.held.rows:
        merged.evidence_ = merged.stream_.learned(blank, model.fitted_classifier())
    return merged


def learn_evidence(model: Any) -> EvidenceModel:
    """Return what the held-out rows of a stream teach about its density."""
    blank = model.evidence_model(prior_vector(model.prior, len(model.classes_)))
    names = getattr(model, "feature_names_in_", None)
    classifier = FittedClassifier(model.estimator_, model.classes_)
    evidence: EvidenceModel = model.stream_.learned(blank, classifier, names)
    return evidence


def fit_batch(model: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Any:
    """Add a batch to a `DIPClassifier`, replacing attributes and changing none in place."""
    if getattr(model, "spread", None) is not None:
        raise ValueError(
            "spread is learned by fits to all rows, which partial_fit does not keep: set "
            "spread=None, or use fit"
        )
    first = not hasattr(model, "stream_")
    if not first and "Z" in model.stream_.held.rows:
        raise ValueError(
            "partial_fit does not go on with what dipedl.apps.large.fit began: fit the new "
            "rows by fit(like(model), ...), and add both models"
        )
    vars(model).pop("spread_", None)
    if first and hasattr(model, "estimator_"):
        warn_caller(
            "partial_fit goes on with what partial_fit began: what fit has learned is "
            "dropped, and this is the first batch"
        )
    rows = validate_fit_features(model, X, reset=first, dtype=FLOATS)
    labels = validate_labels(y)
    check_consistent_length(rows, labels)
    given = check_weights(sample_weight, rows)
    if first:
        _begin(model, labels if classes is None else np.unique(classes), rows.dtype)
    _check_labels(model, labels, classes)
    weights = np.ones(len(rows)) if given is None else given
    stream, freed, fitted = _held_apart(model, rows, labels, weights)
    for part in (freed, fitted):
        stream = stream.with_rows(part.rows["X"], part.labels, model.classes_, part.counts)
    if not isinstance(model.estimator_, FrozenEstimator):
        model.estimator_ = deepcopy(model.estimator_)
    for part in (freed, fitted):
        _teach(model, part, X)
    _drop_learned(model)
    model.stream_ = stream
    return model


def _begin(model: Any, classes: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Set out with no rows, to hold some of a dtype."""
    template = clone_classifier(model.estimator, model.random_state)
    model.classes_ = known_classes(template, classes)
    if len(model.classes_) < 2:
        raise ValueError(
            f"classes must name at least 2 labels, got {model.classes_.tolist()}: name every "
            "label that will come in classes= at the first call of partial_fit"
        )
    given = GDADensity() if model.density is None else model.density
    density = as_density(given, model.random_state)
    frozen = isinstance(model.features, FrozenEstimator)
    if not (
        model.features is None
        or frozen
        or (isinstance(model.features, str) and model.features == "passthrough")
    ):
        raise ValueError(
            f"features must not learn from batches, got {model.features!r}: give None, "
            "'passthrough', or FrozenEstimator(...) of a fitted transformer"
        )
    if model.features is None and not can_be_standardised(density):
        raise ValueError(
            f"features=None standardises by moments, which {density!r} does not hold: give "
            "features='passthrough' or a frozen transformer, or density=GDADensity()"
        )
    model.estimator_ = template
    no_rows = np.empty((0, model.n_features_in_), dtype)
    held = RowSample.of(
        np.empty(0, np.uint64), model.classes_[:0], {"X": no_rows}, HELD_MOST, share=HELD_SHARE
    )
    features = model.features if frozen else None
    model.stream_ = Stream(density, features, held, 0.0, model.features is None)


def _drop_learned(model: Any) -> None:
    """Forget what was learned from held-out rows, which are others now."""
    learned = vars(model).pop("evidence_", None)
    if learned is not None and not learned.held_out_.source.endswith(BY_CONTENT):
        warn_caller(
            "what calibrate has learned is dropped: partial_fit learns from the rows that it "
            "holds out itself; call calibrate after the last batch"
        )


def _check_labels(model: Any, labels: np.ndarray, classes: Any) -> None:
    unseen = np.setdiff1d(labels, model.classes_)
    if len(unseen) or (classes is not None and len(np.setxor1d(classes, model.classes_))):
        came = unseen if len(unseen) else np.unique(classes)
        raise ValueError(
            f"y or classes hold {came.tolist()} where the classes are "
            f"{model.classes_.tolist()}: name every label in classes= at the first call of "
            "partial_fit"
        )


def _held_apart(
    model: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray
) -> tuple[Stream, RowSample, RowSample]:
    """The stream with new held-out rows; rows that are held out no more; and all others."""
    held, keys = model.stream_.held, row_keys(X, y, seed(model.random_state) + KEY_SEED)
    rows = RowSample(keys, y, w, {"X": X}, held.most, share=held.share)
    candidate, counts = in_share(keys, held.share), w > 0
    kept, freed = held.merged(rows.taken(np.flatnonzero(candidate & counts)))
    rest = rows.taken(np.flatnonzero(~candidate & counts))
    return replace(model.stream_, held=kept), freed, rest


def _teach(model: Any, rows: RowSample, X: Any) -> None:
    """Let the classifier see rows, in the form of X."""
    if isinstance(model.estimator_, FrozenEstimator) or not len(rows):
        return
    weights = {} if (rows.counts == 1).all() else {"sample_weight": rows.counts}
    form = rows.rows["X"]
    if isinstance(X, np.ndarray) or hasattr(X, "columns"):
        form = rows_in_form_of(X, form)
    try:
        model.estimator_.partial_fit(form, rows.labels, classes=model.classes_, **weights)
    except Exception as error:
        explain_dtype(error, form)
        raise
    require_proba(model.estimator_)


def _check_merge(model: Any, other: Any) -> None:
    """Raise ValueError with the reason if the two cannot be merged."""
    why = ""
    if not all(hasattr(part, "stream_") for part in (model, other)):
        why = (
            "one of them keeps no held-out rows, or has a density that does not add up: fit "
            "both by partial_fit or dipedl.apps.large.fit, with density=GDADensity()"
        )
    elif any(getattr(part, "spread", None) is not None for part in (model, other)):
        why = "spread does not add up: fit both with spread=None"
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
