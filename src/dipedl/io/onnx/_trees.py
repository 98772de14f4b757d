"""Trees of scikit-learn, LightGBM and XGBoost and their ensembles as parts of a graph.

Thresholds are kept in float64. scikit-learn casts inputs to float32 before its trees and forests
compare them, but not before those of `HistGradientBoostingClassifier`; so do the graphs, and an
input at a threshold takes the same branch. LightGBM compares in float64; XGBoost rounds inputs to
float32 and goes left where they are strictly below a threshold. Sums over trees leave ONNX's tree
operator as float32.

The converters of others do not give the answers of the models: skl2onnx 1.20 sends gaps down the
wrong branch and has none for histogram boosting, and onnxmltools rounds the thresholds of LightGBM
to float32, which changes the answers to 15 % of inputs that lie at one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import numpy_helper
from scipy import special
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from ..names import is_type
from ._nodes import ML_DOMAIN, Tensor, softmax, two_classes


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


def sum_trees(X: Tensor, trees: list[Tree], targets: int) -> Tensor:
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


def round_as_float32(X: Tensor) -> Tensor:
    """X rounded to float32, as scikit-learn's trees compare it."""
    return X.cast(np.float32).cast(np.float64)


def _forest(model: Any, X: Tensor) -> Tensor:
    members = getattr(model, "estimators_", [model])
    trees = [_nodes(member) for member in members]
    return sum_trees(round_as_float32(X), trees, len(model.classes_)) / float(len(trees))


def _boosted_scores(model: GradientBoostingClassifier, X: Tensor) -> Tensor | None:
    known = isinstance(model.init_, str) or type(model.init_) is DummyClassifier
    if model.loss != "log_loss" or not known:
        return None
    start: np.ndarray = model._raw_predict_init(np.zeros((1, model.n_features_in_)))
    pairs = ((column, tree) for stage in model.estimators_ for column, tree in enumerate(stage))
    trees = [_nodes(tree, model.learning_rate, column) for column, tree in pairs]
    return sum_trees(round_as_float32(X), trees, start.shape[1]) + start


def _histogram_boosted_scores(model: HistGradientBoostingClassifier, X: Tensor) -> Tensor:
    start: np.ndarray = model._baseline_prediction
    return sum_trees(X, list(_histogram_trees(model)), start.shape[1]) + start


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


def booster(model: Any, X: Tensor) -> Tensor | None:
    """Class probabilities (n, k) of a fitted booster; None for other classifiers."""
    if is_type(type(model), "lightgbm.LGBMClassifier"):
        return _lightgbm(model, X)
    return _xgboost(model, X) if is_type(type(model), "xgboost.XGBClassifier") else None


def _lightgbm(model: Any, X: Tensor) -> Tensor | None:
    dump = model.booster_.dump_model()
    objective, *settings = dump["objective"].split()
    options = dict(setting.split(":") for setting in settings if ":" in setting)
    if objective not in ("binary", "multiclass") or dump["average_output"]:
        return None
    columns = dump["num_tree_per_iteration"]
    roots = [tree["tree_structure"] for tree in dump["tree_info"]]
    nodes = [list(_numbered(root)) for root in roots]
    if any(not _is_plain(node) for tree in nodes for node in tree):
        return None
    raw = sum_trees(X, [_lightgbm_tree(tree, i % columns) for i, tree in enumerate(nodes)], columns)
    return two_classes(raw * float(options["sigmoid"])) if columns == 1 else softmax(raw)


def _numbered(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes of a tree, the root first, with the numbers of their children."""
    waiting, count = [root], 1
    while waiting:
        node = waiting.pop(0)
        children = [node[side] for side in ("left_child", "right_child") if side in node]
        yield {**node, "children": [count, count + 1] if children else [0, 0]}
        count += len(children)
        waiting += children


def _is_plain(node: dict[str, Any]) -> bool:
    """Return whether a node is a leaf with one value, or compares a number with a threshold."""
    if "leaf_value" in node:
        return "leaf_coeff" not in node
    return bool(node["decision_type"] == "<=" and node["missing_type"] != "Zero")


def _lightgbm_tree(nodes: list[dict[str, Any]], column: int) -> Tree:
    thresholds = np.array([node.get("threshold", 0.0) for node in nodes], dtype=np.float64)
    missing = [
        # If no value was missing in training, a missing value counts as zero.
        node.get("default_left", False) if node.get("missing_type") == "NaN" else threshold >= 0
        for node, threshold in zip(nodes, thresholds, strict=True)
    ]
    return Tree(
        feature=np.array([node.get("split_feature", 0) for node in nodes]),
        threshold=thresholds,
        left=np.array([node["children"][0] for node in nodes]),
        right=np.array([node["children"][1] for node in nodes]),
        missing_left=np.array(missing),
        leaf=np.array(["leaf_value" in node for node in nodes]),
        values=np.array([[node.get("leaf_value", 0.0)] for node in nodes]),
        first=column,
    )


def _xgboost(model: Any, X: Tensor) -> Tensor | None:
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    objective, boosted = learner["objective"]["name"], learner["gradient_booster"]
    if objective not in ("binary:logistic", "multi:softprob") or boosted["name"] != "gbtree":
        return None
    trees, columns = boosted["model"]["trees"], boosted["model"]["tree_info"]
    last = getattr(model.get_booster(), "best_iteration", None)
    if last is not None:
        kept = boosted["model"]["iteration_indptr"][last + 1]
        trees, columns = trees[:kept], columns[:kept]
    if any(any(tree["split_type"]) or _is_vector(tree) for tree in trees):
        return None
    k = 1 if objective == "binary:logistic" else len(model.classes_)
    base = np.array(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float64)
    parts = [_xgboost_tree(tree, column) for tree, column in zip(trees, columns, strict=True)]
    raw = sum_trees(round_as_float32(X), parts, k)
    if k == 1:
        return two_classes(raw + special.logit(base.reshape(-1)))
    return softmax(raw + np.broadcast_to(base, k))


def _is_vector(tree: dict[str, Any]) -> bool:
    return int(tree["tree_param"]["size_leaf_vector"]) > 1


def _xgboost_tree(tree: dict[str, Any], column: int) -> Tree:
    value = np.array(tree["split_conditions"], dtype=np.float32)
    return Tree(
        feature=np.array(tree["split_indices"]),
        # In float32, x < threshold is x <= the largest number below it.
        threshold=np.nextafter(value, np.float32(-np.inf)).astype(np.float64),
        left=np.array(tree["left_children"]),
        right=np.array(tree["right_children"]),
        missing_left=np.array(tree["default_left"]),
        leaf=np.array(tree["left_children"]) < 0,
        values=value.astype(np.float64)[:, None],
        first=column,
    )
