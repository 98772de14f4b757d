"""Folds, hashes of rows, copies: what is held out of a fit, and what in-sample statistics do."""

import warnings
from copy import copy
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from dipedl import DIPClassifier
from dipedl.baselines import MaxSoftmax
from dipedl.calibration.crossfit import content_folds, row_hash
from dipedl.density import GDADensity, KNNDensity
from dipedl.density.base import leave_one_out
from dipedl.evidence import ZScore
from dipedl.evidence.normalizers import cap_evidence
from dipedl.evidence_model import EvidenceModel
from dipedl.held_out import sample_hashes, share_in_fit, warn_of_copies


def test_equal_rows_have_equal_hashes_whatever_their_place(rng):
    X = rng.normal(size=(3000, 20))
    h = row_hash(X)
    assert len(np.unique(h)) == 3000
    order = rng.permutation(3000)
    np.testing.assert_array_equal(row_hash(X[order]), h[order])
    np.testing.assert_array_equal(row_hash(np.array([[0.0]])), row_hash(np.array([[-0.0]])))
    for row in (lambda gap: np.array([[gap, 1.0]]), lambda gap: sparse.csr_matrix([[gap, 1.0]])):
        gaps = [row_hash(row(gap)) for gap in (np.nan, -np.nan, np.inf - np.inf)]
        assert len(np.unique(gaps)) == 1
    text = [row_hash(np.array([["a", gap]], object)) for gap in (None, np.nan, -np.nan)]
    assert len(np.unique(text)) == 1
    assert (row_hash(X, 1) != h).any()


def test_rows_of_text_and_sparse_rows_are_hashed_by_content():
    rows = np.array([["a", 1.5], ["b", None], ["a", np.nan], ["a", 1.5]], dtype=object)
    h = row_hash(rows)
    assert h[0] == h[3] and len({*h.tolist()}) == 3
    np.testing.assert_array_equal(row_hash(rows[::-1])[::-1], h)
    np.testing.assert_array_equal(row_hash(rows[:, 0]), row_hash(rows[:, :1]))
    np.testing.assert_array_equal(row_hash(np.array([[1.0]], object)), row_hash(np.array([[1]])))
    assert row_hash(np.array([["1.0"]], object)) != row_hash(np.array([[1]]))  # a text stays one
    dense = np.random.default_rng(0).integers(-1, 2, (20, 5)).astype(float)
    np.testing.assert_array_equal(row_hash(sparse.csr_matrix(dense)), row_hash(dense))


COLUMNS = {
    "texts of digits": ["1", "2", None, "10"],
    "texts": ["a", "b", None, "a"],
    "booleans": [True, False, None, True],
    "whole numbers": [1, 2, None, 3],
    "numbers": [0.5, -1.0, None, 2.0],
    "decimals": [Decimal("0.5"), Decimal("1.25"), None, Decimal("2")],
    "days": [date(2020, 1, day) if day else None for day in (1, 2, 0, 3)],
    "times": [datetime(2020, 1, 1, 5, 6, s, 8) if s else None for s in (1, 2, 0, 3)],
    "spans": [timedelta(seconds=s) if s else None for s in (1, 2, 0, 3)],
    "times of a zone": [datetime(2020, 1, 1, 5, s, tzinfo=UTC) if s else None for s in (1, 2, 0)],
}


def tables(values):
    """A column as a table of every kind."""
    array, known = np.array(values, dtype=object)[:, None], [v for v in values if v is not None]
    yield array
    yield pd.DataFrame({"a": array[:, 0]})
    yield pd.DataFrame({"a": pd.Series(values)})
    yield pd.DataFrame({"a": pd.Series(values, dtype="category")})
    yield pd.DataFrame({"a": pd.Series(values).convert_dtypes()})
    polars = pl.DataFrame({"a": values}, strict=False)
    yield polars
    yield polars.to_arrow().to_pandas()
    yield polars.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)
    if isinstance(known[0], str):
        yield polars.cast(pl.Categorical)
        yield polars.cast(pl.Enum(sorted(set(known))))
    if isinstance(known[0], date) and getattr(known[0], "tzinfo", None) is None:
        yield pd.DataFrame({"a": pd.to_datetime(pd.Series(values))})
        yield polars.cast(pl.Datetime("ns"))
        yield np.array(values, dtype="M8[ns]")[:, None]
        yield np.array(values, dtype="M8[us]")[:, None]
    if isinstance(known[0], timedelta):
        yield np.array(values, dtype="m8[ns]")[:, None]


@pytest.mark.parametrize("name", COLUMNS)
def test_hashes_do_not_depend_on_the_kind_of_table(name):
    first, *others = map(row_hash, tables(COLUMNS[name]))
    assert len(set(first.tolist())) == len(set(map(str, COLUMNS[name])))
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_folds_are_balanced_stratified_and_spread_copies(rng):
    X = np.repeat(rng.normal(size=(60, 3)), 5, axis=0)
    y = np.repeat(np.arange(60) % 2, 5)
    fold = content_folds(X, y, 5)
    assert (np.sort(fold.reshape(60, 5), axis=1) == np.arange(5)).all()
    order = rng.permutation(300)
    again = content_folds(X[order], y[order], 5)
    held = [np.sort(row_hash(X)[fold == j]).tolist() for j in range(5)]
    assert held == [np.sort(row_hash(X[order])[again == j]).tolist() for j in range(5)]
    many = content_folds(rng.normal(size=(150, 2)), np.repeat(np.arange(50), 3), 5)
    assert (np.bincount(many) == 30).all()


def test_rare_classes_are_never_held_out():
    X = np.arange(12.0)[:, None]
    y = np.array([0] * 10 + [1] * 2)
    fold = content_folds(X, y, 5)
    assert (fold[10:] == -1).all() and (fold[:10] >= 0).all()


def test_in_sample_statistics_push_held_out_points_down_by_several_sd():
    """A Gaussian of many dimensions is far too pleased with the points it was fitted on.

    The default (cross-fitted) statistics give held-out points a mean z near 0; the paper's
    in-sample statistics put the very same points several standard deviations down. What is left
    is the price of folds: a density fitted on 4 of 5 rows is a little worse than the final one.
    """
    rng = np.random.default_rng(8)
    p, n = 120, 240
    X, y = rng.normal(size=(2 * n, p)), np.arange(2 * n) % 2
    X_new = rng.normal(size=(2000, p))
    density = GDADensity(shrinkage=None)
    z = {}
    for cv in ("in-sample", 5, 20):
        model = EvidenceModel(density, "passthrough", ZScore(), cv=cv).fit(X, y)
        scores = model.predict(X_new)[2]
        z[cv] = model.normalizer_.transform(scores).mean()
    assert z["in-sample"] < -5
    assert abs(z[5]) < 1.5 and abs(z[20]) < 0.5


def test_the_source_of_every_statistic_is_stated(rng):
    X, y = rng.normal(size=(50, 2)), np.arange(50) % 2
    sources = {
        cv: EvidenceModel(normalizer=ZScore(), cv=c).fit(X, y).normalizer_.source_
        for cv, c in (
            ("int", 5),
            ("many", 500),
            ("in", "in-sample"),
            ("split", ShuffleSplit(1, test_size=10, random_state=0)),
        )
    }
    assert sources["int"] == "5-fold cross-fitting of 50 inputs"
    assert sources["many"] == "50-fold cross-fitting of 50 inputs"
    assert sources["in"] == "the 50 inputs the density was fitted on (in-sample)"
    assert sources["split"] == "held-out parts of ShuffleSplit of 10 inputs"
    model = EvidenceModel(normalizer=ZScore(), false_alarm_rate=0.2).fit(X, y)
    new = rng.normal(size=(7, 2))
    assert model.calibrate(new).normalizer_.source_ == "7 held-out inputs"
    assert len(model.held_out_.scores) == 7


def test_cross_fitted_scores_are_those_of_densities_that_did_not_see_the_row_or_lower(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = EvidenceModel(GDADensity(), "passthrough", ZScore(), cv=4).fit(X, y)
    fold = content_folds(X, y, 4)
    naive = []
    for j in range(4):
        density = GDADensity().fit(X, y).clone_with_selected().fit(X[fold != j], y[fold != j])
        naive.append(density.score_samples(X[fold == j]))
    rows = np.concatenate([np.flatnonzero(fold == j) for j in range(4)])
    naive = np.minimum(np.concatenate(naive), GDADensity().fit(X, y).score_samples(X[rows]))
    np.testing.assert_allclose(model.held_out_.scores, np.sort(naive))


def test_frozen_features_are_computed_once(rng):
    """A network as features is expensive: one pass over the rows serves the fit and every fold."""
    calls = []

    class Network(FunctionTransformer):
        def transform(self, X):
            calls.append(len(X))
            return super().transform(X)

    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    network = Network().fit(X)
    model = EvidenceModel(GDADensity(), FrozenEstimator(network), ZScore()).fit(X, y)
    assert calls == [60]
    plain = EvidenceModel(GDADensity(), "passthrough", ZScore()).fit(X, y)
    np.testing.assert_array_equal(model.held_out_.scores, plain.held_out_.scores)
    calls.clear()
    EvidenceModel(None, FrozenEstimator(network), ZScore()).fit(X, y)
    # The rows, and four kinds of pseudo-outliers made of those of the first fold.
    assert calls == [60, 500, 500, 500, 500]


def test_a_fold_may_lack_a_class_and_settled_shrinkage_fits_the_others(rng):
    X, y = rng.normal(size=(60, 3)), np.repeat(np.arange(3), 20)
    even, odd = np.arange(0, 60, 2), np.arange(1, 60, 2)
    pairs = [(np.flatnonzero(y < 2), np.flatnonzero(y == 2)), (even, odd)]
    model = EvidenceModel(GDADensity(), "passthrough", ZScore(), cv=pairs).fit(X, y)
    two = GDADensity().fit(X[y < 2], y[y < 2]).score_samples(X[y == 2])
    half = GDADensity().fit(X, y).clone_with_selected().fit(X[::2], y[::2]).score_samples(X[1::2])
    whole = GDADensity().fit(X, y).score_samples(np.r_[X[y == 2], X[1::2]])
    found = np.sort(np.minimum(np.r_[two, half], whole))
    np.testing.assert_allclose(model.held_out_.scores, found)
    chosen = EvidenceModel(None, "passthrough", ZScore(), cv=pairs).fit(X, y)
    assert chosen.density_.failed_ == {} and len(chosen.held_out_) == 50
    with pytest.raises(ValueError, match="shrinkage must hold 3 numbers, got 2"):
        GDADensity(shrinkage=(0.1, 0.2)).fit(X, y)


def test_a_cap_may_be_a_whole_number_of_any_size():
    """NumPy has no logarithm of one beyond 64 bits."""
    values = np.array([-np.inf, 1.0, 1e3])
    expected = [-np.inf, 1.0, 70 * np.log(2)]
    np.testing.assert_allclose(cap_evidence(values, 2**70), expected, rtol=1e-14)


def copies_said(X):
    """Return whether copies are found among rows dealt out by content, and the warnings."""
    Z = np.zeros((X.shape[0], 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return warn_of_copies(X, Z, by_content=True), [str(w.message) for w in caught]


def test_copies_are_found_among_fine_values(rng):
    fine = rng.normal(size=(40, 3))
    found, said = copies_said(np.r_[fine, fine[:30]])
    assert found and "30 of 70 rows are copies" in said[0]
    assert "drop duplicates" in said[0] and "kept together" in said[0]
    cells = np.c_[rng.integers(18, 80, 300), rng.lognormal(8, 0.4, 300)]
    assert copies_said(np.repeat(cells, 3, axis=0))[0]
    # A few hardly move a threshold.
    assert copies_said(np.r_[fine, fine[:2]]) == (False, [])


def tables_without_copies(rng):
    """Ordinary tables_without_copies in which rows repeat by chance."""
    age = rng.normal(40, 9, 400).round()
    income = np.where(rng.random(400) < 0.4, np.nan, rng.lognormal(8, 0.4, 400))
    binary = rng.integers(0, 2, (200, 4)).astype(float)
    return {
        "fine": rng.normal(size=(40, 3)),
        "binary": binary,
        "iris": load_iris().data,
        "age": age[:, None],
        "age and a flag": np.c_[age, rng.random(400) < 0.3],
        "visits": rng.geometric(0.02, 400)[:, None],
        "gaps": np.c_[age, income],
        "filled gaps": np.c_[age, np.where(np.isnan(income), np.nanmedian(income), income)],
        "decimals": rng.normal(size=(400, 1)).round(2),
        "table": pd.DataFrame({"age": age, "city": rng.choice(["Oslo", "Rome"], 400)}),
    }


@pytest.mark.parametrize("name", tables_without_copies(np.random.default_rng(0)))
def test_rows_that_repeat_by_chance_are_no_copies(name):
    for seed in range(5):
        assert copies_said(tables_without_copies(np.random.default_rng(seed))[name]) == (False, [])


def test_copies_of_features_that_are_no_numbers_are_found_in_these(rng):
    fine = rng.normal(size=(40, 3))
    Z = np.r_[fine, fine[:30]]
    texts = np.array([str(row) for row in Z], dtype=object)
    with pytest.warns(UserWarning, match="30 of 70 rows are copies"):
        assert warn_of_copies(texts, Z, by_content=True)


def test_copies_with_other_labels_are_in_the_same_fold(rng):
    half = rng.normal(size=(200, 4))
    X, y = np.concatenate([half, half]), rng.integers(0, 2, 400)
    fold = content_folds(X, y, 5, together=True)
    np.testing.assert_array_equal(fold[:200], fold[200:])
    assert np.bincount(fold).min() >= 70


def test_a_splitter_that_parts_copies_is_said_to(rng):
    X = np.repeat(rng.normal(size=(60, 3)), 2, axis=0)
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(UserWarning, match="copies.*cv may hold a row out of a fit on its copy"):
        DIPClassifier(density=GDADensity(), cv=KFold(5)).fit(X, y)


def test_without_copies_nothing_changes_and_with_them_alarms_keep_their_rate():
    rates = {True: [], False: []}
    for seed in range(12):
        X, y = make_blobs(900, centers=3, n_features=4, random_state=seed)
        new, rows, labels = X[150:], X[:150], y[:150]
        for copied in rates:
            k = 3 if copied else 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = DIPClassifier(GaussianNB(), KNNDensity(), false_alarm_rate=0.1)
                clf.fit(np.tile(rows, (k, 1)), np.tile(labels, k))
            rates[copied].append((clf.predict_ood(new) == -1).mean())
    for found in rates.values():
        assert np.mean(found) < 0.1 + 3 * np.std(found) / np.sqrt(len(found))


def binary(seed, n, d):
    """Binary columns with a noisy sum as label: n rows, and 1,000 more."""
    rng = np.random.default_rng(seed)
    parts = []
    for m in (n, 1000):
        X = (rng.random((m, d)) < 0.4) * 1.0
        parts.append((X, (X.sum(axis=1) + rng.normal(0, 1, m) > 2).astype(int)))
    return parts


@pytest.mark.parametrize("density", [None, KNNDensity()])
@pytest.mark.parametrize("seed", [5, 22])
def test_the_rows_of_the_fit_are_flagged_no_more_often_than_asked(seed, density):
    """Of these seeds every row was once flagged: scores of the folds lay above the final ones."""
    (X, y), (new, _) = binary(seed, 100, 5)
    clf = DIPClassifier(LogisticRegression(), density, random_state=seed).fit(X, y)
    assert (clf.predict_ood(X) == -1).mean() <= 0.05
    assert (clf.predict_ood(new) == -1).mean() < 0.15


@pytest.mark.parametrize(
    "density", [pytest.param(GDADensity(), marks=pytest.mark.slow), KNNDensity()]
)
def test_of_continuous_rows_few_scores_are_lowered(density):
    """Alarms stay about as frequent as asked for: the caution is for discrete rows."""
    rates = []
    for seed in range(10):
        X, y = make_blobs(1300, centers=3, n_features=4, random_state=seed)
        clf = DIPClassifier(density=density).fit(X[:300], y[:300])
        rates.append((clf.predict_ood(X[300:]) == -1).mean())
    assert 0.035 < np.mean(rates) < 0.05 + 2 * np.std(rates) / np.sqrt(len(rates))


def test_a_row_of_the_fit_is_not_its_own_neighbour(rng):
    X = rng.normal(size=(30, 3))
    density = KNNDensity(4).fit(X)
    distances = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)
    density.radius_floor_ = 0.0
    expected = density.log_constant_ - 3 * np.log(distances[:, 4])
    np.testing.assert_allclose(density.exclude_self().score_samples(X), expected)
    np.testing.assert_allclose(
        density.score_samples(X), density.log_constant_ - 3 * np.log(distances[:, 3])
    )
    np.testing.assert_allclose(leave_one_out(density, X, None, None), expected)
    part = KNNDensity(4, max_rows=10).fit(X)
    assert part.exclude_self() is part
    assert leave_one_out(part, X, None, None) is None


@pytest.mark.parametrize("kind", [pytest.param("wide", marks=pytest.mark.slow), "binary"])
def test_false_alarms_of_few_rows_are_as_many_as_stated(kind):
    """Scores by fits to four fifths of the rows flag .029 of the new rows, and .027."""
    rates = []
    for seed in range(10):
        if kind == "binary":
            (X, y), (new, _) = binary(seed, 300, 12)
        else:
            X, y = make_blobs(800, centers=3, n_features=50, random_state=seed)
            X, y, new = X[:300], y[:300], X[300:]
        clf = DIPClassifier(GaussianNB(), random_state=0).fit(X, y)
        rates.append((clf.predict_ood(new) == -1).mean())
    assert 0.036 < np.mean(rates) < 0.05 + 2 * np.std(rates) / np.sqrt(len(rates))


ONE_BY_ONE = {
    "scaled": (None, {}, True),
    "three folds": (None, {"cv": 3}, True),
    "columns of the classifier": (make_pipeline(MinMaxScaler(), GaussianNB()), {}, True),
    "components": (make_pipeline(PCA(2), GaussianNB()), {}, False),
    "by labels": (None, {"features": SelectKBest(k=2)}, False),
    "a splitter": (None, {"cv": KFold(5)}, False),
}


@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_rows_are_left_out_one_by_one_where_nothing_else_knows_them(case):
    estimator, settings, alone = ONE_BY_ONE[case]
    X, y = load_iris(return_X_y=True)
    model = DIPClassifier(estimator or GaussianNB(), random_state=0, **settings).fit(X, y)
    held_out, Z = model.evidence_.held_out_, model.evidence_.transform(X)
    known = leave_one_out(model.density_.estimators_["gaussians"], Z, y, None)
    found = held_out.components[:, held_out.component_names.index("gaussians")]
    assert np.allclose(np.sort(found), np.sort(known)) == alone


def test_rows_of_a_full_factorial_design_are_all_alike():
    """Each is as far from the others as any: left out one by one, scores differ by rounding."""
    X = np.array(list(product([0.0, 1.0], repeat=6)))
    model = DIPClassifier().fit(X, X[:, 0].astype(int))
    assert np.ptp(model.score_samples(X)) < 1e-5
    assert (model.predict_ood(X) == 1).all() and (model.predict(X) == X[:, 0]).all()


@pytest.mark.parametrize("groups", [None, np.arange(300) % 150])
def test_copies_and_rows_of_a_group_are_held_out_together(rng, groups):
    X, y = load_iris(return_X_y=True)
    rows, labels = np.tile(X + 0.01 * rng.normal(size=X.shape), (2, 1)), np.tile(y, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DIPClassifier(GaussianNB(), random_state=0).fit(rows, labels, groups=groups)
    held_out, Z = model.evidence_.held_out_, model.evidence_.transform(rows)
    alone = leave_one_out(model.density_.estimators_["neighbours"], Z, labels, None)
    found = held_out.components[:, held_out.component_names.index("neighbours")]
    # A copy of the row, or one of its group, is among the others.
    assert not np.allclose(np.sort(found), np.sort(alone))


FOREST = RandomForestClassifier(30, random_state=0)
LEAVES = RandomForestClassifier(30, min_samples_leaf=2, random_state=0)
BOOSTED = HistGradientBoostingClassifier(max_iter=60, random_state=0)


def noisy(seed, n=500):
    """Two classes of two clusters each; a tenth of the labels are wrong. Two halves of rows."""
    X, y = make_classification(2 * n, 10, n_informative=4, flip_y=0.2, random_state=seed)
    return (X[:n], y[:n]), (X[n:], y[n:])


def said(fit):
    """Return the warnings of rows that were seen before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    texts = [str(w.message) for w in caught]
    return [text for text in texts if "memorised" in text or "given to fit too" in text]


def frozen_on(rows, classifier, seen):
    model = FrozenEstimator(classifier.fit(*seen))
    return DIPClassifier(model, GDADensity(), random_state=0).fit(*rows)


@pytest.mark.parametrize("classifier", [FOREST, LEAVES, BOOSTED], ids=lambda c: str(c)[:9])
def test_a_frozen_classifier_on_its_own_rows_is_warned_of(classifier):
    seen, _ = noisy(0)
    (text,) = said(lambda: frozen_on(seen, classifier, seen))
    assert "memorised" in text and "calibrate(X, y)" in text


@pytest.mark.parametrize("seed", range(3))
def test_a_frozen_classifier_on_new_rows_is_not_warned_of(seed):
    seen, new = noisy(seed)
    for classifier in (FOREST, LogisticRegression()):
        assert said(lambda c=classifier, s=seen, n=new: frozen_on(n, c, s)) == []


def test_a_perfect_classifier_on_new_rows_is_not_warned_of():
    X, y = make_blobs(600, centers=3, cluster_std=1.0, random_state=3)
    rows, new = (X[:300], y[:300]), (X[300:], y[300:])
    model = LogisticRegression().fit(*rows)
    assert model.score(*new) == 1
    assert said(lambda: frozen_on(new, LogisticRegression(), rows)) == []


def test_calibration_rows_that_were_given_to_fit_are_warned_of(tmp_path):
    seen, new = noisy(0)
    clf = DIPClassifier(LogisticRegression(), GDADensity())
    (text,) = said(lambda: clf.fit(*seen, calibration=seen))
    assert "500 inputs, 100% of them given to fit too" in text
    found = [f.code for f in clf.diagnose().warnings]
    assert found == ["calibration_given_to_fit", "intervals_of_seen_rows"]
    assert said(lambda: clf.fit(*seen, calibration=new)) == []
    assert said(lambda: clf.calibrate(*new)) == []
    half = [np.concatenate([a[:250], b[:250]]) for a, b in zip(seen, new, strict=True)]
    (text,) = said(lambda: clf.calibrate(*half))
    assert "50% of them given to fit too" in text


@pytest.mark.parametrize("by_group", [False, True])
@pytest.mark.parametrize("model", [DIPClassifier(GaussianNB(), GDADensity()), MaxSoftmax()])
def test_calibration_rows_of_weight_zero_are_as_if_not_given(model, by_group):
    """Also rows of the fit: what is in no statistic was not seen before."""
    (X, y), (new, y_new) = noisy(0)
    model = clone(model).fit(X, y)
    both, labels = np.r_[X, new], np.r_[y, y_new]
    w = np.r_[np.zeros(len(X)), np.tile([1.0, 2.0], len(new) // 2)]
    groups = np.arange(len(both)) // 5 if by_group else None
    one, other = copy(model), copy(model)
    assert said(lambda: one.calibrate(both, labels, w, groups=groups)) == []
    other.calibrate(new, y_new, w[len(X) :], groups=groups[len(X) :] if by_group else None)
    found, expected = one.held_out_rows(), other.held_out_rows()
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert (found.source, found.origin) == (expected.source, expected.origin)
    assert found.design_effect == expected.design_effect
    if model.has_evidence:
        assert one.spread_.strength_ == other.spread_.strength_


def test_new_rows_of_a_few_categories_repeat_old_ones_by_chance(rng):
    for n, k in ((500, 2), (3000, 2), (300, 5)):
        X = rng.integers(0, k, (2 * n, 4)).astype(float)
        assert share_in_fit(row_hash(X[:n]), sample_hashes(row_hash(X[n:]))) == 0


def test_seen_rows_are_counted_among_many(rng):
    X = rng.normal(size=(20_000, 2))
    kept = sample_hashes(row_hash(X))
    mixed = np.concatenate([X[:6000], rng.normal(size=(4000, 2))])
    assert share_in_fit(row_hash(mixed), kept) == pytest.approx(0.6, abs=0.12)
    assert share_in_fit(row_hash(rng.normal(size=(20_000, 2))), kept) == 0
    assert share_in_fit(row_hash(X), None) == 0


def test_rows_with_gaps_have_no_row_half_way():
    (X, y), _ = noisy(0)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert frozen_on((X, y), BOOSTED, (X, y)).evidence_.memorised_ is None


def test_rows_of_few_discrete_columns_are_named_unless_others_are_held_out():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (600, 3)).astype(float)
    y = (rng.random(600) < 1 / (1 + np.exp(4.5 - X.sum(axis=1)))).astype(int)
    rows, new = (X[:300], y[:300]), (X[300:], y[300:])
    clf = DIPClassifier(HistGradientBoostingClassifier(max_iter=5), GDADensity(), random_state=0)
    assert "calibration_copies" in clf.fit(*rows).diagnose().codes
    assert "calibration_copies" not in clf.fit(*rows, calibration=new).diagnose().codes
    fine = rows[0] + rng.random((300, 3)), rows[1]
    assert "calibration_copies" not in clf.fit(*fine).diagnose().codes
