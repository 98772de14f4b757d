"""The strength that the error supports, where the truth is known; the folds it is learned in."""

import warnings
from copy import copy
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier, Dirichlet, load
from dipedl.calibration import Rehearsal, crossfit, rehearsal
from dipedl.calibration.rehearsal import mixture_weights
from dipedl.density import GDADensity
from dipedl.evidence import QuantileEvidence
from dipedl.explanation import FindingWarning
from known_truth import known_truth


@pytest.fixture(scope="module", autouse=True)
def few_candidates():
    """Trees take a second to fit: `Rehearsal` mixes two candidates. Gives what mixes them all."""
    whole = rehearsal._other_classifiers

    def few(n, p, random_state):
        return {name: whole(n, p, random_state)[name] for name in ("linear", "kernel")}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "_other_classifiers", few)
        yield whole


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
    return fitted(data)


@pytest.fixture(scope="module")
def spread(data):
    return fitted(data, spread=Rehearsal())


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


@pytest.mark.slow
def test_the_error_of_a_model_that_cannot_say_the_truth_is_estimated(few_candidates, monkeypatch):
    monkeypatch.setattr(rehearsal, "_other_classifiers", few_candidates)
    data = known_truth(1000, "checker")
    clf = fitted(data, spread=Rehearsal())
    gap = clf.predict_dirichlet(data.X_test).mean - data.truth["test"]
    assert 0.95 < clf.spread_.error_ / (gap**2).sum(axis=1).mean() < 1.5


def test_strength_falls_as_the_cube_root_of_the_evidence():
    model = Rehearsal()
    model.strength_, model.log_evidence_ = 9.0, 2.0
    S = model.strength(np.array([5.0, 2.0, 2.0 - 3 * np.log(2), -np.inf]))
    np.testing.assert_allclose(S, [9.0, 9.0, 5.0, 1.0])
    model.strength_ = 0.5
    np.testing.assert_array_equal(model.strength(np.array([2.0, -np.inf])), [0.5, 0.5])


def test_shares_are_those_of_the_mixture_that_drew_the_labels():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet([1, 1], 20_000), rng.dirichlet([1, 1], 20_000)
    P = 0.7 * a + 0.3 * b
    y = (rng.random(len(P)) > P[:, 0]).astype(int)
    rows = np.arange(len(P))
    shares = mixture_weights(np.stack([a[rows, y], b[rows, y]], axis=1), np.ones(len(P)))
    np.testing.assert_allclose(shares, [0.7, 0.3], atol=0.04)
    # A row with weight two is two rows.
    w = rng.integers(1, 3, 50).astype(float)
    own = np.stack([a[rows, y], b[rows, y]], axis=1)[:50]
    again = mixture_weights(np.repeat(own, w.astype(int), axis=0), np.ones(int(w.sum())))
    np.testing.assert_allclose(mixture_weights(own, w), again, rtol=1e-10)


class Counted(GaussianNB):
    """Writes down the rows of each fit."""

    rows: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.rows.append(len(X))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(("enough", "own", "more"), [(5000, 5, 10), (40, 1, 6)])
def test_it_costs_as_many_fits_as_the_page_on_intervals_says(data, monkeypatch, enough, own, more):
    """With 40 rows in place of 5,000 these 200 rows are as 25,000."""
    monkeypatch.setattr(crossfit, "ENOUGH", enough)
    for spread, fits in ((None, own), (Rehearsal(), own + more)):
        Counted.rows.clear()
        fitted(data, Counted(), spread=spread)
        assert Counted.rows == [200] + [160] * fits


def test_a_frozen_classifier_is_not_fitted_again(data):
    model = LogisticRegression().fit(data.X_train[:150], data.y_train[:150])
    before = model.coef_.copy()
    clf = DIPClassifier(FrozenEstimator(model), GDADensity(), spread=Rehearsal(0))
    held = data.X_train[150:], data.y_train[150:]
    clf.fit(data.X_train[:150], data.y_train[:150], calibration=held)
    assert clf.spread_.refits_ == 0 and "classifier" not in clf.spread_.shares_
    codes = {finding.code for finding in clf.diagnose().findings}
    assert {"intervals_of_frozen_classifier", "intervals_of_few_rows"} <= codes
    np.testing.assert_array_equal(model.coef_, before)
    low, high = clf.predict_dirichlet(data.X_test).credible_interval()
    assert coverage_of(data.truth["test"], low, high) > 0.8


def test_the_order_of_the_rows_has_no_part_in_it(data):
    X, y = data.X_train[:120], data.y_train[:120]
    order = np.random.default_rng(5).permutation(len(y))
    one, other = (
        DIPClassifier(LogisticRegression(), GDADensity(), spread=Rehearsal(3)).fit(*rows)
        for rows in ((X, y), (X[order], y[order]))
    )
    np.testing.assert_allclose(other.spread_.strength_, one.spread_.strength_, rtol=1e-6)
    assert other.spread_.shares_.keys() == one.spread_.shares_.keys()


def test_the_seed_is_that_of_the_classifier_unless_it_has_its_own(data, tmp_path):
    def fit(spread, random_state=None):
        clf = DIPClassifier(
            LogisticRegression(), GDADensity(), spread=spread, random_state=random_state
        )
        return clf.fit(data.X_train[:80], data.y_train[:80])

    given, own = fit(Rehearsal(), 4).spread_, fit(Rehearsal(5), 4).spread_
    assert (given.random_state, own.random_state) == (4, 5)
    assert given.strength_ == fit(Rehearsal(4), 4).spread_.strength_ != own.strength_
    # A generator is written by value.
    clf = fit(Rehearsal(np.random.RandomState(0)))
    clf.save(tmp_path / "a.dipedl")
    again = load(tmp_path / "a.dipedl")
    assert again.spread_.strength_ == clf.spread_.strength_


def test_intervals_of_evidence_alone_say_so(data, plain, spread):
    d = plain.predict_dirichlet(data.X_test)
    expected = Dirichlet(d.concentration, d.log_evidence).credible_interval(0.8)
    with pytest.warns(FindingWarning, match="often several times too narrow.*Rehearsal") as told:
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
    clf = DIPClassifier(LogisticRegression(), GDADensity(), spread=Rehearsal(0)).fit(X, y)
    low, high = clf.predict_dirichlet(X).credible_interval()
    assert np.isfinite(clf.spread_.strength_) and (low <= high).all()


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 0], [0] * 30])
def test_rows_that_cannot_tell_leave_intervals_wide(data, spread, labels):
    clf = clone(spread).fit(data.X_train, data.y_train)
    with pytest.warns(UserWarning, match="intervals are wide, but not near 0 and 1"):
        clf.calibrate(data.X_test[: len(labels)], np.unique(data.y_train)[labels])
    with pytest.warns(UserWarning, match="there are few rows"):
        low, high = clf.predict_dirichlet(data.X_test[:50]).credible_interval()
    assert clf.spread_.strength_ == 0.5 and np.mean(high - low) > 0.7
    assert "intervals_unsupported" in [finding.code for finding in clf.diagnose().findings]


def test_batches_and_sums_have_no_spread(data):
    clf = DIPClassifier(GaussianNB(), GDADensity(), spread=Rehearsal(0))
    with pytest.raises(ValueError, match="spread=None"):
        clf.partial_fit(data.X_train, data.y_train)
    fitted = clone(clf).set_params(spread=None).partial_fit(data.X_train, data.y_train)
    with pytest.raises(ValueError, match="spread does not add up"):
        copy(fitted).set_params(spread=Rehearsal(0)) + fitted
    before = clone(clf).fit(data.X_train, data.y_train).set_params(spread=None)
    with pytest.warns(UserWarning, match="what fit has learned is dropped"):
        before.partial_fit(data.X_train, data.y_train)
    assert not hasattr(before, "spread_")


def test_errors_say_what_to_give(data):
    X, y = data.X_train[:50], data.y_train[:50]
    with pytest.raises(NotFittedError):
        Rehearsal().strength(np.zeros(2))
    clf = fitted(data, normalizer=QuantileEvidence())
    for wrong in ("wide", Rehearsal, LogisticRegression()):
        for model in (DIPClassifier(Unfit(), spread=wrong), clf.set_params(spread=wrong)):
            learn = model.calibrate if model is clf else model.fit
            with pytest.raises(TypeError, match=r"spread must be .* such as .*Rehearsal\(\)"):
                learn(X, y)
    with pytest.raises(ValueError, match=r"spread needs labels.*give them .*or set spread=None"):
        DIPClassifier(Unfit(), spread=Rehearsal()).fit(X, y, calibration=(X, None))


class Unfit(LogisticRegression):
    def fit(self, X, y):
        raise AssertionError("nothing is to be fitted")


def test_a_spread_that_was_never_fitted_is_not_calibrated_without_labels(data):
    clf = fitted(data, normalizer=QuantileEvidence()).set_params(spread=Rehearsal())
    before = clf.evidence_
    with pytest.raises(ValueError, match="spread needs labels"):
        clf.calibrate(data.X_test)
    assert clf.evidence_ is before and clf.spread_ is None
    assert clf.calibrate(data.X_test[:60], data.y_test[:60]).spread_.n_ == 60
    assert clf.set_params(spread=None).calibrate(data.X_test).spread_ is None


def test_files_carry_it(tmp_path, data, spread):
    spread.save(tmp_path / "model.dipedl")
    again = load(tmp_path / "model.dipedl")
    was, now = (clf.predict_dirichlet(data.X_test).concentration for clf in (spread, again))
    np.testing.assert_array_equal(was, now)
    assert again.spread_.shares_ == spread.spread_.shares_


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


def rehearsed(X, y, cv="auto", estimator=None, **rows):
    estimator = LogisticRegression(max_iter=1000) if estimator is None else estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier(estimator, GDADensity(), cv=cv, spread=Rehearsal(), random_state=0)
        return clf.fit(X, y, **rows)


def test_the_error_on_groups_of_near_copies_is_that_on_new_rows(groups_truth, near_copies):
    X, y, groups = near_copies
    forest = RandomForestClassifier(20, random_state=0)
    blind, seeing = (
        rehearsed(X, y, cv, forest) for cv in ("auto", list(GroupKFold(5).split(X, y, groups)))
    )
    gap = seeing.predict_dirichlet(groups_truth.X_test).mean - groups_truth.truth["test"]
    error = (gap**2).sum(axis=1).mean()
    # Folds that part copies see a classifier that knows the held-out rows.
    assert blind.spread_.error_ < 0.2 * error
    assert 0.7 * error < seeing.spread_.error_ < 2 * error


def test_intervals_of_new_rows_hold_after_a_fit_to_groups(groups_truth, near_copies):
    X, y, groups = near_copies
    # An iterator gives its pairs once, and folds and rehearsal share them.
    clf = rehearsed(X, y, GroupKFold(5).split(X, y, groups))
    low, high = clf.predict_dirichlet(groups_truth.X_test).credible_interval()
    truth = groups_truth.truth["test"]
    assert ((low <= truth) & (truth <= high)).mean() > 0.9 and clf.spread_.refits_ == 10


def test_pairs_follow_their_rows(few):
    X, y, groups = few
    pairs = list(GroupKFold(5).split(X, y, groups))
    order = np.random.default_rng(5).permutation(len(y))
    place = np.argsort(order)
    moved = [(place[train], place[held]) for train, held in pairs]
    one, other = rehearsed(X, y, pairs).spread_, rehearsed(X[order], y[order], moved).spread_
    np.testing.assert_allclose(other.strength_, one.strength_, rtol=1e-6)
    # Rows without weight are left out, and the pairs speak of all.
    w = np.repeat([1.0, 0.0], [len(y), 40])
    with_more = DIPClassifier(
        LogisticRegression(max_iter=1000),
        GDADensity(),
        cv=[(np.append(train, len(y)), held) for train, held in pairs],
        spread=Rehearsal(),
        random_state=0,
    ).fit(np.concatenate([X, X[:40]]), np.append(y, y[:40]), w)
    np.testing.assert_allclose(with_more.spread_.strength_, one.strength_, rtol=1e-6)


def test_rows_that_are_never_held_out_get_labels_that_no_fit_of_them_made(groups_truth):
    X, y = groups_truth.X_train, groups_truth.y_train
    spread = rehearsed(X, y, ShuffleSplit(1, test_size=0.4, random_state=0)).spread_
    # One fold on the real labels, its reverse, and one on drawn labels.
    assert spread.refits_ == 3 and spread.n_ == 40
    assert 0.5 <= spread.strength_ < 100


@pytest.mark.parametrize("held_out", [0.1, 0.9])
def test_a_small_fit_says_nothing_of_the_parts_of_a_rehearsal(groups_truth, held_out):
    cv = ShuffleSplit(1, test_size=held_out, random_state=0)
    clf = DIPClassifier(density=GDADensity(), cv=cv, spread=Rehearsal(), random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        clf.fit(groups_truth.X_train, groups_truth.y_train)
    assert not [str(one.message) for one in told if "n_components" in str(one.message)]


#: Findings that say where intervals of a spread are known to fall short.
SHORT = {"intervals_of_a_rare_class", "intervals_without_noise"}


def codes(clf):
    return {finding.code: finding.severity for finding in clf.diagnose().findings}


def test_ordinary_rows_have_no_such_note(data):
    clf = rehearsed(data.X_train, data.y_train)
    assert not SHORT & codes(clf).keys() and codes(clf)["intervals_rehearsed"] == "ok"
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
    clf = rehearsed(X, y)
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
    known = rehearsed(X, y, "auto", forest)
    assert known.evidence_.memorised_
    assert codes(known)["intervals_of_seen_rows"] == "warning"
    assert "intervals_rehearsed" not in codes(known)
    held = data.X_test[:200], data.y_test[:200]
    new = rehearsed(X, y, "auto", forest, calibration=held)
    assert codes(new)["intervals_rehearsed"] == "ok"
    gap = known.predict_dirichlet(data.X_test).mean - data.truth["test"]
    assert known.spread_.error_ < 0.6 * (gap**2).sum(axis=1).mean()


def test_calibration_rows_that_were_given_to_fit_are_no_good_support(data):
    X, y = data.X_train, data.y_train
    clf = rehearsed(X, y)
    with pytest.warns(FindingWarning, match="given to fit too"):
        clf.calibrate(X, y)
    assert codes(clf)["intervals_of_seen_rows"] == "warning"
