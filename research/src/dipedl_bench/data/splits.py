"""The rows that every method of a suite is given: one training view, the same splits for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..names import refuse_unknown
from ..results.scores import OOD_PREFIX
from .loaders import LOADERS, loaded
from .spectra import SPECTRA, SPECTRA_OOD, limited, spectra_splits

Rows = Mapping[str, np.ndarray]
LABELLED = ("train", "validation", "test")
_DIGITS = ("kmnist", "omniglot", "omniglot_inverted")
#: OOD sets of each.
OOD_SETS: dict[str, tuple[str, ...]] = {
    "mini-mnist": _DIGITS,
    "mnist": _DIGITS,
    "colour-digits": _DIGITS,
    "cifar10": ("cifar100", "svhn", "gtsrb"),
    **SPECTRA_OOD,
}
#: Every data set that a profile may name.
DATASETS = (*LOADERS, *SPECTRA)


@dataclass(frozen=True, eq=False)
class Splits:
    """Inputs X (n, d) by split, and labels y (n,) of all but the OOD sets.

    Splits are "train", "validation", "test", "ood/<name>" for each OOD set, and "shifted/<name>"
    for each labelled test set from elsewhere. `truth` holds the class probabilities (n, k) of test
    and OOD rows where they are known, `weights` those of training and validation rows where a
    suite selects rows by their class.
    """

    X: Mapping[str, np.ndarray]
    y: Mapping[str, np.ndarray]
    truth: Mapping[str, np.ndarray] = field(default_factory=dict)
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)


def make_splits(config: Mapping[str, Any], seed: int, keep: Path | None = None) -> Splits:
    """Rows of every split.

    Validation is the first share of ``default_rng(seed).permutation`` of the official training set,
    training the rest of it: another split each seed, the same for every method. Test and OOD sets
    are the official ones; where a data set has none of its own, they are drawn with the seed. Of
    spectra, see `dipedl_bench.data.spectra.spectra_splits`; `keep` is a folder for their features.

    `config` holds "dataset" (or "loader", "arguments" and "leave_out"), "ood", "shifted" (if any),
    "validation_fraction", and "limit": rows of each split, or None; "standardise" and "selected" of
    `dipedl_bench.spec.entries.CrossedData`, if set.
    """
    if config.get("dataset") in SPECTRA:
        return Splits(*spectra_splits(config, seed, keep))
    data = loaded(config, seed)
    refuse_unknown("OOD set", config["ood"], data.ood)
    limit = config["limit"]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.X_train))
    weight = np.ones(data.n_classes)
    if "selected" in config:
        share = np.array(config["selected"])
        order, weight = order[rng.random(len(order)) < share[data.y_train[order]]], 1 / share
    n_held = round(config["validation_fraction"] * len(order))
    held = order[:n_held][: limit["validation"]]
    kept = order[n_held:][: limit["train"]]
    test = limited(len(data.X_test), limit["test"])
    X = {"train": data.X_train[kept], "validation": data.X_train[held], "test": data.X_test[test]}
    truth = {"test": data.truth["test"][test]} if "test" in data.truth else {}
    for name in config["ood"]:
        rows = limited(len(data.ood[name]), limit["ood"])
        X[f"{OOD_PREFIX}{name}"] = data.ood[name][rows]
        if name in data.truth:
            truth[f"{OOD_PREFIX}{name}"] = data.truth[name][rows]
    y = {"train": data.y_train[kept], "validation": data.y_train[held], "test": data.y_test[test]}
    if "standardise" in config:
        X = _standardised(X)
    weights = {s: weight[y[s]] for s in ("train", "validation")} if "selected" in config else {}
    return Splits(X, y, truth, weights)


def _standardised(X: Rows) -> dict[str, np.ndarray]:
    """Every column with mean 0 and standard deviation 1 over training and validation rows."""
    rows = np.concatenate([X["train"], X["validation"]])
    mean, sd = rows.mean(axis=0), rows.std(axis=0)
    return {split: (of - mean) / np.where(sd > 0, sd, 1.0) for split, of in X.items()}
