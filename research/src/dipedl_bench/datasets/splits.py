"""The rows that every method of a suite gets: one training view, the same splits for all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory

from dipedl import datasets as library
from dipedl.datasets import Dataset, leave_class_out, load_mini_mnist

from .. import datasets
from ..corruptions import CORRUPTIONS, corrupt
from ..names import refuse_unknown
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from .files import TABLES, check_there
from .images import files_of, load_cifar10, load_mnist
from .own import is_own, load_own, own_digest, own_ood_sets
from .spectra_splits import SPECTRA, choose_rows, spectra_files, spectra_splits
from .tables import SOURCES, load_openml

Rows = Mapping[str, np.ndarray]
LABELLED = ("train", "validation", "test")

#: Data set of images of a profile -> how it is loaded, given the OOD sets.
LOADERS: dict[str, Callable[[tuple[str, ...]], Dataset]] = {
    "mini-mnist": lambda ood: load_mini_mnist(),
    "mnist": lambda ood: load_mnist(ood=ood),
    "colour-digits": lambda ood: load_colour_digits(),
    "cifar10": lambda ood: load_cifar10(ood=ood),
}
#: OOD sets of every data set that a profile may name.
OOD_SETS: dict[str, tuple[str, ...]] = {
    **{name: tuple(TABLES["cifar10" if name == "cifar10" else "mnist"]["ood"]) for name in LOADERS},
    **{name: recipe.ood for name, recipe in SPECTRA.items()},
}
#: Test rows with corruptions -> severity.
SEVERITIES = {f"severity_{i}": i for i in range(1, 6)}
#: So many test rows, drawn once, have each of the corruptions.
_CORRUPTED = 200
#: Seed of the draw of calibration rows out of the test rows, and of corruptions.
_FIXED_SEED = 0


def ood_sets(dataset: str) -> tuple[str, ...]:
    """Return the OOD sets of a data set of a profile."""
    return own_ood_sets(dataset) if is_own(dataset) else OOD_SETS[dataset]


def shifted_sets(dataset: str) -> tuple[str, ...]:
    """Return the labelled test sets from elsewhere of a data set of a profile."""
    if dataset in SPECTRA:
        return SPECTRA[dataset].shifted
    return () if dataset == "mini-mnist" else tuple(SEVERITIES)


def own_config(dataset: str) -> dict[str, str]:
    """Return what a config says of the content of a data set of one's own; else nothing."""
    return {"files": own_digest(dataset)} if is_own(dataset) else {}


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


def halve_test_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of official test rows that calibrate and that judge, drawn once.

    Those that judge are all of the test rows of a suite with ``calibration = "test"``, sorted.
    """
    drawn = np.random.default_rng(_FIXED_SEED).permutation(n)
    return drawn[: n // 2], drawn[n // 2 :]


def make_splits(config: Mapping[str, Any], seed: int, keep: Path | None = None) -> Splits:
    """Rows of every split.

    Validation is the first share of ``default_rng(seed).permutation`` of the official training set,
    training the rest of it: another split each seed, the same for every method. Test and OOD sets
    are the official ones; where a data set has none of its own, they are drawn with the seed. Of
    spectra, see `spectra_splits`; `keep` is a folder for their features, and for corrupted images.

    With the calibration "test", for networks that have seen all training rows, validation is half
    of the test rows, drawn once for all seeds, and test the other half. Shifted sets of images are
    the first test rows with every corruption of `dipedl_bench.corruptions`, by severity.

    `config` holds "dataset" (or "loader", "arguments" and "leave_out"), "ood", "shifted" and
    "calibration" (if any), "validation_fraction", and "limit": rows of each split, or None;
    "standardise" and "selected" of `dipedl_bench.spec.suite.Data`, if set.
    """
    if config.get("dataset") in SPECTRA:
        return Splits(*spectra_splits(config, seed, keep))
    data = load_data(config, seed)
    refuse_unknown("OOD set", config["ood"], data.ood)
    limit = config["limit"]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.X_train))
    weight = np.ones(data.n_classes)
    if "selected" in config:
        share = np.array(config["selected"])
        order, weight = order[rng.random(len(order)) < share[data.y_train[order]]], 1 / share
    of_test = config.get("calibration") == "test"
    n_held = 0 if of_test else round(config["validation_fraction"] * len(order))
    rows_of = {"train": order[n_held:], "validation": order[:n_held]}
    rows_of = {split: rows[: limit[split]] for split, rows in rows_of.items()}
    test = choose_rows(len(data.X_test), limit["test"])
    X = {split: data.X_train[rows] for split, rows in rows_of.items()}
    y = {split: data.y_train[rows] for split, rows in rows_of.items()}
    if of_test:
        held, test = halve_test_rows(len(data.X_test))
        held, test = held[: limit["validation"]], np.sort(test[: limit["test"]])
        X["validation"], y["validation"] = data.X_test[held], data.y_test[held]
    X["test"] = data.X_test[test]
    truth = {"test": data.truth["test"][test]} if "test" in data.truth else {}
    for name in config["ood"]:
        rows = choose_rows(len(data.ood[name]), limit["ood"])
        X[f"{OOD_PREFIX}{name}"] = data.ood[name][rows]
        if name in data.truth:
            truth[f"{OOD_PREFIX}{name}"] = data.truth[name][rows]
    y["test"] = data.y_test[test]
    for name in config.get("shifted", ()):
        if data.image_shape is None:
            raise ValueError(f"data: {name!r} corrupts images, and rows of {data.name} are none")
        rows, labels = X["test"][:_CORRUPTED], y["test"][:_CORRUPTED]
        memory = Memory(keep, verbose=0, compress=1)
        make = memory.cache(corrupt_rows) if keep else corrupt_rows
        X[f"{SHIFTED_PREFIX}{name}"] = make(rows, data.image_shape, SEVERITIES[name])
        y[f"{SHIFTED_PREFIX}{name}"] = np.tile(labels, len(CORRUPTIONS))
    if "standardise" in config:  # over training and validation rows
        rows = np.concatenate([X["train"], X["validation"]])
        mean, sd = rows.mean(axis=0), rows.std(axis=0)
        X = {split: (of - mean) / np.where(sd > 0, sd, 1.0) for split, of in X.items()}
    weights = {s: weight[y[s]] for s in ("train", "validation")} if "selected" in config else {}
    return Splits(X, y, truth, weights)


def corrupt_rows(rows: np.ndarray, shape: tuple[int, ...], severity: int) -> np.ndarray:
    """Return images, as rows (n, d), with each corruption, one kind after the other."""
    planes = (1, *shape) if len(shape) == 2 else shape
    images = rows.reshape(-1, *planes)
    made = [corrupt(images, kind, severity, seed=_FIXED_SEED) for kind in CORRUPTIONS]
    return np.concatenate(made).reshape(-1, rows.shape[1])


def check_files(config: Mapping[str, Any]) -> None:
    """Raise FileNotFoundError if files of a profile's data set are missing."""
    name = config["dataset"]
    if name in SPECTRA:
        check_there(spectra_files(config))
    elif name in TABLES:
        others = (files_of(other.removesuffix("_inverted"), ["test"]) for other in config["ood"])
        check_there([*files_of(name, ["train", "test"]), *(file for of in others for file in of)])


# Data sets by the name that a suite gives them


def _bunch(name: str) -> Any:
    # here: reading the names of a suite must not import scikit-learn
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")()


#: Data sets that come with scikit-learn and have no split of their own.
_BUNCHES: dict[str, Callable[[], Any]] = {
    **{f"sklearn:{name}": partial(_bunch, name) for name in ("iris", "wine")},
    **{f"openml:{name}": partial(load_openml, name) for name in SOURCES},
}


def load_data(config: Mapping[str, Any], seed: int) -> Dataset:
    """Load the data set of a config: by the "dataset" of a profile, or by "loader" and "arguments".

    A loader gets the OOD sets and the seed, where it takes them.
    """
    path = config.get("loader") or config["dataset"]
    if is_own(path):
        own = load_own(path)
        left_out = config.get("leave_out")
        return own if left_out is None else leave_class_out(own, left_out)
    if "loader" not in config:
        return LOADERS[config["dataset"]](tuple(config["ood"]))
    name, left_out = config["loader"], config["leave_out"]
    if name in _BUNCHES:
        made: Dataset = leave_class_out(_BUNCHES[name](), left_out, random_state=seed)
        return made
    load = getattr(datasets if name in datasets.__all__ else library, name)
    offered = {"random_state": seed} | ({} if left_out is not None else {"ood": config["ood"]})
    taken = inspect.signature(load).parameters
    arguments = {key: value for key, value in offered.items() if key in taken}
    data: Dataset = load(**arguments, **config["arguments"])
    return data if left_out is None else leave_class_out(data, left_out)


def check_loader(name: str, where: str) -> None:
    """ValueError with the name that was probably meant if there is no such loader."""
    if is_own(name):
        own_ood_sets(name)  # FileNotFoundError, or ValueError of another file
        return
    loaders = [n for n in (*library.__all__, *datasets.__all__) if n.startswith("load_")]
    refuse_unknown("loader", [name], [*loaders, *_BUNCHES], where)


def load_colour_digits() -> Dataset:
    """Digits in one random colour on another, 3 x 32 x 32; nothing is downloaded.

    The images of `dipedl.datasets.load_mini_mnist`, with two pixels of margin on every side,
    channel by channel, as those of `load_cifar10`. Colours are drawn once, from a fixed seed, so
    every image keeps its own.
    """
    grey = load_mini_mnist()
    rng = np.random.default_rng(0)
    return Dataset(
        "colour_digits",
        _colour_images(grey.X_train, rng),
        grey.y_train,
        _colour_images(grey.X_test, rng),
        grey.y_test,
        ood={name: _colour_images(X, rng) for name, X in sorted(grey.ood.items())},
        target_names=grey.target_names,
        image_shape=(3, 32, 32),
    )


def _colour_images(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of grey pixels (n, 784) as rows of coloured ones (n, 3072)."""
    images = X.reshape(-1, 1, 28, 28)
    ink = np.pad(images, ((0, 0), (0, 0), (2, 2), (2, 2)), mode="edge")
    pen, paper = rng.uniform(0.0, 1.0, (2, len(X), 3, 1, 1)).astype(np.float32)
    return np.asarray((ink * pen + (1 - ink) * paper).reshape(len(X), -1))
