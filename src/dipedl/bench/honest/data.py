"""The rows of a data set: training, validation, test and each foreign set, the same for all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn import datasets as bunches

from ... import datasets
from ...datasets import Dataset, leave_class_out
from ..data.splits import Splits
from ..results.scores import OOD_PREFIX
from ..spec.names import refuse_unknown

__all__ = ["check_loader", "study_splits"]

#: Data sets of scikit-learn that have no split of their own.
_BUNCHES: dict[str, Callable[..., Any]] = {
    "breast_cancer": bunches.load_breast_cancer,
    "iris": bunches.load_iris,
    "wine": bunches.load_wine,
}
_BUNCH = "sklearn:"


def check_loader(name: str, where: str) -> None:
    """ValueError with the name that was probably meant if there is no such loader."""
    known = [*datasets.__all__, *(f"{_BUNCH}{bunch}" for bunch in _BUNCHES)]
    try:
        refuse_unknown("loader", [name], known)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def study_splits(config: Mapping[str, Any], seed: int) -> Splits:
    """Rows of every split of a data set.

    Validation is the first share of ``default_rng(seed).permutation`` of the training rows, as in
    `dipedl.bench.data.splits.make_splits`.
    Test and foreign sets are the official ones; where a data set
    has none of its own, they are drawn with the seed.

    Parameters
    ----------
    config : mapping
        "loader", "arguments", "leave_out", "ood", "validation" and "limit".
    seed : int
        Seed of all splits.

    Raises
    ------
    FileNotFoundError, ConnectionError, ValueError
        If the data is missing, cannot be downloaded, or is damaged; if a foreign set is unknown.
    """
    data = _dataset(config, seed)
    refuse_unknown("foreign set", config["ood"], data.ood)
    limit = config["limit"]
    order = np.random.default_rng(seed).permutation(len(data.y_train))
    n_held = round(config["validation"] * len(order))
    kept = order[n_held:][: limit["train"]]
    held = order[:n_held][: limit["validation"]]
    test = _drawn(len(data.y_test), limit["test"])
    X = {"train": data.X_train[kept], "validation": data.X_train[held], "test": data.X_test[test]}
    for name in config["ood"]:
        rows = data.ood[name]
        X[f"{OOD_PREFIX}{name}"] = rows[_drawn(len(rows), limit["ood"])]
    y = {"train": data.y_train[kept], "validation": data.y_train[held], "test": data.y_test[test]}
    return Splits(X, y)


def _dataset(config: Mapping[str, Any], seed: int) -> Dataset:
    name, left_out = config["loader"], config["leave_out"]
    if name.startswith(_BUNCH):
        bunch = _BUNCHES[name.removeprefix(_BUNCH)]()
        made: Dataset = leave_class_out(bunch, left_out, random_state=seed)
        return made
    load = getattr(datasets, name)
    offered = {"ood": tuple(config["ood"]), "random_state": seed}
    if left_out is not None:
        del offered["ood"]
    taken = inspect.signature(load).parameters
    given = {key: value for key, value in offered.items() if key in taken}
    data: Dataset = load(**{**given, **config["arguments"]})
    if left_out is not None:
        data = leave_class_out(data, left_out)
    return data


def _drawn(n: int, limit: int | None) -> np.ndarray:
    if limit is None or limit >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:limit])
