"""KNNDensity with faiss: recall, bounds and what a saved model keeps."""

import pickle
import sys

import numpy as np
import pytest

import dipedl
from dipedl.density import KNNDensity

P, K = 16, 10


@pytest.fixture
def clustered(rng):
    """Rows as of a network: 20 clouds, each of 4 dimensions of its own out of 16."""
    centres, axes = 4 * rng.normal(size=(20, P)), rng.normal(size=(20, 4, P))
    cloud = rng.integers(0, 20, 5000)
    rows = centres[cloud] + np.einsum("ij,ijk->ik", rng.normal(size=(5000, 4)), axes[cloud])
    return rows[:4500], rows[4500:]


def test_without_faiss_the_extra_is_named(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"KNNDensity\(index='faiss'\) needs .*'dipedl\[ann\]'"):
        KNNDensity(2, index="faiss").fit(rng.normal(size=(6, 2)))


def test_recall_and_a_score_that_is_never_too_high(clustered):
    pytest.importorskip("faiss")
    X, queries = clustered
    exact = KNNDensity(K).fit(X)
    truth = exact.neighbors(queries)
    recall = []
    for probe in (0.01, 0.1, 1.0):
        density = KNNDensity(K, index="faiss", probe=probe).fit(X)
        distance, rows = density.neighbors(queries)
        recall.append(np.mean([np.isin(a, b).mean() for a, b in zip(rows, truth[1], strict=True)]))
        direct = np.linalg.norm(queries[:, None] - X[rows], axis=2)
        np.testing.assert_allclose(distance, direct, rtol=1e-9)
        assert (density.score_samples(queries) <= exact.score_samples(queries) + 1e-3).all()
    assert recall[1] > 0.95
    assert recall[0] < recall[1] <= recall[2]
    assert recall[2] == 1.0
    np.testing.assert_allclose(
        density.score_samples(queries), exact.score_samples(queries), rtol=1e-6
    )


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_any_unit(clustered, scale):
    """float32 would lose squares of these."""
    pytest.importorskip("faiss")
    X, queries = clustered
    one = KNNDensity(K, index="faiss").fit(X).neighbors(queries)
    other = KNNDensity(K, index="faiss").fit(scale * X).neighbors(scale * queries)
    np.testing.assert_allclose(other[0][:, -1], scale * one[0][:, -1], rtol=1e-3)


def test_far_and_huge_queries(clustered):
    pytest.importorskip("faiss")
    X, _ = clustered
    density = KNNDensity(K, index="faiss").fit(X)
    far = np.eye(P)[0] * np.array([30, 1e3, 1e6, 1e12, 1e100, 1e200])[:, None]
    with np.errstate(all="raise", under="ignore"):
        score = density.score_samples(far)
    exact = KNNDensity(K).fit(X).score_samples(far)
    np.testing.assert_allclose(score[:-1], exact[:-1], rtol=0.05)
    assert (np.diff(score) < 0).all() and score[-1] == -np.inf


def test_few_rows_and_all_of_them_as_neighbours(rng):
    """Cells near a query may hold fewer rows than are asked for."""
    pytest.importorskip("faiss")
    X = rng.normal(size=(300, 2))
    density = KNNDensity(300, index="faiss", probe=0.01).fit(X)
    np.testing.assert_array_equal(np.sort(density.neighbors(X[:5])[1]), np.tile(range(300), (5, 1)))


def test_saved_and_pickled_models_build_the_same_index(clustered, tmp_path):
    pytest.importorskip("faiss")
    X, queries = clustered
    density = KNNDensity(K, index="faiss").fit(X)
    expected = density.score_samples(queries)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(density)).score_samples(queries), expected
    )
    dipedl.save(density, tmp_path / "knn.dipedl")
    loaded = dipedl.load(tmp_path / "knn.dipedl")
    np.testing.assert_array_equal(loaded.score_samples(queries), expected)
    again = KNNDensity(K, index="faiss").fit(X)
    np.testing.assert_array_equal(again.score_samples(queries), expected)
    density.fit(X + 1.0)
    np.testing.assert_allclose(density.score_samples(queries + 1.0), expected, rtol=1e-3)


def test_the_contract_of_a_density():
    pytest.importorskip("faiss")
    dipedl.testing.check_density(KNNDensity(5, index="faiss"))
