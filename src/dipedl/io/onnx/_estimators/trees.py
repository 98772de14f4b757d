"""Trees of scikit-learn and their ensembles as parts of a graph.

Thresholds are kept in float64. scikit-learn casts inputs to float32 before its trees and forests
compare them, but not before those of `HistGradientBoostingClassifier`; so do the graphs, and an
input at a threshold takes the same branch. Sums over trees leave ONNX's tree operator as float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import numpy_helper
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from .._nodes.builder import ML_DOMAIN, Tensor
from .._nodes.ops import softmax, two_classes


@dataclass(frozen=True)
class Tree:
    """Arrays (m,) of the nodes of one tree; the root comes first.

    Left where ``x[feature] <= threshold``, or x is missing and `missing_left`. A leaf adds its
    `values` (m, t) to the targets from `first` on.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    leaf: np.ndarray
    values: np.ndarray
    first: int = 0


def summed(X: Tensor, trees: list[Tree], targets: int) -> Tensor:
    """Sum over trees of the leaf values of X (n, d), (n, targets)."""
    sizes = [len(tree.leaf) for tree in trees]
    leaf = _joined(trees, "leaf").astype(bool)
    nodes: dict[str, Any] = {
        "treeids": np.repeat(np.arange(len(trees)), sizes),
        "nodeids": np.concatenate([np.arange(size) for size in sizes]),
        "featureids": np.where(leaf, 0, _joined(trees, "feature")),
        "truenodeids": np.where(leaf, 0, _joined(trees, "left")),
        "falsenodeids": np.where(leaf, 0, _joined(trees, "right")),
        "missing_value_tracks_true": np.where(leaf, 0, _joined(trees, "missing_left")),
    }
    options = {f"nodes_{name}": values.astype(int).tolist() for name, values in nodes.items()}
    thresholds = np.where(leaf, 0.0, _joined(trees, "threshold")).astype(np.float64)
    return X.graph.op(
        "TreeEnsembleRegressor",
        X,
        domain=ML_DOMAIN,
        n_targets=targets,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values_as_tensor=numpy_helper.from_array(thresholds, "thresholds"),
        **options,
        **_leaves(trees),
    ).cast(np.float64)


def _joined(trees: list[Tree], name: str) -> np.ndarray:
    return np.concatenate([getattr(tree, name) for tree in trees])


def _leaves(trees: list[Tree]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    for number, tree in enumerate(trees):
        leaves = np.flatnonzero(tree.leaf)
        for column in range(tree.values.shape[1]):
            found["treeids"] += [number] * len(leaves)
            found["nodeids"] += leaves.tolist()
            found["ids"] += [tree.first + column] * len(leaves)
            found["weights"] += tree.values[leaves, column].tolist()
    weights = np.array(found.pop("weights"), dtype=np.float64)
    lists = {f"target_{name}": values for name, values in found.items()}
    return {**lists, "target_weights_as_tensor": numpy_helper.from_array(weights, "leaves")}


def _nodes(fitted: Any, scale: float = 1.0, first: int = 0) -> Tree:
    t = fitted.tree_
    missing = getattr(t, "missing_go_to_left", np.zeros(t.node_count, dtype=np.uint8))
    values = t.value[:, 0, :] * scale
    leaf = t.children_left < 0
    children = t.children_left, t.children_right
    return Tree(t.feature, t.threshold, *children, np.asarray(missing), leaf, values, first)


def as_compared(X: Tensor) -> Tensor:
    """X rounded to float32, as scikit-learn's trees compare it."""
    return X.cast(np.float32).cast(np.float64)


def _forest(model: Any, X: Tensor) -> Tensor:
    members = getattr(model, "estimators_", [model])
    trees = [_nodes(member) for member in members]
    return summed(as_compared(X), trees, len(model.classes_)) / float(len(trees))


def _boosted_scores(model: GradientBoostingClassifier, X: Tensor) -> Tensor | None:
    known = isinstance(model.init_, str) or type(model.init_) is DummyClassifier
    if model.loss != "log_loss" or not known:
        return None
    start: np.ndarray = model._raw_predict_init(np.zeros((1, model.n_features_in_)))
    pairs = ((column, tree) for stage in model.estimators_ for column, tree in enumerate(stage))
    trees = [_nodes(tree, model.learning_rate, column) for column, tree in pairs]
    return summed(as_compared(X), trees, start.shape[1]) + start


def _histogram_boosted_scores(model: HistGradientBoostingClassifier, X: Tensor) -> Tensor:
    start: np.ndarray = model._baseline_prediction
    return summed(X, list(_histogram_trees(model)), start.shape[1]) + start


def _boosted(model: Any, X: Tensor) -> Tensor | None:
    raw = RAW_SCORES[type(model)](model, X)
    if raw is None:
        return None
    return two_classes(raw) if len(model.classes_) == 2 else softmax(raw)


def _histogram_trees(model: HistGradientBoostingClassifier) -> Iterable[Tree]:
    for stage in model._predictors:
        for column, predictor in enumerate(stage):
            n = predictor.nodes
            if n["is_categorical"].any():
                raise TypeError(
                    "HistGradientBoostingClassifier with categorical features cannot be exported "
                    "to ONNX; encode the categories before it, or use categorical_features=None"
                )
            ways = n["left"], n["right"], n["missing_go_to_left"]
            leaf, value = n["is_leaf"], n["value"][:, None]
            yield Tree(n["feature_idx"], n["num_threshold"], *ways, leaf, value, column)


#: Classifiers whose ``decision_function`` is a sum over trees: log-odds, or logits.
RAW_SCORES: dict[type, Callable[[Any, Tensor], Tensor | None]] = {
    GradientBoostingClassifier: _boosted_scores,
    HistGradientBoostingClassifier: _histogram_boosted_scores,
}
TREES: dict[type, Callable[[Any, Tensor], Tensor | None]] = {
    DecisionTreeClassifier: _forest,
    ExtraTreeClassifier: _forest,
    RandomForestClassifier: _forest,
    ExtraTreesClassifier: _forest,
    GradientBoostingClassifier: _boosted,
    HistGradientBoostingClassifier: _boosted,
}
