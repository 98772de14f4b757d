"""Classifiers, transformers and networks as parts of a graph.

Those of `_CLASSIFIERS` and `_TRANSFORMERS`, pipelines, columns and boosters in float64 throughout.
Everything else that skl2onnx converts (PCA, imputers, naive Bayes, ...) goes through it, in the
input type (float64, else float32) in which its graph agrees with the estimator; one that agrees in
neither is refused by name.

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
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from onnx import numpy_helper
from scipy import special
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from ...preprocessing.logit_pixels import ROUNDING, LogitPixels
from ...preprocessing.signed_power import SignedPower
from ..checks import is_type
from ._check import is_network, session, unfrozen
from ._nodes import ML_DOMAIN, ML_OPSET, Tensor, interpolate, log1p, sigmoid, softmax, two_classes


def network_outputs(X: Tensor, classifier: Any = None, features: Any = None) -> dict[str, Tensor]:
    """Probabilities of the classifier and features, by name, for inputs X (n, d)."""
    from ._torch import network_graph

    model = network_graph(classifier, features, opset=X.graph.opset)
    wanted = model.graph.input[0]
    is_double = wanted.type.tensor_type.elem_type == 11  # onnx.TensorProto.DOUBLE
    found = X.graph.embed(model, {wanted.name: X.cast(np.float64 if is_double else np.float32)})
    return {name: tensor.cast(np.float64) for name, tensor in found.items()}


#: Largest difference, relative to the largest entry of a column, between an estimator and its
#: graph. Errors of conversion are far larger, those of float32 smaller.
_TOLERANCE = 5e-6
_PACKAGES = ("xgboost", "lightgbm", "catboost")


def convert(estimator: Any, method: str, X: Tensor, rows: np.ndarray) -> Tensor:
    """Output (n, c) of ``estimator.predict_proba`` or ``estimator.transform`` on X (n, d).

    Graph and fitted estimator are compared on `rows` (m, d). TypeError if skl2onnx has no
    converter, or none that agrees.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = np.asarray(getattr(estimator, method)(rows), dtype=np.float64)
    tried = []
    for dtype in (np.float64, np.float32):
        try:
            model, output = _to_onnx(estimator, method, rows.shape[1], X.graph.opset, dtype)
            found = session(model).run([output], {"X": rows.astype(dtype)})[0]
            difference = _difference(np.asarray(found, dtype=np.float64), known)
        except ImportError:
            raise
        except Exception as error:
            tried.append(f"{np.dtype(dtype)}: {type(error).__name__}: {str(error)[:200]}")
            continue
        if difference <= _TOLERANCE:
            part = X.graph.embed(model, {"X": X.cast(dtype)})[output].cast(np.float64)
            return X.graph.op("Reshape", part, np.array([-1, known.shape[1]]))
        tried.append(f"{np.dtype(dtype)}: its output differs by up to {difference:.2g}")
    raise TypeError(_refusal(estimator, method, tried))


def _refusal(estimator: Any, method: str, tried: list[str]) -> str:
    name, package = type(estimator).__name__, type(estimator).__module__.split(".")[0]
    own = "LogisticRegression, RandomForestClassifier or HistGradientBoostingClassifier"
    own = own if method == "predict_proba" else "StandardScaler or PCA"
    remedy = f"use one of scikit-learn's, such as {own}, or register a converter"
    if package in _PACKAGES:
        remedy = f"install the package 'onnxmltools' and register its converter of {name}"
    causes = "".join(f"\n  {cause}" for cause in tried)
    return (
        f"{name} cannot be exported to ONNX; skl2onnx gave, with inputs of{causes}\n  {remedy} by "
        "skl2onnx.update_registered_converter"
    )


def _to_onnx(estimator: Any, method: str, width: int, opset: int, dtype: type) -> tuple[Any, str]:
    """skl2onnx's model and the name of its output."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = DoubleTensorType if dtype is np.float64 else FloatTensorType
    options = {id(estimator): {"zipmap": False}} if method == "predict_proba" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = convert_sklearn(
            estimator,
            initial_types=[("X", kind([None, width]))],
            options=options,
            target_opset={"": opset, ML_DOMAIN: ML_OPSET},
        )
    return model, model.graph.output[1 if method == "predict_proba" else 0].name


def _difference(found: np.ndarray, known: np.ndarray) -> float:
    if found.size != known.size:
        raise ValueError(f"output of shape {found.shape}, expected {known.shape}")
    scale = np.maximum(np.abs(known).max(axis=0), 1.0)
    gap = np.abs(found.reshape(known.shape) - known) / scale
    return float(np.inf if np.isnan(gap).any() else gap.max())


class Data(NamedTuple):
    """A tensor (n, d) of the graph, and its values (m, d) for a few rows."""

    tensor: Tensor
    rows: np.ndarray

    def columns(self, chosen: np.ndarray) -> Data:
        return Data(self.tensor.columns(chosen), self.rows[:, chosen])


def transform(transformer: Any, X: Data) -> Data:
    """Output of a fitted transformer, (n, p); "passthrough" and None change nothing."""
    transformer, X = last_step(transformer, X)
    if transformer is None or isinstance(transformer, str):
        return X
    if type(transformer) is ColumnTransformer:
        return _of_columns(transformer, X)
    with warnings.catch_warnings():
        # Only the whole model knows the names of columns.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        rows = np.asarray(transformer.transform(X.rows), dtype=np.float64)
    if is_network(transformer):
        return Data(network_outputs(X.tensor, features=transformer)["features"], rows)
    own = _TRANSFORMERS.get(type(transformer))
    Z = None if own is None else own(transformer, X.tensor)
    return Data(convert(transformer, "transform", X.tensor, X.rows) if Z is None else Z, rows)


def last_step(estimator: Any, X: Data) -> tuple[Any, Data]:
    """Return the estimator inside frozen ones and at the end of pipelines, with its inputs."""
    estimator = unfrozen(estimator)
    if type(estimator) is Pipeline:
        for _, step in estimator.steps[:-1]:
            X = transform(step, X)
        return last_step(estimator.steps[-1][1], X)
    return estimator, X


def _of_columns(model: ColumnTransformer, X: Data) -> Data:
    parts = []
    for name, transformer, _ in model.transformers_:
        numbers = np.asarray(model._transformer_to_input_indices[name], dtype=int)
        if len(numbers) and not (isinstance(transformer, str) and transformer == "drop"):
            parts.append(transform(transformer, X.columns(numbers)))
    whole = X.tensor.graph.op("Concat", *[part.tensor for part in parts], axis=1)
    return Data(whole, np.hstack([part.rows for part in parts]))


def _standard(model: StandardScaler, X: Tensor) -> Tensor:
    X = X if model.mean_ is None or not model.with_mean else X - model.mean_
    return X if model.scale_ is None else X / model.scale_


def _unit(model: Normalizer, X: Tensor) -> Tensor | None:
    if model.norm != "l2":
        return None
    length = X.reduce("SumSquare", 1, keep=True).apply("Sqrt")
    # scikit-learn treats a length of rounding size as zero, and leaves the row unchanged.
    return X / (length < 10 * np.finfo(np.float64).eps).where(1.0, length)


def _logit(model: LogitPixels, X: Tensor) -> Tensor:
    inside = X.at_least(0.0).at_most(1.0)
    cell = (inside * (model.levels - 1.0) + 0.5) / float(model.levels)
    level = cell * (1 - 2 * model.lam) + model.lam
    # Values that the transformer refuses become NaN here, and the row is flagged.
    outside = (X - 0.5).apply("Abs") > 0.5 + ROUNDING
    return outside.where(np.nan, level.apply("Log") - log1p(-level))


def _signed_power(model: SignedPower, X: Tensor) -> Tensor:
    size = X.apply("Abs")
    power = X.graph.op("Pow", size, float(model.exponent)) if model.exponent else log1p(size)
    return X.apply("Sign") * power


_TRANSFORMERS: dict[type, Callable[[Any, Tensor], Tensor | None]] = {
    StandardScaler: _standard,
    Normalizer: _unit,
    LogitPixels: _logit,
    SignedPower: _signed_power,
}


# Trees


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
    ways = t.children_left, t.children_right, t.missing_go_to_left
    leaf, values = t.children_left < 0, t.value[:, 0, :] * scale
    return Tree(t.feature, t.threshold, *ways, leaf, values, first)


def round_as_float32(X: Tensor) -> Tensor:
    """X rounded to float32, as scikit-learn's trees compare it."""
    return X.cast(np.float32).cast(np.float64)


def _forest(model: Any, X: Data) -> Tensor:
    members = getattr(model, "estimators_", [model])
    trees = [_nodes(member) for member in members]
    return sum_trees(round_as_float32(X.tensor), trees, len(model.classes_)) / float(len(trees))


def _boosted_scores(model: GradientBoostingClassifier, X: Data) -> Tensor | None:
    known = isinstance(model.init_, str) or type(model.init_) is DummyClassifier
    if model.loss != "log_loss" or not known:
        return None
    start: np.ndarray = model._raw_predict_init(np.zeros((1, model.n_features_in_)))
    pairs = ((column, tree) for stage in model.estimators_ for column, tree in enumerate(stage))
    trees = [_nodes(tree, model.learning_rate, column) for column, tree in pairs]
    return sum_trees(round_as_float32(X.tensor), trees, start.shape[1]) + start


def _histogram_boosted_scores(model: HistGradientBoostingClassifier, X: Data) -> Tensor:
    start: np.ndarray = model._baseline_prediction
    return sum_trees(X.tensor, list(_histogram_trees(model)), start.shape[1]) + start


def _boosted(model: Any, X: Data) -> Tensor | None:
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
RAW_SCORES: dict[type, Callable[[Any, Data], Tensor | None]] = {
    GradientBoostingClassifier: _boosted_scores,
    HistGradientBoostingClassifier: _histogram_boosted_scores,
}


def _lightgbm(model: Any, X: Data) -> Tensor | None:
    dump = model.booster_.dump_model()
    objective, *settings = dump["objective"].split()
    options = dict(setting.split(":") for setting in settings if ":" in setting)
    if objective not in ("binary", "multiclass") or dump["average_output"]:
        return None
    columns = dump["num_tree_per_iteration"]
    roots = [tree["tree_structure"] for tree in dump["tree_info"]]
    nodes = [list(_numbered(root)) for root in roots]
    if any("leaf_coeff" in node for tree in nodes for node in tree):
        raise TypeError(
            "LGBMClassifier with linear_tree=True cannot be exported to ONNX, whose leaves hold "
            "numbers; fit it with linear_tree=False"
        )
    if any(not _is_plain(node) for tree in nodes for node in tree):
        return None
    raw = sum_trees(
        X.tensor, [_lightgbm_tree(tree, i % columns) for i, tree in enumerate(nodes)], columns
    )
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
    """Return whether a node is a leaf, or compares a number with a threshold."""
    return "leaf_value" in node or (
        node["decision_type"] == "<=" and node["missing_type"] != "Zero"
    )


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


def _xgboost(model: Any, X: Data) -> Tensor | None:
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    objective, boosted = learner["objective"]["name"], learner["gradient_booster"]
    if objective not in ("binary:logistic", "multi:softprob") or boosted["name"] != "gbtree":
        return None
    trees, columns = boosted["model"]["trees"], boosted["model"]["tree_info"]
    last = getattr(model.get_booster(), "best_iteration", None)
    if last is not None:
        kept = boosted["model"]["iteration_indptr"][last + 1]
        trees, columns = trees[:kept], columns[:kept]
    if any(any(t["split_type"]) or int(t["tree_param"]["size_leaf_vector"]) > 1 for t in trees):
        return None
    k = 1 if objective == "binary:logistic" else len(model.classes_)
    base = np.array(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float64)
    parts = [_xgboost_tree(tree, column) for tree, column in zip(trees, columns, strict=True)]
    raw = sum_trees(round_as_float32(X.tensor), parts, k)
    if k == 1:
        return two_classes(raw + special.logit(base.reshape(-1)))
    return softmax(raw + np.broadcast_to(base, k))


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


# Classifiers


def probabilities(classifier: Any, X: Data) -> Tensor:
    """Class probabilities (n, k) of a fitted classifier, in the order of its classes."""
    classifier, X = last_step(classifier, X)
    if is_network(classifier):
        return network_outputs(X.tensor, classifier)["probabilities"]
    own = _CLASSIFIERS.get(type(classifier))
    if is_type(type(classifier), "lightgbm.LGBMClassifier"):
        own = _lightgbm
    elif is_type(type(classifier), "xgboost.XGBClassifier"):
        own = _xgboost
    P = None if own is None else own(classifier, X)
    return convert(classifier, "predict_proba", X.tensor, X.rows) if P is None else P


def margins(classifier: Any, X: Data) -> Tensor | None:
    """``decision_function``, (n, k), or (n, 1) of two classes; probabilities without one.

    None if it has no graph.
    """
    classifier, X = last_step(classifier, X)
    if type(classifier) in _LINEAR:
        return _decision(classifier, X)
    if type(classifier) in RAW_SCORES:
        return RAW_SCORES[type(classifier)](classifier, X)
    if hasattr(classifier, "decision_function"):
        return None
    P = probabilities(classifier, X)
    return P.columns(np.array([1])) if len(classifier.classes_) == 2 else P


def _decision(model: Any, X: Data) -> Tensor:
    return X.tensor @ _float64(model.coef_).T + _float64(model.intercept_)


def _float64(learned: Any) -> np.ndarray:
    """Return learned numbers in the type of the graph; from inputs in float32 it is float32."""
    return np.asarray(learned, dtype=np.float64)


def _linear(model: Any, X: Data) -> Tensor | None:
    if getattr(model, "solver", None) == "liblinear" and len(model.classes_) > 2:
        return None
    decision = _decision(model, X)
    return two_classes(decision) if len(model.classes_) == 2 else softmax(decision)


def _voting(model: VotingClassifier, X: Data) -> Tensor | None:
    if model.voting != "soft":
        return None
    parts = [probabilities(part, X) for part in model.estimators_]
    weights = np.ones(len(parts)) if model.weights is None else np.asarray(model._weights_not_none)
    return _weighted_mean(parts, weights)


def _bagging(model: BaggingClassifier, X: Data) -> Tensor | None:
    k = len(model.classes_)
    if not all(np.array_equal(part.classes_, np.arange(k)) for part in model.estimators_):
        return None
    parts = [
        probabilities(part, X.columns(np.asarray(chosen)))
        for part, chosen in zip(model.estimators_, model.estimators_features_, strict=True)
    ]
    return _weighted_mean(parts, np.ones(len(parts)))


def _weighted_mean(parts: list[Tensor], weights: np.ndarray) -> Tensor:
    total = parts[0] * float(weights[0])
    for part, weight in zip(parts[1:], weights[1:].tolist(), strict=True):
        total = total + part * weight
    return total / float(weights.sum())


def _calibrated(model: CalibratedClassifierCV, X: Data) -> Tensor | None:
    parts = [_calibrated_part(part, model.classes_, X) for part in model.calibrated_classifiers_]
    known = [part for part in parts if part is not None]
    return _weighted_mean(known, np.ones(len(known))) if len(known) == len(parts) else None


def _calibrated_part(part: Any, classes: np.ndarray, X: Data) -> Tensor | None:
    """One classifier and its calibrators, one per class (a single one for two classes)."""
    if part.method not in _CALIBRATIONS or not np.array_equal(part.estimator.classes_, classes):
        return None
    scores = margins(part.estimator, X)
    if scores is None:
        return None
    P = _CALIBRATIONS[part.method](part.calibrators, scores)
    if len(classes) == 2:
        return P.graph.op("Concat", 1.0 - P, P, axis=1)
    total = P.reduce("Sum", 1, keep=True)
    return (total > 0.0).where(P / total, 1 / len(classes))


def _sigmoids(calibrators: Sequence[Any], scores: Tensor) -> Tensor:
    slope = np.array([c.a_ for c in calibrators])
    return sigmoid(-(scores * slope + np.array([c.b_ for c in calibrators])))


def _isotonic(calibrators: Sequence[Any], scores: Tensor) -> Tensor:
    # A single step has one point: a second makes a table of it.
    pairs = [(_float64(c.X_thresholds_), _float64(c.y_thresholds_)) for c in calibrators]
    knots = [np.append(x, x[0] + 1.0) if len(x) == 1 else x for x, _ in pairs]
    values = [np.append(y, y[0]) if len(y) == 1 else y for _, y in pairs]
    return interpolate(scores, knots, values)


_CALIBRATIONS = {"sigmoid": _sigmoids, "isotonic": _isotonic}
_LINEAR = (LogisticRegression, LinearDiscriminantAnalysis)
_CLASSIFIERS: dict[type, Callable[[Any, Data], Tensor | None]] = {
    **dict.fromkeys(_LINEAR, _linear),
    DecisionTreeClassifier: _forest,
    ExtraTreeClassifier: _forest,
    RandomForestClassifier: _forest,
    ExtraTreesClassifier: _forest,
    **dict.fromkeys(RAW_SCORES, _boosted),
    VotingClassifier: _voting,
    BaggingClassifier: _bagging,
    CalibratedClassifierCV: _calibrated,
}
