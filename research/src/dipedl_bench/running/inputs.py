"""Inputs of a part: rows by split, and the trained parts below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ..datasets.files import check_there
from ..datasets.spectra_splits import SPECTRA, are_kept, check_spectra_there
from ..datasets.splits import LABELLED, Splits, make_splits
from ..spec.build import transformer_of
from ..spec.plan import Part
from .cached import CachedClassifier, CachedDensity, row_numbers, stacked
from .memo import Memoised, Memory
from .predictions import OUTPUTS, Arrays
from .weights import restored
from .work import DataError, PartStep, Step

Rows = Mapping[str, np.ndarray]
#: Inputs by split, labels of the labelled ones, and arguments for the constructor.
Inputs = tuple[Rows, Rows, dict[str, Any]]


def inputs_of(step: PartStep) -> Inputs:
    """Inputs and labels by split, and the trained parts for the constructor."""
    part = step.unit
    if not part.below:
        splits = _splits(step)
        return _transformed(splits.X, part)[0], splits.y, {}
    pixels = part.spec is not None and part.spec.sees == "pixels"
    if pixels or (part.role == "density" and "features" in part.table):
        return _with_network(step)
    return _with_predictions(step)


def check_data_there(step: Step) -> None:
    """Raise DataError if a data set that the step loads is missing, before its process begins."""
    if isinstance(step, PartStep) and not step.unit.below:
        data = step.unit.config["data"]
        if not are_kept(data, step.seed, _kept_features(step)):
            check_files(data, step.place.data_dir)


def check_files(data: Mapping[str, Any], folder: str | None) -> None:
    """Raise DataError if a folder holds no file of a config's data set, or of its OOD sets.

    None stands for the cache, to which files are downloaded, but for those of spectra.
    """
    origin = "data_dir, --data or DIPEDL_DATA"
    try:
        if data["dataset"] in SPECTRA:
            check_spectra_there(data, folder, origin)
        elif folder:
            check_there(data["dataset"], data["ood"], folder, origin)
    except (FileNotFoundError, ImportError) as error:
        raise DataError(str(error)) from error


def _kept_features(step: PartStep) -> Path:
    return step.place.store.root / "features"


def _with_predictions(step: PartStep) -> Inputs:
    """The stored predictions of the parts below stand for them, and row numbers for the pixels."""
    below = {
        role: step.place.store.load(part.name, part.digest, step.seed)
        for role, part in step.unit.below.items()
    }
    arrays = below["classifier"]
    order = [*LABELLED, *(split for split in arrays if split not in LABELLED)]
    y = {split: arrays[split]["y"] for split in order if "y" in arrays[split]}
    if step.unit.role == "density":
        return {split: arrays[split]["features"] for split in order}, y, {}
    X = row_numbers({split: len(arrays[split]["probabilities"]) for split in order})
    return X, y, _cached(below, order, y["train"])


def _with_network(step: PartStep) -> Inputs:
    """The trained network itself, and pixels."""
    splits = _splits(step)
    network = _network(step, splits)
    if step.unit.role == "density":
        X, transformer = _transformed(splits.X, step.unit, estimator=FrozenEstimator(network))
        return X, splits.y, {"blocks": getattr(transformer, "widths_", None)}
    memoised = FrozenEstimator(Memoised.of(network, _remembered(step, network, splits.X)))
    given = {"network": FrozenEstimator(network), "estimator": memoised, "features": memoised}
    return splits.X, splits.y, {**given, "stored": memoised}


def _remembered(step: PartStep, network: Any, X: Rows) -> Memory:
    """Return stored answers of the network for whole splits; it answers other rows once."""
    part, memory = step.unit.below["classifier"], Memory()
    stored = step.place.store.load(part.name, part.digest, step.seed)
    for split, rows in X.items():
        for method, name in OUTPUTS.items():
            if name in stored[split]:
                memory.keep(network, method, rows, stored[split][name].astype(np.float64))
    return memory


def _splits(step: PartStep) -> Splits:
    try:
        return make_splits(step.unit.config["data"], step.seed, _kept_features(step))
    except Exception as error:
        raise DataError(str(error)) from error


def _network(step: PartStep, splits: Splits) -> Any:
    """The network below, made of its kept weights."""
    part = step.unit.below["classifier"]
    weights = step.place.store.network(part.name, part.digest, step.seed)
    return restored(part.built(step.seed), splits.X["train"], splits.y["train"], weights)


def _transformed(X: Rows, part: Part, **given: Any) -> tuple[Rows, Any]:
    """Inputs as the part sees them: through its transformer, if it has one."""
    if "features" not in part.table:
        return X, None
    transformer = transformer_of(part.table["features"], part.where, **given).fit(X["train"])
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
