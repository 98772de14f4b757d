"""KNNDensity against naive loops, also where scikit-learn's fast distances cancel."""

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl.density import KNNDensity


def naive(X, queries, k):
    p = X.shape[1]
    volume = math.pi ** (p / 2) / math.gamma(p / 2 + 1)
    radii = [sorted(math.dist(q, x) for x in X)[k - 1] for q in queries]
    floor = min(sorted(math.dist(a, b) for b in X)[max(k - 1, 1)] for a in X)
    return [math.log(k / len(X)) - math.log(volume * max(r, floor) ** p) for r in radii]


# From 16 features on scikit-learn searches by brute force: |x|^2 - 2 x.t + |t|^2.
@pytest.mark.parametrize("p", [1, 3, 20])
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_against_naive_loops(rng, p, k, offset):
    X = rng.normal(size=(60, p)) + offset
    queries = 1.5 * rng.normal(size=(10, p)) + offset
    density = KNNDensity(k).fit(X)
    expected = naive(X, queries, k)
    np.testing.assert_allclose(density.score_samples(queries), expected, rtol=1e-9, atol=1e-8)
    assert density.score(queries) == pytest.approx(np.mean(expected), rel=1e-8)


def test_uniform_in_the_middle(rng):
    """The formula itself: with many rows it gives the density they were drawn from."""
    X = rng.random((20_000, 2))
    score = KNNDensity(200).fit(X).score_samples(0.2 + 0.6 * rng.random((50, 2)))
    # k is Poisson: relative error 1 / sqrt(k) each, 50 nearly independent queries.
    assert abs(np.exp(score).mean() - 1) < 6 / math.sqrt(200 * 50)


@pytest.mark.parametrize("p", [2, 20])
def test_copies_of_training_rows_get_the_smallest_positive_radius(rng, p):
    """A training row is its own neighbour at distance zero, and not at 1e-8 by rounding."""
    X = rng.normal(size=(40, p))
    twice = np.vstack([X, X[:30]])
    density = KNNDensity(2).fit(twice)
    distance = np.linalg.norm(X[30:, None] - twice, axis=2)
    floor = np.sort(distance, axis=1)[:, 1].min()
    assert density.radius_floor_ == pytest.approx(floor, rel=1e-12)
    volume = math.pi ** (p / 2) / math.gamma(p / 2 + 1)
    expected = math.log(2 / 70) - math.log(volume) - p * math.log(floor)
    np.testing.assert_allclose(density.score_samples(X[:30]), expected, rtol=1e-12)


@pytest.mark.parametrize("p", [2, 20])
def test_floor_where_every_kth_neighbour_is_a_copy(rng, p):
    """In the unit of the features: a fixed floor would tie every query nearer than that."""
    X = 1e-3 * rng.normal(size=(20, p))
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    closest = distance[distance > 0].min()
    assert KNNDensity(1).fit(X).radius_floor_ == pytest.approx(closest, rel=1e-9)


def test_data_that_mostly_repeat_themselves_are_refused(rng):
    """At an atom the density is infinite, and every score there ties: an alarm would be noise."""
    counts = rng.poisson(2.0, (500, 2)).astype(float)
    with pytest.raises(ValueError, match=r"\d+% of the rows .* 5 copies or more.*continuous"):
        KNNDensity(5).fit(counts)
    KNNDensity(5).fit(counts + rng.normal(size=counts.shape))
    assert KNNDensity(5).fit(np.ones((5, 2))).radius_floor_ == 1.0


def test_neighbour_may_be_the_last_row_there_is(rng):
    X = rng.normal(size=(6, 2))
    queries = X + 1
    np.testing.assert_allclose(
        KNNDensity(6).fit(X).score_samples(queries), naive(X, queries, 6), rtol=1e-10
    )


@pytest.mark.parametrize("k", [0, -1, 7])
def test_number_of_neighbours_is_checked(rng, k):
    with pytest.raises(ValueError, match=rf"n_neighbors must lie in 1\.\.n_samples = 6, got {k}"):
        KNNDensity(k).fit(rng.normal(size=(6, 2)))


@pytest.mark.parametrize("p", [2, 20])
def test_overflow(rng, p):
    X = rng.normal(size=(20, p))
    far = np.full((1, p), 1e200)
    with np.errstate(all="raise", under="ignore"):
        assert KNNDensity(3).fit(X).score_samples(far) == -np.inf
        with pytest.raises(ValueError, match=r"got 1e\+200 at row 20, column 0: .*overflow"):
            KNNDensity(3).fit(np.vstack([X, far]))


def test_neighbors_are_the_nearest_training_rows(rng):
    X = rng.normal(size=(60, 20))
    queries = rng.normal(size=(7, 20))
    distance, rows = KNNDensity(4).fit(X).neighbors(queries)
    every = np.linalg.norm(queries[:, None] - X, axis=2)
    np.testing.assert_array_equal(rows, every.argsort(axis=1)[:, :4])
    np.testing.assert_allclose(distance, np.sort(every, axis=1)[:, :4], rtol=1e-12)
    own_distance, own_rows = KNNDensity(4).fit(X).neighbors(X)
    assert (own_distance[:, 0] == 0).all() and (own_rows[:, 0] == np.arange(60)).all()


def test_normalised_features_and_a_row_of_zeros(rng):
    """Sun et al. 2022: -log of the k-th distance ranks; zeros have no direction and stay zero."""
    X = np.abs(rng.normal(size=(200, 20)))
    X[3] = 0
    pipeline = make_pipeline(Normalizer(), KNNDensity(10)).fit(X)
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    np.testing.assert_allclose(pipeline.score_samples(X), naive(unit, unit, 10), rtol=1e-9)
    zero, scaled = (
        pipeline.score_samples(np.vstack([np.zeros(20), X[3]])),
        pipeline.score_samples(7 * X),
    )
    assert zero[0] == zero[1] == pipeline.score_samples(X).min()
    np.testing.assert_allclose(scaled, pipeline.score_samples(X), rtol=1e-9)


def test_dead_features_are_refused_with_the_number_that_helps(rng):
    X = np.abs(rng.normal(size=(200, 20)))
    X[:30] = 0
    message = r"15% of the rows .*comes 30 times.*L2 normalisation.*rows of zeros"
    with pytest.raises(ValueError, match=message):
        make_pipeline(Normalizer(), KNNDensity(10)).fit(X)
    assert np.isfinite(make_pipeline(Normalizer(), KNNDensity(30)).fit(X).score_samples(X)).all()


def test_floor_from_a_thousand_of_the_rows_is_no_smaller(rng):
    X = rng.normal(size=(3000, 2))
    density = KNNDensity(5).fit(X)
    radius = density.neighbors(X)[0][:, -1]
    assert radius.min() <= density.radius_floor_ <= np.quantile(radius, 0.01)
    assert KNNDensity(5).fit(X[::-1]).radius_floor_ == pytest.approx(density.radius_floor_)
