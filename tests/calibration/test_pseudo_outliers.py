"""Pseudo-outliers: what each kind keeps of the rows and what it breaks."""

import numpy as np
import pytest

from dipedl.calibration.pseudo_outliers import draw_pseudo_outliers

KINDS = ("blended", "pasted", "permuted", "noised")


@pytest.fixture
def rows(rng):
    y = rng.integers(0, 3, 400)
    base = rng.normal(size=400)
    X = np.column_stack([base, base + 0.01 * rng.normal(size=400), y, rng.normal(size=400)])
    return X, y


def test_every_kind_has_its_rows_and_stays_in_range(rows):
    X, y = rows
    made = draw_pseudo_outliers(X, y, None, 0, n=50)
    assert set(made) == set(KINDS)
    for found in made.values():
        assert found.shape == (50, 4) and found.dtype == X.dtype
        assert (found >= X.min(axis=0)).all() and (found <= X.max(axis=0)).all()


def test_blended_rows_lie_halfway_between_rows_of_two_classes(rows):
    X, y = rows
    blended = draw_pseudo_outliers(X, y, None, 0, n=30)["blended"]
    middle = (X[:, None] + X[None]) / 2
    for row in blended:
        distance = np.abs(middle - row).max(axis=2)
        i, j = np.unravel_index(distance.argmin(), distance.shape)
        assert distance[i, j] < 1e-12 and y[i] != y[j]


def test_pasted_rows_are_halves_of_rows_of_two_classes(rows):
    X, y = rows
    for row in draw_pseudo_outliers(X, y, None, 0, n=30)["pasted"]:
        left = np.flatnonzero((X[:, :2] == row[:2]).all(axis=1))
        right = np.flatnonzero((X[:, 2:] == row[2:]).all(axis=1))
        assert len(left) and len(right) and not set(y[left]) & set(y[right])


def test_permuted_rows_keep_every_margin_and_lose_the_dependence(rows):
    X, y = rows
    permuted = draw_pseudo_outliers(X, y, None, 0, n=2000)["permuted"]
    for column in range(4):
        assert np.isin(permuted[:, column], X[:, column]).all()
    assert np.corrcoef(X[:, 0], X[:, 1])[0, 1] > 0.99
    assert abs(np.corrcoef(permuted[:, 0], permuted[:, 1])[0, 1]) < 0.1


def test_noise_has_the_spread_of_each_column(rng):
    X = rng.uniform(-50, 50, size=(4000, 2)) * [1.0, 100.0]
    y = np.arange(4000) % 2
    noised = draw_pseudo_outliers(X, y, None, 0, n=4000)["noised"]
    inside = (np.abs(noised) < 0.999 * np.abs(X).max(axis=0)).all(axis=1)
    gaps = np.abs(noised[inside, None, 0][:200] - X[None, :, 0]).min(axis=1)
    assert (gaps > 0).mean() > 0.9
    # the variance of a sum: twice that of the column, less what the clipping takes
    ratio = noised.var(axis=0) / X.var(axis=0)
    assert (ratio > 1.2).all() and (ratio < 2).all()


def test_a_weight_is_a_repetition_and_order_does_not_matter(rows, rng):
    X, y = rows
    w = rng.integers(0, 4, len(X))
    repeated = draw_pseudo_outliers(np.repeat(X, w, axis=0), np.repeat(y, w), None, 0, n=40)
    weighted = draw_pseudo_outliers(X, y, w.astype(float), 0, n=40)
    order = rng.permutation(len(X))
    shuffled = draw_pseudo_outliers(X[order], y[order], w[order].astype(float), 0, n=40)
    for kind in KINDS:
        np.testing.assert_allclose(weighted[kind], repeated[kind], rtol=1e-12)
        np.testing.assert_allclose(weighted[kind], shuffled[kind], rtol=1e-12)


def test_one_class_gives_pseudo_outliers_too(rows):
    X, _ = rows
    assert set(draw_pseudo_outliers(X, np.zeros(len(X)), None, 0, n=5)) == set(KINDS)


@pytest.mark.parametrize(
    "X",
    [
        np.array([["a", "b"], ["c", "d"]]),
        np.full((4, 2), np.nan),
        [[1.0, 2.0], [3.0, 4.0]],
        np.zeros((3, 2, 2)),
    ],
    ids=["text", "nan", "list", "3-d"],
)
def test_what_is_no_finite_array_of_numbers_gives_none(X):
    assert draw_pseudo_outliers(X, np.arange(len(X)), None, 0) == {}
