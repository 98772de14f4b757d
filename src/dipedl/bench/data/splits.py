"""The rows that every method of a suite is given: one training view, the same splits for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..names import refuse_unknown
from ..results.scores import OOD_PREFIX
from .loaders import LOADERS, loaded
from .spectra import SPECTRA, SPECTRA_OOD, limited, spectra_splits

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
    for each labelled test set from elsewhere.
    """

    X: Mapping[str, np.ndarray]
    y: Mapping[str, np.ndarray]


def make_splits(config: Mapping[str, Any], seed: int, keep: Path | None = None) -> Splits:
    """Rows of every split.

    Validation is the first share of ``default_rng(seed).permutation`` of the official training set,
    training the rest of it: another split each seed, the same for every method. Test and OOD sets
    are the official ones; where a data set has none of its own, they are drawn with the seed. Of
    spectra, see `dipedl.bench.data.spectra.spectra_splits`; `keep` is a folder for their features.

    `config` holds "dataset" (or "loader", "arguments" and "leave_out"), "ood", "shifted" (if any),
    "validation_fraction", and "limit": rows of each split, or None.
    """
    if config.get("dataset") in SPECTRA:
        return Splits(*spectra_splits(config, seed, keep))
    data = loaded(config, seed)
    refuse_unknown("OOD set", config["ood"], data.ood)
    limit = config["limit"]
    order = np.random.default_rng(seed).permutation(len(data.X_train))
    n_held = round(config["validation_fraction"] * len(order))
    held = order[:n_held][: limit["validation"]]
    kept = order[n_held:][: limit["train"]]
    test = limited(len(data.X_test), limit["test"])
    X = {"train": data.X_train[kept], "validation": data.X_train[held], "test": data.X_test[test]}
    for name in config["ood"]:
        rows = data.ood[name]
        X[f"{OOD_PREFIX}{name}"] = rows[limited(len(rows), limit["ood"])]
    y = {"train": data.y_train[kept], "validation": data.y_train[held], "test": data.y_test[test]}
    return Splits(X, y)
