"""DIPClassifier in batches: any chunks give one model; what is refused; merges of two."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

import dipedl
from dipedl import DIPClassifier
from dipedl.apps.large.fitting import Batch, Reading
from dipedl.density import GaussianDensity, GDADensity, KNNDensity, MahalanobisDensity
from dipedl.density.streaming import RowSample, Stream, in_share, row_keys
from dipedl.explanation import FindingWarning
from weekly import sample_of

#: Its smoothing is a share of the variance of a batch: the one thing that chunks would change.
NB = GaussianNB(var_smoothing=0)


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(900, centers=3, n_features=4, cluster_std=2.0, random_state=0)
    return X * [1, 100, 1e-3, 1] + [0, 1e4, 5, 0], np.array(["a", "b", "c"])[y]


@pytest.fixture
def new(data, rng):
    X, _ = data
    return np.vstack([X[:30], X[:10] + 20 * X.std(axis=0)])


def in_batches(clf, X, y, cuts, **extra):
    for rows in np.split(np.arange(len(y)), cuts):
        clf.partial_fit(X[rows], y[rows], classes=["a", "b", "c"], **extra)
    return clf


def assert_same(a, b, X, tolerance=1e-10):
    np.testing.assert_allclose(a.score_samples(X), b.score_samples(X), rtol=tolerance)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=tolerance)
    np.testing.assert_allclose(a.uncertainty(X), b.uncertainty(X), rtol=1e-9)
    assert a.offset_ == pytest.approx(b.offset_, rel=tolerance)
    assert a.evidence_.n_ == b.evidence_.n_


def test_any_chunks_give_one_model(data, new, rng):
    X, y = data
    whole = in_batches(DIPClassifier(NB), X, y, [])
    order = rng.permutation(len(y))
    for cuts in ([300, 301, 500], np.arange(7, 900, 7)):
        assert_same(in_batches(DIPClassifier(NB), X[order], y[order], cuts), whole, new)


@pytest.mark.parametrize("density", [GDADensity(), GDADensity("tied")], ids=str)
def test_it_is_the_model_of_the_rows_that_are_not_held_out(data, new, density):
    """An independent way: the rows that the hash holds out, given to fit as calibration."""
    X, y = data
    held = in_share(row_keys(X, y, 0x5EED), 0.1)
    assert 50 < held.sum() < 150
    expected = DIPClassifier(NB, density, features=StandardScaler())
    with pytest.warns(FindingWarning, match="held-out rows"):
        expected.fit(X[~held], y[~held], calibration=(X[held], y[held]))
    assert_same(in_batches(DIPClassifier(NB, density), X, y, [200]), expected, new, 1e-8)


def test_held_out_rows_are_bounded_and_the_others_are_learned(data, monkeypatch):
    X, y = data
    monkeypatch.setattr("dipedl.density.streaming.HELD_MOST", 20)
    a = in_batches(DIPClassifier(NB), X, y, [30, 700])
    b = in_batches(DIPClassifier(NB), X, y, [])
    assert len(a.evidence_.held_out_) == 20 and a.evidence_.n_ == len(y) - 20
    assert_same(a, b, X[:50])
    assert a.estimator_.class_count_.sum() == len(y) - 20


PERSONS = np.repeat([f"person {i}" for i in range(60)], 15)


def test_whole_groups_are_held_out_in_any_chunks_and_order(data, new, rng, monkeypatch, tmp_path):
    (X, y), order = data, rng.permutation(900)
    whole = DIPClassifier(NB).partial_fit(X, y, groups=PERSONS)
    parts = DIPClassifier(NB)
    for rows in np.split(order, [40, 500]):
        parts.partial_fit(X[rows], y[rows], classes=["a", "b", "c"], groups=PERSONS[rows])
    assert_same(parts, whole, new)
    held_out = np.isin(X, whole.stream_.held.rows["X"]).all(axis=1)
    names = set(PERSONS[held_out])
    assert 2 <= len(names) <= 15 and held_out.sum() == 15 * len(names)
    assert not names & set(PERSONS[~held_out]) and whole.evidence_.n_ == (~held_out).sum()
    assert f"{15 * len(names)} rows of {len(names)} groups" in whole.evidence_.held_out_.source
    given = (X[held_out], y[held_out])
    alone = DIPClassifier(NB, GDADensity()).fit(X[~held_out], y[~held_out], calibration=given)
    assert_same(alone, whole, new)
    alone.calibrate(*given, groups=PERSONS[held_out])
    effect = whole.evidence_.held_out_.design_effect
    assert effect == pytest.approx(alone.evidence_.held_out_.design_effect)
    # Rows of a group that is held out never come into the density, however many there are.
    monkeypatch.setattr("dipedl.density.streaming.HELD_MOST", 20)
    few = in_batches(DIPClassifier(NB), X, y, [], groups=PERSONS)
    assert len(few.evidence_.held_out_) == 20 and few.evidence_.n_ == (~held_out).sum()
    whole.save(tmp_path / "m.dipedl")
    loaded = dipedl.load(tmp_path / "m.dipedl").partial_fit(X[:5] + 1, y[:5], groups=PERSONS[:5])
    assert loaded.evidence_.n_ + len(loaded.evidence_.held_out_) == 905


def test_a_sum_of_two_holds_out_the_groups_of_both(data, new):
    X, y = data
    first = DIPClassifier(NB).partial_fit(X, y, groups=PERSONS)
    options = {"estimator": FrozenEstimator(first.estimator_)}
    halves = [
        DIPClassifier(NB).set_params(**options).partial_fit(X[i::2], y[i::2], groups=PERSONS[i::2])
        for i in range(2)
    ]
    both = DIPClassifier(NB).set_params(**options).partial_fit(X, y, groups=PERSONS)
    assert_same(halves[0] + halves[1], both, new)
    with pytest.raises(ValueError, match="cannot merge samples"):
        halves[0] + DIPClassifier(NB).set_params(**options).partial_fit(X[1::2], y[1::2])


def test_groups_that_cannot_be_held_out_are_named(data):
    X, y = data
    with pytest.raises(ValueError, match="first is row 1"):
        DIPClassifier(NB).partial_fit(X[:3], y[:3], groups=["a", None, "b"])
    clf = DIPClassifier(NB).partial_fit(X, y, groups=PERSONS)
    with pytest.raises(ValueError, match="with every batch or with none, and those before had"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="and those before had none"):
        DIPClassifier(NB).partial_fit(X, y).partial_fit(X, y, groups=PERSONS)
    held_out = np.isin(X, clf.stream_.held.rows["X"]).all(axis=1)
    rows = np.flatnonzero(~held_out | (PERSONS[held_out][0] == PERSONS))
    one = DIPClassifier(NB).partial_fit(X[rows], y[rows], groups=PERSONS[rows])
    with pytest.raises(ValueError, match="groups must be so many"):
        one.predict(X[:3])


def test_a_weight_counts_a_row_that_often(data):
    X, y = data
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = DIPClassifier(NB).partial_fit(X, y, sample_weight=times)
    repeated = DIPClassifier(NB).partial_fit(X.repeat(times, axis=0), y.repeat(times))
    assert_same(weighted, repeated, X[:50], 1e-9)


def test_sgd_learns_on_and_saves_in_between(data, tmp_path):
    X, y = data
    Z = StandardScaler().fit_transform(X)
    clf = DIPClassifier(SGDClassifier(loss="log_loss", random_state=0), features="passthrough")
    in_batches(clf, Z[:500], y[:500], [100])
    clf.save(tmp_path / "half.dipedl")
    loaded = dipedl.load(tmp_path / "half.dipedl")
    np.testing.assert_array_equal(loaded.predict_proba(Z), clf.predict_proba(Z))
    for model in (clf, loaded):
        model.partial_fit(Z[500:], y[500:])
    assert_same(loaded, clf, Z)
    assert (clf.predict(Z) == y).mean() > 0.8


def test_frames_are_taken_without_a_warning(data, recwarn):
    X, y = data
    frame = pd.DataFrame(X, columns=list("pqrs"))
    clf = DIPClassifier(NB).partial_fit(frame[:500], y[:500], classes=["a", "b", "c"])
    clf.partial_fit(frame[500:], y[500:]).predict(frame)
    assert not [w for w in recwarn if "feature names" in str(w.message)]
    with pytest.raises(ValueError, match="feature names"):
        clf.partial_fit(frame[["q", "p", "r", "s"]], y)


def test_a_table_of_arrow_is_one_of_pandas(data):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(data[0], columns=list("pqrs"))
    table = pl.from_pandas(frame).to_arrow()
    of_pandas, of_arrow = (
        DIPClassifier(GaussianNB(), GDADensity()).partial_fit(rows, data[1])
        for rows in (frame, table)
    )
    np.testing.assert_array_equal(of_arrow.predict_proba(table), of_pandas.predict_proba(frame))


def test_a_wrong_setting_is_refused_with_the_first_batch(data):
    with pytest.raises(ValueError, match="gamma must be finite and > 0, got -1"):
        DIPClassifier(GaussianNB(), GDADensity(), gamma=-1).partial_fit(*data)


def test_what_cannot_stream_says_what_to_give(data):
    X, y = data
    for clf, told in (
        (DIPClassifier(LogisticRegression()), "SGDClassifier"),
        (DIPClassifier(), "GaussianNB"),
        (DIPClassifier(NB, KNNDensity()), "GDADensity"),
    ):
        assert not hasattr(clf, "partial_fit")
        with pytest.raises(AttributeError) as error:
            clf.partial_fit(X, y)
        assert told in str(error.value.__cause__)
    with pytest.raises(ValueError, match="must not learn from batches"):
        DIPClassifier(NB, features=StandardScaler()).partial_fit(X, y)
    with pytest.raises(ValueError, match="features=None standardises by moments"):
        DIPClassifier(NB, GDADensity(shrinkage="ledoit-wolf")).partial_fit(X, y)
    with pytest.warns(UserWarning, match="what fit has learned is dropped"):
        again = DIPClassifier(NB).fit(X, y).partial_fit(X, y)
    assert_same(again, in_batches(DIPClassifier(NB), X, y, []), X)
    with pytest.raises(ValueError, match=r"\['c'\] where the classes are"):
        DIPClassifier(NB).partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(TypeError, match="random_state must be None or an int"):
        # Of each batch it would draw another seed: a row held out of one is in the next.
        DIPClassifier(NB, random_state=np.random.RandomState(0)).partial_fit(X, y)
    few = DIPClassifier(NB).partial_fit(X[:3], y[:3], classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="too few rows came so far"):
        few.predict(X)


def test_a_batch_that_is_refused_leaves_the_model(data):
    X, y = data
    clf = in_batches(DIPClassifier(NB), X, y, [])
    before = clf.predict_proba(X)
    for bad in (X[:, :3], np.full_like(X, np.nan)):
        with pytest.raises(ValueError):
            clf.partial_fit(bad, y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.parametrize("density", sample_of([None, GaussianDensity(), MahalanobisDensity()], 0))
def test_a_sum_of_two_has_seen_the_rows_of_both(data, new, density, tmp_path):
    X, y = data
    blank = DIPClassifier(FrozenEstimator(clone(NB).fit(X[:100], y[:100])), density)
    a, b = (clone(blank).partial_fit(*part) for part in ((X[:500], y[:500]), (X[500:], y[500:])))
    whole = clone(blank).partial_fit(X, y)
    assert_same(a + b, whole, new)
    assert_same(b + a, whole, new)
    (a + b).save(tmp_path / "sum.dipedl")
    assert_same(dipedl.load(tmp_path / "sum.dipedl") + a, (a + b) + a, new)


def test_the_prior_of_frequencies_is_that_of_all_rows_of_all_batches(data, tmp_path):
    X, y = data
    rows = np.flatnonzero((y != "c") | (np.arange(900) % 50 == 0))
    X, y = X[rows], y[rows]
    blank = DIPClassifier(FrozenEstimator(clone(NB).fit(X, y)), prior="empirical")
    cut, weights = np.array_split(np.arange(len(y)), 2), np.where(y == "a", 2.0, 1.0)
    a, b = (clone(blank).partial_fit(X[i], y[i], sample_weight=weights[i]) for i in cut)
    counts = np.array([weights[y == name].sum() for name in "abc"])
    expected = 1.5 * counts / counts.sum()
    a.save(tmp_path / "a.dipedl")
    for both in (
        a + b,
        b + a,
        dipedl.load(tmp_path / "a.dipedl").partial_fit(
            X[cut[1]], y[cut[1]], sample_weight=weights[cut[1]]
        ),
    ):
        np.testing.assert_allclose(both.prior_, expected, rtol=1e-12)


def test_merges_that_are_refused_say_why(data):
    X, y = data
    frozen = FrozenEstimator(clone(NB).fit(X, y))
    a = DIPClassifier(frozen).partial_fit(X, y)
    other = FrozenEstimator(clone(NB).fit(X[:500], y[:500]))
    thin = FrozenEstimator(clone(NB).fit(X[:, :3], y))
    two = FrozenEstimator(clone(NB).fit(X[y != "c"], y[y != "c"]))
    for clf, why in (
        (DIPClassifier(other).partial_fit(X, y), "classifiers were fitted apart"),
        (DIPClassifier(thin).partial_fit(X[:, :3], y), "inputs differ: 4 and 3"),
        (DIPClassifier(two).partial_fit(X[y != "c"], y[y != "c"]), "classes differ"),
        (DIPClassifier(frozen, features="passthrough").partial_fit(X, y), "features differ"),
        (DIPClassifier(frozen).fit(X, y), "keeps no held-out rows"),
    ):
        with pytest.raises(ValueError, match=why):
            a + clf


def test_the_same_rows_are_not_added_twice(data):
    X, y = data
    blank = DIPClassifier(FrozenEstimator(clone(NB).fit(X, y)))
    a, same = (clone(blank).partial_fit(X, y) for _ in range(2))
    for other in (a, same):
        with pytest.raises(ValueError, match="the same rows, which would count twice"):
            a + other
    assert (a + clone(blank).partial_fit(X[1:], y[1:])).evidence_.n_ > a.evidence_.n_


def test_partial_fit_says_that_it_drops_what_calibrate_has_learned(data, recwarn):
    X, y = data
    clf = in_batches(DIPClassifier(NB), X[:600], y[:600], [300])
    clf.predict(X)
    assert not [w for w in recwarn if "what calibrate has learned" in str(w.message)]
    clf.calibrate(X[600:], y[600:])
    with pytest.warns(UserWarning, match="calibrate has learned is dropped.*after the last batch"):
        clf.partial_fit(X[:10], y[:10])


def test_a_sample_knows_no_order_and_no_parts(rng):
    X, y = rng.integers(0, 30, (500, 2)).astype(float), rng.integers(0, 4, 500)
    y[:3] = 9

    def sample(rows):
        return RowSample.of(row_keys(X[rows], y[rows]), y[rows], {"X": X[rows]}, 50, each=5)

    whole = sample(np.arange(500))
    parts = [sample(rows) for rows in np.array_split(rng.permutation(500), 7)]
    merged = sum(parts[1:], parts[0])
    for name in ("keys", "labels", "counts"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    np.testing.assert_array_equal(merged.rows["X"], whole.rows["X"])
    rare = np.unique(X[:3], axis=0)
    assert (whole.labels == 9).sum() == len(rare)
    # A row stands for all its copies: same content and label.
    for row, label, count in zip(whole.rows["X"], whole.labels, whole.counts, strict=True):
        assert count == ((X == row).all(axis=1) & (y == label)).sum()


def test_texts_of_digits_are_texts_whatever_stands_beside_them():
    alone, mixed = pd.DataFrame({"id": ["0012"]}), pd.DataFrame({"id": ["0012", "A7", "12"]})
    found = row_keys(mixed, np.zeros(3))
    assert row_keys(alone, np.zeros(1))[0] == found[0]
    assert len(set(found)) == 3


@pytest.mark.parametrize("first", [0, 1_700_000_000_000_000_000, 2**63])
def test_integer_keys_are_told_apart_by_every_bit(first):
    ids = np.array([first + i for i in range(500)], dtype=np.uint64)
    reading = Reading(target="y", key="id")
    frame = pd.DataFrame({"id": ids, "y": "a"})
    batch = Batch(frame, np.full(500, "a"), np.arange(500), [])
    assert len(set(reading.keys(batch)[0])) == 500
    if first == 0:
        for kind in ("float64", "Int64"):
            again = batch._replace(frame=frame.astype({"id": kind}))
            np.testing.assert_array_equal(reading.keys(again)[0], reading.keys(batch)[0])


def test_keys_are_uniform_and_of_content(rng):
    X, y = rng.normal(size=(20_000, 3)), rng.integers(0, 2, 20_000)
    keys = row_keys(X, y)
    # Share below a tenth: binomial with a standard deviation of 0.0021.
    assert abs(in_share(keys, 0.1).mean() - 0.1) < 4 * 0.0021
    assert abs(np.corrcoef(keys.astype(float), row_keys(X, y, 1).astype(float))[0, 1]) < 0.03
    assert (row_keys(X, 1 - y) != keys).all() and (row_keys(X[::-1], y[::-1])[::-1] == keys).all()


def test_a_merge_with_a_model_without_rows_in_its_density_changes_neither(rng):
    Z, y = rng.normal(size=(60, 2)), np.arange(60) % 2

    def held(*keys):
        rows = {"Z": rng.normal(size=(2, 2)), "P": np.full((2, 2), 0.5)}
        return RowSample(np.array(keys, np.uint64), np.arange(2), np.ones(2), rows, most=2)

    a = Stream(GDADensity().fit(Z, y), None, held(30, 40), 60.0, np.array([31.0, 31.0]), False)
    b = Stream(GDADensity(), None, held(10, 20), 0.0, np.array([1.0, 1.0]), False)
    before = a.density.score_samples(Z)
    both = a.merge(b, np.arange(2))
    assert both.n == 62 and both.totals.tolist() == [32, 32]
    assert both.held.keys.tolist() == [10, 20]
    np.testing.assert_array_equal(a.density.score_samples(Z), before)
    assert not np.array_equal(both.density.score_samples(Z), before)
