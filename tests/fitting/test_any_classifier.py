"""Classifiers that take one dtype, whole numbers or known levels only are given nothing else."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, RFECV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from dipedl import DIPClassifier, OODDetector
from dipedl.baselines import DDU, MaxSoftmax
from dipedl.density import DensitySelector, GDADensity
from weekly import sample_of, sample_of_rows

RNG = np.random.default_rng(0)
N = 160
X = RNG.normal(size=(N, 3))
X[:, 2] = RNG.choice([1, 2, 5], N)
Y = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "code"]).astype({"code": int})
BLANK = GDADensity()
CANDIDATES = [("gaussians", GDADensity()), ("tied", GDADensity("tied"))]


class Strict(ClassifierMixin, BaseEstimator):
    """Logistic regression that refuses, by any error, rows that are not like those of its fit."""

    def __init__(self, error=RuntimeError):
        self.error = error

    def check(self, X):
        raise NotImplementedError

    def fit(self, X, y):
        self.learn(X)
        self.check(X)
        self.inner_ = LogisticRegression().fit(self.numbers(X), y)
        self.classes_ = self.inner_.classes_
        return self

    def partial_fit(self, X, y, classes=None):
        self.learn(X)
        inner = getattr(self, "inner_", SGDClassifier(loss="log_loss", random_state=0))
        self.inner_ = inner.partial_fit(self.numbers(X), y, classes)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        self.check(X)
        return self.inner_.predict_proba(self.numbers(X))

    def numbers(self, X):
        return X if sparse.issparse(X) else np.asarray(X, dtype=float)


class SameTypes(Strict):
    """As networks of float32 are: "mat1 and mat2 must have the same dtype"."""

    def learn(self, X):
        self.types_ = self.types(X)

    def check(self, X):
        if self.types(X) != self.types_:
            raise self.error(f"rows of {self.types(X)}, and the fit had {self.types_}")

    def types(self, X):
        return [str(t) for t in X.dtypes] if hasattr(X, "dtypes") else str(X.dtype)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Codes(Strict):
    """As CatBoost is with an integer category: "must be integer or string, got 1.5"."""

    def learn(self, X):
        self.codes_ = set(self.codes(X))

    def codes(self, X):
        return np.asarray(X, dtype=object)[:, 2].tolist()

    def check(self, X):
        for code in self.codes(X):
            if not float(code).is_integer():
                raise self.error(f"={code}")


class KnownCodes(Codes):
    """As an encoder without handle_unknown is, by an error of any type."""

    def check(self, X):
        if not set(self.codes(X)) <= self.codes_:
            raise self.error(f"unseen among {self.codes(X)}")


def model(classifier, **parameters):
    parameters = {"density": DensitySelector(CANDIDATES), **parameters}
    return DIPClassifier(classifier, cv=2, **parameters)


def polars_frame(**types):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(FRAME.to_dict("list")).cast(
        {k: getattr(polars, v) for k, v in types.items()}
    )


FORMS = {
    "float32": lambda: X.astype(np.float32),
    "float16": lambda: X.astype(np.float16),
    "int16": lambda: (10 * X).astype(np.int16),
    "uint8": lambda: (100 + 10 * X).astype(np.uint8),
    "objects": lambda: X.astype(object),
    "csr_matrix": lambda: sparse.csr_matrix(X.astype(np.float32)),
    "csr_array": lambda: sparse.csr_array(X.astype(np.float32)),
    "frame": lambda: FRAME.astype({"a": np.float32, "code": np.int8}).assign(d=X[:, 1] > 0),
    "nullable": lambda: FRAME.astype({"a": "Float32", "code": "Int16"}),
    "arrow": lambda: FRAME.astype({"a": "float32[pyarrow]", "code": "int16[pyarrow]"}),
    "objects in a frame": lambda: FRAME.astype({"code": object}),
    "polars": lambda: polars_frame(a="Float32", code="Int16"),
}


@pytest.mark.parametrize("form", sample_of(FORMS, 0, 2, 4, 5, 7, 9))
def test_made_up_rows_keep_the_dtype_of_each_column(form):
    rows = FORMS[form]()
    clf = model(SameTypes()).fit(rows, Y)
    assert {"blended", "pasted", "permuted", "noised"} <= set(clf.density_.ranking_[0])
    assert np.isfinite(clf.score_samples(rows)).all()


@pytest.mark.parametrize("form", ["int", "Int16", object, "polars"])
def test_made_up_rows_keep_whole_numbers(form):
    rows = polars_frame(code="Int16") if form == "polars" else FRAME.astype({"code": form})
    clf = model(Codes()).fit(rows, Y)
    assert {"blended", "pasted", "permuted", "noised"} <= set(clf.density_.ranking_[0])


ROWS = X.astype(np.float32)


@pytest.mark.parametrize(
    "learn",
    [
        lambda clf: model(FrozenEstimator(clf.fit(ROWS, Y))).fit(ROWS, Y),
        lambda clf: model(FrozenEstimator(clf.fit(ROWS[:80], Y[:80]))).fit(
            ROWS[:80], Y[:80], calibration=(ROWS[80:], Y[80:])
        ),
        lambda clf: model(clf).fit(ROWS[:80], Y[:80]).calibrate(ROWS[80:], Y[80:]),
        lambda clf: model(make_pipeline("passthrough", clf)).fit(ROWS, Y),
        lambda clf: model(clf, spread=None).fit(ROWS, Y),
        lambda clf: model(clf, density=GDADensity()).partial_fit(ROWS, Y),
        lambda clf: (
            model(clf, density=GDADensity())
            .partial_fit(ROWS[:80], Y[:80])
            .partial_fit(ROWS[80:], Y[80:])
        ),
    ],
    ids=["frozen", "frozen, calibration", "calibrate", "pipeline", "spread", "batch", "batches"],
)
def test_every_way_to_learn_keeps_the_dtype(learn):
    assert np.isfinite(learn(SameTypes()).predict_proba(ROWS)).all()


@pytest.mark.parametrize("error", [RuntimeError, KeyError, ArithmeticError, ValueError])
@pytest.mark.parametrize("frozen", [False, True])
def test_kinds_of_made_up_rows_that_a_classifier_refuses_are_left_out(error, frozen):
    clf = Codes(error)
    clf = FrozenEstimator(clf.fit(X[:80], Y[:80])) if frozen else clf
    with pytest.warns(UserWarning, match="'(blended|noised)' are left out"):
        fitted = model(clf).fit(X, Y, calibration=(X[80:], Y[80:]) if frozen else None)
    kinds = {"blended", "pasted", "permuted", "noised"} & set(fitted.density_.ranking_[0])
    assert kinds == {"pasted", "permuted"}


def test_rows_half_way_that_a_frozen_classifier_refuses_say_nothing_of_its_memory():
    frozen = FrozenEstimator(Codes().fit(X, Y))
    assert model(frozen, density=GDADensity()).fit(X, Y).evidence_.memorised_ is None


WORDS = FRAME.assign(code=pd.Categorical(np.array(["u", "v", "w"])[np.arange(N) % 3]))
ENCODED = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["code"]), (StandardScaler(), ["a", "b"])
)


class KnownLevels(KnownCodes):
    """As CatBoost is with what pandas made missing."""

    def numbers(self, X):
        return np.asarray(X[["a", "b"]], dtype=float)


def assert_the_others_are_answered_alike(clf, new, rows, others):
    """The `others` of the new rows are answered as in `rows`, row 3 as it is alone."""
    for answer in (clf.predict_proba, clf.classifier_proba, clf.p_value, clf.predict_set):
        found = answer(new)
        np.testing.assert_array_equal(found[others], answer(rows)[others])
        np.testing.assert_array_equal(found[3:4], answer(new[3:4]))


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("category", RuntimeError),
        ("text", ValueError),
        pytest.param("objects", KeyError, marks=pytest.mark.slow),
    ],
)
def test_a_row_of_a_new_level_refuses_no_other(form, error):
    rows = (
        WORDS if form == "category" else WORDS.astype({"code": str if form == "text" else object})
    )
    clf = model(KnownLevels(error), density=GDADensity(), features=ENCODED).fit(rows, Y)
    new = rows[:5].astype({"code": object})
    new.loc[3, "code"] = "zz"
    new = new.astype({"code": rows.code.dtype if form != "category" else "category"})
    others = [0, 1, 2, 4]
    assert_the_others_are_answered_alike(clf, new, rows[:5], others)
    assert clf.uncertainty(new)[3] == 1 and clf.predict_ood(new)[3] == -1
    np.testing.assert_array_equal(clf.classifier_proba(new)[3], [0.5, 0.5])
    assert "code = 'zz'" in clf.explain(new)[3].news


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("object", TypeError),
        ("polars", TypeError),
        pytest.param("category", RuntimeError, marks=pytest.mark.slow),
    ],
)
def test_a_row_of_a_first_gap_among_levels_refuses_no_other(form, error):
    rows, gap = WORDS.astype({"code": form if form != "polars" else object}), WORDS[:5].copy()
    gap["code"] = gap["code"].astype(object)
    gap.loc[3, "code"] = None
    gap = gap.astype({"code": rows.code.dtype})
    if form == "polars":
        polars = pytest.importorskip("polars")
        rows, gap = (polars.DataFrame(table.to_dict("list")) for table in (rows, gap))
    clf = model(KnownLevels(error), density=GDADensity(), features=ENCODED).fit(rows, Y)
    others = [0, 1, 2, 4]
    assert_the_others_are_answered_alike(clf, gap, rows[:5], others)
    assert clf.uncertainty(gap)[3] == 1 and clf.predict_ood(gap)[3] == -1
    assert clf.score_samples(gap)[3] == -np.inf
    assert "code is missing" in clf.explain(gap)[3].news


class Embedding(KnownLevels):
    """As a network that looks codes up is."""

    def check(self, X):
        np.eye(6)[np.asarray(X["code"], dtype=float).astype(int)]


def test_a_code_beyond_those_of_the_fit_is_unknown_where_codes_are_categories():
    rows, new = FRAME.astype({"code": "category"}), FRAME[:4].copy()
    new.loc[1, "code"] = 77
    clf = model(Embedding(), density=BLANK, features=ENCODED).fit(rows, Y)
    asked, others = new.astype({"code": "category"}), [0, 2, 3]
    assert clf.uncertainty(asked)[1] == 1
    expected = clf.predict_proba(rows[:4])[others]
    np.testing.assert_array_equal(clf.predict_proba(asked)[others], expected)
    numbers = model(Embedding(), density=BLANK, features=ENCODED).fit(FRAME, Y)
    with pytest.raises(IndexError):
        numbers.predict_proba(new)


def test_a_first_gap_among_levels_beside_an_overflow_refuses_no_other_row():
    tree = make_pipeline(ENCODED, DecisionTreeClassifier(max_depth=2))
    clf = model(tree, density=GDADensity(), features=ENCODED).fit(WORDS, Y)
    new = WORDS[:3].assign(code=["u", None, "w"], a=[WORDS.a[0], 1e300, WORDS.a[2]])
    assert clf.uncertainty(new)[1] == 1
    np.testing.assert_array_equal(clf.uncertainty(new)[::2], clf.uncertainty(WORDS[:3])[::2])
    with pytest.raises(ValueError, match=r"infinity|NaN"):
        clf.uncertainty(new.assign(b=[0, np.nan, 0]))


def test_an_error_about_other_rows_is_raised_beside_a_new_level():
    clf = model(KnownLevels(), density=GDADensity(), features=ENCODED).fit(WORDS, Y)
    new = WORDS[:6].assign(code=["u", "zz", "v", "w", "u", "v"])
    clf.estimator_.codes_ = {"u", "w"}
    with pytest.raises(RuntimeError, match="unseen among"):
        clf.predict_proba(new)


class Network(Strict):
    """As a network of PyTorch in float32 is."""

    def learn(self, X):
        self.check(X)

    def check(self, X):
        if X.dtype != np.float32:
            name = {"float64": "Double", "int64": "Long"}[str(X.dtype)]
            raise self.error(f"mat1 and mat2 must have the same dtype, but got {name} and Float")


class Layers(Network, TransformerMixin):
    def transform(self, X):
        self.check(X)
        return X


SINGLE = X.astype(np.float32)


@pytest.mark.parametrize(("error", "dtype"), [(RuntimeError, np.float64), (ValueError, np.int64)])
@pytest.mark.parametrize(
    "ask",
    [
        lambda net, rows: model(net, density=BLANK).fit(rows, Y),
        lambda net, rows: model(FrozenEstimator(net.fit(SINGLE, Y)), density=BLANK).fit(rows, Y),
        lambda net, rows: model(net, density=BLANK).fit(SINGLE, Y, calibration=(rows, Y)),
        lambda net, rows: model(net, density=BLANK).fit(SINGLE, Y).calibrate(rows, Y),
        lambda net, rows: model(net, density=BLANK).fit(SINGLE, Y).predict_proba(rows),
        lambda net, rows: model(net, density=BLANK).partial_fit(rows, Y),
        lambda net, rows: model(None, features=Layers(net.error), density=BLANK).fit(rows, Y),
        lambda net, rows: model(
            None, features=FrozenEstimator(Layers(net.error).fit(SINGLE, Y)), density=BLANK
        ).fit(rows, Y),
        lambda net, rows: MaxSoftmax(net).fit(rows, Y),
        lambda net, rows: MaxSoftmax(net).fit(SINGLE, Y).predict_proba(rows),
    ],
    ids=[
        *("fit", "frozen", "calibration", "calibrate", "predict", "batch", "features"),
        *("frozen features", "baseline", "answers of a baseline"),
    ],
)
def test_rows_of_another_dtype_than_a_network_takes_are_given_the_remedy(ask, error, dtype):
    with pytest.raises(error, match="same dtype") as caught:
        ask(Network(error), X.astype(dtype))
    notes = [note for note in caught.value.__notes__ if "X.astype('float32')" in note]
    assert len(notes) == 1


def test_an_error_about_labels_gives_no_remedy_for_rows():
    class Labels(Network):
        def check(self, X):
            raise RuntimeError("Found dtype Long but expected Float")

    with pytest.raises(RuntimeError, match="dtype Long") as caught:
        model(Labels(), density=BLANK).fit(SINGLE, Y)
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("library", ["skorch", "catboost"])
def test_the_libraries_themselves(library):
    pytest.importorskip(library)
    if library == "catboost":
        from catboost import CatBoostClassifier

        quiet = {"iterations": 5, "verbose": 0, "allow_writing_files": False}
        clf = DIPClassifier(CatBoostClassifier(cat_features=("code",), **quiet)).fit(WORDS, Y)
        new = WORDS[:3].assign(code=["u", "zz", "w"])
        np.testing.assert_array_equal(
            clf.predict_proba(new)[[0, 2]], clf.predict_proba(WORDS[:3])[[0, 2]]
        )
        gap = WORDS[:3].assign(code=["u", None, "w"])
        assert clf.uncertainty(gap)[1] == 1
        np.testing.assert_array_equal(
            clf.predict_proba(gap)[[0, 2]], clf.predict_proba(WORDS[:3])[[0, 2]]
        )
        DIPClassifier(CatBoostClassifier(cat_features=("code",), **quiet)).fit(FRAME, Y)
    else:
        from skorch import NeuralNetClassifier
        from torch import nn

        layers = nn.Sequential(nn.Linear(8, 2), nn.Softmax(-1))
        rows, y = load_breast_cancer(return_X_y=True)
        rows = StandardScaler().fit_transform(rows[:, :8]).astype(np.float32)
        net = NeuralNetClassifier(layers, max_epochs=1, verbose=0, train_split=None)
        assert np.isfinite(DIPClassifier(net).fit(rows, y).predict_proba(rows)).all()
        with pytest.raises(RuntimeError) as caught:
            DIPClassifier(net).fit(rows.astype(float), y)
        assert "X.astype('float32')" in caught.value.__notes__[0]


IRIS, KINDS = load_iris(return_X_y=True)
IRIS -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
LAST = LogisticRegression(max_iter=300)


def stack(**parameters):
    return StackingClassifier(
        [("a", LAST), ("b", DecisionTreeClassifier(max_depth=2))], **parameters
    )


class Later(ClassifierMixin, BaseEstimator):
    """Has its methods from what it has fitted."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression(max_iter=300).fit(X, y)
        self.classes_, self.predict_proba = self.inner_.classes_, self.inner_.predict_proba
        return self


PROBABLE = {
    "stack": lambda: stack(cv=2),
    "in nested pipelines": lambda: make_pipeline(StandardScaler(), make_pipeline(stack(cv=2))),
    "in a search": lambda: GridSearchCV(stack(), {"cv": [2]}, cv=2),
    "in a vote": lambda: VotingClassifier([("a", LAST), ("s", stack(cv=2))], voting="soft"),
    "one against the rest": lambda: OneVsRestClassifier(stack(cv=2)),
    "frozen": lambda: FrozenEstimator(stack(cv=2).fit(IRIS, KINDS)),
    "frozen pipeline": lambda: FrozenEstimator(make_pipeline(PCA(2), stack(cv=2)).fit(IRIS, KINDS)),
    "after fit": Later,
}


@pytest.mark.parametrize(
    "kind", sample_of(PROBABLE, "stack", "in nested pipelines", "in a vote", "frozen", "after fit")
)
def test_probabilities_are_looked_for_after_the_fit(kind):
    clf = DIPClassifier(PROBABLE[kind](), BLANK, cv=2, random_state=0).fit(IRIS, KINDS)
    assert clf.score(IRIS, KINDS) > 0.7
    baseline = MaxSoftmax(PROBABLE[kind]()).fit(IRIS, KINDS)
    assert baseline.predict_proba(IRIS).shape == (150, 3)


@pytest.mark.parametrize(
    "classifier",
    [
        LinearSVC(),
        make_pipeline(StandardScaler(), Perceptron()),
        GridSearchCV(LinearSVC(), {"C": [1]}, cv=2),
        VotingClassifier([("a", LAST)]),
        stack(final_estimator=LinearSVC(), cv=2),
        FrozenEstimator(stack()),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_classifier_without_probabilities_is_refused_by_name(classifier):
    for model in (DIPClassifier(classifier, BLANK), DDU(classifier)):
        with pytest.raises(TypeError, match="estimator must have a method predict_proba"):
            model.fit(IRIS, KINDS)
    with pytest.raises(TypeError, match="estimator must have a method predict_proba"):
        DIPClassifier(SGDClassifier(), BLANK).partial_fit(IRIS, KINDS)


WEIGHTED = {
    "vote": (VotingClassifier([("a", LAST)], voting="soft"), ""),
    "stack": (StackingClassifier([("a", LAST)], cv=2), ""),
    "search": (GridSearchCV(LAST, {}, cv=2), ""),
    "selection": (RFE(LAST, n_features_to_select=2), ""),
    "pipeline": (make_pipeline(StandardScaler(), LAST), "logisticregression__"),
    "pipelines": (
        make_pipeline(make_pipeline(StandardScaler(), LAST)),
        "pipeline__logisticregression__",
    ),
    "search of a pipeline": (
        GridSearchCV(make_pipeline(PCA(2), LAST), {}, cv=2),
        "logisticregression__",
    ),
    "vote in a pipeline": (
        make_pipeline(PCA(2), VotingClassifier([("a", LAST)], voting="soft")),
        "votingclassifier__",
    ),
    "calibrated": (CalibratedClassifierCV(LAST, cv=2), ""),
}


@pytest.mark.parametrize(
    ("kind", "routing"),
    sample_of_rows([*((kind, False) for kind in WEIGHTED), ("pipelines", True)], 0, 1, 2, 7, 9),
)
def test_weights_reach_the_classifier_as_in_its_own_fit(kind, routing):
    w = np.linspace(0.2, 3, 150)
    classifier, prefix = WEIGHTED[kind]
    own = clone(classifier).fit(IRIS, KINDS, **{f"{prefix}sample_weight": w})
    with config_context(enable_metadata_routing=routing):
        clf = DIPClassifier(classifier, BLANK, calibrator="passthrough", cv=2).fit(IRIS, KINDS, w)
    np.testing.assert_allclose(clf.classifier_proba(IRIS), own.predict_proba(IRIS))


def test_weights_are_routed_where_parts_request_them():
    w = np.linspace(0.2, 3, 150)
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        last = clone(LAST).set_fit_request(sample_weight=True)
        for model in (make_pipeline(scaler, last), OneVsRestClassifier(last)):
            own = clone(model).fit(IRIS, KINDS, sample_weight=w)
            clf = DIPClassifier(model, BLANK, calibrator="passthrough", cv=2).fit(IRIS, KINDS, w)
            np.testing.assert_allclose(clf.classifier_proba(IRIS), own.predict_proba(IRIS))
        density = make_pipeline(StandardScaler(), GDADensity())
        assert np.isfinite(DIPClassifier(LAST, density).fit(IRIS, KINDS, w).offset_)


@pytest.mark.parametrize("kind", [RFECV, lambda c, **k: GridSearchCV(c, {}, **k)])
def test_parts_that_score_are_told_to_request_weights(kind):
    last, w = clone(LAST), np.linspace(0.2, 3, 150)
    with config_context(enable_metadata_routing=True):
        requests = clone(LAST).set_fit_request(sample_weight=True)
        for classifier in (last, requests) if kind is RFECV else (requests,):
            with pytest.raises(ValueError, match=r"metadata|sample_weight") as caught:
                DIPClassifier(kind(classifier, cv=2), BLANK, cv=2).fit(IRIS, KINDS, w)
            (note,) = caught.value.__notes__
            assert "set_fit_request" in note and "set_score_request" in note
        # The remedy.
        scoring = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        DIPClassifier(kind(requests, cv=2, scoring=scoring), BLANK, cv=2).fit(IRIS, KINDS, w)


@pytest.mark.parametrize("classifier", [OneVsRestClassifier(LAST), KNeighborsClassifier()], ids=str)
def test_weights_that_a_classifier_does_not_take_are_refused(classifier):
    with pytest.raises(ValueError, match=type(classifier).__name__):
        DIPClassifier(classifier, BLANK).fit(IRIS, KINDS, np.ones(150))


FIVE = np.r_[np.zeros(50, int), np.ones(50, int), np.full(5, 2)]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        pytest.param({"cv": 3, "n_jobs": 2}, marks=pytest.mark.slow),
    ],
    ids=["default", "processes"],
)
def test_an_error_of_a_fit_to_a_fold_says_so_and_what_to_do(parameters):
    inner = CalibratedClassifierCV(LAST, cv=5)
    with pytest.raises(ValueError, match="5-fold") as caught:
        DIPClassifier(inner, BLANK, **parameters).fit(IRIS[:105], FIVE)
    (note,) = caught.value.__notes__
    # which of the folds fails first is a matter of processes
    assert re.search("70 of 105 rows, [34] of class 2", note) and "calibration=" in note
    # The two remedies.
    few = {**parameters, "n_jobs": None}
    DIPClassifier(CalibratedClassifierCV(LAST, cv=2), BLANK, **few).fit(IRIS[:105], FIVE)
    DIPClassifier(inner, BLANK, **few).fit(IRIS[:105], FIVE, calibration=(IRIS[::2], KINDS[::2]))


def test_an_error_of_features_that_are_fewer_in_a_fold_says_that_it_was_one():
    codes = np.random.default_rng(0).integers(0, 25, (300, 5))
    encode = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    features, y = make_pipeline(encode, TruncatedSVD(40)), np.arange(300) % 2
    with pytest.raises(ValueError, match="n_components") as caught:
        DIPClassifier(LAST, BLANK, features=features, cv=2).fit(codes, y)
    (note,) = caught.value.__notes__
    assert "150 of 300 rows" in note and "calibration=" in note


@pytest.mark.parametrize("kind", [GroupKFold, StratifiedGroupKFold, ShuffleSplit, int])
def test_a_class_in_place_of_a_splitter_is_named(kind):
    for model in (DIPClassifier(LAST, BLANK, cv=kind), OODDetector(DIPClassifier(cv=kind))):
        with pytest.raises(TypeError, match=rf"cv must be .*class {kind.__name__}"):
            model.fit(IRIS, KINDS)


@pytest.mark.parametrize(
    "splitter",
    sample_of(
        [GroupKFold(5), StratifiedGroupKFold(5), GroupShuffleSplit(2), LeaveOneGroupOut()], 0, 2
    ),
    ids=lambda v: type(v).__name__,
)
def test_a_splitter_by_groups_names_the_way_that_works(splitter):
    for model in (DIPClassifier(LAST, BLANK, cv=splitter), OODDetector(DIPClassifier(cv=splitter))):
        with pytest.raises(ValueError, match=r"needs groups.*cv=list\(.*\.split\(X, y, groups\)\)"):
            model.fit(IRIS, KINDS)
    groups = np.arange(150) // 15 % 5
    pairs = list(splitter.split(IRIS, KINDS, groups))
    assert np.isfinite(DIPClassifier(LAST, BLANK, cv=pairs).fit(IRIS, KINDS).offset_)
