"""Classifiers and transformers as graphs, beside their own answers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from onnx_tools import TOLERANCE, gap, rows_like, runner
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dipedl.io.onnx._estimators import Data, probabilities, transform
from dipedl.preprocessing import SignedPower

THREE = load_iris(return_X_y=True)
CANCER = load_breast_cancer()
TWO = CANCER.data[::4, :6], CANCER.target[::4]
LOGISTIC = LogisticRegression(max_iter=3000)
CLASSIFIERS = {
    "logistic": LOGISTIC,
    "liblinear": LogisticRegression(solver="liblinear"),
    "lda": LinearDiscriminantAnalysis(),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(15, random_state=0),
    "extra-trees": ExtraTreesClassifier(15, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=15, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=15),
    "mlp": MLPClassifier((8,), max_iter=40, random_state=0),
    "bayes": GaussianNB(),
    "neighbours": KNeighborsClassifier(),
    "voting": VotingClassifier(
        [("a", LOGISTIC), ("b", GaussianNB())], voting="soft", weights=[1, 3]
    ),
    "bagging": BaggingClassifier(n_estimators=4, max_features=0.5, random_state=0),
    "stacking": StackingClassifier([("a", GaussianNB()), ("b", GaussianNB())], LOGISTIC, cv=2),
    "sigmoid": CalibratedClassifierCV(RandomForestClassifier(5, random_state=0), cv=2),
    "isotonic": CalibratedClassifierCV(LOGISTIC, method="isotonic", cv=2),
    "isotonic-forest": CalibratedClassifierCV(
        FrozenEstimator(RandomForestClassifier(5, random_state=0)), method="isotonic"
    ),
    "ada": AdaBoostClassifier(n_estimators=4, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), PCA(3), LOGISTIC),
    "scaled-forest": make_pipeline(MinMaxScaler(), RandomForestClassifier(5, random_state=0)),
    "svc": SVC(probability=True, random_state=0),
}


def graph_of(model, rows):
    return runner(lambda x: probabilities(model, Data(x, rows)), rows.shape[1])


def quietly_fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner = getattr(model, "estimator", None)
        if isinstance(inner, FrozenEstimator):
            inner.estimator.fit(X, y)
        return model.fit(X, y)


#: Trials of a classifier with two classes and of the same with three; ties of neighbours in iris
#: are refused, below.
PAIRS = [
    f"{name}-{k}"
    for name in CLASSIFIERS
    for k in (2, 3)
    if (name, k) not in {("liblinear", 3), ("neighbours", 3)}
]


@pytest.fixture(scope="module", params=PAIRS)
def pair(request):
    name, k = request.param.rsplit("-", 1)
    X, y = TWO if k == "2" else THREE
    model = quietly_fitted(CLASSIFIERS[name], X, y)
    return model, graph_of(model, X), X


@settings(max_examples=8)
@given(drawn=rows_like(THREE[0]), wide=rows_like(TWO[0]))
def test_probabilities_are_those_of_the_classifier(pair, drawn, wide):
    model, run, X = pair
    Q = drawn if drawn.shape[1] == X.shape[1] else wide
    assert gap(run(Q), model.predict_proba(Q)) < TOLERANCE


@pytest.mark.parametrize("name", ["logistic", "isotonic"])
def test_what_was_learned_in_float32_is_exported(name):
    X, y = THREE
    model = quietly_fitted(CLASSIFIERS[name], X.astype(np.float32), y)
    found = graph_of(model, X)(X)
    assert gap(found, model.predict_proba(X.astype(np.float32))) < 1e-5


def test_each_row_is_classified_alone_in_any_batch(pair):
    model, run, X = pair
    whole = run(X[:20])
    assert gap(whole, model.predict_proba(X[:20])) < TOLERANCE
    assert gap(np.concatenate([run(X[i : i + 1]) for i in range(20)]), whole) < 1e-6


def thresholds(model):
    """Places where the trees of a classifier split, as (feature, value) pairs."""
    if isinstance(model, HistGradientBoostingClassifier):
        nodes = np.concatenate([p.nodes for stage in model._predictors for p in stage])
        nodes = nodes[nodes["is_leaf"] == 0]
        return list(zip(nodes["feature_idx"], nodes["num_threshold"], strict=True))
    trees = np.ravel(getattr(model, "estimators_", [model])).tolist()
    parts = [(t.tree_.feature, t.tree_.threshold, t.tree_.children_left >= 0) for t in trees]
    return [pair for f, v, split in parts for pair in zip(f[split], v[split], strict=True)]


@pytest.mark.parametrize("name", ["tree", "forest", "boosting", "hist"])
def test_an_input_at_a_threshold_takes_the_same_branch(name):
    X, y = TWO
    model = quietly_fitted(CLASSIFIERS[name], X, y)
    run = graph_of(model, X)
    steps = []
    for feature, value in thresholds(model)[:40]:
        # The input nearest to the split has the best chance to be decided by it.
        near = X[np.abs(X[:, feature] - value).argmin()]
        for at in (np.float64(value), np.float64(np.float32(value))):
            for way in (-np.inf, np.inf):
                beside = [np.nextafter(at, way), np.float64(np.nextafter(np.float32(at), way))]
                rows = np.repeat(near[None], 3, axis=0)
                rows[:, feature] = [at, *beside]
                steps.append(rows)
    Q = np.array(steps)
    right = model.predict_proba(Q.reshape(-1, X.shape[1]))
    assert gap(run(Q.reshape(-1, X.shape[1])), right) < TOLERANCE
    # The rows do try it: a step of rounding size changes some answers.
    assert np.ptp(right.reshape(len(Q), 3, 2), axis=1).max() > 0


def test_missing_values_take_the_branch_they_were_taught(rng):
    X, y = TWO[0].copy(), TWO[1]
    X[rng.random(X.shape) < 0.2] = np.nan
    for model in (HistGradientBoostingClassifier(max_iter=5), DecisionTreeClassifier(max_depth=4)):
        assert gap(graph_of(model.fit(X, y), TWO[0])(X), model.predict_proba(X)) < TOLERANCE


def test_categories_of_histogram_boosting_are_refused(rng):
    X = np.column_stack([rng.integers(0, 5, 200), rng.normal(size=200)])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[0])
    model.fit(X, np.isin(X[:, 0], [1, 4]))
    with pytest.raises(TypeError, match=r"HistGradientBoosting.*categorical.*encode"):
        graph_of(model, X)


def test_a_converter_that_disagrees_is_refused():
    X, y = THREE
    with pytest.raises(TypeError, match=r"KNeighborsClassifier cannot.*\n.*output differs by"):
        graph_of(KNeighborsClassifier().fit(X, y), X)


def test_an_unknown_classifier_is_named_with_what_can_take_its_place():
    class Mine(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    with pytest.raises(TypeError, match=r"Mine cannot be exported(.|\n)*RandomForestClassifier"):
        graph_of(Mine().fit(*THREE), THREE[0])


def boosted(package, **options):
    module = pytest.importorskip(package)
    kind = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier"}[package]
    quiet = {"n_jobs": 1, **({"verbose": -1} if package == "lightgbm" else {})}
    return getattr(module, kind)(**quiet, **options)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_boosters_of_other_libraries_at_their_thresholds(package, k):
    X, y = TWO if k == 2 else THREE
    model = boosted(package, n_estimators=8).fit(X, y)
    run = graph_of(model, X)
    # Training values at and beside which these trees may split, in float32 as in float64.
    at = np.concatenate([X, (X + np.roll(X, 1, axis=0)) / 2])
    single = at.astype(np.float32)
    beside = [np.nextafter(single, np.float32(way)).astype(float) for way in (-np.inf, np.inf)]
    Q = np.concatenate([at, single, *beside, 1e6 * X, -X, X + 0.5])
    assert gap(run(Q), model.predict_proba(Q)) < TOLERANCE


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_missing_values_and_early_stopping_of_boosters(package, rng):
    X, y = TWO[0].copy(), TWO[1]
    X[rng.random(X.shape) < 0.2] = np.nan
    model = boosted(package, n_estimators=60, learning_rate=0.5)
    if package == "xgboost":
        model.set_params(early_stopping_rounds=2).fit(X, y, eval_set=[(X[::3], 1 - y[::3])])
    else:
        stop = pytest.importorskip("lightgbm").early_stopping(2, verbose=False)
        model.fit(X, y, eval_set=[(X[::3], 1 - y[::3])], callbacks=[stop])
    assert gap(graph_of(model, TWO[0])(X), model.predict_proba(X)) < TOLERANCE


@pytest.mark.parametrize(
    ("package", "options", "remedy"),
    [
        ("xgboost", {"booster": "dart"}, "'onnxmltools'"),
        ("lightgbm", {"linear_tree": True}, "linear_tree=False"),
    ],
)
def test_other_boosters_name_the_package_or_the_setting(package, options, remedy):
    model = boosted(package, n_estimators=3, **options).fit(*THREE)
    with pytest.raises(TypeError, match=rf"cannot be exported(.|\n)*{remedy}"):
        graph_of(model, THREE[0])


TRANSFORMERS = {
    "standard": StandardScaler(),
    "no-mean": StandardScaler(with_mean=False),
    "no-scale": StandardScaler(with_std=False),
    "min-max": MinMaxScaler(),
    "pca": PCA(2, whiten=True),
    "unit": Normalizer(),
    "l1": Normalizer("l1"),
    "power": SignedPower(0.3),
    "log": SignedPower(0),
    "frozen": FrozenEstimator(PCA(2).fit(THREE[0])),
    "pipeline": make_pipeline(StandardScaler(), "passthrough", PCA(3)),
    "columns": ColumnTransformer(
        [("a", StandardScaler(), [1, 2]), ("b", "passthrough", [0]), ("c", "drop", [3])]
    ),
    "slices": ColumnTransformer(
        [("a", PCA(1), slice(0, 2))], remainder=StandardScaler(), sparse_threshold=0
    ),
    "mask": ColumnTransformer([("a", "passthrough", np.array([True, False, True, False]))]),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_features_are_those_of_the_transformer(name):
    X = THREE[0]
    model = TRANSFORMERS[name].fit(X, THREE[1])
    run = runner(lambda x: transform(model, Data(x, X)).tensor, 4)
    Q = np.concatenate([X, 1e6 * X, -X])
    right = model.transform(Q)
    assert np.allclose(run(Q), right, rtol=1e-9, atol=1e-9)


def test_columns_by_name_of_a_data_frame():
    frame = pd.DataFrame(THREE[0], columns=list("abcd"))
    for columns in (["d", "b"], slice("b", "d"), slice(None, "b"), "c"):
        given = [columns] if columns == "c" else columns
        model = ColumnTransformer([("x", StandardScaler(), given)], remainder="passthrough")
        right = model.fit_transform(frame)
        run = runner(lambda x, m=model: transform(m, Data(x, THREE[0])).tensor, 4)
        assert np.allclose(run(THREE[0]), right, atol=1e-12)


def test_a_transformer_without_a_graph_is_named():
    class Mine(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    with pytest.raises(TypeError, match=r"Mine cannot be exported(.|\n)*StandardScaler"):
        runner(lambda x: transform(Mine(), Data(x, THREE[0])).tensor, 4)
