"""Models of LightGBM and XGBoost as their own text; their parsers read it after it was checked.

Without these checks 42 of 340 forged texts of LightGBM, and 6 of 400 of XGBoost, ended the process.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from .checks import LARGEST, need
from .compiled import check_children

# LightGBM: lines of names and numbers

_INT = r"-?\d{1,10}"
_FLOAT = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|inf)"
_PER_LEAF = {"leaf_value": _FLOAT, "leaf_weight": _FLOAT, "leaf_count": _INT}
_PER_SPLIT = {
    **dict.fromkeys(("split_feature", "decision_type", "left_child", "right_child"), _INT),
    **dict.fromkeys(("split_gain", "threshold", "internal_value", "internal_weight"), _FLOAT),
    "internal_count": _INT,
}
_HEADER = {
    "version": r"v[34]",
    "num_class": r"\d{1,6}",
    "num_tree_per_iteration": r"\d{1,6}",
    "label_index": r"0",
    "max_feature_idx": r"\d{1,8}",
    "objective": r"binary sigmoid:[\d.e+-]+|multiclass num_class:\d+|"
    r"multiclassova num_class:\d+ sigmoid:[\d.e+-]+",
    "feature_names": r"\S+(?: \S+)*",
    "feature_infos": r"[^\s=]+(?: [^\s=]+)*",
    "tree_sizes": r"\d+(?: \d+)*",
}
_INFO = re.compile(rf"none|\[{_FLOAT}:{_FLOAT}\]|{_INT}(?::{_INT})*")
#: Bits of a split: by category, to the left if missing, and what counts as missing.
_CATEGORICAL, _MOST_DECISION = 1, 11
_END = "end of trees"


class _LightGBM:
    def take(self, value: Any) -> dict[str, Any]:
        text = value.model_to_string(num_iteration=-1).partition(_END)[0] + _END + "\n"
        check_text(text)
        data = np.frombuffer(text.encode(), np.uint8)
        best, columns = value.best_iteration, value.pandas_categorical
        return {"text": data, "best_iteration": best, "columns": columns}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        need(type(state["best_iteration"]) is int, "has no best iteration")
        text = state["text"].tobytes().decode()
        check_text(text)
        made = cls(model_str=text)
        made.best_iteration = state["best_iteration"]
        made.pandas_categorical = state["columns"]
        return made


def check_text(text: str) -> None:
    """Raise ValueError unless LightGBM could have written the text, with every index inside."""
    need("\0" not in text and "\r" not in text, "holds characters that are no text")
    head, *blocks = text.partition(f"\n\n{_END}\n")[0].split("\n\nTree=")
    need(text.endswith(f"\n\n{_END}\n") and text.count(_END) == 1, "has no end")
    first, *lines = head.split("\n")
    header = _pairs(lines)
    different = sorted(header.keys() ^ _HEADER.keys())
    need(first == "tree" and not different, f"has {different} too many or too few in its header")
    for name, pattern in _HEADER.items():
        need(re.fullmatch(pattern, header[name]), f"has {name}={header[name][:80]!r}")
    width, infos = int(header["max_feature_idx"]) + 1, header["feature_infos"].split(" ")
    need(len(header["feature_names"].split(" ")) == width == len(infos), "has other features")
    need(all(_INFO.fullmatch(info) for info in infos), "has unknown ranges of features")
    many = re.search(r"num_class:(\d+)", header["objective"])
    classes, trees = int(header["num_class"]), int(header["num_tree_per_iteration"])
    wanted = int(many[1]) if many else 1
    need(classes == trees == wanted >= 1, "has other classes than its objective")
    need(blocks and len(blocks) % trees == 0, "has not one tree per class in each iteration")
    for number, block in enumerate(blocks):
        _check_block(number, block, width)
    # LightGBM jumps from tree to tree by these numbers of bytes.
    data = text.encode()
    starts = [m.start() + 1 for m in re.finditer(rb"\nTree=", data)]
    ends = [*starts[1:], data.index(b"\n" + _END.encode()) + 1]
    sizes = " ".join(str(end - start) for start, end in zip(starts, ends, strict=True))
    need(sizes == header["tree_sizes"], "has trees of other sizes")


def _pairs(lines: list[str]) -> dict[str, str]:
    pairs = dict(line.partition("=")[::2] for line in lines)
    need(len(pairs) == len(lines), "says a thing twice")
    return pairs


def _numbers(name: str, pattern: str, text: str, size: int) -> np.ndarray:
    """The numbers of a line, `size` of them."""
    words = text.split(" ") if text else []
    need(len(words) == size, f"has {len(words)} numbers of {name}, not {size}")
    strict = re.compile(pattern)
    need(all(strict.fullmatch(word) for word in words), f"has {name} that are no numbers")
    return np.array(words, np.float64 if pattern is _FLOAT else np.int64)


def _check_block(number: int, block: str, width: int) -> None:
    first, *lines = block.rstrip("\n").split("\n")
    need(first == str(number), "has trees in another order")
    pairs = _pairs(lines)
    counts = [pairs.pop(name, "") for name in ("num_leaves", "num_cat")]
    need(all(re.fullmatch(r"\d{1,8}", count) for count in counts), "has no num_leaves or num_cat")
    leaves, categories = map(int, counts)
    need(pairs.pop("is_linear", "0") == "0", "has linear trees (linear_tree=True)")
    _numbers("shrinkage", _FLOAT, pairs.pop("shrinkage", ""), 1)
    sizes = dict.fromkeys(_PER_LEAF, leaves) | dict.fromkeys(_PER_SPLIT, leaves - 1)
    if leaves == 1:
        # A stump: LightGBM may leave out what it has none of.
        sizes = {name: size for name, size in sizes.items() if pairs.get(name)}
        pairs = {name: text for name, text in pairs.items() if text}
    if categories:
        bounds = _numbers("sets", _INT, pairs.pop("cat_boundaries", ""), categories + 1)
        need(bounds[0] == 0 and (np.diff(bounds) >= 0).all(), "has sets that overlap")
        words = pairs.pop("cat_threshold", "").split(" ")
        need(all(re.fullmatch(r"\d{1,10}", w) and int(w) < 1 << 32 for w in words), "has torn sets")
        need(len(words) == bounds[-1], "has sets that are longer than they are")
    need(leaves >= 1 and pairs.keys() == sizes.keys(), f"has a tree of {sorted(pairs)}")
    patterns = _PER_LEAF | _PER_SPLIT
    fields = {name: _numbers(name, patterns[name], pairs[name], sizes[name]) for name in sizes}
    values = fields.get("leaf_value", np.array([np.inf]))
    need((abs(values) <= LARGEST).all(), "has values that are not finite, or too large")
    if leaves > 1:
        _check_splits(fields, leaves, categories, width)


def _check_splits(fields: dict[str, np.ndarray], leaves: int, categories: int, width: int) -> None:
    features, kinds = fields["split_feature"], fields["decision_type"]
    need(((features >= 0) & (features < width)).all(), "splits on features that there are not")
    need(((kinds >= 0) & (kinds <= _MOST_DECISION)).all(), "has unknown kinds of splits")
    sets = fields["threshold"][kinds & _CATEGORICAL == 1]
    inside = (sets >= 0) & (sets < categories) & (sets % 1 == 0)
    need(inside.all(), "names sets of categories that there are not")
    sides = fields["left_child"], fields["right_child"]
    need(all((side < leaves - 1).all() for side in sides), "has children that there are not")
    # A leaf is the complement of its number: counted on from the inner nodes, it is a node too.
    left, right = (np.where(side >= 0, side, leaves - 2 - side) for side in sides)
    nodes = 2 * leaves - 1
    check_children(np.array([nodes]), np.arange(nodes) < leaves - 1, left, right)


# XGBoost: JSON

_ROOT_PARENT = 2**31 - 1
_WHOLES = ("default_left", "left_children", "parents", "right_children", "split_indices")
_REALS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
_CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
_OBJECTIVES = {
    "binary:logistic": "reg_loss_param",
    "multi:softprob": "softmax_multiclass_param",
    "multi:softmax": "softmax_multiclass_param",
}
_LARGEST = 3.4e38
#: Sums of the values of leaves are in float32 too.
_LARGEST_LEAF = 1e30


class _XGBoost:
    def take(self, value: Any) -> dict[str, Any]:
        text = bytes(value.save_raw("json"))
        check_model(json.loads(text))
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
    learner, version = _parts(learned, "learner version")
    need(_whole(version, 0, 1000) and len(version) == 3, "has no version")
    names = "attributes feature_names feature_types gradient_booster learner_model_param objective"
    attributes, *named, booster, parameters, objective = _parts(learner, names)
    width, classes = _check_parameters(parameters)
    for texts in named:
        need(_texts(texts) and len(texts) in (0, width), "has other names or types of features")
    need(isinstance(attributes, dict) and _texts([*attributes.values()]), "has other attributes")
    need(isinstance(objective, dict) and objective.get("name") in _OBJECTIVES, "has an objective")
    name, setting = _parts(objective, f"name {_OBJECTIVES[objective['name']]}")
    need((classes > 0) == name.startswith("multi"), "has other classes")
    if classes == 0:
        (weight,) = _parts(setting, "scale_pos_weight")
        need(re.fullmatch(r"[\d.E+-]+", weight), "has no weight")
    else:
        need(_number(*_parts(setting, "num_class")) == classes, "has other classes")
    rounds = _check_booster(booster, width, max(classes, 1))
    # An answer takes the trees up to this one.
    best = attributes.get("best_iteration", "0")
    need(re.fullmatch(r"\d{1,9}", best) and int(best) <= rounds, "has no such best iteration")


def _check_parameters(parameters: Any) -> tuple[int, int]:
    names = "base_score boost_from_average num_class num_feature num_target"
    base, average, classes, width, targets = _parts(parameters, names)
    classes, width = _number(classes), _number(width)
    need(targets == "1" and width >= 1, "has several targets")
    need(average in ("0", "1"), "has no base score")
    score = re.fullmatch(r"\[?([\d.E+-]+(?:,[\d.E+-]+)*)\]?", base)
    scores = [float(word) for word in score[1].split(",")] if score else []
    need(len(scores) in (1, max(classes, 1)), "has other base scores")
    need(all(abs(s) <= _LARGEST_LEAF for s in scores), "has base scores that are too large")
    need(classes != 0 or 0 < scores[0] < 1, "has a base score that is no probability")
    return width, classes


def _check_booster(booster: Any, width: int, classes: int) -> int:
    """Return the number of rounds."""
    model, name = _parts(booster, "model name")
    need(name == "gbtree" and isinstance(model, dict), "is not made of trees")
    # Names of categories, since 3.1: without any, all is empty.
    empty: dict[str, Any] = {"enc": [], "feature_segments": [], "sorted_idx": []}
    need(model.get("cats", empty) == empty, "holds names of categories; turn them into numbers")
    parts = {key: part for key, part in model.items() if key != "cats"}
    parameters, ends, info, trees = _parts(
        parts, "gbtree_model_param iteration_indptr tree_info trees"
    )
    each, count = map(_number, _parts(parameters, "num_parallel_tree num_trees"))
    need(len(trees) == count == len(info), "has other trees")
    need(_whole(info, 0, classes), "has trees of other classes")
    need(_whole(ends, 0, count + 1) and ends and ends[0] == 0 and ends[-1] == count, "has rounds")
    need((np.diff(ends) == classes * each).all(), "has rounds of other sizes")
    for number, tree in enumerate(trees):
        _check_tree(tree, number, width)
    return len(ends) - 1


def _check_tree(tree: Any, number: int, width: int) -> None:
    _parts(tree, " ".join((*_WHOLES, *_REALS, *_CATEGORIES, "split_type", "id", "tree_param")))
    deleted, features, nodes, vector = _parts(
        tree["tree_param"], "num_deleted num_feature num_nodes size_leaf_vector"
    )
    nodes = _number(nodes)
    need(tree["id"] == number and type(tree["id"]) is int and nodes >= 1, "has trees elsewhere")
    need(_number(deleted) == 0, "has deleted nodes")
    need(_number(features) == width, "has trees of another width")
    need(vector in ("0", "1"), "has several values per leaf")
    need(not any(tree[name] for name in _CATEGORIES), "splits by category")
    for name in (*_WHOLES, "split_type"):
        need(_whole(tree[name], -1, 2**31), f"has {name} that are no numbers")
    for name in _REALS:
        found = tree[name]
        real = type(found) is list and all(type(v) in (int, float) for v in found)
        need(real and all(abs(v) <= _LARGEST for v in found), f"has {name} that are not finite")
    per_node = (*_WHOLES, *_REALS, "split_type")
    need(all(len(tree[name]) == nodes for name in per_node), "has torn trees")
    side, left, parents, right, columns, kinds = (
        np.array(tree[name]) for name in (*_WHOLES, "split_type")
    )
    inner = left != -1
    values = np.array(tree["split_conditions"])[~inner]
    need((abs(values) <= _LARGEST_LEAF).all(), "has values that are too large")
    need((inner == (right != -1)).all(), "has nodes with one child")
    check_children(np.array([nodes]), inner, left[inner], right[inner])
    for children in (left[inner], right[inner]):
        need((parents[children] == np.flatnonzero(inner)).all(), "has children of other parents")
    need(parents[0] == _ROOT_PARENT, "has no root")
    need(((columns >= 0) & (columns < width)).all(), "splits on features that there are not")
    need((kinds == 0).all(), "splits by category")
    need(np.isin(side, (0, 1)).all(), "has no side for missing values")


def _parts(value: Any, names: str) -> list[Any]:
    """The parts of these names, in this order, of a dict that has no others."""
    need(isinstance(value, dict), "is not made of named parts")
    odd = sorted(value.keys() ^ names.split())
    need(not odd, f"has parts {odd} too many or too few")
    return [value[name] for name in names.split()]


def _number(text: Any) -> int:
    need(isinstance(text, str) and re.fullmatch(r"\d{1,9}", text), f"has {text!r}, not a number")
    return int(text)


def _whole(values: Any, least: int, below: int) -> bool:
    return type(values) is list and all(type(v) is int and least <= v < below for v in values)


def _texts(values: Any) -> bool:
    return type(values) is list and all(isinstance(v, str) for v in values)


CODECS: dict[str, Any] = {"lightgbm.Booster": _LightGBM(), "xgboost.Booster": _XGBoost()}
