"""The strength that the error supports, where the truth is known; the variance over folds."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier, Dirichlet, load
from dipedl.calibration import Spread
from dipedl.calibration import spread as spread_module
from dipedl.calibration.jackknife import Jackknife, rows_between
from dipedl.calibration.spread import _Basis, _explain
from dipedl.density import GDADensity
from dipedl.evidence import QuantileEvidence
from dipedl.explanation import FindingWarning
from known_truth import known_truth


def coverage_of(truth, low, high):
    return ((low <= truth) & (truth <= high)).mean()


def fitted(data, estimator=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier(
            estimator or LogisticRegression(), GDADensity(), random_state=0, **settings
        )
        return clf.fit(data.X_train, data.y_train)


@pytest.fixture(scope="module")
def data():
    return known_truth(200)


@pytest.fixture(scope="module")
def plain(data):
    return fitted(data, spread=None)


@pytest.fixture(scope="module")
def spread(data):
    return fitted(data)


def test_the_mean_and_the_vacuity_stay(data, plain, spread):
    was, now = (clf.predict_dirichlet(data.X_test) for clf in (plain, spread))
    np.testing.assert_allclose(now.mean, was.mean, rtol=1e-12)
    np.testing.assert_array_equal(now.vacuity, was.vacuity)
    np.testing.assert_array_equal(spread.predict(data.X_test), plain.predict(data.X_test))
    expected = spread.spread_.strength(was.log_evidence)
    np.testing.assert_allclose(now.strength, expected, rtol=1e-12)


def test_intervals_hold_the_truth_where_those_of_the_evidence_do_not(data, plain, spread):
    P = data.truth["test"]
    was, now = (clf.predict_dirichlet(data.X_test).credible_interval() for clf in (plain, spread))
    assert coverage_of(P, *was) < 0.6
    assert coverage_of(P, *now) > 0.9


def test_the_error_of_a_model_that_cannot_say_the_truth_is_estimated():
    data = known_truth(1000, "checker")
    clf = fitted(data)
    gap = clf.predict_dirichlet(data.X_test).mean - data.truth["test"]
    assert 0.7 < clf.spread_.error_ / (gap**2).sum(axis=1).mean() < 1.5


def test_strength_falls_as_the_cube_root_of_the_evidence():
    model = Spread()
    model.strength_, model.log_evidence_ = 9.0, 2.0
    S = model.strength(np.array([5.0, 2.0, 2.0 - 3 * np.log(2), -np.inf]))
    np.testing.assert_allclose(S, [9.0, 9.0, 5.0, 1.0])
    model.strength_ = 0.5
    np.testing.assert_array_equal(model.strength(np.array([2.0, -np.inf])), [0.5, 0.5])


def test_the_likelihood_is_that_of_a_gaussian_process():
    """Against the normal density of the values, with the whole covariance matrix."""
    rng = np.random.default_rng(0)
    basis, values = rng.normal(size=(30, 5)), rng.normal(size=(30, 3))
    values -= values.mean(axis=1, keepdims=True)
    found = _explain(values, _Basis.of(basis), 30.0)
    # Two of the three columns are free.
    turned = values @ np.linalg.svd(np.ones((1, 3)))[2][1:].T
    kernel = basis @ basis.T * 30 / np.trace(basis @ basis.T)
    for i in (0, 17, 30):
        ratio = spread_module._RATIOS[i]
        shape = np.eye(30) + ratio * kernel
        noise = np.einsum("ic,ij,jc->", turned, np.linalg.inv(shape), turned) / 60
        likelihood = sum(
            stats.multivariate_normal(cov=noise * shape).logpdf(column) for column in turned.T
        )
        constant = -30 * (1 + np.log(2 * np.pi))
        assert found.likelihood[i] + constant == pytest.approx(likelihood)
        gain = ratio * kernel @ np.linalg.inv(shape)
        unknown = 2 * noise * np.trace(ratio * kernel - gain @ (ratio * kernel)) / 30
        assert found.unknown[i] == pytest.approx(unknown)
        assert found.error[i] == pytest.approx(((gain @ values) ** 2).sum() / 30 + unknown)


def test_landmarks_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(400, 3))
    y, mean = (Z[:, 0] * Z[:, 1] > 0).astype(int), np.full((400, 2), 0.5)
    order = rng.permutation(400)
    one, other = (
        Spread().fit(Z[rows], mean[rows], y[rows], typical=0.0, variance=0.01)
        for rows in (np.arange(400), order)
    )
    assert one.error_ == pytest.approx(other.error_, rel=1e-9)


def test_a_weight_counts_a_row_that_often():
    rng = np.random.default_rng(1)
    Z, mean = rng.normal(size=(400, 2)), rng.dirichlet([3, 3, 3], 400)
    y, w = rng.integers(0, 3, 400), rng.integers(1, 3, 400)
    one = Spread().fit(Z, mean, y, typical=0.0, sample_weight=w.astype(float), variance=0.01)
    rows = np.repeat(np.arange(400), w)
    other = Spread().fit(Z[rows], mean[rows], y[rows], typical=0.0, variance=0.01)
    assert one.n_ == other.n_ and one.rarest_ == pytest.approx(other.rarest_)
    # Landmarks and quantiles are those of the rows.
    assert one.error_ == pytest.approx(other.error_, rel=0.05)


def test_the_variance_is_that_of_fits_to_other_training_rows():
    """Of smooth models the jackknife is consistent; against fits to labels drawn anew."""
    data, model = known_truth(600), LogisticRegression()
    new, rows = data.X_test[:200], np.array_split(np.arange(600), 3)
    halves = np.stack(
        [model.fit(data.X_train[some], data.y_train[some]).predict_proba(new) for some in rows]
    )
    # A third of the rows has three times the variance of all.
    wanted = halves.var(axis=0, ddof=1).sum(axis=1).mean() / 3
    found = fitted(data, calibrator="passthrough").spread_.variance_
    assert 0.5 * wanted < found < 2 * wanted


def test_rows_between_two_are_of_their_kind():
    first, second = np.array([[0.0, 4.0]]), np.array([[1.0, 2.0]])
    np.testing.assert_array_equal(rows_between(first, second), [[0.5, 3.0]])
    pd = pytest.importorskip("pandas")
    kinds = pd.CategoricalDtype(["a", "b"])
    one, two = (
        pd.DataFrame({"x": [x], "kind": pd.Series([kind], dtype=kinds), "z": [z]})
        for x, kind, z in ((0.0, "a", 1.0), (5.0, "b", 2.0))
    )
    mixed = rows_between(one, two)
    assert mixed.iloc[0].tolist() == [0.0, "b", 1.0] and mixed.dtypes.equals(one.dtypes)
    assert rows_between(np.array(["a text"]), np.array(["another"])) is None


def test_a_classifier_that_refuses_what_lies_between_is_asked_at_the_rows():
    X = np.arange(100.0).reshape(50, 2)

    def proba(rows):
        if len(np.setdiff1d(rows, X)):
            raise ValueError("an unknown code")
        return np.full((len(rows), 2), 0.5)

    rows = Jackknife(X, X, None, proba).X
    assert len(np.setdiff1d(rows, X)) == 0 and len(rows) == 50


@pytest.mark.parametrize("error", [MemoryError, OSError])
def test_an_error_of_the_machine_between_rows_is_no_refusal(error):
    class Tired(GaussianNB):
        def predict_proba(self, X):
            if len(np.setdiff1d(X, rows)):
                raise error("of the machine")
            return super().predict_proba(X)

    rows = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(error, match="of the machine"):
        DIPClassifier(Tired(), GDADensity(), cv=2).fit(rows, np.arange(100) % 2)


class Counted(GaussianNB):
    """Writes down the rows of each fit."""

    rows: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.rows.append(len(X))
        return super().fit(X, y, sample_weight)


def test_nothing_is_fitted_for_it(data):
    for spread in (None, "auto"):
        Counted.rows.clear()
        fitted(data, Counted(), spread=spread)
        assert Counted.rows == [200] + [160] * 5


def test_a_frozen_classifier_is_not_fitted_again(data):
    model = LogisticRegression().fit(data.X_train[:150], data.y_train[:150])
    before = model.coef_.copy()
    clf = DIPClassifier(FrozenEstimator(model), GDADensity())
    held = data.X_train[150:], data.y_train[150:]
    clf.fit(data.X_train[:150], data.y_train[:150], calibration=held)
    assert not clf.spread_.refitted_
    codes = {finding.code for finding in clf.diagnose().findings}
    assert {"intervals_of_frozen_classifier", "intervals_of_few_rows"} <= codes
    np.testing.assert_array_equal(model.coef_, before)
    low, high = clf.predict_dirichlet(data.X_test).credible_interval()
    assert coverage_of(data.truth["test"], low, high) > 0.8


def test_the_order_of_the_rows_has_no_part_in_it(data):
    X, y = data.X_train[:120], data.y_train[:120]
    order = np.random.default_rng(5).permutation(len(y))
    one, other = (
        DIPClassifier(LogisticRegression(), GDADensity()).fit(*rows)
        for rows in ((X, y), (X[order], y[order]))
    )
    np.testing.assert_allclose(other.spread_.strength_, one.spread_.strength_, rtol=1e-3)


def test_intervals_of_evidence_alone_say_so(data, plain, spread):
    d = plain.predict_dirichlet(data.X_test)
    expected = Dirichlet(d.concentration, d.log_evidence).credible_interval(0.8)
    with pytest.warns(
        FindingWarning, match="often several times too narrow.*spread at its default"
    ) as told:
        found = d.credible_interval(0.8)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found, expected)
    with pytest.warns(FindingWarning):
        d[3].credible_interval()
    paper = DIPClassifier.paper(LogisticRegression(), GDADensity())
    for model in (spread, paper.fit(data.X_train, data.y_train)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict_dirichlet(data.X_test).credible_interval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d.with_strength(d.strength).credible_interval()
        assert d.epistemic.shape == (len(d),)


def test_calibrate_learns_it_again_and_without_labels_only_what_is_typical(data, spread):
    clf = clone(spread).set_params(normalizer=QuantileEvidence()).fit(data.X_train, data.y_train)
    first = clf.spread_
    clf.calibrate(data.ood["far"][:50])
    assert clf.spread_.strength_ == first.strength_
    assert clf.spread_.log_evidence_ != first.log_evidence_
    clf.calibrate(data.X_test[:100], data.y_test[:100])
    assert clf.spread_.n_ == 100 and clf.spread_.strength_ != first.strength_


@pytest.mark.parametrize("rare", [3, 8])
def test_a_rare_class_and_few_rows_are_taken(rare):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(3, 1, size=(rare, 2))])
    y = np.repeat(["often", "rare"], [60, rare])
    clf = DIPClassifier(LogisticRegression(), GDADensity()).fit(X, y)
    low, high = clf.predict_dirichlet(X).credible_interval()
    assert np.isfinite(clf.spread_.strength_) and (low <= high).all()


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 0], [0] * 30])
def test_rows_that_cannot_tell_leave_intervals_wide(data, spread, labels):
    clf = clone(spread).fit(data.X_train, data.y_train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.calibrate(data.X_test[: len(labels)], np.unique(data.y_train)[labels])
    with pytest.warns(UserWarning, match="few rows"):
        low, high = clf.predict_dirichlet(data.X_test[:50]).credible_interval()
    assert clf.spread_.strength_ == 0.5 and np.mean(high - low) > 0.7
    assert "intervals_unsupported" in [finding.code for finding in clf.diagnose().findings]


def test_batches_and_sums_learn_it_from_the_rows_that_they_hold_out():
    data = known_truth(2000)
    whole = DIPClassifier(GaussianNB(), GDADensity())
    parts = [clone(whole) for _ in range(2)]
    model = FrozenEstimator(GaussianNB().fit(data.X_train[:500], data.y_train[:500]))
    for part, rows in zip(parts, (slice(0, 1000), slice(1000, None)), strict=True):
        part.set_params(estimator=model).partial_fit(data.X_train[rows], data.y_train[rows])
    merged = parts[0] + parts[1]
    low, high = merged.predict_dirichlet(data.X_test).credible_interval()
    assert coverage_of(data.truth["test"], low, high) > 0.85
    assert merged.spread_.n_ == merged.evidence_.held_out_.total
    assert (
        clone(whole).set_params(spread=None).partial_fit(data.X_train, data.y_train).spread_ is None
    )


def test_errors_say_what_to_give(data):
    with pytest.raises(NotFittedError):
        Spread().strength(np.zeros(2))
    for wrong in ("wide", Spread(), 3.0):
        with pytest.raises(ValueError, match=r"spread must be 'auto' .* or None"):
            DIPClassifier(LogisticRegression(), spread=wrong).fit(data.X_train, data.y_train)


def test_without_labels_the_strength_is_that_of_the_evidence(data):
    X, y = data.X_train, data.y_train
    clf = DIPClassifier(density=GDADensity(), normalizer=QuantileEvidence())
    clf.fit(X, y, calibration=(data.X_test, None))
    assert clf.spread_ is None
    with pytest.warns(FindingWarning, match="too narrow"):
        clf.predict_dirichlet(X[:3]).credible_interval()
    assert clf.calibrate(data.X_test[:60], data.y_test[:60]).spread_.n_ == 60


def test_files_carry_it(tmp_path, data, spread):
    spread.save(tmp_path / "model.dipedl")
    again = load(tmp_path / "model.dipedl")
    was, now = (clf.predict_dirichlet(data.X_test).concentration for clf in (spread, again))
    np.testing.assert_array_equal(was, now)
    assert vars(again.spread_) == vars(spread.spread_)


def test_onnx_carries_it(tmp_path, data, spread):
    onnxruntime = pytest.importorskip("onnxruntime")
    spread.export_onnx(tmp_path / "model.onnx")
    run = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    P, S = run.run(["probabilities", "strength"], {"X": data.X_test})
    expected = spread.predict_dirichlet(data.X_test).concentration
    np.testing.assert_allclose(P * S[:, None], expected, rtol=1e-5)


def test_ends_of_an_interval_do_not_cross_where_quantiles_underflow():
    alpha = np.array([15557.633240640902 * 2.6465543922116055e-08, 15557.63])
    low, high = Dirichlet(alpha[None]).credible_interval(0.5)
    assert (low <= high).all()


def test_a_strength_of_ones_own_changes_no_mean():
    d = Dirichlet([[3.0, 1.0], [1.0, 1.0]])
    again = d.with_strength(np.array([40.0, 0.5]))
    np.testing.assert_allclose(again.concentration, [[30.0, 10.0], [0.25, 0.25]])
    np.testing.assert_array_equal(again.vacuity, d.vacuity)


GROUPS, COPIES = 100, 8


@pytest.fixture(scope="module")
def groups_truth():
    return known_truth(GROUPS)


@pytest.fixture(scope="module")
def near_copies(groups_truth):
    """Inputs, labels and groups: each row eight times, hardly moved."""
    X = np.repeat(groups_truth.X_train, COPIES, axis=0)
    X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    return X, np.repeat(groups_truth.y_train, COPIES), np.repeat(np.arange(GROUPS), COPIES)


@pytest.fixture(scope="module")
def few(near_copies):
    """The same with two of the eight copies."""
    return tuple(part[::4] for part in near_copies)


def default(X, y, cv="auto", estimator=None, features=None, **rows):
    estimator = LogisticRegression(max_iter=1000) if estimator is None else estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier(estimator, GDADensity(), features=features, cv=cv, random_state=0)
        return clf.fit(X, y, **rows)


def test_the_error_on_groups_of_near_copies_is_that_on_new_rows(groups_truth, near_copies):
    X, y, groups = near_copies
    forest = RandomForestClassifier(20, random_state=0)
    blind, seeing = (default(X, y, estimator=forest, **given) for given in ({}, {"groups": groups}))
    assert (blind.spread_.n_, seeing.spread_.n_) == (len(X), GROUPS)
    truth = groups_truth.truth["test"]
    gap = seeing.predict_dirichlet(groups_truth.X_test).mean - truth
    error = (gap**2).sum(axis=1).mean()
    # Folds that part copies see a classifier that knows the held-out rows.
    assert blind.spread_.error_ < 0.2 * error
    low, high = blind.predict_dirichlet(groups_truth.X_test).credible_interval()
    assert ((low <= truth) & (truth <= high)).mean() < 0.8  # of 0.95
    assert 0.7 * error < seeing.spread_.error_ < 2 * error


def test_intervals_of_new_rows_hold_after_a_fit_to_groups(groups_truth, near_copies):
    X, y, groups = near_copies
    clf = default(X, y, groups=groups)
    low, high = clf.predict_dirichlet(groups_truth.X_test).credible_interval()
    truth = groups_truth.truth["test"]
    assert ((low <= truth) & (truth <= high)).mean() > 0.9 and clf.spread_.refitted_


def test_few_groups_that_say_nothing_change_little():
    data = known_truth(600)
    y, groups = data.y_train, np.arange(600) % 10
    alone, grouped = (default(data.X_train, y, **given) for given in ({}, {"groups": groups}))
    assert 0.4 < grouped.spread_.error_ / alone.spread_.error_ < 2.5


def test_the_variance_of_a_fit_to_few_rows_outlives_them(data):
    clf = default(data.X_train[:18], data.y_train[:18])
    assert clf.spread_.strength_ == 0.5 and clf.spread_.variance_ < 1
    clf.calibrate(data.X_test[:400], data.y_test[:400])
    gap = clf.predict_dirichlet(data.X_test).mean - data.truth["test"]
    assert 0.5 < clf.spread_.error_ / (gap**2).sum(axis=1).mean() < 2


def test_pairs_follow_their_rows(few):
    X, y, groups = few
    pairs = list(GroupKFold(5).split(X, y, groups))
    order = np.random.default_rng(5).permutation(len(y))
    place = np.argsort(order)
    moved = [(place[train], place[held]) for train, held in pairs]
    # Means and scales of standardised features are rounded in the order of the rows.
    one, other = (
        default(*rows, features="passthrough").spread_
        for rows in ((X, y, pairs), (X[order], y[order], moved))
    )
    np.testing.assert_allclose(other.strength_, one.strength_, rtol=1e-3)
    # Rows without weight are left out, and the pairs speak of all.
    w = np.repeat([1.0, 0.0], [len(y), 40])
    with_more = DIPClassifier(
        LogisticRegression(max_iter=1000),
        GDADensity(),
        features="passthrough",
        cv=[(np.append(train, len(y)), held) for train, held in pairs],
        random_state=0,
    ).fit(np.concatenate([X, X[:40]]), np.append(y, y[:40]), w)
    np.testing.assert_allclose(with_more.spread_.strength_, one.strength_, rtol=1e-3)


#: Findings that say where intervals of a spread are known to fall short.
SHORT = {"intervals_of_a_rare_class", "intervals_without_noise"}


def codes(clf):
    return {finding.code: finding.severity for finding in clf.diagnose().findings}


def test_ordinary_rows_have_no_such_note(data):
    clf = default(data.X_train, data.y_train)
    assert not SHORT & codes(clf).keys() and codes(clf)["intervals_estimated"] == "ok"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.predict_dirichlet(data.X_test).credible_interval()


@pytest.mark.parametrize(
    ("code", "sizes", "apart"),
    [("intervals_of_a_rare_class", (300, 6), 1.0), ("intervals_without_noise", (100, 100), 12.0)],
)
def test_a_rare_class_and_labels_without_noise_are_told(tmp_path, code, sizes, apart):
    y = np.repeat([0, 1], sizes)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + apart * y[:, None]
    clf = default(X, y)
    assert codes(clf)[code] == "note"
    numbers = {f.code: f.numbers for f in clf.diagnose().findings}[code]
    if code == "intervals_of_a_rare_class":
        assert numbers["share"] == pytest.approx(6 / 153)
    else:
        held = clf.evidence_.held_out_.proba.max(axis=1).mean()
        assert numbers["confidence"] == pytest.approx(held, abs=0.01) and held > 0.98
    clf.save(tmp_path / "model.dipedl")
    for model in (clf, load(tmp_path / "model.dipedl")):
        found = model.predict_dirichlet(X[:3])
        with pytest.warns(FindingWarning, match=r"may hold less than they promise.*diagnose\(\)"):
            found[0].credible_interval()
        np.testing.assert_allclose(found.strength, clf.spread_.strength(found.log_evidence))


def test_rows_that_a_frozen_classifier_has_learned_are_no_good_support(data):
    X, y = data.X_train, data.y_train
    forest = FrozenEstimator(RandomForestClassifier(20, random_state=0).fit(X, y))
    known = default(X, y, "auto", forest)
    assert known.evidence_.memorised_
    assert codes(known)["intervals_of_seen_rows"] == "warning"
    assert "intervals_estimated" not in codes(known)
    held = data.X_test[:200], data.y_test[:200]
    new = default(X, y, "auto", forest, calibration=held)
    assert codes(new)["intervals_estimated"] == "ok"
    gap = known.predict_dirichlet(data.X_test).mean - data.truth["test"]
    assert known.spread_.error_ < 0.6 * (gap**2).sum(axis=1).mean()


def test_calibration_rows_that_were_given_to_fit_are_no_good_support(data):
    X, y = data.X_train, data.y_train
    clf = default(X, y)
    with pytest.warns(FindingWarning, match="given to fit too"):
        clf.calibrate(X, y)
    assert codes(clf)["intervals_of_seen_rows"] == "warning"
