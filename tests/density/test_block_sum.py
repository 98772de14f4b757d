"""BlockSumDensity against the sum written out, and against the joint density it stands for."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from dipedl.density import BlockSumDensity, GaussianDensity, GDADensity, KernelDensity, KNNDensity
from dipedl.testing import check_density
from dipedl.testing.densities import check_sample_weight_is_repetition, density_checks

WIDTHS = [3, 1, 2]
SLICES = [slice(0, 3), slice(3, 4), slice(4, 6)]


@pytest.fixture
def rows(rng):
    y = np.arange(120) % 3
    return rng.normal(size=(120, 6)) * np.arange(1, 7) + y[:, None], y


@pytest.mark.parametrize("density", [GDADensity(), GaussianDensity(), KNNDensity(5)])
def test_naive_sum(rows, density):
    X, y = rows
    total = sum(clone(density).fit(X[:, s], y).score_samples(X[:, s]) for s in SLICES)
    fitted = BlockSumDensity(WIDTHS, density).fit(X, y)
    np.testing.assert_allclose(fitted.score_samples(X), total, rtol=1e-12)
    np.testing.assert_allclose(fitted.block_scores(X).sum(axis=1), total, rtol=1e-12)
    assert [range(6)[b] for b in fitted.blocks_] == [range(6)[b] for b in SLICES]


def test_of_independent_blocks_it_is_the_joint_density(rows):
    """A diagonal Gaussian is the product of its columns."""
    X, _ = rows
    joint = GaussianDensity("diag", None).fit(X)
    total = BlockSumDensity(None, GaussianDensity(shrinkage=None)).fit(X)
    np.testing.assert_allclose(total.score_samples(X), joint.score_samples(X), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_standardised_by_held_out_scores(rows, rng, weighted):
    X, y = rows
    weights = rng.integers(0, 3, len(X)).astype(float) if weighted else np.ones(len(X))
    given = weights if weighted else None
    kept = np.flatnonzero(weights)
    total = np.zeros(len(X))
    for s in SLICES:
        held = np.empty(len(kept))
        for train, test in KFold(4).split(kept):
            part = GDADensity().fit(X[kept[train], s], y[kept[train]], weights[kept[train]])
            held[test] = part.score_samples(X[kept[test], s])
        mean = np.average(held, weights=weights[kept])
        sd = np.sqrt(np.average((held - mean) ** 2, weights=weights[kept]))
        total += (GDADensity().fit(X[:, s], y, given).score_samples(X[:, s]) - mean) / sd
    fitted = BlockSumDensity(WIDTHS, cv=KFold(4)).fit(X, y, given)
    np.testing.assert_allclose(fitted.score_samples(X), total, rtol=1e-9)


@pytest.mark.parametrize("density", [GaussianDensity(), KernelDensity()], ids=str)
def test_the_contract_of_a_density(density):
    check_density(BlockSumDensity(None, density))


# Copies of a row are spread over the folds; a weighted row lies in one of them.
STANDARDISED = [c for c in density_checks() if c is not check_sample_weight_is_repetition]


@pytest.mark.parametrize("check", STANDARDISED, ids=lambda c: c.__name__)
def test_the_contract_with_cv(check):
    check(BlockSumDensity(None, GaussianDensity(), cv=3))


def test_it_integrates_to_one_where_its_parts_do():
    assert BlockSumDensity(None, GaussianDensity()).normalized
    assert not BlockSumDensity(None, KNNDensity()).normalized
    assert not BlockSumDensity(None, GaussianDensity(), cv=5).normalized
