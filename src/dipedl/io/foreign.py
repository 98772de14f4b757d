"""Estimators of scikit-learn, LightGBM and XGBoost that a file may hold: a list of exact names.

Their attributes may hold anything plain. Probabilities, features and scores are checked where this
library reads them, so that a forged number gives an unknown row or an error there. A type has an
entry of its own for what is more than that: indices that compiled code or a sparse matrix trusts,
names of methods and files, memory that an answer takes.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from . import checks as c
from .checks import CLASSES, WIDE, Entry

Foreign = partial(Entry, foreign=True)

# Trees and ensembles of trees

_TREE = "sklearn.tree._tree.Tree"
_CLASSIFIERS = ("sklearn.tree.DecisionTreeClassifier", "sklearn.tree.ExtraTreeClassifier")
_REGRESSORS = ("sklearn.tree.DecisionTreeRegressor", "sklearn.tree.ExtraTreeRegressor")
_HIST = "sklearn.ensemble._hist_gradient_boosting"
LOSSES = tuple(f"sklearn._loss.loss.{name}Loss" for name in ("HalfMultinomial", "HalfBinomial"))


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
    c.need(model._loss.n_classes == sizes["k"] or sizes["k"] == 2, "have a loss of other classes")
    many = type(model._loss).__name__ == "HalfMultinomialLoss"
    c.need(many == (sizes["k"] > 2), "have another loss")


def _starts_fit(model: Any, sizes: c.Sizes) -> None:
    """Compiled code adds a column per tree to the first guess, without a look at its width."""
    _one_column_each(model, sizes)
    start = model._raw_predict_init(np.zeros((1, sizes["d"]), np.float32))
    c.need(start.shape == (1, sizes["trees"]), "have a first guess of other classes")


def _bins_fit(model: Any, sizes: c.Sizes) -> None:
    """Nodes read columns, and categories of columns that have some."""
    bins, width = model._bin_mapper, sizes["f"]
    c.need(len(bins.is_categorical_) == width, "have bins of another width")
    nodes = np.concatenate([p.nodes for stage in model._predictors for p in stage])
    inner = nodes[nodes["is_leaf"] == 0]
    c.need((inner["feature_idx"] < width).all(), "split on features that there are not")
    columns = inner["feature_idx"][inner["is_categorical"] == 1]
    c.need(bins.is_categorical_[columns].all(), "split a number as a category")
    # The trees read what the preprocessor writes, without a look at its width.
    made, mask = model._preprocessor, model.is_categorical_
    c.need(width == sizes["d"], "have another width")
    if made is not None:
        c.is_a("sklearn.compose.ColumnTransformer", d="d")(made, sizes)
        steps = [step for step in made.transformers_ if step[0] != "remainder"]
        c.need(len(steps) == 2 and made.remainder == "drop" and mask is not None, "encode others")
        kinds = ("OrdinalEncoder", "FunctionTransformer")
        for (_, step, columns), kind, wanted in zip(steps, kinds, (mask, ~mask), strict=True):
            c.is_a(f"sklearn.preprocessing.{kind}")(step, sizes)
            c.values("f", kinds="b")(columns, sizes)
            c.need((columns == wanted).all(), "encode other columns")
        c.need(len(steps[0][1].categories_) == mask.sum(), "encode other columns")


def _categories_are_bits(bins: Any, sizes: c.Sizes) -> None:
    for edges, categorical in zip(bins.bin_thresholds_, bins.is_categorical_, strict=True):
        bits = (edges >= 0) & (edges < 256) & (edges % 1 == 0)
        c.need(not categorical or bits.all(), "have no such categories")


#: Each tree reads some of the columns.
_VOTERS = CLASSES | {"n_classes_": c.count("k"), "n_outputs_": c.count(1)}
_FOREST = Foreign(_VOTERS | {"estimators_": c.each(c.is_a(*_CLASSIFIERS, d="d"))})
_TREES: dict[str, Entry] = {
    **dict.fromkeys(_CLASSIFIERS, Foreign(_VOTERS | {"tree_": c.is_a(_TREE, d="d", k="k")})),
    **dict.fromkeys(_REGRESSORS, Foreign(WIDE | {"tree_": c.is_a(_TREE, d="d", k=1)})),
    "sklearn.ensemble.RandomForestClassifier": _FOREST,
    "sklearn.ensemble.ExtraTreesClassifier": _FOREST,
    "sklearn.ensemble.IsolationForest": Foreign(
        WIDE
        | {"_max_features": c.count("m", 1), "estimators_": c.each(c.is_a(*_REGRESSORS, d="m"))}
        | {"estimators_features_": c.each(c.ints("m", least=0, below="d"))}
        | {"_max_samples offset_": c.anything},
        dropped=frozenset({"_average_path_length_per_tree", "_decision_path_lengths"}),
        restore=_restore_paths,
    ),
    "sklearn.ensemble.GradientBoostingClassifier": Foreign(
        CLASSES
        | {
            "n_trees_per_iteration_": c.count("trees"),
            "estimators_": c.grid(c.is_a(*_REGRESSORS, d="d"), "stages", "trees"),
            "init_": c.either(c.one_of("zero"), c.model(d="d", k="k")),
            "_loss": c.is_a(*LOSSES, "sklearn._loss.loss.ExponentialLoss"),
        },
        where=(_starts_fit,),
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
            "_loss": c.is_a(*LOSSES),
            "_preprocessor": c.maybe(c.model()),
            "is_categorical_": c.maybe(c.values("f", kinds="b")),
        },
        where=(_one_column_each, _bins_fit),
    ),
}

# Neighbours and support vectors: rows that compiled code compares with

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


_NEIGHBOURS = Foreign(
    WIDE
    | {
        "n_samples_fit_": c.count("n", 1),
        "_fit_X": c.floats("n", "d"),
        "_tree": c.maybe(c.is_a("sklearn.neighbors.KDTree", "sklearn.neighbors.BallTree")),
        "_fit_method": c.one_of("brute", "kd_tree", "ball_tree"),
        "effective_metric_": _METRICS,
        "effective_metric_params_": _powers,
    },
    parameters={"metric": _METRICS, "metric_params": c.one_of(None), "p": _POWER}
    | {"weights": c.one_of("uniform", "distance", None)},
    where=(_parts_fit,),
)
_VOTES = {
    "classes_": c.labels(),
    "_y": c.ints("n", least=0, below="k", dtype=np.intp),
    "outputs_2d_": c.one_of(False),
}
_VOTING = replace(_NEIGHBOURS, fitted={**_NEIGHBOURS.fitted, **_VOTES})
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

# Columns of a sparse matrix, and memory that an answer takes

_MOST_COLUMNS = 1 << 20
_MOST_LETTERS = 50
#: Patterns that no text makes slow.
_PATTERNS = c.one_of(r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", None)


def _powers_are_few(powers: Any, sizes: c.Sizes) -> None:
    """Require as many columns as there are powers: memory is taken by these numbers."""
    d, most = sizes["d"], powers._max_degree
    c.need(0 <= powers._min_degree <= most and math.comb(d + most, most) <= _MOST_COLUMNS,
           "are of too high a degree")  # fmt: skip
    again = type(powers)(**powers.get_params()).fit(np.zeros((1, d)))
    for name in ("n_output_features_", "_n_out_full", "_min_degree", "_max_degree"):
        c.need(getattr(powers, name) == getattr(again, name), "make other columns")


def _encoded_columns_fit(encoder: Any, sizes: c.Sizes) -> None:
    rare = encoder._infrequent_indices if encoder._infrequent_enabled else [None] * sizes["d"]
    codes = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else rare
    dropped = getattr(encoder, "_drop_idx_after_grouping", None)
    dropped = [None] * sizes["d"] if dropped is None else dropped
    widths = []
    for names, few, code, left in zip(encoder.categories_, rare, codes, dropped, strict=True):
        if names.dtype.kind in "biuf":
            # Numbers are looked up by bisection: unsorted ones give columns that there are not.
            known = names[~np.isnan(names)]
            rising = len(names) - len(known) <= 1 and (known[1:] > known[:-1]).all()
            c.need(rising, "have categories that are not sorted")
        _rare_are_grouped(len(names), few, code)
        widths.append(len(names) - (0 if few is None else len(few) - 1) - (left is not None))
    places = getattr(encoder, "drop_idx_", None)
    for number, names in zip([] if places is None else places, encoder.categories_, strict=False):
        c.need(number is None or 0 <= number < len(names), "drop an absent category")
    # They are the width of a sparse matrix, whose columns nobody checks.
    c.need(getattr(encoder, "_n_features_outs", widths) == widths, "have other columns")


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
    WIDE | {"categories_": c.each(c.values("*"), "d"), "_infrequent_enabled": c.flag},
    {
        "_infrequent_indices": c.each(c.maybe(c.ints("*", least=0)), "d"),
        "_default_to_infrequent_mappings": c.each(c.maybe(c.ints("*")), "d"),
        "drop_idx_ _drop_idx_after_grouping": c.maybe(c.values("d")),
        "_n_features_outs": c.each(c.count(), "d"),
    },
    where=(_encoded_columns_fit,),
)


def _settings_are_plain(model: Any, sizes: c.Sizes) -> None:
    """LightGBM reads settings from one line of text, the number of threads among them."""
    c.need("_eval_at" not in vars(model), "have settings of a ranker")
    settings = model.get_params() | {"objective": model._objective}
    for name, value in settings.items():
        many = isinstance(value, list | tuple | set)
        texts = [name, *(value if many else [value])]
        plain = all(re.fullmatch(r"[\w.:/-]*", text) for text in texts if isinstance(text, str))
        c.need(plain, f"have a setting {name!r} that may hold others")
        if name in _THREADS:
            c.jobs(value, sizes)


def _lightgbm_fits(model: Any, sizes: c.Sizes) -> None:
    """A setting turns LightGBM's own look at the width off; it takes memory for each class."""
    c.is_a("lightgbm.Booster")(model._Booster, sizes)
    c.labels()(model.classes_, sizes)
    c.text(model._objective, sizes)
    widths = {model._n_features, model._n_features_in, model._Booster.num_feature()}
    c.need(len(widths) == 1, "read other columns")
    k, trees = sizes["k"], model._Booster.num_model_per_iteration()
    c.need(model._n_classes == k and trees == (1 if k == 2 else k), "have other classes")


def _xgboost_fits(model: Any, sizes: c.Sizes) -> None:
    learned = json.loads(model._Booster.save_config())["learner"]["learner_model_param"]
    c.need(max(int(learned["num_class"]), 2) == sizes["k"], "have other classes")


_TEXT = "sklearn.feature_extraction.text"
#: Other names of `n_jobs` in LightGBM.
_THREADS = ("n_jobs", "num_threads", "num_thread", "nthread", "nthreads")
_STEPS = c.each(c.fields(c.text, c.either(c.one_of("passthrough", "drop", None), c.model())))


def _settings_of_a_call(value: Any, sizes: c.Sizes) -> None:
    """Keywords of a function, without those that say which memory it writes, and how much."""
    odd = {"out", "where", "dtype"} & set(value or ())
    c.need(not odd, f"holds {sorted(odd)}")


def _moments_are_there(scaler: Any, sizes: c.Sizes) -> None:
    c.need(scaler.mean_ is not None or not scaler.with_mean, "has no means")
    c.need(scaler.scale_ is not None or not scaler.with_std, "has no scales")


@c.word
def _needs(model: Any, sizes: c.Sizes, names: str, setting: str, *values: Any) -> None:
    """Attributes that are read unless a setting has one of these values."""
    lacking = [name for name in names.split() if not hasattr(model, name)]
    c.need(not lacking or getattr(model, setting) in values, f"lack {lacking}")


def _imputer_is_whole(imputer: Any, sizes: c.Sizes) -> None:
    """Refuse an imputer that lacks what its own version fits: this differs between versions."""
    lacking = vars(type(imputer)().fit([[0.0]])).keys() - vars(imputer).keys()
    c.need(not lacking, f"lack {sorted(lacking)}")


_RIDGE = Foreign(
    {"_label_binarizer coef_ intercept_": c.anything},
    # Its classes are an attribute or a property, by version.
    where=(lambda model, sizes: c.need(hasattr(model, "classes_"), "lack classes_"),),
)


def _outputs_fit(network: Any, sizes: c.Sizes) -> None:
    """A layer of more outputs than it says gives several rows for one."""
    ends = np.shape(network.coefs_[-1])[1:], np.shape(network.intercepts_[-1])
    c.need(set(ends) == {(network.n_outputs_,)}, "have other outputs")


_SGD = Foreign(
    {"classes_ coef_ intercept_": c.anything},
    dropped=frozenset({"_loss_function_", "loss_function_"}),
)
_OTHERS: dict[str, Entry] = {
    "sklearn.neighbors.NearestNeighbors": _NEIGHBOURS,
    "sklearn.neighbors.KNeighborsClassifier": _VOTING,
    "sklearn.neighbors.RadiusNeighborsClassifier": replace(
        _VOTING, fitted={**_VOTING.fitted, "outlier_label_": c.anything}
    ),
    "sklearn.neural_network.MLPClassifier": Foreign(
        {"_label_binarizer classes_ coefs_ intercepts_ n_layers_": c.anything}
        | {"n_outputs_": c.count(), "out_activation_": c.text},
        where=(_outputs_fit,),
    ),
    "sklearn.svm.SVC": _MACHINE,
    "sklearn.svm.NuSVC": _MACHINE,
    # Read by `dipedl.inputs` itself.
    "sklearn.preprocessing.StandardScaler": Foreign(
        WIDE | {"mean_ scale_": c.maybe(c.values("d", kinds="f"))}, where=(_moments_are_there,)
    ),
    "sklearn.preprocessing.FunctionTransformer": Foreign(
        parameters={"kw_args inv_kw_args": _settings_of_a_call}
    ),
    "sklearn.preprocessing.PolynomialFeatures": Foreign(WIDE, where=(_powers_are_few,)),
    "sklearn.preprocessing.OneHotEncoder": replace(
        _ENCODER,
        fitted={**_ENCODER.fitted, "_drop_idx_after_grouping _n_features_outs": c.anything},
    ),
    "sklearn.preprocessing.OrdinalEncoder": replace(
        _ENCODER, fitted={**_ENCODER.fitted, "_missing_indices": c.anything}
    ),
    f"{_TEXT}.CountVectorizer": _COUNTED,
    f"{_TEXT}.TfidfVectorizer": replace(
        _COUNTED, fitted={**_COUNTED.fitted, "_tfidf": c.is_a(f"{_TEXT}.TfidfTransformer")}
    ),
    f"{_TEXT}.HashingVectorizer": Foreign(
        parameters=_WORDS | {"n_features": c.number(1, _MOST_COLUMNS)}, dropped=_COUNTED.dropped
    ),
    "sklearn.compose.make_column_selector": Foreign(
        {"pattern": c.maybe(c.text)}, where=(_pattern_is_fast,)
    ),
    "sklearn.dummy.DummyClassifier": Foreign(
        {"classes_": c.labels(), "n_classes_": c.count("k"), "n_outputs_": c.count(1)}
        | {"class_prior_": c.floats("k")}
    ),
    "sklearn.calibration._CalibratedClassifier": Foreign(
        {"calibrators": c.each(c.fitted(c.model())), "classes estimator method": c.anything}
    ),
    "sklearn.decomposition.FastICA": Foreign(
        {"components_": c.anything}, where=(_needs("mean_", "whiten", False),)
    ),
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": Foreign(
        {"classes_ coef_ intercept_": c.anything},
        # What reduces the dimension; least squares give no such thing.
        where=(_needs("_max_components scalings_ xbar_", "solver", "lsqr", "eigen"),),
    ),
    "sklearn.preprocessing.KBinsDiscretizer": Foreign(
        {"bin_edges_": c.anything}, where=(_needs("_encoder", "encode", "ordinal"),)
    ),
    "sklearn.preprocessing.PowerTransformer": Foreign(
        {"lambdas_": c.anything}, where=(_needs("_scaler", "standardize", False),)
    ),
    # Methods of these names are called.
    "sklearn.ensemble.StackingClassifier": Foreign(
        {"stack_method_": c.each(c.one_of("predict_proba", "decision_function", "predict"))}
        | {"_label_encoder classes_ estimators_": c.anything}
    ),
    "sklearn.isotonic.IsotonicRegression": Foreign(
        {"X_thresholds_ y_thresholds_": c.floats("t"), "X_max_ X_min_": c.anything},
        dropped=frozenset({"f_"}),
        # As scikit-learn does when it unpickles one.
        restore=lambda model: model._build_f(model.X_thresholds_, model.y_thresholds_),
    ),
    "sklearn.impute.SimpleImputer": Foreign(
        {"statistics_": c.anything}, where=(_imputer_is_whole,)
    ),
    "sklearn.linear_model.RidgeClassifier": _RIDGE,
    "sklearn.linear_model.RidgeClassifierCV": _RIDGE,
    "sklearn.linear_model.SGDClassifier": _SGD,
    "sklearn.linear_model.Perceptron": _SGD,
    "sklearn.linear_model.PassiveAggressiveClassifier": _SGD,
    "lightgbm.LGBMClassifier": Foreign(
        {"fitted_": c.flag, "_le": c.anything},
        where=(_settings_are_plain, _lightgbm_fits),
    ),
    "xgboost.XGBClassifier": Foreign(
        {"_Booster": c.is_a("xgboost.Booster"), "n_classes_": c.count("k", 2)},
        where=(_xgboost_fits,),
    ),
    "sklearn.pipeline.Pipeline": Foreign(parameters={"steps": _STEPS}),
    "sklearn.pipeline.FeatureUnion": Foreign(
        parameters={"transformer_list": _STEPS},
        dropped=frozenset({"_transformers_feature_names_out"}),
    ),
}

#: Types of which no compiled code reads memory by what a file says, by package, and what an answer
#: of them reads.
_PLAIN: dict[str, dict[str, str]] = {
    "sklearn.calibration": {
        "CalibratedClassifierCV": "calibrated_classifiers_ classes_",
        "_SigmoidCalibration": "a_ b_",
        "_TemperatureScaling": "beta_",
    },
    "sklearn.compose": {"ColumnTransformer": "sparse_output_ transformers_"},
    "sklearn.decomposition": {
        "FactorAnalysis": "components_ mean_ noise_variance_",
        "TruncatedSVD": "components_",
        "IncrementalPCA PCA": "components_ explained_variance_ mean_",
    },
    "sklearn.discriminant_analysis": {
        "QuadraticDiscriminantAnalysis": "classes_ means_ priors_ rotations_ scalings_",
    },
    "sklearn.ensemble": {
        "AdaBoostClassifier": "classes_ estimator_weights_ estimators_ n_classes_",
        "BaggingClassifier": "classes_ estimators_ estimators_features_ n_classes_",
        "VotingClassifier": "classes_ estimators_ le_",
    },
    _TEXT: {"TfidfTransformer": ""},
    "sklearn.feature_selection": {
        "SelectKBest SelectPercentile": "scores_",
        "VarianceThreshold": "variances_",
    },
    "sklearn.frozen": {"FrozenEstimator": ""},
    "sklearn.impute": {
        "KNNImputer": "_fit_X _mask_fit_X _valid_mask",
        "MissingIndicator": "_n_features _precomputed features_",
    },
    "sklearn.kernel_approximation": {"RBFSampler": "random_offset_ random_weights_"},
    "sklearn.linear_model": {
        "LogisticRegression LogisticRegressionCV": "classes_ coef_ intercept_",
    },
    "sklearn.mixture": {
        "GaussianMixture": "means_ precisions_cholesky_ weights_",
        "BayesianGaussianMixture": "degrees_of_freedom_ mean_precision_ means_ "
        "precisions_cholesky_ weight_concentration_",
    },
    "sklearn.model_selection": {
        "GroupKFold GroupShuffleSplit KFold LeaveOneOut ShuffleSplit StratifiedGroupKFold "
        "StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit": "",
    },
    "sklearn.multiclass": {
        "OneVsOneClassifier": "classes_ estimators_ pairwise_indices_",
        "OneVsRestClassifier": "classes_ estimators_ label_binarizer_",
    },
    "sklearn.naive_bayes": {
        "BernoulliNB MultinomialNB": "class_log_prior_ classes_ feature_log_prob_",
        "CategoricalNB": "class_count_ class_log_prior_ classes_ feature_log_prob_ n_features_in_",
        "ComplementNB": "class_log_prior_ classes_ feature_log_prob_",
        "GaussianNB": "class_prior_ classes_ theta_ var_",
    },
    "sklearn.neighbors": {
        "KernelDensity": "bandwidth_ tree_",
        "NearestCentroid": "centroids_ class_prior_ classes_ within_class_std_dev_",
    },
    "sklearn.neural_network._stochastic_optimizers": {"AdamOptimizer SGDOptimizer": ""},
    "sklearn.preprocessing": {
        "Binarizer LabelEncoder Normalizer": "",
        "LabelBinarizer": "classes_ y_type_",
        "MaxAbsScaler": "scale_",
        "MinMaxScaler": "min_ scale_",
        "QuantileTransformer": "quantiles_ references_",
        "RobustScaler": "center_ scale_",
    },
    "sklearn.svm": {"LinearSVC": "classes_ coef_ intercept_"},
}
ENTRIES: dict[str, Entry] = {
    **{
        f"{home}.{name}": Foreign({read: c.anything})
        for home, types in _PLAIN.items()
        for names, read in types.items()
        for name in names.split()
    },
    **_TREES,
    **_OTHERS,
}
