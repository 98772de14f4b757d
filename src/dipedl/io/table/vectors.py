"""Neighbours and support vectors: rows that compiled code compares with."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks as c
from ..objects import is_a
from .entry import CLASSES, WIDE, Entry

_TREES = ("sklearn.neighbors.KDTree", "sklearn.neighbors.BallTree")
#: Distances without arrays of their own.
_METRICS = c.one_of(
    *("euclidean", "l2", "sqeuclidean", "manhattan", "l1", "cityblock", "chebyshev", "infinity"),
    *("minkowski", "cosine", "correlation", "canberra", "braycurtis", "hamming"),
)
_SEARCH = {
    "metric": _METRICS,
    "metric_params": c.one_of(None),
    "weights": c.one_of("uniform", "distance", None),
    "p": c.maybe(c.number(0.01, 1e6)),
}


def _powers(value: Any, sizes: c.Sizes) -> None:
    c.need(type(value) is dict and value.keys() <= {"p", "w"}, f"is {value!r}, not a power p")
    c.one_of(None)(value.get("w"), sizes)
    _SEARCH["p"](value.get("p"), sizes)


def _parts_fit(index: Any, sizes: c.Sizes) -> None:
    """Compiled search trusts the tree, the rows and the number of neighbours."""
    rows, tree = index._fit_X, index._tree
    c.need(rows.flags.c_contiguous, "do not fit together: the rows are not in row order")
    c.need((tree is None) == (index._fit_method == "brute"), "do not fit together: no tree")
    if tree is not None:
        c.need(np.asarray(tree.data).shape == rows.shape, "do not fit together: another tree")
    wanted = index.n_neighbors
    inside = wanted is None or (isinstance(wanted, int | np.integer) and 1 <= wanted <= len(rows))
    c.need(inside, f"do not fit together: {wanted} neighbours of {len(rows)} rows")


_INDEX = WIDE | {
    "n_samples_fit_": c.count("n", 1),
    "_fit_X": c.floats("n", "d"),
    "_tree": c.maybe(is_a(*_TREES)),
    "_fit_method": c.one_of("brute", "kd_tree", "ball_tree"),
    "effective_metric_": _METRICS,
    "effective_metric_params_": _powers,
}
_LABELLED = CLASSES | {
    "_y": c.ints("n", least=0, below="k", dtype=np.intp),
    "outputs_2d_": c.one_of(False),
}


def _supports_add_up(machine: Any, sizes: c.Sizes) -> None:
    c.need(machine._n_support.sum() == sizes["s"], "do not add up: supports of the classes")
    c.need(machine._intercept_.shape == machine.intercept_.shape, "do not add up: intercepts")
    width, pairs = len(machine._probA), sizes["k"] * (sizes["k"] - 1) // 2
    c.need(len(machine._probB) == width, "do not add up: probabilities")
    # What decides differs from version to version.
    settings = (machine.probability, getattr(machine, "_effective_probability", False))
    asked = any(setting is True for setting in settings)
    c.need(width == pairs or (width == 0 and not asked), "have no probabilities")


def _tree_fits(density: Any, sizes: c.Sizes) -> None:
    c.need(np.shape(density.tree_.data)[1] == sizes["d"], "have a tree of another width")


_MACHINE = Entry(
    CLASSES
    | {
        "support_": c.ints("s", least=0, dtype=np.int32),
        "support_vectors_": c.doubles("s", "d"),
        "_n_support": c.ints("k", least=0, dtype=np.int32),
        "dual_coef_": c.floats("k-1", "s"),
        "_dual_coef_": c.doubles("k-1", "s"),
        "intercept_": c.floats("pairs"),
        "_intercept_": c.doubles("pairs"),
        "_probA _probB": c.doubles("*"),
        "_gamma": c.number(0, 1e300),
        "_sparse": c.one_of(False),
        "shape_fit_": c.plain,
    },
    {"_effective_probability": c.flag, "class_weight_": c.floats("*"), "fit_status_": c.count()}
    | {"_num_iter n_iter_": c.ints("*")},
    parameters={
        "kernel": c.one_of("linear", "poly", "rbf", "sigmoid"),
        "degree": c.count(),
        "coef0": c.number(-1e300, 1e300),
        "cache_size": c.number(0, 1e6),
    },
    where=(_supports_add_up,),
)


def _neighbours(fitted: dict[str, c.Check], **optional: c.Check) -> Entry:
    return Entry(fitted | _INDEX, optional, parameters=_SEARCH, where=(_parts_fit,))


ENTRIES: dict[str, Entry] = {
    "sklearn.neighbors.NearestNeighbors": _neighbours({}),
    "sklearn.neighbors.KNeighborsClassifier": _neighbours(_LABELLED),
    "sklearn.neighbors.RadiusNeighborsClassifier": _neighbours(_LABELLED, outlier_label_=c.plain),
    "sklearn.neighbors.KernelDensity": Entry(
        WIDE | {"tree_": is_a(*_TREES)},
        {"bandwidth_": c.number(0, 1e300)},
        parameters={"metric": _METRICS, "metric_params": c.one_of(None)},
        where=(_tree_fits,),
    ),
    "sklearn.neighbors.NearestCentroid": Entry(
        CLASSES | {"centroids_": c.floats("k", "d")},
        {"class_prior_": c.shares("k"), "within_class_std_dev_": c.floats("d")}
        | {"deviations_": c.floats("k", "d", finite=False)},
        parameters={"metric": c.one_of("euclidean", "manhattan")},
    ),
    "sklearn.svm.SVC": _MACHINE,
    "sklearn.svm.NuSVC": _MACHINE,
}
