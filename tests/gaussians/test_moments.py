"""Mergeable moments against naive loops, exact fractions, and themselves in other chunks."""

from fractions import Fraction
from functools import partial, reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dipedl.gaussians.moments import Moments, moments_by_class, shrinkage_intensity

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
