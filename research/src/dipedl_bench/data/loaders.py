"""Data sets by the name that a suite gives them, loaded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dipedl import datasets as library
from dipedl.datasets import Dataset, leave_class_out, load_mini_mnist

from .. import datasets
from ..datasets import load_cifar10, load_mnist
from ..names import refuse_unknown
from .colour_digits import load_colour_digits
from .openml import SOURCES, load_openml

#: Data set of images of a profile -> how it is loaded, given the OOD sets.
LOADERS: dict[str, Callable[[tuple[str, ...]], Dataset]] = {
    "mini-mnist": lambda ood: load_mini_mnist(),
    "mnist": lambda ood: load_mnist(ood=ood),
    "colour-digits": lambda ood: load_colour_digits(),
    "cifar10": lambda ood: load_cifar10(ood=ood),
}


def _bunch(name: str) -> Any:
    # here: reading the names of a suite must not import scikit-learn
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")()


#: Data sets that come with scikit-learn and have no split of their own.
_BUNCHES: dict[str, Callable[[], Any]] = {
    **{f"sklearn:{name}": partial(_bunch, name) for name in ("breast_cancer", "iris", "wine")},
    **{f"openml:{name}": partial(load_openml, name) for name in SOURCES},
}


def loaded(config: Mapping[str, Any], seed: int) -> Dataset:
    """The data set of a config: by the "dataset" of a profile, or by "loader" and "arguments".

    Test and OOD sets are the official ones; where a data set has none of its own, they are drawn
    with the seed.
    """
    if "loader" not in config:
        return LOADERS[config["dataset"]](tuple(config["ood"]))
    name, left_out = config["loader"], config["leave_out"]
    if name in _BUNCHES:
        made: Dataset = leave_class_out(_BUNCHES[name](), left_out, random_state=seed)
        return made
    data: Dataset = _loader(name)(**_arguments(config, seed))
    return data if left_out is None else leave_class_out(data, left_out)


def _loader(name: str) -> Callable[..., Dataset]:
    """Return the loader of this name, of the suites or else of the library."""
    home = datasets if name in datasets.__all__ else library
    return getattr(home, name)  # type: ignore[no-any-return]


def check_loader(name: str, where: str) -> None:
    """ValueError with the name that was probably meant if there is no such loader."""
    refuse_unknown("loader", [name], [*library.__all__, *datasets.__all__, *_BUNCHES], where)


def _arguments(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Arguments of a loader: the OOD sets and the seed, where it takes them, and its own."""
    offered = {"ood": tuple(config["ood"]), "random_state": seed}
    if config["leave_out"] is not None:
        del offered["ood"]
    taken = inspect.signature(_loader(config["loader"])).parameters
    given = {key: value for key, value in offered.items() if key in taken}
    return {**given, **config["arguments"]}
