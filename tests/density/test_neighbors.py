"""Nearest neighbours: found in float32, decided exactly; the rows that they are sought among."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import Normalizer, normalize

from dipedl.density import DensitySelector, KNNDensity, knn
from dipedl.density.base import unit_rows
from dipedl.density.knn import nearest_rows

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


def naive(rows, X, k):
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
    np.testing.assert_allclose(distances, naive(rows, X, 10), rtol=1e-13)
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


def test_an_answer_does_not_depend_on_the_other_rows():
    density, X = KNNDensity().fit(NORMAL), RNG.normal(size=(600, 6)) * 3
    one_by_one = np.concatenate([density.score_samples(row[None]) for row in X])
    np.testing.assert_array_equal(density.score_samples(X), one_by_one)


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

    def test_all_rows_where_they_are_few_enough(self):
        X = RNG.normal(size=(20, 6))
        scores = [KNNDensity(max_rows=m).fit(NORMAL).score_samples(X) for m in (None, 1500)]
        np.testing.assert_array_equal(*scores)

    def test_too_few_are_refused(self):
        with pytest.raises(ValueError, match="max_rows must be None or at least n_neighbors = 10"):
            KNNDensity(max_rows=5).fit(NORMAL)


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
