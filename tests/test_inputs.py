"""Inputs that no model can use: refused by name at fit, unknown one by one in scoring."""

import warnings
from copy import deepcopy
from datetime import date
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from dipedl import DIPClassifier, Dirichlet, OODDetector, baselines, density, metrics
from dipedl.apps.monitor import DriftMonitor
from dipedl.calibration import Temperature
from dipedl.decisions import conformal_p_values
from dipedl.density import DensitySelector, GaussianDensity, GDADensity
from dipedl.evidence import (
    CautionBudget,
    QuantileEvidence,
    ZScore,
    alarm_threshold,
    log_evidence,
    weighted_quantile,
)
from dipedl.inputs import NotComputableError
from weekly import sample_of, sample_of_rows

X, Y = load_iris(return_X_y=True)
X -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
LARGEST = np.finfo(float).max
FITTED = {
    "classifier": DIPClassifier(density=GDADensity()),
    "detector": OODDetector(DIPClassifier(density=GDADensity())),
    "baseline": baselines.MaxSoftmax(),
    "score of features": baselines.KNNDistance(n_neighbors=5),
    **{
        name: getattr(density, name)()
        for name in density.__all__
        if name not in ("FlowDensity", "CustomDensity")
    },
    "wrapped": density.CustomDensity(GaussianDensity()),
}


def at(row, column, value, X=X):
    X = X.copy()
    X[row, column] = value
    return X


def masked(array=X):
    """The array with its second entry hidden."""
    mask = np.zeros(array.shape, bool)
    mask.flat[1] = True
    return np.ma.array(array, mask=mask)


def answer(model, X):
    return getattr(model, "predict_proba", getattr(model, "score_samples", None))(X)


@pytest.mark.parametrize("name", FITTED)
def test_masked_arrays_are_refused(name):
    model = clone(FITTED[name])
    with pytest.raises(ValueError, match=r"X must not be masked, got 1 masked entries.*imputer"):
        model.fit(masked(), Y)
    model.fit(np.ma.array(X), Y)
    with pytest.raises(ValueError, match="X must not be masked"):
        answer(model, masked())
    with pytest.raises(ValueError, match="X must not be masked"):
        answer(model, list(masked()))
    np.testing.assert_array_equal(answer(model, np.ma.array(X)), answer(model, X))


P, SCORES, ONES = np.full((150, 3), 1 / 3), X[:, 0] / 8, np.ones(150)
MASKED = {
    "y": lambda: DIPClassifier().fit(X, masked(Y)),
    "y of a detector": lambda: OODDetector().fit(X, masked(Y)),
    "y of a density": lambda: GDADensity().fit(X, masked(Y)),
    "weights": lambda: DIPClassifier().fit(X, Y, masked(np.ones(150))),
    "prior": lambda: DIPClassifier(prior=masked(np.ones(3))).fit(X, Y),
    "calibration rows": lambda: DIPClassifier().fit(X, Y, calibration=(masked(), Y)),
    "labels of a metric": lambda: metrics.brier_score(masked(Y), P),
    "probabilities of a metric": lambda: metrics.brier_score(Y, masked(P)),
    "scores of a metric": lambda: metrics.ood_auroc(SCORES, masked(SCORES)),
    "scores of p-values": lambda: conformal_p_values(masked(SCORES), SCORES),
    "calibrator": lambda: Temperature().fit(masked(P), Y),
    "labels of a calibrator": lambda: Temperature().fit(P, masked(Y)),
    "normaliser": lambda: ZScore().fit(masked(SCORES)),
}


@pytest.mark.parametrize("name", MASKED)
def test_nothing_reads_through_a_mask(name):
    with pytest.raises(ValueError, match="must not be masked"):
        MASKED[name]()


@pytest.mark.parametrize(
    "bad",
    [
        at(3, 1, np.nan)[:, :2],
        pd.DataFrame(at(3, 2, np.inf)[:, [2, 0]], columns=["c", "a"]),
        at(3, 1, np.nan),
        at(3, 1, 1e300),
        np.zeros((0, 4)),
    ],
    ids=["width", "names", "nan", "huge", "empty"],
)
@pytest.mark.parametrize("name", FITTED)
def test_a_failed_fit_changes_nothing(name, bad):
    frame, model, expected = fitted(name)
    before = dict(vars(model))
    for method in ("fit", "partial_fit"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=r"NaN|inf|nan|column 1|minimum|feature"):
                getattr(model, method)(bad, Y[: len(bad)])
    assert vars(model) == before
    np.testing.assert_array_equal(answer(model, frame), expected)


@cache
def fitted(name):
    """Return rows, a model that was fitted on them, which no failed fit changes, and its answer."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = clone(FITTED[name]).fit(frame, Y)
    return frame, model, answer(model, frame)


def test_a_part_that_fails_late_changes_nothing():
    """The classifier was fitted, and a rest of its width and of its names would have stayed."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = DIPClassifier(density=GDADensity()).fit(frame, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="cv must"):
        model.set_params(cv=[]).fit(frame[["d", "b"]], Y)
    model.set_params(cv="auto")
    assert vars(model) == before
    knn = baselines.KNNDistance(n_neighbors=5).fit(X, Y).calibrate(X, Y)
    held = knn.held_out_
    with pytest.raises(ValueError, match="n_neighbors must lie in"):
        knn.set_params(n_neighbors=999).fit(X[:, :2], Y)
    assert knn.held_out_ is held and knn.n_features_in_ == 4


@pytest.mark.parametrize(
    ("calibrator", "good", "bad"),
    [
        (Temperature(), (P, Y), (P, Y + 1)),
        (ZScore(), (SCORES,), (0 * SCORES,)),
        (CautionBudget(), (SCORES,), (0 * SCORES,)),
    ],
)
def test_calibrators_keep_what_they_have_learned(calibrator, good, bad):
    extra = {"proba": P, "y": Y, "n": 150, "prior": 1.0} if "Caution" in str(calibrator) else {}
    model = clone(calibrator).fit(*good, **extra)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"."):
        model.fit(*bad, **extra)
    assert vars(model) == before


def test_of_two_parts_neither_takes_rows_that_one_refuses():
    X2 = np.abs(X)
    model = density.RelativeDensity(GaussianDensity(), GaussianDensity("diag")).fit(X2)
    before = model.score_samples(X2)
    model.background.covariance_type = "unheard of"
    with pytest.raises(ValueError, match="covariance_type"):
        model.fit(10 * X2)
    np.testing.assert_array_equal(model.score_samples(X2), before)


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: at(7, 2, 1e100), "got 1e\\+100 at row 7, column 2"),
        (lambda: at(7, 2, -1e39), "got -1e\\+39 at row 7, column 2"),
        (lambda: at(7, 2, 1e100).astype(object), "row 7, column 2"),
        (lambda: pd.DataFrame(at(7, 2, 1e39), columns=list("abcd")), "row 7, column 'c'"),
        (lambda: sparse.csr_array(at(7, 2, 1e39)), "row 7, column 2"),
    ],
)
@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(3)])
def test_a_number_too_large_to_fit_is_named(make, where, estimator):
    pipeline = make_pipeline(MaxAbsScaler(), estimator)
    with pytest.raises(ValueError, match=f"up to 3.4e\\+38, {where}|{where}"):
        DIPClassifier(pipeline).fit(make(), Y)
    with pytest.raises(ValueError, match=where):
        baselines.MaxSoftmax(pipeline).fit(make(), Y)
    if not sparse.issparse(make()):
        with pytest.raises(ValueError, match=where):
            OODDetector().fit(make())


QUERIES = np.concatenate([X[:3], at(0, 2, 1e39)[:1], X[60:63], at(1, 0, LARGEST)[:2]])
FAR = np.array([3, 8])


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        GaussianNB(),
        RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)),
    ],
    ids=["linear", "bayes", "forest", "scaled forest"],
)
@pytest.mark.parametrize("given", sample_of([GDADensity(), density.KNNDensity(5)], 0), ids=str)
def test_a_row_out_of_range_is_unknown_and_the_others_are_as_alone(estimator, given):
    prior = np.array([1.0, 2.0, 3.0])
    clf = DIPClassifier(estimator, given, prior=prior, random_state=0).fit(X, Y)
    with warnings.catch_warnings():
        # The warnings of other libraries, of overflows inside them, are not the user's.
        warnings.simplefilter("error")
        rows = {name: getattr(clf, name)(QUERIES) for name in ("predict_proba", "p_value")}
        u, flags = clf.uncertainty(QUERIES), clf.predict_ood(QUERIES)
        bare = clf.classifier_proba(QUERIES)
        cards = clf.explain(QUERIES[FAR])
    np.testing.assert_array_equal(rows["predict_proba"][FAR], [prior / 6] * 2)
    np.testing.assert_array_equal(u[FAR], 1.0)
    np.testing.assert_array_equal(rows["p_value"][FAR], 1 / (len(clf.evidence_.held_out_) + 1))
    np.testing.assert_array_equal(flags[FAR], -1)
    assert np.isfinite(bare).all() and all(str(card) for card in cards)
    near = np.setdiff1d(np.arange(len(QUERIES)), FAR)
    alone = np.concatenate([clf.predict_proba(QUERIES[i : i + 1]) for i in near])
    np.testing.assert_allclose(rows["predict_proba"][near], alone, rtol=1e-12)


class FarIsNaN(LogisticRegression):
    """Sums to eight beyond 0.5, and to nothing beyond 1."""

    def predict_proba(self, X):
        P = super().predict_proba(X)
        P[X[:, 0] > 0.5] *= 8
        P[X[:, 0] > 1] = np.nan
        return P


def test_where_the_classifier_breaks_the_row_is_unknown():
    clf = DIPClassifier(FarIsNaN(), GDADensity())
    near = X[:, 0] < 0.4
    clf.fit(X[near], Y[near] > 0)
    far = X[:, 0] > 0.5
    np.testing.assert_array_equal(clf.uncertainty(X) == 1, far)
    np.testing.assert_array_equal(clf.predict_proba(X[far]), 0.5)
    np.testing.assert_array_equal(clf.score_samples(X[far]), -np.inf)
    with pytest.raises(ValueError, match="finite probabilities"):
        DIPClassifier(FarIsNaN(), GDADensity()).fit(X, Y)


def test_features_that_overflow_make_a_row_unknown():
    features = FunctionTransformer(np.exp)
    clf = DIPClassifier(density=GDADensity(), features=features).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clf.uncertainty(at(1, 0, 1e4)[:3])
        (card,) = clf.explain(at(0, 0, 1e4)[:1])
    assert found[1] == 1 and (found[[0, 2]] < 1).all()
    assert "cannot compute" in card.news[0] and card.parts == () and card.vacuity == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_with_its_own_row(value):
    """Also beside a row that overflows, which alone would be unknown."""
    clf = DIPClassifier(density=GDADensity(), features="passthrough").fit(X, Y)
    for model in (clf, OODDetector(clf), OODDetector(clf).fit(X)):
        with pytest.raises(ValueError, match="row 7, column 1"):
            model.score_samples(at(7, 1, value))
    forest = DIPClassifier(RandomForestClassifier(3), GDADensity()).fit(X, Y)
    with pytest.raises(ValueError, match="row 7, column 1"):
        forest.predict(at(7, 1, value, at(2, 0, 1e39)))


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame], ids=["array", "table"])
def test_infinity_is_named_where_a_step_of_scikit_learn_finds_it(make):
    clf = DIPClassifier(make_pipeline(QuantileTransformer(n_quantiles=9), GaussianNB()))
    with pytest.raises(ValueError, match="X must be finite, got inf at row 7, column 1"):
        clf.fit(make(at(7, 1, np.inf)), Y)
    clf.fit(make(X), Y)
    for rows, row in ((slice(7, 8), 0), (slice(0, 9), 7)):
        with pytest.raises(ValueError, match=f"got -inf at row {row}, column 1; correct"):
            clf.predict_proba(make(at(7, 1, -np.inf)[rows]))


def test_tensors_are_answered_as_arrays():
    torch = pytest.importorskip("torch")
    clf = DIPClassifier(density=GDADensity(), random_state=0)
    found = clone(clf).fit(torch.tensor(X), torch.tensor(Y)).predict_proba(torch.tensor(X))
    np.testing.assert_array_equal(found, clf.fit(X, Y).predict_proba(X))


def test_a_detector_answers_all_rows():
    clf = DIPClassifier(density=GDADensity(), features=FunctionTransformer(np.exp))
    with np.errstate(over="ignore"):
        for detector in (OODDetector(clf).fit(X), OODDetector(clf.fit(X, Y))):
            assert detector.predict(at(1, 0, 1e4)[:3]).tolist()[1] == -1
            assert detector.score_samples(at(1, 0, 1e4)[:3])[1] == -np.inf


SPARSE_ROWS = np.where(np.random.default_rng(0).random((150, 5)) < 0.4, 1.0, 0.0)
SPARSE_ROWS[:, :2] *= np.random.default_rng(1).random((150, 2)).round(3)
SUMS = (SPARSE_ROWS[:, 0] + SPARSE_ROWS[:, 2] > 0.6).astype(int)
#: Frames of the same numbers whose columns are sparse, all or some.
SPARSE_FRAMES = {
    "zeros left out": lambda frame: frame.astype(pd.SparseDtype(float, 0.0)),
    "ones left out": lambda frame: frame.astype(pd.SparseDtype(float, 1.0)),
    "gaps left out": lambda frame: frame.astype(pd.SparseDtype(float, np.nan)),
    "float32": lambda frame: frame.astype(pd.SparseDtype("float32", 0.0)),
    "of integers and of booleans": lambda frame: frame.assign(
        **{name: frame[name].astype(pd.SparseDtype(float, 0.0)) for name in "abe"},
        c=frame["c"].astype(pd.SparseDtype(int, 0)),
        d=frame["d"].astype(pd.SparseDtype(bool)),
    ),
    "some": lambda frame: frame.assign(a=frame["a"].astype(pd.SparseDtype(float, 0.0))),
}
SPARSE_MODELS = {
    "default": lambda: DIPClassifier(random_state=0),
    "scaled": lambda: DIPClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), GDADensity()
    ),
    "by name": lambda: DIPClassifier(
        make_pipeline(
            ColumnTransformer([("a", StandardScaler(), ["a", "b"])], remainder=MaxAbsScaler()),
            LogisticRegression(),
        ),
        GDADensity(),
    ),
    "trees": lambda: DIPClassifier(
        HistGradientBoostingClassifier(max_iter=5, random_state=0), GDADensity()
    ),
    "detector": lambda: OODDetector(DIPClassifier(density=GDADensity())),
    "baseline": lambda: baselines.Mahalanobis(),
}


@pytest.mark.parametrize(
    ("kind", "model"),
    sample_of_rows(
        [
            *((kind, "baseline") for kind in SPARSE_FRAMES),
            *(("zeros left out", model) for model in SPARSE_MODELS if model != "baseline"),
        ],
        0,
        2,
        5,
        7,
        9,
        10,
    ),
)
def test_frames_of_sparse_columns_are_answered_as_dense_ones(kind, model):
    """scikit-learn takes a frame of nothing but sparse columns for a sparse matrix."""
    dense = pd.DataFrame(SPARSE_ROWS, columns=list("abcde"))
    if kind == "float32":
        dense = dense.astype("float32")
    elif kind == "of integers and of booleans":
        dense = dense.astype({"c": int, "d": bool})
    frame = SPARSE_FRAMES[kind](dense)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, made = (SPARSE_MODELS[model]().fit(X, SUMS) for X in (dense, frame))
    for ask in ("predict_proba", "score_samples", "uncertainty"):
        if hasattr(made, ask):
            right = getattr(plain, ask)(dense)
            np.testing.assert_allclose(getattr(made, ask)(frame), right)
            np.testing.assert_allclose(getattr(made, ask)(dense), right)


def test_a_monitor_takes_frames_of_sparse_columns():
    dense = pd.DataFrame(SPARSE_ROWS, columns=list("abcde"))
    frame = dense.astype(pd.SparseDtype(float, 0.0))
    clf = DIPClassifier(density=GDADensity()).fit(frame, SUMS)
    reports = [DriftMonitor(window=50).fit(clf, X).update(clf, X) for X in (dense, frame)]
    assert reports[0].window == reports[1].window


@pytest.mark.parametrize("ask", ["fit", "predict", "calibrate", "answers", "explain"])
def test_matrices_of_numpy_are_refused_with_the_remedy(ask):
    matrix = np.asmatrix(X)
    for model in (DIPClassifier(density=GDADensity()), OODDetector(), baselines.MaxSoftmax()):
        if not hasattr(model, ask):
            continue
        model.fit(X, Y)
        if isinstance(model, baselines.MaxSoftmax):
            model.calibrate(X, Y)
        labels = (Y,) if ask in ("fit", "calibrate") else ()
        with pytest.raises(TypeError, match=r"X must be .*np\.matrix.*np\.asarray\(X\)"):
            getattr(model, ask)(matrix, *labels)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("low", "high"), [(1e-12, 1e12), (1.0, 2.0**53), (1e-100, 1.0)])
def test_weights_that_no_sum_can_hold_are_named_where_a_fit_fails(low, high):
    weights = np.where(np.arange(len(X)) % 3 == 0, high, low)
    with pytest.raises(ValueError, match="sample_weight spans"):
        DIPClassifier(random_state=0).fit(X, Y, sample_weight=weights)


def test_labels_and_weights_may_be_lists():
    w = np.arange(150) % 3 + 1
    for model in (density.BlockSumDensity(), density.BlockSumDensity(cv=2)):
        expected = clone(model).fit(X, Y, w).score_samples(X)
        found = clone(model).fit(X, Y.tolist(), w.tolist()).score_samples(X)
        np.testing.assert_array_equal(found, expected)


def test_an_infinite_entry_of_a_table_of_numbers_is_named_by_its_column():
    table = pd.DataFrame(X, columns=list("abcd"))
    model = DIPClassifier(density=GDADensity()).fit(table, Y)
    table.loc[3, "b"] = np.inf
    with pytest.raises(ValueError, match="got inf at row 3, column 'b'"):
        model.predict(table)


class Fixed(ClassifierMixin, BaseEstimator):
    """Gives the same rows of probabilities for any inputs."""

    def __init__(self, value=0.5, columns=3, rows=None):
        self.value = value
        self.columns = columns
        self.rows = rows

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X) if self.rows is None else self.rows, self.columns), self.value)


class Renames(Fixed):
    """Forgets the labels that it was given."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1, 9])
        return self


class Score(BaseEstimator):
    """A density of one value."""

    def __init__(self, value=np.nan, shape=1):
        self.value = value
        self.shape = shape

    def fit(self, X):
        return self

    def score_samples(self, X):
        return np.full((len(X),) * self.shape, self.value)


class Changes(BaseEstimator):
    """A part that gives a function of its rows."""

    def __init__(self, how):
        self.how = how

    def fit(self, X, y=None, sample_weight=None):
        return self

    def transform(self, X):
        return self.how(np.asarray(X))


class Upside(ZScore):
    """Falls as the score rises."""

    def transform(self, log_density):
        return -super().transform(log_density)


def fit(X=X, y=Y, weights=None, calibration=None, **parameters):
    """The call of a fit that changes these of its defaults."""
    given = {} if weights is None else {"sample_weight": weights}
    return lambda: DIPClassifier(**parameters).fit(X, y, calibration=calibration, **given)


def held(rows, labels):
    """The call of a fit with these rows for calibration."""
    return fit(estimator=GaussianNB(), density=GDADensity(), calibration=(rows, labels))


def labelled(values):
    return fit(y=np.array(values, dtype=object))


BARE, FREE = GDADensity(shrinkage=None), {"features": "passthrough"}
FROZEN = FrozenEstimator(LogisticRegression(max_iter=500).fit(X, Y))
NONE = [("one", GaussianDensity("no such")), ("two", GDADensity("neither"))]

GAP, FLOATS = np.where(np.arange(150) == 7, np.nan, Y), np.linspace(0, 1, 150)
FUSED = density.FusedDensity([("own", GDADensity()), ("tied", GDADensity("tied"))])
BLOCKS = density.BlockSumDensity()
FRAME = pd.DataFrame(X, columns=list("abcd"))
NAMED = ColumnTransformer([("two", StandardScaler(), ["a", "b"])])
TABLE = DIPClassifier(make_pipeline(NAMED, LogisticRegression()), GDADensity()).fit(FRAME, Y)
OF_FRAME, ARRAY = (DIPClassifier(density=GDADensity()).fit(rows, Y) for rows in (FRAME, X))
NESTED = pl.DataFrame({"a": X[:, 0], "n": [[1, 2]] * 150})
BOOSTED = HistGradientBoostingClassifier(max_iter=5)
WORDS = np.where(Y > 0, "u", "v")
DIRICHLET = Dirichlet(np.ones((2, 3)))


def fused_scores(proba):
    fused = clone(FUSED).fit(
        X, Y, proba=LogisticRegression(max_iter=500).fit(X, Y).predict_proba(X)
    )
    return fused.score_samples(X, proba)


#: Call, error, and a pattern with the named argument and what came.
REFUSED = [
    (lambda: BLOCKS.fit(X, Y[:9]), ValueError, r"samples.*\[150, 9\]"),
    (lambda: BLOCKS.fit(X, GAP), ValueError, "y must hold a label .* at row 7"),
    (lambda: BLOCKS.fit(X, FLOATS), ValueError, "Unknown label type"),
    (lambda: clone(FUSED).fit(X, GAP), ValueError, "y must hold a label .* at row 7"),
    (lambda: clone(FUSED).fit(X, Y[:9]), ValueError, r"samples.*\[150, 9\]"),
    (lambda: clone(FUSED).fit(X, FLOATS), ValueError, "Unknown label type"),
    (lambda: fused_scores(P[:1]), ValueError, r"proba must .*\(150, 3\), got \(1, 3\)"),
    (lambda: fused_scores(P[:, :2]), ValueError, r"proba must .*\(150, 3\), got \(150, 2\)"),
    (lambda: fused_scores(P[:, 0]), ValueError, r"proba must .*\(150, 3\), got \(150,\)"),
    (lambda: fused_scores(np.full((150, 3), "a")), ValueError, "proba must hold numbers"),
    (lambda: clone(FUSED).fit(X, Y, proba=[["a"] * 3] * 150), ValueError, "proba must hold num"),
    (lambda: fused_scores(5 * P), ValueError, "rows of proba must sum to 1, got 5"),
    (lambda: fused_scores(np.nan * P), ValueError, "proba must hold finite probabilities"),
    (lambda: OODDetector().fit(X, FLOATS), ValueError, "Unknown label type"),
    *(
        (lambda ask=ask: ask(FRAME.set_axis(list("abca"), axis=1)), ValueError, "one column 'a'")
        for ask in (
            lambda rows: DIPClassifier().fit(rows, Y),
            lambda rows: OODDetector().fit(rows),
            lambda rows: baselines.MaxSoftmax().fit(rows, Y),
            lambda rows: OF_FRAME.predict(rows),
            lambda rows: ARRAY.score_samples(rows),
            lambda rows: deepcopy(ARRAY).calibrate(rows, Y),
            lambda rows: DIPClassifier(GaussianNB(), GDADensity()).partial_fit(rows, Y),
        )
    ),
    (
        lambda: OODDetector(clone(DIPClassifier(density=GDADensity())).fit(X, Y), 2).predict(X),
        ValueError,
        "false_alarm_rate must be strictly between 0 and 1, got 2",
    ),
    (lambda: TABLE.predict(X), ValueError, r"X must be a table with the columns \['a', 'b'"),
    (lambda: TABLE.score_samples(X), ValueError, r"X must be a table with the columns \['a', 'b'"),
    (lambda: ARRAY.predict(X.astype(complex)), ValueError, "X must hold real .*complex128"),
    (lambda: ARRAY.predict(X.astype(str)), ValueError, "text .* in column 'x0'.* at row 0"),
    (
        lambda: OF_FRAME.predict(pl.DataFrame(FRAME.astype(str)).to_arrow()),
        ValueError,
        "text .* in column 'a', and fit had numbers there .* at row 0",
    ),
    (lambda: DIPClassifier(BOOSTED).fit(NESTED, Y), ValueError, "X has lists, .* in column 'n'"),
    (lambda: DIPClassifier(BOOSTED).fit(NESTED.to_arrow(), Y), ValueError, "lists, .*'n'"),
    (
        lambda: DIPClassifier(BOOSTED).fit(NESTED.with_columns(n=pl.struct("a")), Y),
        ValueError,
        "X has lists, .* in column 'n'",
    ),
    (
        lambda: DIPClassifier().fit(FRAME.assign(b=X[:, 1] > 3, c=pd.Categorical(WORDS)), Y),
        ValueError,
        r"X holds text or categories in the columns \['c'\]",
    ),
    (
        lambda: DIPClassifier().fit(FRAME.assign(c=WORDS).convert_dtypes(), Y),
        ValueError,
        r"X holds text or categories in the columns \['c'\]",
    ),
    (lambda: DIPClassifier(normalizer=ZScore).fit(X, Y), TypeError, "normalizer must"),
    (lambda: DIPClassifier(calibrator=Temperature).fit(X, Y), TypeError, "calibrator must"),
    (lambda: density.CustomDensity(GDADensity).fit(X), TypeError, "model must .*class GDA"),
    (lambda: GDADensity().fit(X, Y, ["a"] * 150), ValueError, "sample_weight must hold numbers"),
    (lambda: GDADensity().fit(X, Y, np.full(150, 1j)), ValueError, "sample_weight must hold real"),
    (lambda: GDADensity().fit(X, Y, {"a": 1}), TypeError, "sample_weight must hold .*got dict"),
    (lambda: GDADensity().fit(X, Y, X), ValueError, r"sample_weight must have .*\(150, 4\)"),
    (lambda: DIPClassifier(random_state=-1).fit(X, Y), ValueError, "random_state must be >= 0"),
    (lambda: ARRAY.p_value(X, random_state="a"), TypeError, "random_state must be .*got 'a'"),
    (lambda: ARRAY.p_value(X, by_class="yes"), TypeError, "by_class must be True or False"),
    (lambda: ARRAY.predict_ood(X, by_class="no"), TypeError, "by_class must be True or False"),
    (lambda: ARRAY.predict_set(X, by_class=1), TypeError, "by_class must be True .*got 1"),
    (lambda: ARRAY.rehearse_unknown(X, Y, select="no"), TypeError, "select must be True or False"),
    (lambda: DensitySelector(fuse="no").fit(X, Y), TypeError, "fuse must be True or False"),
    (
        lambda: baselines.DeepEnsemble(RandomForestClassifier(2), bootstrap="no").fit(X, Y),
        TypeError,
        "bootstrap must be True or False",
    ),
    (lambda: ARRAY.p_value(X, random_state=-1), ValueError, "random_state must be >= 0, got -1"),
    (lambda: DIPClassifier(LogisticRegression).fit(X, Y), TypeError, "estimator must be a class"),
    (lambda: OODDetector(DIPClassifier).fit(X, Y), TypeError, "estimator must be a DIPClassifier"),
    (lambda: DIPClassifier(features=StandardScaler).fit(X, Y), TypeError, "features must be"),
    (lambda: density.GaussianMixtureDensity("a").fit(X), TypeError, "n_components must .*'a'"),
    (lambda: baselines.KNNDistance(n_neighbors="a").fit(X, Y), TypeError, "n_neighbors must"),
    (lambda: density.KNNDensity(True).fit(X), TypeError, "n_neighbors must .*got True"),
    (lambda: density.KNNDensity("a").fit(X), TypeError, "n_neighbors must .*got 'a'"),
    (lambda: density.KNNDensity(2.5).fit(X), TypeError, "n_neighbors must .*got 2.5"),
    (lambda: density.KNNDensity(max_rows="a").fit(X), TypeError, "max_rows must .*got 'a'"),
    (lambda: density.KernelDensity(None).fit(X), TypeError, "bandwidth must .*got None"),
    (lambda: density.KernelDensity(np.inf).fit(X), ValueError, "bandwidth must be finite"),
    (lambda: clone(FUSED).set_params(margin="a").fit(X, Y), TypeError, "margin must .*'a'"),
    (lambda: DIRICHLET.credible_interval("a"), TypeError, "level must be a number"),
    (lambda: DIRICHLET.sample("a", 0), TypeError, "size must be an integer"),
    (lambda: DIRICHLET.sample(2, -1), ValueError, "rng must be an integer >= 0, got -1"),
    (lambda: DIRICHLET.update([1, 0, 0], nu="a"), TypeError, "nu must be a number"),
    (lambda: alarm_threshold(SCORES, 2.0), ValueError, "rate must be strictly .*got 2.0"),
    (lambda: alarm_threshold([], 0.1), ValueError, "log_density must be a non-empty"),
    (lambda: QuantileEvidence().fit(SCORES, n=150, prior=[-1.0, 1.0]), ValueError, "prior .*> 0"),
    (lambda: weighted_quantile(SCORES, 2.0), ValueError, r"q must lie in \(0, 1\], got 2.0"),
    (lambda: weighted_quantile(SCORES, 0.5, [1, 2]), ValueError, r"weights must .*\(150,\), got"),
    (lambda: alarm_threshold(SCORES, 0.1, ["a"] * 150), ValueError, "weights must hold numbers"),
    (lambda: alarm_threshold(SCORES, 0.1, [1, 2]), ValueError, r"weights must .*\(150,\), got"),
    (lambda: weighted_quantile([], 0.5), ValueError, "values must not be empty"),
    (lambda: log_evidence([0.0], 10, max_evidence=-1), ValueError, "max_evidence must .*got -1"),
    (lambda: QuantileEvidence().fit(SCORES, n=150, prior=1.0), ValueError, "prior .*each class"),
]


#: Call, error, and a pattern with the named argument and what came.
FITS = [
    (fit(at(3, 2, 1e100)), ValueError, r"got 1e\+100 at row 3, column 2.*rescale"),
    (fit(at(3, 2, 1e39), density=GDADensity(), **FREE), ValueError, r"got 1e\+39 at row 3"),
    (fit(at(3, 2, np.nan)), NotComputableError, "row 3, column 2; .*SimpleImp"),
    (fit(at(3, 2, np.inf)), NotComputableError, "got inf at row 3, column 2; correct"),
    (fit(at(3, 2, -np.inf), **FREE), NotComputableError, "got -inf.*row 3, column 2"),
    (fit(X + 1j, **FREE), ValueError, "Complex data not supported"),
    (fit(X[:, 0]), ValueError, r"X must have shape \(n, d\).*Reshape"),
    (lambda: ARRAY.predict_proba(X[:4, :, None]), ValueError, r"as in fit, got shape \(4, 4, 1\)"),
    (fit(X[:0], Y[:0]), ValueError, "X is empty"),
    (fit(X[:, :0]), ValueError, "0 feature"),
    (fit("a b", [0]), ValueError, r"X must be a list of texts, got one text: give \['a b'\]"),
    (fit(["a b", None, "c"], [0, 1, 0]), ValueError, r"got None at position 1 \(no text in 1 of 3"),
    (fit(np.array(["a b", 3.0], object), [0, 1]), ValueError, "got 3.0 at position 1"),
    (fit(y=0 * Y), ValueError, r"at least 2 classes, got 1 class: \[0\]"),
    (fit(y=np.r_[9, Y[1:]]), ValueError, r"at least 2 samples of each class.*class \[9\]; merge"),
    (fit(y=Y[:-1]), ValueError, "inconsistent numbers of samples"),
    (fit(y=None), ValueError, "requires y to be passed"),
    (labelled([0, "a"] * 75), ValueError, r"y must hold .*got int 0 at row 0, .*y.astype\(str\)"),
    (labelled(Y), ValueError, r"y must hold .*got int 0 at row 0, .*y.astype\(str\)"),
    (labelled([date(2026, 1, 1 + i) for i in Y]), ValueError, "y must hold .*got date .*at row 0"),
    (fit(y=np.r_[np.nan, Y[1:]]), ValueError, "y.*NaN.*row 0; drop"),
    (fit(y=Y + 0.3), ValueError, "Unknown label type"),
    (fit(np.arange(4.0)[:, None], [0, 0, 1, 1]), ValueError, "cv=3 needs a class with at least 3"),
    (fit(weights="balanced"), ValueError, "sample_weight.*got 'balanced'; weights by class are"),
    (fit(weights=-ONES), ValueError, r"sample_weight must be >= 0 and at most .*got -1.0 at row 0"),
    (fit(weights=np.r_[ONES[:3], np.nan, ONES[4:]]), ValueError, "sample_weight.*got nan at row 3"),
    (fit(weights=0 * ONES), ValueError, "positive sum|at least one non-zero"),
    *(
        (lambda m=m: m.fit(X, Y, sample_weight=np.r_[1e100, ONES[1:]]), ValueError, message)
        for m in (DIPClassifier(), GDADensity(), density.KernelDensity())
        for message in [r"sample_weight .*at most 2\*\*53, got 1e\+100 at row 0"]
    ),
    (fit(weights=ONES, estimator=KNeighborsClassifier()), ValueError, r"KNeighborsClassifier\.fit"),
    (fit(weights=ONES, density=density.KNNDensity()), ValueError, r"KNNDensity\.fit does not"),
    # parameters
    (fit(gamma=0.0), ValueError, "gamma must be finite and > 0, got 0.0"),
    (fit(gamma=-1), ValueError, "gamma must be finite and > 0, got -1"),
    (fit(gamma="1"), TypeError, "gamma must be a number .*> 0, got '1'"),
    (fit(gamma=True), TypeError, "gamma must be a number"),
    (fit(max_evidence=-2.0), ValueError, "max_evidence must be finite and > 0"),
    (fit(prior=-1.0), ValueError, "prior must be finite and > 0, got -1.0"),
    (fit(prior=[1.0, 0.0, 1.0]), ValueError, "prior must be finite and > 0"),
    (fit(prior=[1.0, 1.0]), ValueError, r"prior.*shape \(3,\), got \(2,\)"),
    (fit(prior="uniform"), TypeError, "prior must be a number or one number per class"),
    (fit(false_alarm_rate=1.0), ValueError, "false_alarm_rate must be strictly between"),
    (lambda: OODDetector(false_alarm_rate=3).fit(X), ValueError, "false_alarm_rate must .*got 3"),
    (lambda: OODDetector(false_alarm_rate=0.0).fit(X), ValueError, "false_alarm_rate .*got 0.0"),
    (fit(cv=1), ValueError, "cv must be 'auto', an int >= 2.*got 1"),
    (fit(cv="insample"), ValueError, "cv must be 'auto', an int >= 2.*got 'insample'"),
    (fit(cv=[]), ValueError, "none of them empty, got 0 pairs; use cv=5"),
    (fit(cv=[(np.arange(9), [])]), ValueError, "none of them empty, got 1 pairs"),
    (fit(cv=[(np.arange(9), [150])]), ValueError, "rows 0 to 149: index 150 is out of"),
    (fit(cv=[np.arange(9)]), ValueError, "rows 0 to 149: too many values to unpack"),
    (
        fit(cv=[[1, 2]]),
        ValueError,
        "cv must give pairs .* of rows, none of them empty, got 1 pairs",
    ),
    (fit(n_jobs=[2]), TypeError, r"n_jobs must be None or an int, -1 for all cores, got \[2\]"),
    (fit(random_state="a"), TypeError, "random_state must be None, an int, a RandomState.*got 'a'"),
    (fit(features=lambda X: X), TypeError, "features must be None, 'passthrough' or a transformer"),
    (fit(normalizer="zscore"), TypeError, "normalizer must have methods .*'zscore'"),
    (fit(normalizer=Upside()), ValueError, "normalizer Upside must be increasing, but z falls"),
    (
        fit(calibrator=Changes(lambda P: 2 * P)),
        ValueError,
        "rows of .*calibrator Changes must",
    ),
    (fit(calibrator=Changes(lambda P: P * np.nan)), ValueError, "calibrator Changes .* got nan"),
    (
        fit(calibrator=Changes(lambda P: P[:, :2])),
        ValueError,
        r"calibrator.*got \(150, 2\)",
    ),
    (fit(calibrator=Changes(lambda P: P[:5])), ValueError, r"calibrator.*\(150, 3\), got \(5, 3\)"),
    (
        fit(features=Changes(lambda Z: Z[1:])),
        ValueError,
        "features must give a row .*got 149",
    ),
    # classifiers
    (fit(estimator="rf"), TypeError, "estimator must be a classifier object, got 'rf'"),
    (fit(estimator=object()), TypeError, "estimator must be a classifier object, got <object"),
    (fit(estimator=FrozenEstimator(object())), TypeError, "estimator must be a classifier object"),
    (fit(estimator=LinearSVC()), TypeError, "estimator must have a method predict_proba.*Calibrat"),
    (fit(estimator=FrozenEstimator(GaussianNB())), ValueError, "has no classes_; fit it before"),
    (fit(y=Y.astype(str), estimator=FROZEN), ValueError, "give both the same labels"),
    (fit(estimator=Renames(1 / 3)), ValueError, r"classes_ .* are \[0, 1, 9\]"),
    (fit(estimator=Fixed(0.5)), ValueError, "rows of predict_proba of the estimator must sum to 1"),
    (fit(estimator=Fixed(np.nan)), ValueError, "must hold finite probabilities"),
    (fit(estimator=Fixed(-1 / 3)), ValueError, "must hold finite probabilities >= 0"),
    (fit(estimator=Fixed(1 / 3, rows=1)), ValueError, r"shape \(\d+, 3\), got \(1, 3\)"),
    (fit(estimator=Fixed(0.5, 2)), ValueError, r"must have shape \(\d+, 3\), got \(\d+, 2\)"),
    # densities
    (fit(density=object()), TypeError, "density must .*score_samples.*got <obj"),
    (fit(density=Score()), NotComputableError, r"Score gave nan for row 0 \(\d+ of"),
    (fit(density=Score(np.inf)), NotComputableError, "gave inf for row 0"),
    (fit(density=Score(0.0, 2)), ValueError, "one log-density per row"),
    (fit(density=Score(0.0)), ValueError, "log_density must vary"),
    (fit(np.insert(X, 1, 5.0, 1), density=BARE), ValueError, r"class 0: features \[1\]"),
    (fit(np.c_[X, X[:, :1]], density=BARE), ValueError, "5 features is singular .*shrinkage='oas'"),
    (fit(np.eye(150)[:, :60], density=BARE), ValueError, "class 0.*constant|singular"),
    (fit(density=DensitySelector(NONE)), ValueError, "one: .*no such.*two: .*neith"),
    # calibration rows
    (fit(calibration=X), TypeError, r"calibration must be a pair \(X, y\).*got ndarray"),
    (fit(calibration=(X,)), TypeError, r"calibration must be a pair \(X, y\)"),
    (held(X[:0], Y[:0]), ValueError, "calibration rows: X is empty"),
    (held(X, Y[:-1]), ValueError, "inconsistent numbers of samples"),
    (held(X[:, :2], Y), ValueError, "X has 2 features, but DIPClassifier is expecting 4"),
    (held(X, Y + 1), ValueError, r"holds labels \[3\] that fit does not know.*drop those rows"),
    (held(X, Y.astype(str)), ValueError, "dtype <U.*dtype int64: give both"),
    (held(X, None), ValueError, r"y is needed: normalizer CautionBudget.*QuantileEvidence\(\)"),
    (held(X * np.nan, Y), NotComputableError, "must be finite, got NaN .*row 0, column 0"),
    (held(X[:1], Y[:1]), ValueError, "calibration rows: 1 row cannot show how scores vary"),
    # questions
    (lambda: ARRAY.predict(X[:, :3]), ValueError, "X has 3 features, but DIPClassifier is expect"),
    (lambda: ARRAY.uncertainty(at(3, 2, np.nan)), NotComputableError, "NaN.*row 3, column 2"),
    (lambda: ARRAY.decide(None, cost_error=1, cost_reject=0.1), ValueError, "X must have shape"),
    (lambda: ARRAY.predict_ood(X, alpha=0.0), ValueError, "alpha must be strictly .*got 0"),
    *(
        (lambda m=m: getattr(DIPClassifier(), m)(X), NotFittedError, "not fitted")
        for m in ("predict", "predict_proba", "score_samples", "predict_ood", "uncertainty")
    ),
    (lambda: OODDetector(GaussianNB()).fit(X, Y), TypeError, "estimator must be a DIPClass"),
]


@pytest.mark.parametrize(("call", "error", "message"), [*FITS, *REFUSED])
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=f"(?is){message}") as caught:
        call()
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("cv", 1),
        ("cv", "insample"),
        ("cv", True),
        ("cv", [np.arange(9)]),
        ("calibrator", "isotonic"),
        ("confidence", {"calibrator": Temperature(2)}),
        ("normalizer", ZScore),
        ("budget", {"normalizer": CautionBudget(3)}),
        ("density", "gaussians"),
        ("fuse", {"density": DensitySelector(fuse=1)}),
        ("margin", {"density": density.FusedDensity(margin=-1)}),
        ("candidates", {"density": density.FusedDensity([])}),
        ("covariance_type", {"density": GaussianDensity("tied")}),
        ("shrinkage", {"density": GaussianDensity(shrinkage=2)}),
        ("covariance_type", {"density": GDADensity("spherical")}),
        ("shrinkage", {"density": GDADensity(shrinkage=(0.1, 2.0, 0.1))}),
        ("shrinkage", {"density": density.MahalanobisDensity(shrinkage="much")}),
        ("class_weights", {"density": GDADensity(class_weights="prior")}),
        ("n_neighbors", {"density": density.KNNDensity(0)}),
        ("max_rows", {"density": density.KNNDensity(max_rows=5)}),
        ("bandwidth", {"density": density.KernelDensity("normal")}),
        ("n_components", {"density": density.GaussianMixtureDensity(0)}),
        ("shrinkage", {"density": density.RelativeDensity(GDADensity(shrinkage=2))}),
        ("shrinkage", {"density": density.RelativeDensity(background=GDADensity(shrinkage=2))}),
        ("n_neighbors", {"density": density.BlockSumDensity(density=density.KNNDensity(0))}),
        ("n_neighbors", {"density": make_pipeline(StandardScaler(), density.KNNDensity(0))}),
    ],
)
def test_no_classifier_is_fitted_before_a_wrong_setting_is_refused(name, setting):
    class Counted(GaussianNB):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            Counted.fits += 1
            return super().fit(X, y, sample_weight)

    settings = setting if isinstance(setting, dict) else {name: setting}
    with pytest.raises((TypeError, ValueError), match=name):
        DIPClassifier(Counted(), **settings).fit(X, Y)
    assert Counted.fits == 0
