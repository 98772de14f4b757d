"""Trees and ensembles of trees."""

from __future__ import annotations

from typing import Any

from ..checks import (
    Sizes,
    bools,
    count,
    doubles,
    each,
    either,
    flag,
    floats,
    grid,
    ints,
    labels,
    maybe,
    need,
    number,
    one_of,
    plain,
    real,
)
from ..objects import is_a, model
from .entry import WIDE, Entry

_TREE = "sklearn.tree._tree.Tree"
_CLASSIFIERS = ("sklearn.tree.DecisionTreeClassifier", "sklearn.tree.ExtraTreeClassifier")
_REGRESSORS = ("sklearn.tree.DecisionTreeRegressor", "sklearn.tree.ExtraTreeRegressor")
_RANDOM = is_a("numpy.random.RandomState")
_LOSSES = tuple(
    f"sklearn._loss.loss.{name}" for name in ("HalfMultinomialLoss", "HalfBinomialLoss")
)
_HIST = "sklearn.ensemble._hist_gradient_boosting"


def _tree(classes: str | int) -> dict[str, Any]:
    own = {"classes_": labels(), "n_classes_": count("k")} if classes == "k" else {}
    return WIDE | own | {"n_outputs_": count(1), "tree_": is_a(_TREE, d="d", k=classes)}


_ROUNDING = 1e-6
_MAX_FEATURES = {"max_features_": count()}
_SAMPLES = {
    "_n_samples": count(),
    "_n_samples_bootstrap": maybe(count()),
    "_sample_weight": maybe(floats("*")),
}
_FOREST = Entry(
    WIDE
    | {
        "classes_": labels(),
        "n_classes_": count("k"),
        "n_outputs_": count(1),
        "estimators_": each(is_a(*_CLASSIFIERS, d="d", k="k"), "trees"),
    },
    _SAMPLES
    | {"estimator_": is_a(*_CLASSIFIERS), "oob_score_": number()}
    | {"oob_decision_function_": floats("*", "k", finite=False)},
)


def _shares_add_up(tree: Any, sizes: Sizes) -> None:
    """The values of a node are the shares of the classes, and the answer as they are."""
    shares = tree.tree_.value
    sound = (shares >= 0).all() and (abs(shares.sum(axis=2) - 1) < _ROUNDING).all()
    need(sound, "have shares that do not add up to 1")


def _restore_paths(forest: Any) -> None:
    """The depth of each node, as the fit computes it."""
    from sklearn.ensemble._iforest import _average_path_length

    trees = [member.tree_ for member in forest.estimators_]
    forest._average_path_length_per_tree = tuple(
        _average_path_length(tree.n_node_samples) for tree in trees
    )
    forest._decision_path_lengths = tuple(tree.compute_node_depths() for tree in trees)


def _one_column_each(model: Any, sizes: Sizes) -> None:
    """A binary model has one tree per stage, any other one per class."""
    need(sizes["trees"] == (1 if sizes["k"] == 2 else sizes["k"]), "have not one tree per class")
    loss = model._loss
    need(loss.n_classes == sizes["k"] or sizes["k"] == 2, "have a loss of other classes")
    need((type(loss).__name__ == _LOSSES[0].rpartition(".")[2]) == (sizes["k"] > 2), "have no loss")


def _bins_fit(model: Any, sizes: Sizes) -> None:
    """Nodes read columns, and categories of columns that have some."""
    bins = model._bin_mapper
    width = sizes["f"]
    need(len(bins.is_categorical_) == width, "have bins of another width")
    for predictor in (p for stage in model._predictors for p in stage):
        inner = predictor.nodes[predictor.nodes["is_leaf"] == 0]
        need((inner["feature_idx"] < width).all(), "split on features that there are not")
        columns = inner["feature_idx"][inner["is_categorical"] == 1]
        need(bins.is_categorical_[columns].all(), "split a number as a category")
    _preprocessor_fits(model, sizes)


def _preprocessor_fits(model: Any, sizes: Sizes) -> None:
    """The trees read what the preprocessor writes, without a look at its width."""
    made, mask = model._preprocessor, model.is_categorical_
    need(sizes["f"] == sizes["d"], "have another width")
    if made is None:
        return
    kinds = ["sklearn.preprocessing.OrdinalEncoder", "sklearn.preprocessing.FunctionTransformer"]
    is_a("sklearn.compose.ColumnTransformer", d="d")(made, sizes)
    steps = [step for step in made.transformers_ if step[0] != "remainder"]
    need(len(steps) == 2 and made.remainder == "drop" and mask is not None, "have other steps")
    for (_, step, columns), kind, wanted in zip(steps, kinds, (mask, ~mask), strict=True):
        is_a(kind)(step, sizes)
        bools("f")(columns, sizes)
        need((columns == wanted).all(), "encode other columns")
    need(len(steps[0][1].categories_) == mask.sum(), "encode other columns")


def _categories_are_bits(bins: Any, sizes: Sizes) -> None:
    for edges, categorical in zip(bins.bin_thresholds_, bins.is_categorical_, strict=True):
        if categorical:
            need(((edges >= 0) & (edges < 256) & (edges % 1 == 0)).all(), "have no such categories")


def _some_weigh(forest: Any, sizes: Sizes) -> None:
    need(forest.estimator_weights_.any(), "have weights that are all 0")


def _same_trees(forest: Any, sizes: Sizes) -> None:
    need(len(forest.estimators_) == len(forest.estimators_features_), "are not one per tree")


ENTRIES: dict[str, Entry] = {
    **{
        name: Entry(_tree("k"), _MAX_FEATURES, where=(_shares_add_up,), unread=True)
        for name in _CLASSIFIERS
    },
    **{name: Entry(_tree(1), _MAX_FEATURES, unread=True) for name in _REGRESSORS},
    "sklearn.ensemble.RandomForestClassifier": _FOREST,
    "sklearn.ensemble.ExtraTreesClassifier": _FOREST,
    "sklearn.ensemble.IsolationForest": Entry(
        WIDE
        | {
            "_max_features": count("m", 1),
            "_max_samples": count(least=1),
            "max_samples_": count(least=1),
            "offset_": number(),
            "estimators_": each(is_a(*_REGRESSORS, d="m")),
            "estimators_features_": each(ints("m", least=0, below="d")),
        },
        _SAMPLES | {"estimator_": is_a(*_REGRESSORS), "_seeds": ints("*")},
        where=(_same_trees,),
        dropped=frozenset({"_average_path_length_per_tree", "_decision_path_lengths"}),
        restore=_restore_paths,
    ),
    "sklearn.ensemble.BaggingClassifier": Entry(
        WIDE
        | {
            "classes_": labels(),
            "n_classes_": count("k"),
            "_max_features": count("m", 1),
            "estimators_": each(model(d="m")),
            "estimators_features_": each(ints("m", least=0, below="d")),
        },
        _SAMPLES
        | {"_max_samples": count(), "_seeds": ints("*"), "estimator_": model()}
        | {"oob_score_": number(), "oob_decision_function_": floats("*", "k", finite=False)},
        where=(_same_trees,),
    ),
    "sklearn.ensemble.AdaBoostClassifier": Entry(
        WIDE
        | {
            "classes_": labels(),
            "n_classes_": count("k"),
            "estimators_": each(model(d="d", k="k")),
            "estimator_weights_": floats("*", least=0),
        },
        {"estimator_errors_": floats("*"), "estimator_": model()},
        where=(_some_weigh,),
    ),
    "sklearn.ensemble.GradientBoostingClassifier": Entry(
        WIDE
        | {
            "classes_": labels(),
            "n_classes_": count("k"),
            "n_trees_per_iteration_": count("trees"),
            "estimators_": grid(is_a(*_REGRESSORS, d="d"), "stages", "trees"),
            "init_": either(one_of("zero"), model(d="d", k="k")),
            "_loss": is_a(*_LOSSES, "sklearn._loss.loss.ExponentialLoss"),
        },
        _MAX_FEATURES
        | {"n_estimators_": count(), "_rng": _RANDOM, "oob_score_": number()}
        | {name: floats("*") for name in ("train_score_", "oob_improvement_", "oob_scores_")},
        parameters={"learning_rate": real(0)},
        where=(_one_column_each,),
    ),
    f"{_HIST}.binning._BinMapper": Entry(
        {
            "is_categorical_": ints("f", dtype="u1"),
            "bin_thresholds_": each(floats("*", finite=False), "f"),
            "n_bins_non_missing_": ints("f"),
            "missing_values_bin_idx_": count(),
        },
        where=(_categories_are_bits,),
    ),
    "sklearn.ensemble.HistGradientBoostingClassifier": Entry(
        WIDE
        | {
            "classes_": labels(),
            "_n_features": count("f", 1),
            "n_trees_per_iteration_": count("trees", 1),
            "_baseline_prediction": doubles(1, "trees"),
            "_predictors": each(each(is_a(f"{_HIST}.predictor.TreePredictor"), "trees")),
            "_bin_mapper": is_a(f"{_HIST}.binning._BinMapper"),
            "_loss": is_a(*_LOSSES),
            "_label_encoder": is_a("sklearn.preprocessing.LabelEncoder", k="k"),
            "_preprocessor": maybe(model()),
            "is_categorical_": maybe(bools("f")),
        },
        {
            "_is_categorical_remapped": maybe(bools("f")),
            "_feature_subsample_rng": is_a("numpy.random.Generator"),
            "do_early_stopping_": flag,
            "_use_validation_data": flag,
            "_scorer": one_of(None),
        }
        | {name: plain for name in ("_random_seed", "train_score_", "validation_score_")},
        where=(_one_column_each, _bins_fit),
    ),
}
