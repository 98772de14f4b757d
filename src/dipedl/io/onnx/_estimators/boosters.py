"""LightGBM's and XGBoost's classifiers as parts of a graph, read from their own JSON.

LightGBM compares in float64; XGBoost rounds inputs to float32 and goes left where they are strictly
below a threshold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from ...homes import is_type
from .._nodes.builder import Tensor
from .._nodes.ops import softmax, two_classes
from .trees import Tree, as_compared, summed


def booster(model: Any, X: Tensor) -> Tensor | None:
    """Class probabilities (n, k) of a fitted booster; None for other classifiers."""
    if is_type(type(model), "lightgbm", "LGBMClassifier"):
        return _lightgbm(model, X)
    return _xgboost(model, X) if is_type(type(model), "xgboost", "XGBClassifier") else None


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
    raw = summed(X, [_lightgbm_tree(tree, i % columns) for i, tree in enumerate(nodes)], columns)
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
    raw = summed(as_compared(X), parts, k)
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
