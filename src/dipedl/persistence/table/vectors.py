"""Neighbours and support vectors: rows that compiled code compares with."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import (
    Sizes,
    count,
    doubles,
    either,
    flag,
    floats,
    ints,
    labels,
    maybe,
    need,
    number,
    one_of,
    plain,
    shares,
)
from ..objects import is_a
from .entry import WIDE, Entry

_TREES = ("sklearn.neighbors.KDTree", "sklearn.neighbors.BallTree")
#: Distances without arrays of their own.
_METRICS = one_of(
    *("euclidean", "l2", "sqeuclidean", "manhattan", "l1", "cityblock", "chebyshev", "infinity"),
    *("minkowski", "cosine", "correlation", "canberra", "braycurtis", "hamming"),
)
_SEARCH = {
    "metric": _METRICS,
    "metric_params": one_of(None),
    "weights": one_of("uniform", "distance", None),
    "p": either(one_of(None), number(0.01, 1e6)),
}


def _powers(value: Any, sizes: Sizes) -> None:
    need(type(value) is dict and value.keys() <= {"p", "w"}, f"is {value!r}, not a power p")
    one_of(None)(value.get("w"), sizes)
    _SEARCH["p"](value.get("p"), sizes)


def _parts_fit(index: Any, sizes: Sizes) -> None:
    """Compiled search trusts the tree, the rows and the number of neighbours."""
    rows, tree = index._fit_X, index._tree
    need(rows.flags.c_contiguous, "do not fit together: the rows are not in row order")
    need((tree is None) == (index._fit_method == "brute"), "do not fit together: no tree")
    if tree is not None:
        need(np.asarray(tree.data).shape == rows.shape, "do not fit together: another tree")
    wanted = index.n_neighbors
    inside = wanted is None or (isinstance(wanted, int | np.integer) and 1 <= wanted <= len(rows))
    need(inside, f"do not fit together: {wanted} neighbours of {len(rows)} rows")


_INDEX = WIDE | {
    "n_samples_fit_": count("n", 1),
    "_fit_X": floats("n", "d"),
    "_tree": maybe(is_a(*_TREES)),
    "_fit_method": one_of("brute", "kd_tree", "ball_tree"),
    "effective_metric_": _METRICS,
    "effective_metric_params_": _powers,
}
_LABELLED = WIDE | {
    "classes_": labels(),
    "_y": ints("n", least=0, below="k", dtype=np.intp),
    "outputs_2d_": one_of(False),
}


def _supports_add_up(machine: Any, sizes: Sizes) -> None:
    need(machine._n_support.sum() == sizes["s"], "do not add up: supports of the classes")
    need(machine._intercept_.shape == machine.intercept_.shape, "do not add up: intercepts")
    width = len(machine._probA)
    need(len(machine._probB) == width, "do not add up: probabilities")
    # What decides differs from version to version.
    settings = (machine.probability, getattr(machine, "_effective_probability", False))
    asked = any(setting is True for setting in settings)
    need(
        width == sizes["pairs"] if asked else width in (0, sizes["pairs"]), "have no probabilities"
    )


def _pairs(machine: Any, sizes: Sizes) -> None:
    sizes["pairs"] = sizes["k"] * (sizes["k"] - 1) // 2


_MACHINE = Entry(
    WIDE
    | {
        "classes_": labels(),
        "support_": ints("s", least=0, dtype=np.int32),
        "support_vectors_": doubles("s", "d"),
        "_n_support": ints("k", least=0, dtype=np.int32),
        "dual_coef_": floats("k-1", "s"),
        "_dual_coef_": doubles("k-1", "s"),
        "intercept_": floats("pairs"),
        "_intercept_": doubles("pairs"),
        "_probA": doubles("*"),
        "_probB": doubles("*"),
        "_gamma": number(0, 1e300),
        "_sparse": one_of(False),
        "shape_fit_": plain,
    },
    {
        "_effective_probability": flag,
        "class_weight_": floats("*"),
        "fit_status_": count(),
        "_num_iter": ints("*"),
        "n_iter_": ints("*"),
    },
    parameters={
        "kernel": one_of("linear", "poly", "rbf", "sigmoid"),
        "degree": count(least=0),
        "coef0": number(-1e300, 1e300),
        "cache_size": number(0, 1e6),
    },
    where=(_pairs, _supports_add_up),
)

ENTRIES: dict[str, Entry] = {
    "sklearn.neighbors.NearestNeighbors": Entry(_INDEX, parameters=_SEARCH, where=(_parts_fit,)),
    "sklearn.neighbors.KNeighborsClassifier": Entry(
        _LABELLED | _INDEX, parameters=_SEARCH, where=(_parts_fit,)
    ),
    "sklearn.neighbors.RadiusNeighborsClassifier": Entry(
        _LABELLED | _INDEX,
        {"outlier_label_": plain},
        parameters=_SEARCH,
        where=(_parts_fit,),
    ),
    "sklearn.neighbors.KernelDensity": Entry(
        WIDE | {"tree_": is_a(*_TREES)},
        {"bandwidth_": number(0, 1e300)},
        parameters={"metric": _METRICS, "metric_params": one_of(None)},
        where=(
            lambda model, sizes: need(
                np.shape(model.tree_.data)[1] == sizes["d"], "have a tree of another width"
            ),
        ),
    ),
    "sklearn.neighbors.NearestCentroid": Entry(
        WIDE | {"classes_": labels(), "centroids_": floats("k", "d")},
        {
            "class_prior_": shares("k"),
            "within_class_std_dev_": floats("d"),
            "deviations_": floats("k", "d", finite=False),
        },
        parameters={"metric": one_of("euclidean", "manhattan")},
    ),
    "sklearn.svm.SVC": _MACHINE,
    "sklearn.svm.NuSVC": _MACHINE,
}
