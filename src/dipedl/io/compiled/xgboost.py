"""An XGBoost model as its own JSON: XGBoost reads it only after every part was checked."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import numpy as np

from ..checks import need

_ROOT_PARENT = 2**31 - 1
_PER_NODE_INTS = ("default_left", "left_children", "parents", "right_children", "split_indices")
_PER_NODE_FLOATS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
_CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
_TREE = {*_PER_NODE_INTS, *_PER_NODE_FLOATS, *_CATEGORIES, "split_type", "id", "tree_param"}
_OBJECTIVES = {
    "binary:logistic": "reg_loss_param",
    "multi:softprob": "softmax_multiclass_param",
    "multi:softmax": "softmax_multiclass_param",
}
_MODEL = {"gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
_LARGEST = 3.4e38
#: Sums of the values of leaves are in float32 too.
_LARGEST_LEAF = 1e30


class _Booster:
    """`xgboost.Booster`."""

    def take(self, value: Any) -> dict[str, Any]:
        text = bytes(value.save_raw("json"))
        try:
            check_model(json.loads(text))
        except ValueError as error:
            warnings.warn(
                f"this XGBoost model cannot be checked ({error}): dipedl.load refuses the file "
                "unless you give trusted=['xgboost.core.Booster']",
                UserWarning,
                stacklevel=2,
            )
            raise
        return {"json": np.frombuffer(text, np.uint8)}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        learned = json.loads(state["json"].tobytes(), object_pairs_hook=_once)
        check_model(learned)
        made = cls()
        # Written again: XGBoost's parser and Python's could read the same bytes differently.
        made.load_model(bytearray(json.dumps(learned).encode()))
        return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "says a thing twice")
    return dict(pairs)


def check_model(learned: Any) -> None:
    """Raise ValueError unless the JSON is one that XGBoost would write, with every index inside."""
    _keys(learned, {"learner", "version"})
    learner = learned["learner"]
    names = {"attributes", "feature_names", "feature_types", "gradient_booster"}
    _keys(learner, names | {"learner_model_param", "objective"})
    need(_whole(learned["version"], 0, 1000) and len(learned["version"]) == 3, "has no version")
    parameters = learner["learner_model_param"]
    width, classes = _check_parameters(parameters)
    _check_objective(learner["objective"], classes)
    for name in ("feature_names", "feature_types"):
        need(_texts(learner[name]) and len(learner[name]) in (0, width), f"has other {name}")
    _keys(learner["attributes"], set(learner["attributes"]))
    need(_texts([*learner["attributes"].values()]), "has attributes that are no text")
    _check_booster(learner["gradient_booster"], width, max(classes, 1))


def _check_parameters(parameters: Any) -> tuple[int, int]:
    wanted = {"base_score", "num_class", "num_feature", "num_target", "boost_from_average"}
    _keys(parameters, wanted)
    width, classes = (_number(parameters[name]) for name in ("num_feature", "num_class"))
    need(parameters["num_target"] == "1" and width >= 1, "has several targets")
    need(parameters["boost_from_average"] in ("0", "1"), "has no base score")
    score = re.fullmatch(r"\[?([\d.E+-]+(?:,[\d.E+-]+)*)\]?", parameters["base_score"])
    scores = [float(word) for word in score[1].split(",")] if score else []
    need(len(scores) in (1, max(classes, 1)), "has other base scores")
    need(all(abs(s) <= _LARGEST_LEAF for s in scores), "has base scores that are too large")
    need(classes != 0 or 0 < scores[0] < 1, "has a base score that is no probability")
    return width, classes


def _check_objective(objective: Any, classes: int) -> None:
    need(isinstance(objective, dict) and objective.get("name") in _OBJECTIVES, "has an objective")
    _keys(objective, {"name", _OBJECTIVES[objective["name"]]})
    setting = objective[_OBJECTIVES[objective["name"]]]
    if classes == 0:
        _keys(setting, {"scale_pos_weight"})
        need(re.fullmatch(r"[\d.E+-]+", setting["scale_pos_weight"]), "has no weight")
    else:
        _keys(setting, {"num_class"})
        need(_number(setting["num_class"]) == classes, "has other classes")
    need((classes > 0) == objective["name"].startswith("multi"), "has other classes")


def _check_booster(booster: Any, width: int, classes: int) -> None:
    _keys(booster, {"model", "name"})
    need(booster["name"] == "gbtree", "is not made of trees")
    model = booster["model"]
    # Names of categories, since 3.1: without any, all is empty.
    cats = model.pop("cats", None) if isinstance(model, dict) else None
    _keys(model, _MODEL)
    if cats is not None:
        empty: dict[str, Any] = {"enc": [], "feature_segments": [], "sorted_idx": []}
        need(cats == empty, "holds the names of categories; turn them into numbers first")
        model["cats"] = empty
    parameters = model["gbtree_model_param"]
    _keys(parameters, {"num_parallel_tree", "num_trees"})
    trees, each = _number(parameters["num_trees"]), _number(parameters["num_parallel_tree"])
    need(len(model["trees"]) == trees == len(model["tree_info"]), "has other trees")
    need(_whole(model["tree_info"], 0, classes), "has trees of other classes")
    ends = model["iteration_indptr"]
    need(_whole(ends, 0, trees + 1) and ends and ends[0] == 0 and ends[-1] == trees, "has rounds")
    need((np.diff(ends) == classes * each).all(), "has rounds of other sizes")
    for number, tree in enumerate(model["trees"]):
        _check_tree(tree, number, width)


def _check_tree(tree: Any, number: int, width: int) -> None:
    _keys(tree, _TREE)
    parameters = tree["tree_param"]
    _keys(parameters, {"num_deleted", "num_feature", "num_nodes", "size_leaf_vector"})
    nodes = _number(parameters["num_nodes"])
    need(tree["id"] == number and type(tree["id"]) is int and nodes >= 1, "has trees elsewhere")
    need(_number(parameters["num_deleted"]) == 0, "has deleted nodes")
    need(_number(parameters["num_feature"]) == width, "has trees of another width")
    need(parameters["size_leaf_vector"] in ("0", "1"), "has several values per leaf")
    need(not any(tree[name] for name in _CATEGORIES), "splits by category")
    for name in (*_PER_NODE_INTS, "split_type"):
        need(_whole(tree[name], -1, 2**31), f"has {name} that are no numbers")
    for name in _PER_NODE_FLOATS:
        need(_finite(tree[name]), f"has {name} that are not finite")
    per_node = (*_PER_NODE_INTS, *_PER_NODE_FLOATS, "split_type")
    need(all(len(tree[name]) == nodes for name in per_node), "has torn trees")
    leaves = np.array(tree["left_children"]) == -1
    values = np.array(tree["split_conditions"])[leaves]
    need((abs(values) <= _LARGEST_LEAF).all(), "has values that are too large")
    _check_nodes({name: np.array(tree[name]) for name in (*_PER_NODE_INTS, "split_type")}, width)


def _check_nodes(fields: dict[str, np.ndarray], width: int) -> None:
    left, right, parents = (fields[n] for n in ("left_children", "right_children", "parents"))
    inner = left != -1
    need((inner == (right != -1)).all(), "has nodes with one child")
    at = np.flatnonzero(inner)
    children = np.concatenate([left[inner], right[inner]])
    need((children > np.tile(at, 2)).all(), "has children before their parents")
    need(np.array_equal(np.sort(children), np.arange(1, len(left))), "has torn trees")
    need((parents[children] == np.tile(at, 2)).all(), "has children of other parents")
    need(parents[0] == _ROOT_PARENT, "has no root")
    columns = fields["split_indices"]
    need(((columns >= 0) & (columns < width)).all(), "splits on features that there are not")
    need((fields["split_type"] == 0).all(), "splits by category")
    need(np.isin(fields["default_left"], (0, 1)).all(), "has no side for missing values")


def _keys(value: Any, wanted: set[str]) -> None:
    need(isinstance(value, dict), "is not made of named parts")
    need(value.keys() == wanted, f"has parts {sorted(value.keys() ^ wanted)} too many or too few")


def _number(text: Any) -> int:
    need(isinstance(text, str) and re.fullmatch(r"\d{1,9}", text), f"has {text!r}, not a number")
    return int(text)


def _whole(values: Any, least: int, below: int) -> bool:
    return type(values) is list and all(type(v) is int and least <= v < below for v in values)


def _finite(values: Any) -> bool:
    return type(values) is list and all(
        type(v) in (int, float) and abs(v) <= _LARGEST for v in values
    )


def _texts(values: Any) -> bool:
    return type(values) is list and all(isinstance(v, str) for v in values)


CODECS: dict[str, Any] = {"xgboost.Booster": _Booster()}
