"""Folds and what is learned from them: sources, content hashes, and the in-sample effect."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import FunctionTransformer

from dipedl.calibration.crossfit import content_folds, row_hash
from dipedl.density import GDADensity
from dipedl.evidence import ZScore
from dipedl.evidence.normalizers import cap_evidence
from dipedl.evidence_model import EvidenceModel


def test_equal_rows_have_equal_hashes_whatever_their_place(rng):
    X = rng.normal(size=(3000, 20))
    h = row_hash(X)
    assert len(np.unique(h)) == 3000
    order = rng.permutation(3000)
    np.testing.assert_array_equal(row_hash(X[order]), h[order])
    np.testing.assert_array_equal(row_hash(np.array([[0.0]])), row_hash(np.array([[-0.0]])))
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
