"""A LightGBM model as its own text: its parser reads it only after every line was checked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..checks import LARGEST, need

_INT = r"-?\d{1,10}"
_FLOAT = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|inf)"
_COUNTS = ("num_leaves", "num_cat")
_PER_LEAF = {"leaf_value": _FLOAT, "leaf_weight": _FLOAT, "leaf_count": _INT}
_PER_SPLIT = {
    **dict.fromkeys(("split_feature", "decision_type", "left_child", "right_child"), _INT),
    **dict.fromkeys(("split_gain", "threshold", "internal_value", "internal_weight"), _FLOAT),
    "internal_count": _INT,
}
_PER_CATEGORY = {"cat_boundaries": _INT, "cat_threshold": r"\d{1,10}"}
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


class _Booster:
    """`lightgbm.Booster`."""

    def take(self, value: Any) -> dict[str, Any]:
        text = value.model_to_string(num_iteration=-1).partition(_END)[0] + _END + "\n"
        check_text(text)
        return {
            "text": np.frombuffer(text.encode(), np.uint8),
            "best_iteration": value.best_iteration,
            "columns": value.pandas_categorical,
        }

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
    header = _header(head)
    trees, width = int(header["num_tree_per_iteration"]), int(header["max_feature_idx"]) + 1
    need(blocks and len(blocks) % trees == 0, "has not one tree per class in each iteration")
    for number, block in enumerate(blocks):
        _check_tree(number, block, width)
    _check_sizes(text, header["tree_sizes"])


def _header(head: str) -> dict[str, str]:
    first, *lines = head.split("\n")
    need(first == "tree", "is not a model of LightGBM")
    header = _pairs(lines)
    need(header.keys() == _HEADER.keys(), f"has a header of {sorted(header)}")
    for name, pattern in _HEADER.items():
        need(re.fullmatch(pattern, header[name]), f"has {name}={header[name][:80]!r}")
    width = int(header["max_feature_idx"]) + 1
    infos = header["feature_infos"].split(" ")
    need(len(header["feature_names"].split(" ")) == width == len(infos), "has other features")
    need(all(_INFO.fullmatch(info) for info in infos), "has unknown ranges of features")
    _check_classes(header)
    return header


def _check_classes(header: dict[str, str]) -> None:
    classes, trees = int(header["num_class"]), int(header["num_tree_per_iteration"])
    many = re.search(r"num_class:(\d+)", header["objective"])
    wanted = int(many[1]) if many else 1
    need(classes == trees == wanted >= 1, "has other classes than its objective")


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


def _check_tree(number: int, block: str, width: int) -> None:
    first, *lines = block.rstrip("\n").split("\n")
    need(first == str(number), "has trees in another order")
    pairs = _pairs(lines)
    for name in _COUNTS:
        need(re.fullmatch(r"\d{1,8}", pairs.get(name, "")), f"has no {name}")
    leaves, categories = (int(pairs.pop(name)) for name in _COUNTS)
    need(pairs.pop("is_linear", "0") == "0", "has linear trees")
    _numbers("shrinkage", _FLOAT, pairs.pop("shrinkage", ""), 1)
    sizes = {
        **dict.fromkeys(_PER_LEAF, leaves),
        **dict.fromkeys(_PER_SPLIT, leaves - 1),
    }
    if leaves == 1:
        # A stump: LightGBM may leave out what it has none of.
        sizes = {name: size for name, size in sizes.items() if pairs.get(name)}
        pairs = {name: text for name, text in pairs.items() if text}
    if categories:
        words = _category_words(pairs, categories)
        sizes |= {"cat_boundaries": categories + 1, "cat_threshold": words}
    need(leaves >= 1 and pairs.keys() == sizes.keys(), f"has a tree of {sorted(pairs)}")
    need("leaf_value" in pairs, "has a tree without values")
    patterns = _PER_LEAF | _PER_SPLIT | _PER_CATEGORY
    fields = {name: _numbers(name, patterns[name], pairs[name], sizes[name]) for name in sizes}
    need(
        (abs(fields["leaf_value"]) <= LARGEST).all(), "has values that are not finite, or too large"
    )
    if leaves > 1:
        _check_splits(fields, leaves, categories, width)


def _category_words(pairs: dict[str, str], categories: int) -> int:
    """Return how many words the sets of categories have; bounds must follow one another."""
    bounds = _numbers("cat_boundaries", _INT, pairs.get("cat_boundaries", ""), categories + 1)
    need(bounds[0] == 0 and (np.diff(bounds) >= 0).all(), "has sets that overlap")
    words = pairs.get("cat_threshold", "").split(" ")
    need(all(word.isdigit() and int(word) < 1 << 32 for word in words), "has torn sets")
    need(len(words) == bounds[-1], "has sets that are longer than they are")
    return len(words)


def _check_splits(fields: dict[str, np.ndarray], leaves: int, categories: int, width: int) -> None:
    features, kinds = fields["split_feature"], fields["decision_type"]
    need(((features >= 0) & (features < width)).all(), "splits on features that there are not")
    need(((kinds >= 0) & (kinds <= _MOST_DECISION)).all(), "has unknown kinds of splits")
    sets = fields["threshold"][kinds & _CATEGORICAL == 1]
    inside = (sets >= 0) & (sets < categories) & (sets % 1 == 0)
    need(inside.all(), "names sets of categories that there are not")
    left, right = fields["left_child"], fields["right_child"]
    children = np.concatenate([left, right])
    need((children < leaves - 1).all(), "has children that there are not")
    inner = np.flatnonzero(children >= 0)
    need((children[inner] > inner % (leaves - 1)).all(), "has children before their parents")
    # A leaf is the complement of its number: each node and leaf but the root is a child, once.
    numbers = np.sort(np.where(children >= 0, children, leaves - 2 - children))
    need(np.array_equal(numbers, np.arange(1, 2 * leaves - 1)), "has torn trees")


def _check_sizes(text: str, sizes: str) -> None:
    """LightGBM jumps from tree to tree by these numbers of bytes."""
    data = text.encode()
    starts = [m.start() + 1 for m in re.finditer(rb"\nTree=", data)]
    ends = [*starts[1:], data.index(b"\n" + _END.encode()) + 1]
    found = [end - start for start, end in zip(starts, ends, strict=True)]
    need(found == [int(size) for size in sizes.split(" ")], "has trees of other sizes")


CODECS: dict[str, Any] = {"lightgbm.Booster": _Booster()}
