"""One scatter for all classes: what a scatter for each of them gives, in the memory of one."""

import tracemalloc
from functools import reduce

import numpy as np
import pytest

from dipedl.apps.large.sums import Form, Sums, forms_of, from_sums, needed_forms
from dipedl.density import GaussianDensity, GDADensity
from dipedl.gaussians.moments import Moments, TiedMoments, add_moments, moments_by_class, pool
from dipedl.io import load, save

CLASSES = np.arange(4)


def rows(rng, n=200, p=5, offset=0.0):
    y = rng.permutation(np.arange(n) % 4)
    X = rng.standard_t(5, size=(n, p)) @ rng.normal(size=(p, p)) + 3 * y[:, None] + offset
    return X, y


def naive(X, y, w):
    """Scatter of the residuals from the class means."""
    scatter = np.zeros((X.shape[1],) * 2)
    for c in np.unique(y):
        own, weight = X[y == c], w[y == c]
        D = own - (weight @ own) / weight.sum()
        scatter += (D * weight[:, None]).T @ D
    return scatter


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "p"), [(200, 5), (5000, 3), (60, 300), (700, 300), (4, 300)])
def test_one_pass_against_the_definition(rng, n, p, dtype, weighted):
    """Also wide rows, which are held themselves, and classes of one row."""
    X, y = rows(rng, n, p)
    X, w = X.astype(dtype), rng.random(n) + 0.5 if weighted else None
    tied = TiedMoments.of(X, y, w, CLASSES)
    ones, exact = np.ones(n) if w is None else w, X.astype(float)
    expected = naive(exact, y, ones)
    size = max(np.abs(expected).max(), 1e-12)
    got = tied.within.covariance * tied.within.weight
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * size)
    assert tied.within.thin == (2 * n <= p)
    for c in CLASSES:
        share = ones * (y == c)
        np.testing.assert_allclose(tied[c].mean, share @ exact / share.sum(), rtol=1e-12)
        assert tied.weight[c] == pytest.approx(share.sum(), rel=1e-13)
    by_class = moments_by_class(X, y, w, CLASSES, diagonal=False, higher=False)
    np.testing.assert_allclose(
        got, pool(by_class).covariance * ones.sum(), rtol=0, atol=1e-12 * size
    )
    whole = Moments.of(X, w)
    np.testing.assert_allclose(tied.whole.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(tied.whole.covariance, whole.covariance, rtol=1e-10, atol=1e-10)
    scale = np.linspace(1, 2, p)
    moved = tied.standardise(whole.mean, scale)
    other = TiedMoments.of((exact - whole.mean) / scale, y, w, CLASSES)
    np.testing.assert_allclose(moved[1].mean, other[1].mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        moved.within.covariance, other.within.covariance, rtol=1e-9, atol=1e-12 * size
    )


@pytest.mark.parametrize("p", [4, 300])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_parts_in_any_order_are_the_whole(rng, p, offset):
    """The last part is of two classes alone."""
    X, y = rows(rng, 400, p, offset)
    cuts = [rng.permutation(np.flatnonzero(y > 1))[:60]]
    rest = rng.permutation(np.setdiff1d(np.arange(400), cuts[0]))
    cuts = [*np.array_split(rest, 6), *cuts]
    parts = [TiedMoments.of(X[at], y[at], None, CLASSES) for at in cuts]
    whole = TiedMoments.of(X, y, None, CLASSES)
    for merged in (reduce(add_moments, parts), reduce(add_moments, parts[::-1])):
        np.testing.assert_allclose(merged.within.covariance, whole.within.covariance, atol=1e-8)
        np.testing.assert_allclose(merged[3].mean, whole[3].mean, rtol=0, atol=1e-9)
        assert merged.weight.tolist() == whole.weight.tolist()


def peak(k, p, work):
    """Bytes that the work takes at most, over those of a scatter for each of k classes."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / (8 * k * p * p)


def test_memory_is_that_of_one_scatter_for_any_number_of_classes(rng, tmp_path):
    """Of a scatter per class even one set would be 210 MB."""
    k, p = 400, 256
    y = np.arange(4 * k) % k
    X = rng.normal(size=(len(y), p)).astype(np.float32)
    density = GDADensity("tied")

    def work():
        density.fit(X, y)
        both = (density + density).partial_fit(X[:1000], y[:1000])
        both.score_samples(X[:100])
        save(density, tmp_path / "tied.dipedl")

    assert peak(k, p, work) < 0.15
    loaded = load(tmp_path / "tied.dipedl")
    np.testing.assert_array_equal(loaded.score_samples(X), density.score_samples(X))
    merged = loaded + density
    np.testing.assert_allclose(merged.score_samples(X[:9]), merged.score_samples(X)[:9], rtol=1e-12)
    assert (tmp_path / "tied.dipedl").stat().st_size < 0.1 * 8 * k * p * p


@pytest.mark.slow
def test_a_thousand_classes_of_2048_features(rng):
    k, p = 1000, 2048
    y = np.arange(3 * k) % k
    X = rng.normal(size=(len(y), p)).astype(np.float32)
    density = GDADensity("tied")
    assert peak(k, p, lambda: density.fit(X, y).score_samples(X[:50])) < 0.02
    assert np.isfinite(density.score_samples(X[:5])).all()


def test_what_is_compared_with_is_worked_out_once_and_for_all_rows_alike(rng):
    X, y = rows(rng)
    density = GDADensity("tied").fit(X, y)
    state, one = dict(vars(density)), density.score_samples(X[:1])
    compared = density.factors_.comparison
    assert density.score_samples(X)[0] == pytest.approx(one[0], rel=1e-12)
    assert density.factors_.comparison is compared and vars(density) == state
    density.partial_fit(X, y)
    assert density.factors_.comparison is not compared


def test_sums_of_parts_hold_one_scatter_unless_another_needs_more(rng):
    X, y = rows(rng)
    one, plain = Form(False, False, False, tied=True), Form(False, False, False)
    tied, whole = GDADensity("tied").fit(X, y), GaussianDensity().fit(X)
    assert forms_of(tied) == forms_of(whole) == {one}
    assert forms_of(GDADensity().fit(X, y)) == {plain}
    assert forms_of(GDADensity("shared-basis").fit(X, y)) == set()
    assert needed_forms(tied) == (one,)
    for forms in ((one,), (plain,)):
        sums = Sums.of(X[:90], y[:90], CLASSES, forms) + Sums.of(X[90:], y[90:], CLASSES, forms)
        for density in (tied, whole):
            made = from_sums(density, sums, CLASSES)
            np.testing.assert_allclose(made.score_samples(X), density.score_samples(X), rtol=1e-10)
            assert type(made.moments_) is type(density.moments_)
