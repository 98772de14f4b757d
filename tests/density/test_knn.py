"""KNNDensity against naive loops, also where scikit-learn's fast distances cancel.

Neighbours are found in float32 and decided exactly; the rows that they are sought among.
"""

import math

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize

from dipedl.density import DensitySelector, KNNDensity, knn
from dipedl.density.base import unit_rows
from dipedl.density.knn import nearest_rows


def naive(X, queries, k):
    p = X.shape[1]
    volume = math.pi ** (p / 2) / math.gamma(p / 2 + 1)
    radii = [sorted(math.dist(q, x) for x in X)[k - 1] for q in queries]
    floor = min(sorted(math.dist(a, b) for b in X)[max(k - 1, 1)] for a in X)
    return [math.log(k / len(X)) - math.log(volume * max(r, floor) ** p) for r in radii]


# From 16 features on scikit-learn searches by brute force: |x|^2 - 2 x.t + |t|^2.
@pytest.mark.parametrize("p", [1, 3, 20])
@pytest.mark.parametrize("k", [1, 7, 60])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_against_naive_loops(rng, p, k, offset):
    X = rng.normal(size=(60, p)) + offset
    queries = 1.5 * rng.normal(size=(10, p)) + offset
    density = KNNDensity(k).fit(X)
    expected = naive(X, queries, k)
    np.testing.assert_allclose(density.score_samples(queries), expected, rtol=1e-9, atol=1e-8)
    assert density.score(queries) == pytest.approx(np.mean(expected), rel=1e-8)


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


RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(1500, 6))
LONELY = NORMAL * np.where(np.arange(1500) == 3, 1e8, 1.0)[:, None]
APART = np.concatenate([NORMAL[:700] * 1e-3, NORMAL[:700] * 1e-3 + 1e5])
ROWS = {
    "normal": NORMAL,
    "one far away": LONELY,
    "two tight clusters far apart": APART,
    "heavy tails": RNG.standard_cauchy((1500, 6)),
    "binary": RNG.integers(0, 2, (1500, 6)).astype(float),
    "hardly more than k": NORMAL[:12],
    "huge": NORMAL * 1e120,
    "small": NORMAL * 1e-120,
}


def naive_distances(rows, X, k):
    with np.errstate(all="ignore"):
        distances = np.array([np.sqrt(((x - rows) ** 2).sum(axis=1)) for x in X])
    return np.sort(np.where(np.isnan(distances), np.inf, distances), axis=1)[:, :k]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 1e6, 1e20, 1e160, 1e300])
def test_distances_are_those_of_all_pairs(name, scale):
    rows = ROWS[name]
    with np.errstate(over="ignore"):
        X = np.nan_to_num(np.concatenate([rows[:10] * scale, rows[-3:], NORMAL[:5] * scale]))
    index = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(rows)
    distances, numbers = nearest_rows(index, X)
    np.testing.assert_allclose(distances, naive_distances(rows, X, 10), rtol=1e-13)
    with np.errstate(all="ignore"):
        found = np.sqrt(((X[:, None] - rows[numbers]) ** 2).sum(axis=2))
    found[np.isnan(found)] = np.inf
    np.testing.assert_allclose(found, distances, rtol=1e-13)


def test_products_and_tree_give_one_density(monkeypatch):
    by_products = KNNDensity().fit(NORMAL)
    monkeypatch.setattr(knn, "_PRODUCTS", 0)
    by_tree = KNNDensity().fit(NORMAL)
    assert (by_products.neighbors_._fit_method, by_tree.neighbors_._fit_method) == (
        "brute",
        "kd_tree",
    )
    X = RNG.normal(size=(300, 6)) * 2
    np.testing.assert_allclose(by_products.score_samples(X), by_tree.score_samples(X), rtol=1e-12)


class TestRowsThatAreKept:
    y = np.repeat(["a", "b", "c"], [1200, 270, 30])

    def test_each_class_keeps_its_share_and_k_too(self):
        density = KNNDensity(max_rows=500).fit(NORMAL, self.y)
        kept = np.unique(self.y[density.row_numbers_], return_counts=True)[1]
        assert kept.tolist() == [400, 90, 10]
        assert density.n_neighbors_ == 3
        assert KNNDensity(max_rows=100).fit(NORMAL, self.y).n_neighbors_ == 2
        assert KNNDensity(1, max_rows=100).fit(NORMAL, self.y).n_neighbors_ == 1

    def test_neither_the_order_of_rows_matters_nor_do_the_labels_themselves(self):
        order = RNG.permutation(len(NORMAL))
        X = RNG.normal(size=(50, 6))
        a = KNNDensity(max_rows=500).fit(NORMAL, self.y)
        b = KNNDensity(max_rows=500).fit(NORMAL[order], self.y[order])
        np.testing.assert_allclose(a.score_samples(X), b.score_samples(X), rtol=1e-12)
        assert sorted(order[b.row_numbers_]) == a.row_numbers_.tolist()

    def test_another_seed_keeps_others(self):
        fits = [KNNDensity(max_rows=500, random_state=s).fit(NORMAL) for s in (None, 0, 1)]
        kept = [set(fit.row_numbers_.tolist()) for fit in fits]
        assert kept[0] == kept[1] != kept[2]

    def test_copies_keep_their_share(self):
        rows = np.concatenate([NORMAL[:960], np.repeat(NORMAL[-1:], 40, axis=0)])
        density = KNNDensity(max_rows=500).fit(rows)
        assert (density.row_numbers_ >= 960).sum() == pytest.approx(20, abs=1)

    def test_neighbors_are_numbers_of_the_training_rows(self):
        density = KNNDensity(max_rows=500).fit(NORMAL, self.y)
        X = RNG.normal(size=(20, 6))
        distances, numbers = density.neighbors(X)
        gaps = X[:, None] - NORMAL[numbers]
        np.testing.assert_allclose(np.linalg.norm(gaps, axis=2), distances, rtol=1e-9)

    def test_rows_of_the_fit_are_known_to_be_in_it_where_all_are_kept(self):
        """Of nearly all rows k is that of all, and the others were scored with k + 1."""
        for size, known in ((1450, False), (1500, True), (None, True)):
            density = KNNDensity(max_rows=size).fit(NORMAL)
            assert density.n_neighbors_ == 10
            assert (density.leave_one_out(NORMAL, None, None) is not None) == known

    def test_all_rows_where_they_are_few_enough(self):
        X = RNG.normal(size=(20, 6))
        scores = [KNNDensity(max_rows=m).fit(NORMAL).score_samples(X) for m in (None, 1500)]
        np.testing.assert_array_equal(*scores)


def test_unit_rows_are_those_of_scikit_learn():
    rows = np.concatenate([NORMAL, np.zeros((1, 6)), NORMAL[:1] * 1e-17, NORMAL[:1] * 1e200])
    np.testing.assert_array_equal(unit_rows(rows), normalize(rows))


def test_pipelines_of_an_ensemble_score_as_they_do_alone():
    y = np.arange(1500) % 3
    selector = DensitySelector().fit(NORMAL + y[:, None], y)
    X = RNG.normal(size=(40, 6))
    scores = selector.component_scores(X)
    piped = [n for n, part in selector.estimators_.items() if hasattr(part, "steps")]
    assert piped
    for name in piped:
        assert isinstance(selector.estimators_[name][0], Normalizer)
        alone = selector.estimators_[name].score_samples(X)
        np.testing.assert_allclose(scores[name], alone, rtol=1e-12)
