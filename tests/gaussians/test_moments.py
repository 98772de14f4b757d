"""Moments that add up, against naive loops: of rows, of classes with one scatter, of wide rows."""

import tracemalloc
from fractions import Fraction
from functools import partial, reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dipedl.apps.large.sums import Form, Sums, forms_of, from_sums, needed_forms
from dipedl.density import GaussianDensity, GDADensity, MahalanobisDensity, RelativeDensity
from dipedl.gaussians.factor import factorise
from dipedl.gaussians.moments import (
    Moments,
    TiedMoments,
    add_moments,
    moments_by_class,
    pool,
    rank,
    shrinkage_intensity,
)
from dipedl.io import load, save

of = partial(Moments.of, higher=True)

FIELDS = ("mean", "scatter", "cubic", "quartic")


def field(m, name):
    return getattr(m.higher if name in ("cubic", "quartic") else m, name)


def naive(X, weights, diagonal):
    """Row by row, entry by entry."""
    p = X.shape[1]
    mean = [sum(w * x[j] for x, w in zip(X, weights, strict=True)) / sum(weights) for j in range(p)]
    scatter, cubic, quartic = np.zeros((p, p)), np.zeros(p), np.zeros(p)
    for x, w in zip(X, weights, strict=True):
        d = [x[j] - mean[j] for j in range(p)]
        norm = sum(v * v for v in d)
        for j in range(p):
            for i in range(p):
                scatter[i, j] += w * d[i] * d[j]
            cubic[j] += w * (d[j] ** 3 if diagonal else norm * d[j])
            quartic[j] += w * (d[j] ** 4 if diagonal else norm**2 / p)
    if diagonal:
        return np.array(mean), np.diag(scatter), cubic, quartic
    return np.array(mean), scatter, cubic, quartic.sum(keepdims=True)


def assert_same(a, b, scale, tolerance=1e-10):
    """Equal to `tolerance` relative to the size that each moment has for features of this scale."""
    assert a.weight == pytest.approx(b.weight, rel=1e-12)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-15, atol=tolerance * scale)
    for power, name in enumerate(FIELDS[1:], start=2):
        unit = a.weight * scale**power
        np.testing.assert_allclose(field(a, name), field(b, name), rtol=0, atol=tolerance * unit)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_naive_loops(rng, diagonal, weighted):
    X = rng.exponential(size=(17, 3)) * [1, 10, 0.1]
    w = rng.exponential(size=17) if weighted else np.ones(17)
    m = of(X, w if weighted else None, diagonal=diagonal)
    expected = naive(X, w, diagonal)
    for name, value in zip(FIELDS, expected, strict=True):
        assert field(m, name).shape == value.shape, name
        np.testing.assert_allclose(field(m, name), value, rtol=1e-12, atol=1e-12, err_msg=name)
    assert m.weight == pytest.approx(w.sum())
    np.testing.assert_allclose(m.covariance, expected[1] / w.sum(), rtol=1e-12, atol=1e-14)
    trace = expected[1].sum() if diagonal else expected[1].trace()
    assert m.trace == pytest.approx(trace, rel=1e-12)
    assert m.diagonal is diagonal


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
def test_covariance_against_exact_fractions(rng, offset):
    """No digit is lost to an offset: the reference is exact rational arithmetic."""
    X = rng.normal(size=(40, 2)) + offset
    rows = [[Fraction(v) for v in x] for x in X.tolist()]
    mean = [sum(c) / len(rows) for c in zip(*rows, strict=True)]
    exact = [
        [float(sum((x[i] - mean[i]) * (x[j] - mean[j]) for x in rows) / 40) for j in range(2)]
        for i in range(2)
    ]
    parts = [of(part) for part in np.array_split(X, 7)]
    for m in (of(X), reduce(add, parts)):
        np.testing.assert_allclose(m.covariance, exact, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(m.mean, [float(v) for v in mean], rtol=4e-16, atol=1e-15)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    p=st.integers(1, 4),
    cuts=st.lists(st.integers(1, 39), max_size=8),
    offset=st.sampled_from([0.0, 1.0, 1e3, -1e6]),
    scale=st.sampled_from([1e-6, 1.0, 1e4]),
    weighted=st.booleans(),
    diagonal=st.booleans(),
)
def test_any_chunking_in_any_order(seed, n, p, cuts, offset, scale, weighted, diagonal):
    rng = np.random.default_rng(seed)
    X = (rng.standard_t(4, size=(n, p)) + offset) * scale
    w = rng.integers(0, 3, n) + rng.random(n) if weighted else None
    whole = of(X, w, diagonal=diagonal)
    order = rng.permutation(n)
    pieces = [
        of(X[i], None if w is None else w[i], diagonal=diagonal)
        for i in np.split(order, sorted(c for c in set(cuts) if c < n))
    ]
    spread = scale * (1 + np.abs(X / scale - offset).max())
    assert_same(reduce(add, pieces), whole, spread)
    assert_same(reduce(add, pieces[::-1]), whole, spread)
    tree = pieces
    while len(tree) > 1:
        tree = [reduce(add, tree[i : i + 2]) for i in range(0, len(tree), 2)]
    assert_same(tree[0], whole, spread)


@pytest.mark.parametrize("diagonal", [False, True])
def test_weights_are_repetition(rng, diagonal):
    X, times = rng.normal(size=(30, 3)), rng.integers(0, 4, 30)
    weighted = of(X, times.astype(float), diagonal=diagonal)
    assert_same(weighted, of(X.repeat(times, axis=0), diagonal=diagonal), 4.0, 1e-14)


@pytest.mark.parametrize("far", [1e15, 1e300])
def test_row_of_weight_zero_is_absent(rng, far):
    """Its size must cost the others nothing, wherever it stands."""
    X = rng.normal(size=(10, 2))
    expected = of(X)
    for place in (0, 5, 10):
        rows = np.insert(X, place, far, axis=0)
        w = np.insert(np.ones(10), place, 0.0)
        assert_same(of(rows, w), expected, 1.0, 1e-14)


def test_nothing_is_neutral(rng):
    X = rng.normal(size=(10, 2))
    nothing, something = of(X + 5, np.zeros(10)), of(X)
    assert nothing.weight == 0
    assert np.isfinite(nothing.scatter).all()
    assert nothing + something is something
    assert something + nothing is something
    assert (nothing + nothing).weight == 0


def test_long_input_goes_through_in_chunks(rng, monkeypatch):
    X, w = rng.normal(size=(50, 3)), rng.random(50)
    whole = [of(X, w, diagonal=d) for d in (False, True)]
    monkeypatch.setattr("dipedl.gaussians.moments._CHUNK_BYTES", 8 * 3 * 7)
    for expected in whole:
        chunked = of(X, w, diagonal=expected.diagonal)
        assert_same(chunked, expected, 4.0, 1e-14)
        # another path was taken
        assert not np.array_equal(chunked.higher.cubic, expected.higher.cubic)


@pytest.mark.parametrize("diagonal", [False, True])
def test_higher_moments_are_held_only_if_asked_for(rng, diagonal):
    X = rng.normal(size=(10, 2))
    plain = Moments.of(X[:4], diagonal=diagonal) + Moments.of(X[4:], diagonal=diagonal)
    with_powers = of(X[:4], diagonal=diagonal) + of(X[4:], diagonal=diagonal)
    assert plain.higher is None
    assert np.array_equal(plain.scatter, with_powers.scatter)
    assert (plain + with_powers).higher is None
    with pytest.raises(ValueError, match=r"made without them; .* higher=True"):
        shrinkage_intensity(plain, "ledoit-wolf")


def test_float32_accumulates_in_float64(rng):
    X = (rng.normal(size=(2000, 2)) + 1e4).astype(np.float32)
    assert_same(of(X), of(X.astype(np.float64)), 1.0, 1e-13)


def test_operands_are_left_alone(rng):
    X = rng.normal(size=(10, 2))
    given_X, given_w = X.copy(), np.ones(10)
    a, b = of(given_X, given_w), of(X + 3)
    before = a.scatter.copy(), a.offset.copy()
    assert (a + b).weight == 20
    assert np.array_equal(given_X, X) and np.array_equal(given_w, np.ones(10))
    assert np.array_equal(a.scatter, before[0]) and np.array_equal(a.offset, before[1])
    with pytest.raises(AttributeError):
        a.weight = 3


def test_overflow_shows_and_does_not_warn():
    with np.errstate(all="raise"):
        a = of(np.array([[0.0], [1e300]]))
        assert np.isinf(a.scatter).all()
        assert not np.isfinite((a + of(np.array([[-1e300]]))).higher.quartic)


@pytest.mark.parametrize("other", [np.ones((3, 3)), np.ones((3, 1))])
def test_other_features_are_refused(other):
    with pytest.raises(ValueError, match=r"cannot merge moments of scatter shape \(2, 2\)"):
        of(np.ones((3, 2))) + of(other)
    with pytest.raises(ValueError, match=r"same features and covariance_type"):
        of(np.ones((3, 1))) + of(np.ones((3, 1)), diagonal=True)
    with pytest.raises(TypeError):
        of(np.ones((3, 2))) + 1


def test_moments_of_standardised_rows(rng):
    X = rng.normal(size=(30, 3)) * [1, 100, 0.1] + 5
    m, s = X.mean(axis=0), X.std(axis=0)
    scaled = Moments.of(X).standardise(m, s)
    np.testing.assert_allclose(scaled.covariance, np.cov(((X - m) / s).T, ddof=0), atol=1e-12)
    np.testing.assert_allclose(scaled.mean, 0, atol=1e-12)


@pytest.mark.parametrize("classes", [[3, 4, 6], [3, 4, 5], ["a", "b", "ba"], [True]])
def test_rows_of_each_class_are_found_and_those_of_no_class_left_out(rng, classes):
    others = {str: "aa", int: 2, bool: False}[type(classes[0])]
    y = rng.permutation(np.repeat(np.array([*classes, others]), 5))
    X = rng.normal(size=(len(y), 2))
    found = moments_by_class(X, y, None, np.array(classes), diagonal=False, higher=False)
    for c, m in zip(classes, found, strict=True):
        assert m.weight == 5
        np.testing.assert_allclose(m.mean, X[y == c].mean(axis=0), rtol=1e-13)


CLASSES = np.arange(4)


def rows(rng, n=200, p=5, offset=0.0):
    y = rng.permutation(np.arange(n) % 4)
    X = rng.standard_t(5, size=(n, p)) @ rng.normal(size=(p, p)) + 3 * y[:, None] + offset
    return X, y


def naive_within(X, y, w):
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
    expected = naive_within(exact, y, ones)
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


P = 300


@pytest.fixture
def wide(rng):
    return rng.normal(size=(40, P)) * np.geomspace(0.1, 3, P) + 5


def test_wide_rows_are_held_and_their_scatter_is_the_same(wide):
    m = Moments.of(wide, higher=True)
    assert m.thin and m.scatter.shape == (40, P)
    np.testing.assert_allclose(m.covariance, np.cov(wide.T, bias=True), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(m.variance, wide.var(axis=0), rtol=1e-11)
    assert m.trace == pytest.approx(40 * wide.var(axis=0).sum(), rel=1e-12)
    assert rank(m) == 39


@pytest.mark.parametrize("parts", [2, 7])
@pytest.mark.parametrize("n", [40, 400])
def test_any_chunking_is_the_whole_thin_or_dense(rng, parts, n):
    X, w = rng.normal(size=(n, P)) + 3, rng.random(n) + 0.5
    whole = Moments.of(X, w, higher=True)
    pieces = [
        Moments.of(x, v, higher=True)
        for x, v in zip(np.array_split(X, parts), np.array_split(w, parts), strict=True)
    ]
    merged = reduce(add, pieces)
    assert whole.thin == merged.thin == (n == 40)
    np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(merged.higher.cubic, whole.higher.cubic, rtol=1e-8, atol=1e-7)
    np.testing.assert_allclose(merged.higher.quartic, whole.higher.quartic, rtol=1e-10)


def test_distances_against_a_plain_inverse(wide, rng):
    m = Moments.of(wide)
    factor = factorise(m, 0.1, 2.0, "all")
    C = 0.9 * np.cov(wide.T, bias=True) + 0.2 * np.eye(P)
    queries = np.vstack([wide[:5], rng.normal(size=(5, P)) * 100, 1e6 * rng.normal(size=(2, P))])
    D = queries - wide.mean(axis=0)
    solved = np.linalg.solve(C, D.T).T
    np.testing.assert_allclose(factor.squared_distance(queries), (D * solved).sum(1), rtol=1e-9)
    np.testing.assert_allclose(factor.contributions(queries[:10]), (D * solved)[:10], atol=1e-6)
    expected = stats.multivariate_normal(wide.mean(axis=0), C).logpdf(queries[:10])
    np.testing.assert_allclose(factor.log_density(queries[:10]), expected, rtol=1e-9)
    W = factor.array
    np.testing.assert_allclose(W.T @ W @ C, np.eye(P), atol=1e-9)


def test_a_row_that_is_too_far_for_a_float_is_infinitely_far(wide):
    density = GaussianDensity().fit(wide)
    with np.errstate(all="raise"):
        assert density.score_samples(np.full((1, P), 1e200)) == -np.inf


@pytest.mark.parametrize(
    "density",
    [
        GDADensity(),
        GDADensity("tied", shrinkage="ledoit-wolf"),
        GDADensity(shrinkage="ledoit-wolf"),
        GaussianDensity(),
        MahalanobisDensity(),
        RelativeDensity(),
    ],
    ids=str,
)
def test_scores_are_those_of_the_dense_form(wide, density, monkeypatch):
    y = np.arange(40) % 2
    queries = np.vstack([wide[:7] + 0.1, 3 * wide[:3]])
    thin = density.fit(wide, y).score_samples(queries)
    monkeypatch.setattr("dipedl.gaussians.moments.WIDE", P + 1)
    dense = density.fit(wide, y).score_samples(queries)
    np.testing.assert_allclose(thin, dense, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize("density", [GDADensity(shrinkage=None), GaussianDensity(shrinkage=0.0)])
def test_without_shrinkage_it_is_singular_as_ever(wide, density):
    with pytest.raises(ValueError, match=r"covariance of 300 features is singular \(rank \d+"):
        density.fit(wide, np.arange(40) % 2)
