"""Inputs that no model can use: refused by name at fit, unknown one by one in scoring."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    QuantileTransformer,
    StandardScaler,
)

from dipedl import DIPClassifier, OODDetector, baselines, density, metrics
from dipedl.apps.monitor import DriftMonitor
from dipedl.calibration import Temperature, make_pseudo_outliers
from dipedl.decisions import conformal_p_values
from dipedl.density import GaussianDensity, GDADensity
from dipedl.evidence import (
    CautionBudget,
    ZScore,
)

X, Y = load_iris(return_X_y=True)
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


P, SCORES = np.full((150, 3), 1 / 3), X[:, 0] / 8
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
    "rows of pseudo-outliers": lambda: make_pseudo_outliers(masked(), Y),
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
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = clone(FITTED[name]).fit(frame, Y)
    before, expected = dict(vars(model)), answer(model, frame)
    for method in ("fit", "partial_fit"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=r"NaN|inf|nan|column 1|minimum|feature"):
                getattr(model, method)(bad, Y[: len(bad)])
    assert vars(model) == before
    np.testing.assert_array_equal(answer(model, frame), expected)


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
@pytest.mark.parametrize("given", [GDADensity(), density.KNNDensity(5)], ids=str)
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
    """Sums to eight beyond 5, and to nothing beyond 6."""

    def predict_proba(self, X):
        P = super().predict_proba(X)
        P[X[:, 0] > 5.5] *= 8
        P[X[:, 0] > 6] = np.nan
        return P


def test_where_the_classifier_breaks_the_row_is_unknown():
    clf = DIPClassifier(FarIsNaN(), GDADensity())
    near = X[:, 0] < 5.4
    clf.fit(X[near], Y[near] > 0)
    far = X[:, 0] > 5.5
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
    [
        *((kind, "by name") for kind in SPARSE_FRAMES),
        *(("zeros left out", model) for model in SPARSE_MODELS if model != "by name"),
    ],
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
    made = make_pseudo_outliers(X, Y, sample_weight=w)
    again = make_pseudo_outliers(X, Y.tolist(), sample_weight=w.tolist())
    for kind, rows in made.items():
        np.testing.assert_array_equal(again[kind], rows)


def test_an_infinite_entry_of_a_table_of_numbers_is_named_by_its_column():
    table = pd.DataFrame(X, columns=list("abcd"))
    model = DIPClassifier(density=GDADensity()).fit(table, Y)
    table.loc[3, "b"] = np.inf
    with pytest.raises(ValueError, match="got inf at row 3, column 'b'"):
        model.predict(table)
