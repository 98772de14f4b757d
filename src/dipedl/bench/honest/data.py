"""The rows of a data set: training, validation, test and each foreign set, the same for all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn import datasets as bunches
from sklearn.model_selection import train_test_split

from ... import datasets
from ...datasets import Dataset
from ..data import Splits
from ..names import refuse_unknown
from ..scores import OOD_PREFIX

__all__ = ["check_loader", "study_splits"]

#: Data sets of scikit-learn that have no split of their own.
_BUNCHES: dict[str, Callable[..., Any]] = {
    "breast_cancer": bunches.load_breast_cancer,
    "iris": bunches.load_iris,
    "wine": bunches.load_wine,
}
_BUNCH = "sklearn:"
_TEST_SHARE = 0.3
_LEFT_OUT = "left_out"


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
    `dipedl.bench.data.make_splits`. Test and foreign sets are the official ones; where a data set
    has no test rows of its own, three tenths of each class are drawn with the seed.

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
    train, test, ood = _loaded(config, seed)
    limit = config["limit"]
    order = np.random.default_rng(seed).permutation(len(train[1]))
    n_held = round(config["validation"] * len(order))
    rows = {
        "train": order[n_held:][: limit["train"]],
        "validation": order[:n_held][: limit["validation"]],
    }
    known = {name: (train[0][index], train[1][index]) for name, index in rows.items()}
    drawn = _drawn(len(test[1]), limit["test"])
    known["test"] = (test[0][drawn], test[1][drawn])
    X = {name: part[0] for name, part in known.items()}
    for name in config["ood"]:
        X[f"{OOD_PREFIX}{name}"] = ood[name][_drawn(len(ood[name]), limit["ood"])]
    return Splits(X, {name: part[1] for name, part in known.items()})


Labelled = tuple[np.ndarray, np.ndarray]


def _loaded(
    config: Mapping[str, Any], seed: int
) -> tuple[Labelled, Labelled, Mapping[str, np.ndarray]]:
    name = config["loader"]
    if name.startswith(_BUNCH):
        X, y = _BUNCHES[name.removeprefix(_BUNCH)](return_X_y=True)
        train, test = _halves(X, y, seed)
        ood: Mapping[str, np.ndarray] = {}
    else:
        data = _dataset(name, config, seed)
        train, test, ood = (data.X_train, data.y_train), (data.X_test, data.y_test), data.ood
    if config["leave_out"] is not None:
        train, test, left = _without(config["leave_out"], train, test)
        ood = {**ood, _LEFT_OUT: left}
    refuse_unknown("foreign set", config["ood"], ood)
    return train, test, ood


def _dataset(name: str, config: Mapping[str, Any], seed: int) -> Dataset:
    load = getattr(datasets, name)
    offered = {"ood": tuple(config["ood"]), "random_state": seed}
    taken = inspect.signature(load).parameters
    if config["leave_out"] is not None:
        del offered["ood"]
    given = {key: value for key, value in offered.items() if key in taken}
    made: Dataset = load(**{**given, **config["arguments"]})
    return made


def _halves(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[Labelled, Labelled]:
    parts = train_test_split(X, y, test_size=_TEST_SHARE, stratify=y, random_state=seed)
    return (parts[0], parts[2]), (parts[1], parts[3])


def _without(
    left_out: int, train: Labelled, test: Labelled
) -> tuple[Labelled, Labelled, np.ndarray]:
    """Both parts without a class, labels numbered anew, and all rows of that class."""
    kept = np.setdiff1d(np.unique(train[1]), left_out)
    if not np.isin(left_out, train[1]):
        raise ValueError(f"leave_out must be one of the classes 0..{kept.max()}, got {left_out}")
    inside = [(X[y != left_out], np.searchsorted(kept, y[y != left_out])) for X, y in (train, test)]
    left = np.concatenate([X[y == left_out] for X, y in (train, test)])
    return inside[0], inside[1], left


def _drawn(n: int, limit: int | None) -> np.ndarray:
    if limit is None or limit >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:limit])
