"""What a part is given: rows by split, and the trained parts below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ..data.splits import LABELLED, Splits, make_splits
from ..spec.build import build, transformer_of
from .cached import CachedClassifier, CachedDensity, RowNumbers, stacked
from .job import DataError, PartJob
from .memo import Memoised, Memory
from .predictions import Arrays
from .weights import restored

__all__ = ["inputs_of"]

Rows = Mapping[str, np.ndarray]
#: Inputs by split, labels of the labelled ones, and arguments for the constructor.
Inputs = tuple[Rows, Rows, dict[str, Any]]


def inputs_of(job: PartJob) -> Inputs:
    """Inputs and labels by split, and the trained parts for the constructor."""
    if not job.below:
        splits = _splits(job)
        return _transformed(splits.X, job)[0], splits.y, {}
    if job.sees == "pixels" or (job.role == "density" and "features" in job.table):
        return _with_network(job)
    return _with_predictions(job)


def _with_predictions(job: PartJob) -> Inputs:
    """The stored predictions of the parts below stand for them, and row numbers for the pixels."""
    below = {role: job.store.load(*key, job.seed) for role, key in job.below.items()}
    arrays = below["classifier"]
    order = [*LABELLED, *(split for split in arrays if split not in LABELLED)]
    y = {split: arrays[split]["y"] for split in order if "y" in arrays[split]}
    if job.role == "density":
        return {split: arrays[split]["features"] for split in order}, y, {}
    X = RowNumbers({split: len(arrays[split]["probabilities"]) for split in order})
    return X, y, _cached(below, order, y["train"])


def _with_network(job: PartJob) -> Inputs:
    """The trained network itself, and pixels."""
    splits = _splits(job)
    network = _network(job, splits)
    if job.role == "density":
        X, transformer = _transformed(splits.X, job, estimator=FrozenEstimator(network))
        return X, splits.y, {"blocks": getattr(transformer, "widths_", None)}
    # it predicts for the same rows several times
    memoised = FrozenEstimator(Memoised.of(network, Memory()))
    given = {"network": FrozenEstimator(network), "estimator": memoised, "features": memoised}
    return splits.X, splits.y, given


def _splits(job: PartJob) -> Splits:
    try:
        return make_splits(job.data, job.seed, Path(job.root) / "features")
    except Exception as error:
        raise DataError(str(error)) from error


def _network(job: PartJob, splits: Splits) -> Any:
    """The network below, made of its kept weights."""
    table, place = job.tables["classifier"], f"{job.where}.classifier"
    untrained = build(table["estimator"], table["arguments"], place, random_state=job.seed)
    weights = job.store.network(*job.below["classifier"], job.seed)
    return restored(untrained, splits.X["train"], splits.y["train"], weights)


def _transformed(X: Rows, job: PartJob, **given: Any) -> tuple[Rows, Any]:
    """Inputs as the part sees them: through its transformer, if it has one."""
    if "features" not in job.table:
        return X, None
    transformer = transformer_of(job.table["features"], job.where, **given).fit(X["train"])
    return {split: transformer.transform(rows) for split, rows in X.items()}, transformer


def _cached(below: Mapping[str, Arrays], order: list[str], y: np.ndarray) -> dict[str, Any]:
    stored = {
        name: stacked(below["classifier"], order, name)
        for name in ("probabilities", "logits", "features")
    }
    given = {"estimator": FrozenEstimator(CachedClassifier(np.unique(y), stored))}
    if "density" in below:
        log_density = [below["density"][split]["log_density"] for split in order]
        density = FrozenEstimator(CachedDensity(np.concatenate(log_density)))
        given |= {"density": density, "features": "passthrough", "cv": "in-sample"}
    return given
