"""Objects of compiled code as plain arrays and numbers, checked before they are built again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .checks import LARGEST, Sizes, count, doubles, floats, ints, maybe, need, number, one_of

#: Arrays of all objects, one after another, and how many entries each has (n_objects,).
Joined = Mapping[str, tuple[np.ndarray, NDArray[np.int64]]]

_LEAF = -1
_NODE = (
    *("left_child", "right_child", "feature", "threshold", "impurity"),
    *("n_node_samples", "weighted_n_node_samples", "missing_go_to_left"),
)
_HIST_NODE = (
    *("value", "count", "feature_idx", "num_threshold", "missing_go_to_left", "left", "right"),
    *("gain", "depth", "is_leaf", "bin_threshold", "is_categorical", "bitset_idx"),
)
_BITSETS = ("binned_left_cat_bitsets", "raw_left_cat_bitsets")
#: Words of 32 bits in the set of the categories of one column.
_WORDS = 8


class _Trees:
    """The trees of forests, gradient boosting and isolation forests."""

    #: Types whose objects may hold one.
    holders = tuple(
        f"sklearn.tree.{name}{kind}"
        for name in ("DecisionTree", "ExtraTree")
        for kind in ("Classifier", "Regressor")
    )
    fields: ClassVar[dict[str, Any]] = {
        "shape": np.int64,
        "values": np.float64,
        **dict.fromkeys(_NODE[:3], np.int32),
        **dict.fromkeys(("threshold", "impurity", "weighted_n_node_samples"), np.float64),
        "n_node_samples": np.int64,
        "missing_go_to_left": np.uint8,
    }

    def take_all(self, trees: Sequence[Any]) -> Joined:
        states = [tree.__getstate__() for tree in trees]
        names = {state["nodes"].dtype.names for state in states}
        need(all({*of} == {*_NODE} for of in names), "have other fields in this version")
        need(all(tree.n_outputs == 1 for tree in trees), "have several outputs")
        parts = [
            {name: state["nodes"][name] for name in _NODE}
            | {"shape": np.array([tree.n_features, tree.max_n_classes, state["max_depth"]])}
            | {"values": state["values"].ravel()}
            for tree, state in zip(trees, states, strict=True)
        ]
        return _join(parts, self.fields)

    def make_all(self, cls: Any, joined: Joined) -> list[Any]:
        counts = joined["left_child"][1]
        need(all((joined[name][1] == counts).all() for name in _NODE), "have fields of other sizes")
        need((joined["shape"][1] == 3).all() and (counts >= 1).all(), "have no nodes")
        shapes = joined["shape"][0].reshape(-1, 3)
        classes = shapes[:, 1]
        need((shapes >= [1, 1, 0]).all() and (classes <= 1 << 31).all(), "have no features")
        need((joined["values"][1] == counts * classes).all(), "have values of other classes")
        fields = {name: joined[name][0] for name in _NODE}
        inner = fields["left_child"] != _LEAF
        need((inner == (fields["right_child"] != _LEAF)).all(), "have nodes with one child")
        check_children(counts, inner, fields["left_child"][inner], fields["right_child"][inner])
        columns, widths = fields["feature"][inner], np.repeat(shapes[:, 0], counts)[inner]
        inside = (columns >= 0) & (columns < widths)
        need(inside.all(), "split on features that there are not")
        values, weights = joined["values"][0], fields["weighted_n_node_samples"]
        need(not np.isnan(fields["threshold"][inner]).any(), "have thresholds that are NaN")
        need((abs(values) <= LARGEST).all(), "have values that are not finite, or too large")
        need((weights >= 0).all() and np.isfinite(weights).all(), "have negative weights")
        need((fields["n_node_samples"] >= 0).all(), "have negative numbers of samples")
        return self._build(cls, joined, shapes)

    def _build(self, cls: Any, joined: Joined, shapes: np.ndarray) -> list[Any]:
        from sklearn.tree._tree import NODE_DTYPE

        nodes = _records(joined, _NODE, NODE_DTYPE)
        values = _split(*joined["values"])
        made = []
        for (width, classes, depth), of, leaves in zip(
            shapes.tolist(), _split(nodes, joined["left_child"][1]), values, strict=True
        ):
            tree = cls(width, np.array([classes], np.intp), 1)
            state = {"max_depth": depth, "node_count": len(of), "nodes": of}
            tree.__setstate__(state | {"values": leaves.reshape(len(of), 1, classes)})
            # A path is as long as this says: memory is taken by it.
            need(tree.compute_node_depths().max() - 1 == depth, "are deeper than they say")
            made.append(tree)
        return made


class _Predictors:
    """The trees of histogram boosting."""

    holders = ("sklearn.ensemble.HistGradientBoostingClassifier",)
    fields: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("value", "num_threshold", "gain"), np.float64),
        **dict.fromkeys(("count", "left", "right", "depth", "bitset_idx", *_BITSETS), np.uint32),
        "feature_idx": np.int64,
        **dict.fromkeys(
            ("missing_go_to_left", "is_leaf", "bin_threshold", "is_categorical"), np.uint8
        ),
    }

    def take_all(self, trees: Sequence[Any]) -> Joined:
        names = {tree.nodes.dtype.names for tree in trees}
        need(all({*of} == {*_HIST_NODE} for of in names), "have other fields in this version")
        own = {frozenset(vars(tree)) for tree in trees}
        need(own <= {frozenset({"nodes", *_BITSETS})}, "have other parts in this version")
        parts = [
            {name: tree.nodes[name] for name in _HIST_NODE}
            | {name: getattr(tree, name).ravel() for name in _BITSETS}
            for tree in trees
        ]
        return _join(parts, self.fields)

    def make_all(self, cls: Any, joined: Joined) -> list[Any]:
        counts = joined["left"][1]
        same = all((joined[name][1] == counts).all() for name in _HIST_NODE)
        need(same and (counts >= 1).all(), "have fields of other sizes")
        fields = {name: joined[name][0] for name in _HIST_NODE}
        flags = [fields[name] for name in ("is_leaf", "is_categorical", "missing_go_to_left")]
        need(all((flag <= 1).all() for flag in flags), "have flags that are not 0 or 1")
        inner = fields["is_leaf"] == 0
        check_children(counts, inner, fields["left"][inner], fields["right"][inner])
        need((fields["feature_idx"] >= 0)[inner].all(), "split on features that there are not")
        (_, words), (_, others) = (joined[name] for name in _BITSETS)
        need((words == others).all() and (words % _WORDS == 0).all(), "have torn sets")
        categorical = inner & (fields["is_categorical"] == 1)
        sets = np.repeat(words // _WORDS, counts)
        need((fields["bitset_idx"] < sets)[categorical].all(), "name sets that there are not")
        need(
            (abs(fields["value"]) <= LARGEST).all(), "have values that are not finite, or too large"
        )
        need(not np.isnan(fields["num_threshold"][inner]).any(), "have thresholds that are NaN")
        from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

        nodes = _records(joined, _HIST_NODE, PREDICTOR_RECORD_DTYPE)
        parts = [_split(nodes, counts), *(_split(*joined[name]) for name in _BITSETS)]
        # Copies: the nodes of all trees in one array would keep each other alive.
        return [
            cls(n.copy(), b.reshape(-1, _WORDS).copy(), r.reshape(-1, _WORDS).copy())
            for n, b, r in zip(*parts, strict=True)
        ]


def _join(parts: Sequence[Mapping[str, np.ndarray]], fields: Mapping[str, Any]) -> Joined:
    """Return the arrays of all trees by field, one after another, with the length of each."""
    return {
        name: (
            np.concatenate([part[name] for part in parts]).astype(dtype),
            np.array([len(part[name]) for part in parts], np.int64),
        )
        for name, dtype in fields.items()
    }


def _records(joined: Joined, names: Sequence[str], dtype: np.dtype) -> np.ndarray:
    """Return the nodes of all trees as the records that compiled code reads."""
    records = np.zeros(len(joined[names[0]][0]), dtype)
    for name in names:
        records[name] = joined[name][0]
    return records


def _split(array: np.ndarray, counts: NDArray[np.int64]) -> list[np.ndarray]:
    return np.split(array, np.cumsum(counts)[:-1])


def check_children(
    counts: NDArray[np.int64], inner: np.ndarray, left: np.ndarray, right: np.ndarray
) -> None:
    """Require two children behind each inner node of its tree, and one parent of each other node.

    `inner` (n,) is of the nodes of all trees, `left` and `right` number those of the inner nodes.
    """
    start = np.repeat(np.cumsum(counts) - counts, counts)[inner]
    at = np.flatnonzero(inner)
    children = np.concatenate([start + left, start + right])
    end = np.repeat(np.cumsum(counts), counts)[inner]
    behind = (children > np.tile(at, 2)).all() and (children < np.tile(end, 2)).all()
    need(behind, "have children that are not behind their parents")
    parents = np.bincount(children, minlength=len(inner))
    parents[np.cumsum(counts) - counts] += 1
    need((parents == 1).all(), "have nodes without a parent or with two")


POOLS: dict[str, Any] = {
    "sklearn.tree._tree.Tree": _Trees(),
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": _Predictors(),
}


# Search trees

#: What scikit-learn calls the compiled distances -> the names that make them.
_METRICS = {
    "EuclideanDistance64": "euclidean",
    "ManhattanDistance64": "manhattan",
    "ChebyshevDistance64": "chebyshev",
    "MinkowskiDistance64": "minkowski",
}


class _SearchTree:
    def take(self, value: Any) -> dict[str, Any]:
        parts = value.__getstate__()
        data, leaf_size, metric, weight = parts[0], parts[4], parts[11], parts[12]
        name = _METRICS.get(type(metric).__name__)
        need(name is not None, "has another distance")
        # Minkowski's state is its power, its weights and more.
        power, weights = metric.__getstate__()[:2] if name == "minkowski" else (None, ())
        need(not len(weights), "has a distance with weights")
        state = {
            "data": np.asarray(data),
            "leaf_size": leaf_size,
            "metric": name,
            "p": power,
            "weights": None if weight is None else np.asarray(weight),
        }
        arrays = zip(value.get_arrays(), self.make(type(value), state).get_arrays(), strict=True)
        need(all(np.array_equal(*pair) for pair in arrays), "would be another one, built again")
        return state

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        sizes = Sizes()
        doubles("n", "d")(state["data"], sizes)
        maybe(floats("n", least=0))(state["weights"], sizes)
        count(least=1)(state["leaf_size"], sizes)
        one_of(*_METRICS.values())(state["metric"], sizes)
        power = {}
        if state["metric"] == "minkowski":
            number(1, 1e6)(state["p"], sizes)
            power = {"p": state["p"]}
        need(sizes["n"] and sizes["d"], "has no points")
        return cls(
            state["data"],
            leaf_size=min(state["leaf_size"], sizes["n"] + 1),
            metric=state["metric"],
            sample_weight=state["weights"],
            **power,
        )

    def cost(self, state: dict[str, Any]) -> int:
        """Bytes that the tree takes beside its points: two bounds per node."""
        data = state["data"]
        nodes = 4 * len(data) // min(max(int(state["leaf_size"]), 1), len(data) + 1) + 2
        return int(8 * len(data) + nodes * (32 + 16 * data.shape[-1]))


# Random states and losses

#: The state that numpy's module-level functions share: in a file by name, not by value.
_SHARED = np.random.mtrand._rand
_TWISTED = 624


class _RandomState:
    """A Mersenne twister, or the state that all of numpy shares."""

    def take(self, value: Any) -> dict[str, Any]:
        if value is _SHARED:
            return {}
        kind, key, position, has_gauss, gauss = value.get_state()
        need(kind == "MT19937", f"is a {kind}")
        return {"key": key, "position": position, "has_gauss": has_gauss, "gauss": gauss}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        if not state:
            return _SHARED
        ints(_TWISTED, dtype=np.uint32)(state["key"], Sizes())
        # numpy reads the word at this position without a look.
        for name, most in {"position": _TWISTED, "has_gauss": 1}.items():
            count()(state[name], Sizes())
            need(state[name] <= most, f"has {name} {state[name]}")
        number()(state["gauss"], Sizes())
        made = np.random.RandomState()
        made.set_state(
            ("MT19937", state["key"], state["position"], state["has_gauss"], state["gauss"])
        )
        return made


class _Generator:
    def take(self, value: Any) -> dict[str, Any]:
        state = value.bit_generator.state
        need(state["bit_generator"] == "PCG64", f"is a {state['bit_generator']}")
        return {**state["state"], "has": state["has_uint32"], "word": state["uinteger"]}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        for name, bits in {"state": 128, "inc": 128, "has": 1, "word": 32}.items():
            count()(state[name], Sizes())
            need(state[name] < 1 << bits, f"has {name} {state[name]}")
        made = np.random.PCG64(0)
        made.state = {
            "bit_generator": "PCG64",
            "state": {"state": state["state"], "inc": state["inc"]},
            "has_uint32": state["has"],
            "uinteger": state["word"],
        }
        return np.random.Generator(made)


class _Loss:
    """A loss of scikit-learn: only its link is asked after the fit."""

    def take(self, value: Any) -> dict[str, Any]:
        of_many = type(value).__name__ == "HalfMultinomialLoss"
        return {"n_classes": value.n_classes} if of_many else {}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        if cls.__name__ != "HalfMultinomialLoss":
            return cls()
        count(least=2)(state["n_classes"], Sizes())
        return cls(n_classes=state["n_classes"])


class _Bunch:
    """A dict of scikit-learn whose keys are attributes."""

    def take(self, value: Any) -> dict[str, Any]:
        return {"items": dict(value)}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        need(all(isinstance(name, str) for name in state["items"]), "has names that are no text")
        return cls(**state["items"])


CODECS: dict[str, Any] = {
    **{f"sklearn.neighbors.{name}": _SearchTree() for name in ("KDTree", "BallTree")},
    "numpy.random.RandomState": _RandomState(),
    "numpy.random.Generator": _Generator(),
    "sklearn.utils.Bunch": _Bunch(),
    **{
        f"sklearn._loss.loss.{name}": _Loss()
        for name in ("HalfMultinomialLoss", "HalfBinomialLoss", "ExponentialLoss")
    },
}
