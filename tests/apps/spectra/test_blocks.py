"""BlockStatistics: against plain loops, in the paper's order, and what it refuses."""

import math

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl.apps.spectra import BlockStatistics, EnergyNormalizer, toy_spectra


@parametrize_with_checks([BlockStatistics(1)])
def test_scikit_learn(estimator, check):
    check(estimator)


def naive(row, n_blocks):
    size = math.ceil(len(row) / n_blocks)
    blocks = [row[i * size : (i + 1) * size].astype(np.float64) for i in range(n_blocks)]
    starts = [i * size for i in range(n_blocks)]
    return np.concatenate(
        [
            [b.mean() for b in blocks],
            [b.var() for b in blocks],
            [s + b.argmax() for s, b in zip(starts, blocks, strict=True)],
            [s + b.argmin() for s, b in zip(starts, blocks, strict=True)],
            [b.max() for b in blocks],
            [b.min() for b in blocks],
        ]
    )


@pytest.mark.parametrize(("pixels", "n_blocks"), [(3000, 50), (3000, 1), (2999, 50), (103, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_loops(pixels, n_blocks, dtype):
    flux = EnergyNormalizer().fit_transform(toy_spectra(100).flux)[:, :pixels].astype(dtype)
    found = BlockStatistics(n_blocks).fit_transform(flux)
    assert found.shape == (100, 6 * n_blocks)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, [naive(row, n_blocks) for row in flux], rtol=1e-6)


def test_order_of_the_paper():
    blocks = BlockStatistics().fit(np.ones((1, 3000)))
    names = blocks.get_feature_names_out()
    assert len(names) == 300
    statistics = ["mean", "variance", "argmax", "argmin", "max", "min"]
    assert list(names[::50]) == [f"block_{s}_0" for s in statistics]
    flux = np.zeros((1, 3000))
    flux[0, 2999], flux[0, 60] = 6.0, -3.0
    found = dict(zip(names, blocks.transform(flux)[0], strict=True))
    assert (found["block_argmax_49"], found["block_max_49"]) == (2999, 6)
    assert (found["block_argmin_1"], found["block_min_1"]) == (60, -3)
    # Of equal pixels the first counts; the variance divides by the 60 pixels.
    assert (found["block_argmin_49"], found["block_argmax_1"]) == (2940, 61)
    assert found["block_variance_49"] == pytest.approx(36 * 59 / 60**2)


def test_variance_far_below_the_resolution_of_squares_in_float32():
    noise = np.random.default_rng(0).normal(0, 1e-5, (20, 600)).astype(np.float32)
    flux = np.float32(0.02) + noise
    found = BlockStatistics(10).fit_transform(flux)[:, 10:20]
    expected = flux.astype(np.float64).reshape(20, 10, 60).var(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_blocks", "error", "message"),
    [
        (0, ValueError, "n_blocks must be an integer >= 1, got 0"),
        (2.0, TypeError, r"n_blocks must be an integer >= \d, got 2\.0"),
        (50, ValueError, "n_blocks=50 blocks of 2 pixels cannot.*51 pixels of X; .*n_blocks=26"),
        (52, ValueError, "n_blocks=52 .*choose n_blocks=51"),
    ],
)
def test_blocks_that_cannot_be_filled(n_blocks, error, message):
    with pytest.raises(error, match=message):
        BlockStatistics(n_blocks).fit(np.ones((2, 51)))
