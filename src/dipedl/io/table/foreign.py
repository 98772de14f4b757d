"""Estimators of scikit-learn, LightGBM and XGBoost that a file may hold: a list of types by name.

What scikit-learn calls by one name has one check, whatever the type; all other attributes may hold
anything plain whose numbers are finite. A type has an entry of its own for what is more than that:
indices that compiled code or a sparse matrix trusts, numbers that an answer divides by, names of
methods, memory that an answer takes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .. import checks as c
from ..functions import function_name
from ..homes import is_type
from .entry import CLASSES, COMMON, WIDE, Entry, by_one_name

_LABELS = c.is_a("sklearn.preprocessing.LabelEncoder", k="k")
_BINARIZER = c.is_a("sklearn.preprocessing.LabelBinarizer", k="k")
_ANY = c.floats("d", finite=False)
_VOCABULARY = COMMON | by_one_name(
    {
        "classes_": c.labels(),
        "n_classes_": c.count("k"),
        "_le le_ _label_encoder": _LABELS,
        "_label_binarizer label_binarizer_": _BINARIZER,
        "coef_": c.either(c.floats("outputs", "d"), c.floats("d")),
        "intercept_": c.either(c.floats("outputs"), c.floats("pairs"), c.real()),
        "class_prior_ priors_ weights_": c.shares("k"),
        "means_ theta_ centroids_ feature_count_": c.floats("k", "d"),
        "class_count_": c.floats("k"),
        "class_log_prior_": c.logs("k"),
        "feature_log_prob_": c.either(c.logs("k", "d"), c.each(c.logs("k", "*"), "d")),
        "feature_all_ mean_ var_ xbar_ idf_": c.floats("d"),
        "scalings_": c.either(c.floats("d", "*"), c.each(c.positive("*"), "k")),
        "rotations_": c.each(c.floats("d", "*"), "k"),
        "components_": c.floats("c", "d"),
        "explained_variance_ explained_variance_ratio_ singular_values_": c.floats("c"),
        "beta_": c.real(0),
        # How a fit went: no answer depends on it.
        "n_iter_ t_ loss_ best_loss_ best_score_ best_validation_score_ loss_curve_": c.plain,
        "validation_scores_ validation_score_ train_score_ lower_bound_ lower_bounds_": c.plain,
        "loglike_ oob_score_ oob_scores_ oob_improvement_ oob_decision_function_": c.plain,
        "cv_results_ cv_values_ scores_ pvalues_ deviations_ n_samples_seen_": c.plain,
        "coefs_paths_ Cs_ C_ l1_ratio_ l1_ratios_ evals_result_ _evals_result": c.plain,
        "_best_score estimator_errors_ covariance_prior_ quantiles_ lambdas_": c.plain,
        "center_ scale_ min_ max_abs_ data_min_ data_max_ data_range_ variances_": c.maybe(_ANY),
    }
)
_ATTRIBUTE = re.compile(r"_?[a-zA-Z]\w*")


def _finite(value: Any, sizes: c.Sizes) -> None:
    """Anything whose floating point numbers are finite and products of two of them, too."""
    nested: Any = ()
    if isinstance(value, dict):
        nested = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        nested = value
    elif isinstance(value, np.ndarray):
        nested = value.ravel().tolist() if value.dtype == object else ()
    if isinstance(value, float | np.floating | np.ndarray) and np.asarray(value).dtype.kind in "fc":
        # Also of NaN this is not true.
        c.need((abs(np.asarray(value)) <= c.LARGEST).all(), "holds NaN or values beyond 1e+100")
    for item in nested:
        _finite(item, sizes)


def _needs(names: str) -> dict[str, c.Check]:
    """Return the checks of attributes without which a fitted object gives no answer."""
    return {name: _VOCABULARY.get(name, _finite) for name in names.split()}


@dataclass(frozen=True)
class Foreign(Entry):
    """Checks beyond the vocabulary of an object of another package.

    Attributes
    ----------
    unread : bool
        No answer reads a parameter: those are checked by the next fit.
    sign : str or None
        The attribute that tells a fitted object, where the constructor makes some of the others.
    more : set of str
        Parameters that the constructor takes as keywords without naming them.
    """

    unread: bool = False
    sign: str | None = None
    more: frozenset[str] = frozenset()

    @cached_property
    def _checks(self) -> dict[str, c.Check]:
        return {**_VOCABULARY, **self.fitted, **self.optional}

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The place of each name in the order in which attributes fix the sizes."""
        return {name: rank for rank, name in enumerate(self._checks)}

    def _checks_of(self, cls: type, state: Mapping[str, Any]) -> list[tuple[str, c.Check]]:
        names = sorted((name for name in state if name in self._ranks), key=self._ranks.__getitem__)
        others = [(name, _finite) for name in self._others(cls, state)]
        return [*((name, self._checks[name]) for name in names), *others]

    def _check_parameters(self, value: Any) -> None:
        if not self.unread:
            super()._check_parameters(value)

    def _parameter_names(self, cls: type) -> frozenset[str]:
        found = super()._parameter_names(cls)
        return found | self.more if self.more else found

    def _others(self, cls: type, state: Mapping[str, Any]) -> list[str]:
        """Return the attributes that neither the vocabulary nor the entry names."""
        names = self._parameter_names(cls)
        return [name for name in state if name not in self._ranks and name not in names]

    def _is_fitted(self, cls: type, state: Mapping[str, Any], made: Set[str]) -> bool:
        if self.sign is not None:
            return self.sign in state
        names = self._parameter_names(cls)
        left = [n for n in state if n not in names and n != "_sklearn_output_config"]
        return any(name not in made or name in self.fitted for name in left)

    def _check_names(self, cls: type, state: Mapping[str, Any]) -> None:
        """Refuse names that no attribute has, and those of methods."""
        others = self._others(cls, state)
        odd = [name for name in others if not _ATTRIBUTE.fullmatch(name) or hasattr(cls, name)]
        c.need(not odd, f"{cls.__name__} has no {sorted(odd)} in this version")


# Trees and ensembles of trees

_TREE = "sklearn.tree._tree.Tree"
_CLASSIFIERS = ("sklearn.tree.DecisionTreeClassifier", "sklearn.tree.ExtraTreeClassifier")
_REGRESSORS = ("sklearn.tree.DecisionTreeRegressor", "sklearn.tree.ExtraTreeRegressor")
_LOSS = "sklearn._loss.loss"
_LOSSES = tuple(f"{_LOSS}.{name}" for name in ("HalfMultinomialLoss", "HalfBinomialLoss"))
_HIST = "sklearn.ensemble._hist_gradient_boosting"
_ROUNDING = 1e-6


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
    c.is_a("sklearn.compose.ColumnTransformer", d="d")(made, sizes)
    steps = [step for step in made.transformers_ if step[0] != "remainder"]
    c.need(len(steps) == 2 and made.remainder == "drop" and mask is not None, "have other steps")
    for (_, step, columns), kind, wanted in zip(steps, kinds, (mask, ~mask), strict=True):
        c.is_a(kind)(step, sizes)
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


_FOREST = Foreign(
    CLASSES
    | {
        "n_outputs_": c.count(1),
        "estimators_": c.each(c.is_a(*_CLASSIFIERS, d="d", k="k"), "trees"),
    }
)
#: Each tree reads some of the columns.
_BAG = {
    "_max_features": c.count("m", 1),
    "estimators_features_": c.each(c.ints("m", least=0, below="d")),
}
_TREES: dict[str, Entry] = {
    **dict.fromkeys(
        _CLASSIFIERS,
        Foreign(
            CLASSES | {"n_outputs_": c.count(1), "tree_": c.is_a(_TREE, d="d", k="k")},
            where=(_shares_add_up,),
            unread=True,
        ),
    ),
    **dict.fromkeys(
        _REGRESSORS,
        Foreign(WIDE | {"n_outputs_": c.count(1), "tree_": c.is_a(_TREE, d="d", k=1)}, unread=True),
    ),
    "sklearn.ensemble.RandomForestClassifier": _FOREST,
    "sklearn.ensemble.ExtraTreesClassifier": _FOREST,
    "sklearn.ensemble.IsolationForest": Foreign(
        WIDE
        | _BAG
        | {"_max_samples max_samples_": c.count(least=1)}
        | {"estimators_": c.each(c.is_a(*_REGRESSORS, d="m"))},
        where=(_same_trees,),
        dropped=frozenset({"_average_path_length_per_tree", "_decision_path_lengths"}),
        restore=_restore_paths,
    ),
    "sklearn.ensemble.BaggingClassifier": Foreign(
        CLASSES | _BAG | {"estimators_": c.each(c.model(d="m"))}, where=(_same_trees,)
    ),
    "sklearn.ensemble.AdaBoostClassifier": Foreign(
        CLASSES
        | {
            "estimators_": c.each(c.model(d="d", k="k")),
            "estimator_weights_": c.floats("*", least=0),
        },
        where=(_some_weigh,),
    ),
    "sklearn.ensemble.GradientBoostingClassifier": Foreign(
        CLASSES
        | {
            "n_trees_per_iteration_": c.count("trees"),
            "estimators_": c.grid(c.is_a(*_REGRESSORS, d="d"), "stages", "trees"),
            "init_": c.either(c.one_of("zero"), c.model(d="d", k="k")),
            "_loss": c.is_a(*_LOSSES, f"{_LOSS}.ExponentialLoss"),
        },
        parameters={"learning_rate": c.real(0)},
        where=(_one_column_each,),
    ),
    f"{_HIST}.binning._BinMapper": Foreign(
        {
            "is_categorical_": c.ints("f", dtype="u1"),
            "bin_thresholds_": c.each(c.floats("*", finite=False), "f"),
            "n_bins_non_missing_": c.ints("f"),
            "missing_values_bin_idx_": c.count(),
        },
        where=(_categories_are_bits,),
    ),
    "sklearn.ensemble.HistGradientBoostingClassifier": Foreign(
        CLASSES
        | {
            "_n_features": c.count("f", 1),
            "n_trees_per_iteration_": c.count("trees", 1),
            "_baseline_prediction": c.doubles(1, "trees"),
            "_predictors": c.each(c.each(c.is_a(f"{_HIST}.predictor.TreePredictor"), "trees")),
            "_bin_mapper": c.is_a(f"{_HIST}.binning._BinMapper"),
            "_loss": c.is_a(*_LOSSES),
            "_preprocessor": c.maybe(c.model()),
            "is_categorical_": c.maybe(c.bools("f")),
        },
        {"_is_categorical_remapped": c.maybe(c.bools("f")), "_scorer": c.one_of(None)},
        where=(_one_column_each, _bins_fit),
    ),
}

# Neighbours and support vectors: rows that compiled code compares with

_SEARCH_TREES = ("sklearn.neighbors.KDTree", "sklearn.neighbors.BallTree")
#: Distances without arrays of their own.
_METRICS = c.one_of(
    *("euclidean", "l2", "sqeuclidean", "manhattan", "l1", "cityblock", "chebyshev", "infinity"),
    *("minkowski", "cosine", "correlation", "canberra", "braycurtis", "hamming"),
)
_POWER = c.maybe(c.number(0.01, 1e6))


def _powers(value: Any, sizes: c.Sizes) -> None:
    c.need(type(value) is dict and value.keys() <= {"p", "w"}, f"is {value!r}, not a power p")
    c.one_of(None)(value.get("w"), sizes)
    _POWER(value.get("p"), sizes)


def _parts_fit(index: Any, sizes: c.Sizes) -> None:
    """Compiled search trusts the tree, the rows and the number of neighbours."""
    rows, tree = index._fit_X, index._tree
    c.need(rows.flags.c_contiguous, "do not fit together: the rows are not in row order")
    c.need((tree is None) == (index._fit_method == "brute"), "do not fit together: no tree")
    if tree is not None:
        c.need(np.asarray(tree.data).shape == rows.shape, "do not fit together: another tree")
    wanted = index.n_neighbors
    inside = wanted is None or (isinstance(wanted, int | np.integer) and 1 <= wanted <= len(rows))
    c.need(inside, f"do not fit together: {wanted} neighbours of {len(rows)} rows")


def _supports_add_up(machine: Any, sizes: c.Sizes) -> None:
    c.need(machine._n_support.sum() == sizes["s"], "do not add up: supports of the classes")
    c.need(machine._intercept_.shape == machine.intercept_.shape, "do not add up: intercepts")
    width, pairs = len(machine._probA), sizes["k"] * (sizes["k"] - 1) // 2
    c.need(len(machine._probB) == width, "do not add up: probabilities")
    # What decides differs from version to version.
    settings = (machine.probability, getattr(machine, "_effective_probability", False))
    asked = any(setting is True for setting in settings)
    c.need(width == pairs or (width == 0 and not asked), "have no probabilities")


def _tree_fits(density: Any, sizes: c.Sizes) -> None:
    c.need(np.shape(density.tree_.data)[1] == sizes["d"], "have a tree of another width")


def _neighbours(votes: Mapping[str, c.Check]) -> Foreign:
    index = WIDE | {
        "n_samples_fit_": c.count("n", 1),
        "_fit_X": c.floats("n", "d"),
        "_tree": c.maybe(c.is_a(*_SEARCH_TREES)),
        "_fit_method": c.one_of("brute", "kd_tree", "ball_tree"),
        "effective_metric_": _METRICS,
        "effective_metric_params_": _powers,
    }
    search = {"metric": _METRICS, "metric_params": c.one_of(None), "p": _POWER}
    search["weights"] = c.one_of("uniform", "distance", None)
    return Foreign({**index, **votes}, parameters=search, where=(_parts_fit,))


_VOTES = {
    "classes_": c.labels(),
    "_y": c.ints("n", least=0, below="k", dtype=np.intp),
    "outputs_2d_": c.one_of(False),
}
_MACHINE = Foreign(
    CLASSES
    | {
        "support_": c.ints("s", least=0, dtype=np.int32),
        "support_vectors_": c.doubles("s", "d"),
        "_n_support": c.ints("k", least=0, dtype=np.int32),
        "dual_coef_": c.floats("k-1", "s"),
        "_dual_coef_": c.doubles("k-1", "s"),
        "intercept_": c.floats("pairs"),
        "_intercept_": c.doubles("pairs"),
        "_probA _probB": c.doubles("*"),
        "_gamma": c.number(0, 1e300),
        "_sparse": c.one_of(False),
    },
    parameters={
        "kernel": c.one_of("linear", "poly", "rbf", "sigmoid"),
        "degree": c.count(),
        "coef0": c.number(-1e300, 1e300),
        "cache_size": c.number(0, 1e6),
    },
    where=(_supports_add_up,),
)
_VECTORS: dict[str, Entry] = {
    "sklearn.neighbors.NearestNeighbors": _neighbours({}),
    "sklearn.neighbors.KNeighborsClassifier": _neighbours(_VOTES),
    "sklearn.neighbors.RadiusNeighborsClassifier": _neighbours(_VOTES),
    "sklearn.neighbors.KernelDensity": Foreign(
        WIDE | {"tree_": c.is_a(*_SEARCH_TREES), "bandwidth_": c.number(0, 1e300)},
        parameters={"metric": _METRICS, "metric_params": c.one_of(None)},
        where=(_tree_fits,),
    ),
    "sklearn.neighbors.NearestCentroid": Foreign(
        CLASSES | _needs("centroids_"),
        {"within_class_std_dev_": c.floats("d")},
        parameters={"metric": c.one_of("euclidean", "manhattan")},
    ),
    "sklearn.svm.SVC": _MACHINE,
    "sklearn.svm.NuSVC": _MACHINE,
}

# Probabilities that could be NaN, or none

_SHAPES: dict[str, tuple[str, ...]] = {
    "full": ("k", "d", "d"),
    "tied": ("d", "d"),
    "diag": ("k", "d"),
    "spherical": ("k",),
}


def _covariances_fit(mixture: Any, sizes: c.Sizes) -> None:
    for name in ("covariances_", "precisions_cholesky_", "precisions_"):
        c.floats(*_SHAPES[mixture.covariance_type])(getattr(mixture, name), sizes)
    factors = mixture.precisions_cholesky_
    if mixture.covariance_type in ("full", "tied"):
        factors = np.diagonal(factors, axis1=-2, axis2=-1)
    c.need((factors >= 1 / c.LARGEST).all(), "have precisions that are not positive")


def _freedom_suffices(mixture: Any, sizes: c.Sizes) -> None:
    c.need((mixture.degrees_of_freedom_ > sizes["d"] - 1).all(), "have too few degrees of freedom")


def _are_of_probabilities(bayes: Any, sizes: c.Sizes) -> None:
    likely = np.exp(bayes.feature_log_prob_) < 1
    c.need(likely.all(), "have logarithms of no probabilities")


def _layers_fit(network: Any, sizes: c.Sizes) -> None:
    """Each layer reads as many numbers as the one before it writes."""
    widths = [sizes["d"], *(len(bias) for bias in network.intercepts_)]
    shapes = [weight.shape for weight in network.coefs_]
    c.need(shapes == list(pairwise(widths)), "are layers that do not fit")
    c.need(network.n_layers_ == len(widths) and widths[-1] == network.n_outputs_, "lack a layer")
    outputs = 1 if sizes["k"] == 2 else sizes["k"]
    c.need(outputs == network.n_outputs_, "have other outputs than classes")


def _steps_rise(model: Any, sizes: c.Sizes) -> None:
    """Numbers between two steps are interpolated: equal ones would be divided by."""
    x, y = model.X_thresholds_, model.y_thresholds_
    c.need(len(x) and (np.diff(x) > 0).all(), "have steps that do not rise")
    c.need(x[0] == model.X_min_ and x[-1] == model.X_max_, "end elsewhere than their steps")
    least, most = (np.nan if bound is None else bound for bound in (model.y_min, model.y_max))
    c.need(not ((y < least) | (y > most)).any(), "have values out of their bounds")


def _calibrators_fit(calibrated: Any, sizes: c.Sizes) -> None:
    wanted = 1 if sizes["k"] == 2 or calibrated.method == "temperature" else sizes["k"]
    c.need(len(calibrated.calibrators) == wanted, "have not one calibrator per class")
    for calibrator in calibrated.calibrators:
        if hasattr(calibrator, "y_thresholds_"):
            steps = calibrator.y_thresholds_
            c.need(((steps >= 0) & (steps <= 1)).all(), "give what are no probabilities")
            c.need(calibrator.out_of_bounds == "clip", "give no probabilities beyond their steps")


_CALIBRATED = "sklearn.calibration._CalibratedClassifier"
_CALIBRATORS = c.is_a(
    *(f"sklearn.calibration.{name}" for name in ("_SigmoidCalibration", "_TemperatureScaling")),
    "sklearn.isotonic.IsotonicRegression",
)
_WEIGHT = c.positive("k")
_COUNTS = CLASSES | _needs("class_log_prior_ feature_log_prob_")
_MIXTURE = WIDE | _needs("weights_ means_")
_SGD = Foreign(
    CLASSES | _needs("coef_ intercept_"), dropped=frozenset({"_loss_function_", "loss_function_"})
)
_PROBABILITIES: dict[str, Entry] = {
    "sklearn.linear_model.SGDClassifier": _SGD,
    "sklearn.linear_model.Perceptron": _SGD,
    "sklearn.linear_model.PassiveAggressiveClassifier": _SGD,
    "sklearn.naive_bayes.GaussianNB": Foreign(
        CLASSES | _needs("theta_ class_prior_") | {"var_": c.positive("k", "d")}
    ),
    "sklearn.naive_bayes.BernoulliNB": Foreign(_COUNTS, where=(_are_of_probabilities,)),
    "sklearn.mixture.GaussianMixture": Foreign(_MIXTURE, where=(_covariances_fit,)),
    "sklearn.mixture.BayesianGaussianMixture": Foreign(
        _MIXTURE
        | {"weight_concentration_": c.either(_WEIGHT, c.fields(_WEIGHT, _WEIGHT))}
        | {"mean_precision_": _WEIGHT, "degrees_of_freedom_": c.floats("k")},
        where=(_covariances_fit, _freedom_suffices),
    ),
    "sklearn.neural_network.MLPClassifier": Foreign(
        CLASSES
        | _needs("_label_binarizer")
        | {"coefs_": c.each(c.floats("*", "*")), "intercepts_": c.each(c.floats("*"))}
        | {"out_activation_": c.one_of("softmax", "logistic")},
        where=(_layers_fit,),
    ),
    "sklearn.isotonic.IsotonicRegression": Foreign(
        {"X_min_ X_max_": c.real(), "X_thresholds_ y_thresholds_": c.floats("t")},
        where=(_steps_rise,),
        dropped=frozenset({"f_"}),
        # As scikit-learn does when it unpickles one.
        restore=lambda model: model._build_f(model.X_thresholds_, model.y_thresholds_),
    ),
    "sklearn.calibration.CalibratedClassifierCV": Foreign(
        {"classes_": c.labels(), "calibrated_classifiers_": c.each(c.is_a(_CALIBRATED), "folds")}
    ),
    _CALIBRATED: Foreign(
        {"classes": c.labels(), "estimator": c.model(k="k"), "calibrators": c.each(_CALIBRATORS)}
        | {"method": c.one_of("sigmoid", "isotonic", "temperature")},
        where=(_calibrators_fit,),
    ),
}

# Estimators of estimators

_STEP = c.either(c.one_of("passthrough", "drop", None), c.model())
_STEPS, _PLACED = c.each(c.fields(c.text, _STEP)), c.fields(c.text, _STEP, c.plain)
_VOTERS = _needs("classes_") | {
    "estimators_": c.each(c.model()),
    "named_estimators_": c.is_a("sklearn.utils.Bunch"),
}


def _columns_exist(table: Any, sizes: c.Sizes) -> None:
    """Columns by number lie in the table; those by name are looked up by scikit-learn."""
    for numbers in table._transformer_to_input_indices.values():
        c.need(all(0 <= n < sizes["d"] for n in numbers), "read columns that there are not")
    names = {name for name, *_ in table.transformers_}
    c.need(names <= table._transformer_to_input_indices.keys(), "have steps without columns")


_COMPOSED: dict[str, Entry] = {
    "sklearn.pipeline.Pipeline": Foreign(parameters={"steps": _STEPS}),
    "sklearn.pipeline.FeatureUnion": Foreign(
        parameters={"transformer_list": _STEPS},
        # Frames' own indices, which a fit keeps for the names of its columns.
        dropped=frozenset({"_transformers_feature_names_out"}),
    ),
    "sklearn.compose.ColumnTransformer": Foreign(
        WIDE
        | _needs("sparse_output_")
        | {"transformers_": c.each(_PLACED), "_remainder": _PLACED}
        | {"_transformer_to_input_indices output_indices_ _columns": c.plain},
        where=(_columns_exist,),
    ),
    "sklearn.frozen.FrozenEstimator": Foreign(parameters={"estimator": c.model()}),
    "sklearn.ensemble.VotingClassifier": Foreign(_VOTERS | _needs("le_")),
    "sklearn.ensemble.StackingClassifier": Foreign(
        _VOTERS
        | _needs("_label_encoder")
        | {"final_estimator_": c.model(k="k")}
        # Methods of these names are called.
        | {"stack_method_": c.each(c.one_of("predict_proba", "decision_function", "predict"))}
    ),
    "sklearn.multiclass.OneVsRestClassifier": Foreign(
        _needs("classes_ label_binarizer_") | {"estimators_": c.each(c.model(), "outputs")}
    ),
    "sklearn.multiclass.OneVsOneClassifier": Foreign(
        _needs("classes_")
        | {
            "estimators_": c.each(c.model(), "pairs", kind=tuple),
            "pairwise_indices_": c.one_of(None),
        }
    ),
}

# Transformers

_MOST_COLUMNS = 1 << 20
_MOST_LETTERS, _MOST_DEGREE = 50, 100
#: Patterns that no text makes slow.
_PATTERNS = c.one_of(r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", None)


def _polynomial_width(powers: Any, sizes: c.Sizes) -> None:
    """Require as many columns as there are powers: memory is taken by these numbers."""
    low, high, d = powers._min_degree, powers._max_degree, sizes["d"]
    c.need(0 <= low <= high <= _MOST_DEGREE and d <= _MOST_COLUMNS, "are of too high a degree")
    columns = _powers_between(powers, d, low, high)
    c.need(columns == powers.n_output_features_ <= _MOST_COLUMNS, f"make {columns} columns")
    every = _powers_between(powers, d, 0, high)
    c.need(every == powers._n_out_full <= _MOST_COLUMNS, f"make {every} columns")


def _powers_between(powers: Any, d: int, low: int, high: int) -> int:
    bias = int(powers.include_bias)
    if powers.interaction_only:
        return bias + sum(math.comb(d, i) for i in range(max(1, low), min(high, d) + 1))
    below = math.comb(d + low - 1, low - 1) - 1 if low else 0
    return bias + math.comb(d + high, high) - 1 - below


def _encoded_columns_fit(encoder: Any, sizes: c.Sizes) -> None:
    for categories in encoder.categories_:
        if categories.dtype.kind in "biuf":
            # Numbers are looked up by bisection: unsorted ones give columns that there are not.
            known = categories[~np.isnan(categories)]
            rising = len(categories) - len(known) <= 1 and (known[1:] > known[:-1]).all()
            c.need(rising, "have categories that are not sorted")
    if encoder._infrequent_enabled:
        grouped = (encoder._infrequent_indices, encoder._default_to_infrequent_mappings)
        for categories, rare, codes in zip(encoder.categories_, *grouped, strict=True):
            _rare_are_grouped(len(categories), rare, codes)
    dropped = getattr(encoder, "drop_idx_", None)
    if dropped is not None:
        for number, categories in zip(dropped.tolist(), encoder.categories_, strict=True):
            c.need(number is None or 0 <= number < len(categories), "drop an absent category")
    if hasattr(encoder, "_drop_idx_after_grouping"):
        # They are the width of a sparse matrix, whose columns nobody checks.
        c.need(encoder._n_features_outs == _encoded_widths(encoder), "have other columns")


def _encoded_widths(encoder: Any) -> list[int]:
    """Columns for each feature: one per category, one for all rare ones, less one if dropped."""
    categories, dropped = encoder.categories_, encoder._drop_idx_after_grouping
    rare = encoder._infrequent_indices if encoder._infrequent_enabled else [None] * len(categories)
    dropped = [None] * len(categories) if dropped is None else dropped
    return [
        len(names) - (0 if few is None else len(few) - 1) - (left_out is not None)
        for names, few, left_out in zip(categories, rare, dropped, strict=True)
    ]


def _rare_are_grouped(n: int, rare: np.ndarray | None, codes: np.ndarray | None) -> None:
    """The codes of n categories: the frequent ones in order, then one for all rare ones."""
    if rare is None or codes is None:
        c.need(rare is None and codes is None, "group rare categories without codes")
        return
    c.need(len(rare) and rare.max() < n, "group categories that are absent")
    frequent = np.setdiff1d(np.arange(n), rare)
    expected = np.full(n, len(frequent))
    expected[frequent] = np.arange(len(frequent))
    c.need(np.array_equal(codes, expected), "have other codes for rare categories")


def _words_are_numbered(words: Any, sizes: c.Sizes) -> None:
    """Each word has a column of its own: the numbers go into a sparse matrix unchecked."""
    numbers = sorted(words.vocabulary_.values())
    c.need(numbers == list(range(len(numbers))), "have columns that are not 0, 1, 2, ...")
    weights = getattr(words, "_tfidf", None)
    if weights is not None and weights.use_idf:
        c.need(len(weights.idf_) == len(numbers), "have weights of other words")


def _pattern_is_fast(selector: Any, sizes: c.Sizes) -> None:
    if selector.pattern is not None:
        c.need(re.fullmatch(r"[\w ^$.]*", selector.pattern), "have a pattern that may be slow")


def _function(value: Any, sizes: c.Sizes) -> None:
    c.need(function_name(value) is not None, f"is {value!r}, not one of the functions of a file")


_WORDS: dict[str, c.Check] = {
    "input": c.one_of("content"),
    "preprocessor tokenizer": c.one_of(None),
    "analyzer": c.one_of("word", "char", "char_wb"),
    "token_pattern": _PATTERNS,
    "ngram_range": c.fields(c.number(1, _MOST_LETTERS), c.number(1, _MOST_LETTERS)),
}
_COUNTED = Foreign(
    {"vocabulary_": c.mapping(c.text, c.count()), "fixed_vocabulary_": c.flag},
    parameters=_WORDS,
    where=(_words_are_numbered,),
    # A number in memory, which differs from run to run.
    dropped=frozenset({"_stop_words_id"}),
)
_ENCODER = Foreign(
    WIDE
    | {
        "categories_": c.each(c.values("*"), "d"),
        "_infrequent_enabled": c.flag,
    },
    {
        "_infrequent_indices": c.each(c.maybe(c.ints("*", least=0)), "d"),
        "_default_to_infrequent_mappings": c.each(c.maybe(c.ints("*")), "d"),
        "drop_idx_ _drop_idx_after_grouping": c.maybe(c.values("d")),
        "_n_features_outs": c.each(c.count(), "d"),
        "_missing_indices": c.plain,
    },
    where=(_encoded_columns_fit,),
)
_SCORED = Foreign(WIDE | {"scores_": _ANY}, {"pvalues_": c.maybe(_ANY)}, {"score_func": _function})
_TEXT = "sklearn.feature_extraction.text"
_TRANSFORMERS: dict[str, Entry] = {
    "sklearn.preprocessing.StandardScaler": Foreign(
        WIDE | _needs("scale_") | {"mean_ var_": c.maybe(_ANY)}
    ),
    "sklearn.preprocessing.FunctionTransformer": Foreign(
        parameters={"func inverse_func": c.maybe(_function)}
    ),
    "sklearn.preprocessing.PowerTransformer": Foreign(WIDE | {"lambdas_": _ANY}),
    "sklearn.preprocessing.QuantileTransformer": Foreign(
        WIDE
        | _needs("n_quantiles_")
        | {"references_": c.floats("q"), "quantiles_": c.floats("q", "d", finite=False)}
    ),
    "sklearn.preprocessing.PolynomialFeatures": Foreign(WIDE, where=(_polynomial_width,)),
    "sklearn.preprocessing.OneHotEncoder": _ENCODER,
    "sklearn.preprocessing.OrdinalEncoder": _ENCODER,
    "sklearn.impute.SimpleImputer": Foreign(
        WIDE | {"statistics_": c.either(_ANY, c.values("d", kinds="biUSOM"))},
        {"_fit_dtype _fill_dtype": c.plain},
        parameters={"strategy": c.one_of("mean", "median", "most_frequent", "constant")},
    ),
    "sklearn.impute.MissingIndicator": Foreign(
        _needs("_n_features _precomputed") | {"features_": c.ints("*", least=0, below="d")}
    ),
    "sklearn.impute.KNNImputer": Foreign(
        WIDE
        | {"_fit_X": c.floats("n", "d", finite=False), "_mask_fit_X": c.bools("n", "d")}
        | {"_valid_mask": c.bools("d")},
        parameters={"metric": c.one_of("nan_euclidean")}
        | {"weights": c.one_of("uniform", "distance")},
    ),
    "sklearn.feature_selection.SelectKBest": _SCORED,
    "sklearn.feature_selection.SelectPercentile": _SCORED,
    f"{_TEXT}.CountVectorizer": _COUNTED,
    f"{_TEXT}.TfidfVectorizer": replace(
        _COUNTED, fitted={**_COUNTED.fitted, "_tfidf": c.is_a(f"{_TEXT}.TfidfTransformer")}
    ),
    f"{_TEXT}.HashingVectorizer": Foreign(
        parameters=_WORDS | {"n_features": c.number(1, _MOST_COLUMNS)}
    ),
    "sklearn.compose.make_column_selector": Foreign(
        {"pattern": c.maybe(c.text), "dtype_include dtype_exclude": c.plain},
        where=(_pattern_is_fast,),
    ),
}

# LightGBM and XGBoost


def _lightgbm_fits(model: Any, sizes: c.Sizes) -> None:
    booster, k = model._Booster, sizes["k"]
    c.need(booster.num_feature() == sizes["d"], "read other columns")
    c.need(booster.num_model_per_iteration() == (1 if k == 2 else k), "have other classes")


def _xgboost_fits(model: Any, sizes: c.Sizes) -> None:
    learned = json.loads(model.get_booster().save_config())["learner"]["learner_model_param"]
    classes = int(learned["num_class"])
    c.need(max(classes, 2) == sizes["k"], "have other classes")


#: What users hand on to LightGBM, none of which an answer depends on after the fit.
_MORE = frozenset(
    {"verbose", "verbosity", "force_col_wise", "force_row_wise", "deterministic", "max_bin", "seed"}
)
_BOOSTERS: dict[str, Entry] = {
    "lightgbm.LGBMClassifier": Foreign(
        {
            "_n_features": c.count("d", 1),
            "_n_features_in": c.count("d"),
            "_classes": c.labels(),
            "_n_classes": c.count("k"),
            "_Booster": c.is_a("lightgbm.Booster"),
            "fitted_": c.flag,
            "_objective": c.text,
            "_best_iteration": c.count(),
            "_le": _LABELS,
        },
        {"_other_params _class_map _class_weight": c.plain, "_fitted_with_feature_names": c.flag},
        where=(_lightgbm_fits,),
        sign="fitted_",
        more=_MORE,
    ),
    "xgboost.XGBClassifier": Foreign(
        {"n_classes_": c.count("k", 2), "_Booster": c.is_a("xgboost.Booster")},
        parameters={"callbacks": c.maybe(lambda value, sizes: c.need(False, "are code"))},
        where=(_xgboost_fits,),
        more=frozenset({"verbose"}),
    ),
}

#: What other classifiers and transformers need beside the width, and what has none.
_CLASSIFIERS_NEED = {
    "discriminant_analysis.LinearDiscriminantAnalysis": "coef_ intercept_ means_ priors_",
    "discriminant_analysis.QuadraticDiscriminantAnalysis": "priors_ means_ scalings_ rotations_",
    "dummy.DummyClassifier": "_strategy class_prior_ sparse_output_ n_classes_",
    "linear_model.LogisticRegression": "coef_ intercept_",
    "linear_model.LogisticRegressionCV": "coef_ intercept_",
    "linear_model.RidgeClassifier": "coef_ intercept_ _label_binarizer",
    "linear_model.RidgeClassifierCV": "coef_ intercept_ _label_binarizer",
    "naive_bayes.CategoricalNB": "class_log_prior_ feature_log_prob_ n_categories_",
    "naive_bayes.ComplementNB": "class_log_prior_ feature_log_prob_ feature_all_",
    "naive_bayes.MultinomialNB": "class_log_prior_ feature_log_prob_",
    "svm.LinearSVC": "coef_ intercept_",
}
_TRANSFORMERS_NEED = {
    "decomposition.FactorAnalysis": "components_ mean_ noise_variance_",
    "decomposition.FastICA": "components_",
    "decomposition.IncrementalPCA": "components_ mean_ explained_variance_",
    "decomposition.PCA": "components_ mean_ explained_variance_",
    "decomposition.TruncatedSVD": "components_",
    "feature_extraction.text.TfidfTransformer": "",
    "feature_selection.VarianceThreshold": "variances_",
    "kernel_approximation.RBFSampler": "random_weights_ random_offset_",
    "preprocessing.KBinsDiscretizer": "bin_edges_ n_bins_",
    "preprocessing.MaxAbsScaler": "scale_ max_abs_",
    "preprocessing.MinMaxScaler": "scale_ min_",
    "preprocessing.RobustScaler": "center_ scale_",
}
_SPLITTERS = (
    "GroupKFold GroupShuffleSplit KFold LeaveOneOut ShuffleSplit StratifiedGroupKFold "
    "StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit"
)
_OTHERS_NEED = {
    **{f"model_selection.{name}": "" for name in _SPLITTERS.split()},
    "calibration._SigmoidCalibration": "a_ b_",
    "calibration._TemperatureScaling": "beta_",
    "neural_network._stochastic_optimizers.AdamOptimizer": "",
    "neural_network._stochastic_optimizers.SGDOptimizer": "",
    "preprocessing.Binarizer": "",
    "preprocessing.LabelBinarizer": "classes_ y_type_ sparse_input_",
    "preprocessing.LabelEncoder": "classes_",
    "preprocessing.Normalizer": "",
}
ENTRIES: dict[str, Entry] = {
    **{
        f"sklearn.{name}": Foreign({**always, **_needs(names)})
        for always, table in (
            (CLASSES, _CLASSIFIERS_NEED),
            (WIDE, _TRANSFORMERS_NEED),
            ({}, _OTHERS_NEED),
        )
        for name, names in table.items()
    },
    **_TREES,
    **_VECTORS,
    **_PROBABILITIES,
    **_COMPOSED,
    **_TRANSFORMERS,
    **_BOOSTERS,
}
