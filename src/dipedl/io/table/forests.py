"""Trees and ensembles of trees."""

from __future__ import annotations

from typing import Any

from .. import checks as c
from ..homes import is_type
from ..objects import is_a, model
from .entry import CLASSES, WIDE, Entry

_TREE = "sklearn.tree._tree.Tree"
_CLASSIFIERS = ("sklearn.tree.DecisionTreeClassifier", "sklearn.tree.ExtraTreeClassifier")
_REGRESSORS = ("sklearn.tree.DecisionTreeRegressor", "sklearn.tree.ExtraTreeRegressor")
_RANDOM = is_a("numpy.random.RandomState")
_LOSS = "sklearn._loss.loss"
_LOSSES = tuple(f"{_LOSS}.{name}" for name in ("HalfMultinomialLoss", "HalfBinomialLoss"))
_HIST = "sklearn.ensemble._hist_gradient_boosting"


_ROUNDING = 1e-6
_MAX_FEATURES = {"max_features_": c.count()}
_COUNTED = CLASSES | {"n_classes_": c.count("k")}
_SAMPLES = {
    "_n_samples": c.count(),
    "_n_samples_bootstrap": c.maybe(c.count()),
    "_sample_weight": c.maybe(c.floats("*")),
}
_OUT_OF_BAG = {
    "oob_score_": c.number(),
    "oob_decision_function_": c.floats("*", "k", finite=False),
}
_FOREST = Entry(
    _COUNTED
    | {"n_outputs_": c.count(1), "estimators_": c.each(is_a(*_CLASSIFIERS, d="d", k="k"), "trees")},
    _SAMPLES | _OUT_OF_BAG | {"estimator_": is_a(*_CLASSIFIERS)},
)
#: Each tree reads some of the columns.
_BAG = {
    "_max_features": c.count("m", 1),
    "estimators_features_": c.each(c.ints("m", least=0, below="d")),
}


def _shares_add_up(tree: Any, sizes: c.Sizes) -> None:
    """The values of a node are the shares of the classes, and the answer as they are."""
    shares = tree.tree_.value
    sound = (shares >= 0).all() and (abs(shares.sum(axis=2) - 1) < _ROUNDING).all()
    c.need(sound, "have shares that do not add up to 1")


def _restore_paths(forest: Any) -> None:
    """The depth of each node, as the fit computes it."""
    from sklearn.ensemble._iforest import _average_path_length

    trees = [member.tree_ for member in forest.estimators_]
    forest._average_path_length_per_tree = tuple(
        _average_path_length(tree.n_node_samples) for tree in trees
    )
    forest._decision_path_lengths = tuple(tree.compute_node_depths() for tree in trees)


def _one_column_each(model: Any, sizes: c.Sizes) -> None:
    """A binary model has one tree per stage, any other one per class."""
    c.need(sizes["trees"] == (1 if sizes["k"] == 2 else sizes["k"]), "have not one tree per class")
    loss = model._loss
    c.need(loss.n_classes == sizes["k"] or sizes["k"] == 2, "have a loss of other classes")
    c.need(is_type(type(loss), _LOSS, "HalfMultinomialLoss") == (sizes["k"] > 2), "have no loss")


def _bins_fit(model: Any, sizes: c.Sizes) -> None:
    """Nodes read columns, and categories of columns that have some."""
    bins = model._bin_mapper
    width = sizes["f"]
    c.need(len(bins.is_categorical_) == width, "have bins of another width")
    for predictor in (p for stage in model._predictors for p in stage):
        inner = predictor.nodes[predictor.nodes["is_leaf"] == 0]
        c.need((inner["feature_idx"] < width).all(), "split on features that there are not")
        columns = inner["feature_idx"][inner["is_categorical"] == 1]
        c.need(bins.is_categorical_[columns].all(), "split a number as a category")
    _preprocessor_fits(model, sizes)


def _preprocessor_fits(model: Any, sizes: c.Sizes) -> None:
    """The trees read what the preprocessor writes, without a look at its width."""
    made, mask = model._preprocessor, model.is_categorical_
    c.need(sizes["f"] == sizes["d"], "have another width")
    if made is None:
        return
    kinds = ["sklearn.preprocessing.OrdinalEncoder", "sklearn.preprocessing.FunctionTransformer"]
    is_a("sklearn.compose.ColumnTransformer", d="d")(made, sizes)
    steps = [step for step in made.transformers_ if step[0] != "remainder"]
    c.need(len(steps) == 2 and made.remainder == "drop" and mask is not None, "have other steps")
    for (_, step, columns), kind, wanted in zip(steps, kinds, (mask, ~mask), strict=True):
        is_a(kind)(step, sizes)
        c.bools("f")(columns, sizes)
        c.need((columns == wanted).all(), "encode other columns")
    c.need(len(steps[0][1].categories_) == mask.sum(), "encode other columns")


def _categories_are_bits(bins: Any, sizes: c.Sizes) -> None:
    for edges, categorical in zip(bins.bin_thresholds_, bins.is_categorical_, strict=True):
        if categorical:
            bits = (edges >= 0) & (edges < 256) & (edges % 1 == 0)
            c.need(bits.all(), "have no such categories")


def _some_weigh(forest: Any, sizes: c.Sizes) -> None:
    c.need(forest.estimator_weights_.any(), "have weights that are all 0")


def _same_trees(forest: Any, sizes: c.Sizes) -> None:
    c.need(len(forest.estimators_) == len(forest.estimators_features_), "are not one per tree")


ENTRIES: dict[str, Entry] = {
    **{
        name: Entry(
            _COUNTED | {"n_outputs_": c.count(1), "tree_": is_a(_TREE, d="d", k="k")},
            _MAX_FEATURES,
            where=(_shares_add_up,),
            unread=True,
        )
        for name in _CLASSIFIERS
    },
    **{
        name: Entry(
            WIDE | {"n_outputs_": c.count(1), "tree_": is_a(_TREE, d="d", k=1)},
            _MAX_FEATURES,
            unread=True,
        )
        for name in _REGRESSORS
    },
    "sklearn.ensemble.RandomForestClassifier": _FOREST,
    "sklearn.ensemble.ExtraTreesClassifier": _FOREST,
    "sklearn.ensemble.IsolationForest": Entry(
        WIDE
        | _BAG
        | {"_max_samples max_samples_": c.count(least=1), "offset_": c.number()}
        | {"estimators_": c.each(is_a(*_REGRESSORS, d="m"))},
        _SAMPLES | {"estimator_": is_a(*_REGRESSORS), "_seeds": c.ints("*")},
        where=(_same_trees,),
        dropped=frozenset({"_average_path_length_per_tree", "_decision_path_lengths"}),
        restore=_restore_paths,
    ),
    "sklearn.ensemble.BaggingClassifier": Entry(
        _COUNTED | _BAG | {"estimators_": c.each(model(d="m"))},
        _SAMPLES
        | _OUT_OF_BAG
        | {"_max_samples": c.count(), "_seeds": c.ints("*"), "estimator_": model()},
        where=(_same_trees,),
    ),
    "sklearn.ensemble.AdaBoostClassifier": Entry(
        _COUNTED
        | {"estimators_": c.each(model(d="d", k="k"))}
        | {"estimator_weights_": c.floats("*", least=0)},
        {"estimator_errors_": c.floats("*"), "estimator_": model()},
        where=(_some_weigh,),
    ),
    "sklearn.ensemble.GradientBoostingClassifier": Entry(
        _COUNTED
        | {
            "n_trees_per_iteration_": c.count("trees"),
            "estimators_": c.grid(is_a(*_REGRESSORS, d="d"), "stages", "trees"),
            "init_": c.either(c.one_of("zero"), model(d="d", k="k")),
            "_loss": is_a(*_LOSSES, f"{_LOSS}.ExponentialLoss"),
        },
        _MAX_FEATURES
        | {"n_estimators_": c.count(), "_rng": _RANDOM, "oob_score_": c.number()}
        | {"train_score_ oob_improvement_ oob_scores_": c.floats("*")},
        parameters={"learning_rate": c.real(0)},
        where=(_one_column_each,),
    ),
    f"{_HIST}.binning._BinMapper": Entry(
        {
            "is_categorical_": c.ints("f", dtype="u1"),
            "bin_thresholds_": c.each(c.floats("*", finite=False), "f"),
            "n_bins_non_missing_": c.ints("f"),
            "missing_values_bin_idx_": c.count(),
        },
        where=(_categories_are_bits,),
    ),
    "sklearn.ensemble.HistGradientBoostingClassifier": Entry(
        CLASSES
        | {
            "_n_features": c.count("f", 1),
            "n_trees_per_iteration_": c.count("trees", 1),
            "_baseline_prediction": c.doubles(1, "trees"),
            "_predictors": c.each(c.each(is_a(f"{_HIST}.predictor.TreePredictor"), "trees")),
            "_bin_mapper": is_a(f"{_HIST}.binning._BinMapper"),
            "_loss": is_a(*_LOSSES),
            "_label_encoder": is_a("sklearn.preprocessing.LabelEncoder", k="k"),
            "_preprocessor": c.maybe(model()),
            "is_categorical_": c.maybe(c.bools("f")),
        },
        {
            "_is_categorical_remapped": c.maybe(c.bools("f")),
            "_feature_subsample_rng": is_a("numpy.random.Generator"),
            "do_early_stopping_ _use_validation_data": c.flag,
            "_scorer": c.one_of(None),
            "_random_seed train_score_ validation_score_": c.plain,
        },
        where=(_one_column_each, _bins_fit),
    ),
}
