import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dipedl.apps.spectra import paper_grid, resample


def edges_of(grid):
    middle = (grid[1:] + grid[:-1]) / 2
    return np.r_[grid[0] - (middle[0] - grid[0]), middle, grid[-1] + (grid[-1] - middle[-1])]


def naive(flux, ivar, usable, old, new):
    """Pixel by pixel, from the definition."""
    a, b = edges_of(old), edges_of(new)
    mean, inverse, bad = np.zeros(len(new)), np.zeros(len(new)), np.ones(len(new), bool)
    for j in range(len(new)):
        width = total = variance = 0.0
        for i in range(len(old)):
            overlap = min(a[i + 1], b[j + 1]) - max(a[i], b[j])
            if overlap > 0 and usable[i]:
                width += overlap
                total += overlap * flux[i]
                variance += overlap**2 / ivar[i]
        if width >= 0.5 * (b[j + 1] - b[j]) * (1 - 1e-9):
            mean[j], inverse[j], bad[j] = total / width, width**2 / variance, False
    mean[bad] = np.interp(new[bad], new[~bad], mean[~bad])
    return mean, inverse, bad


@st.composite
def cases(draw):
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    m, p = draw(st.integers(2, 25)), draw(st.integers(2, 25))
    old = 4000 + np.cumsum(rng.uniform(0.5, 3, m))
    new = rng.uniform(3990, 4010) + np.cumsum(rng.uniform(0.2, 6, p))
    usable = rng.random(m) > draw(st.sampled_from([0.0, 0.3]))
    return rng.normal(5, 3, m), rng.uniform(0.1, 4, m), usable, old, new


@given(cases())
def test_equals_the_sum_over_pairs_of_pixels(case):
    flux, ivar, usable, old, new = case
    # NaN and ivar 0 are as good a way to say unusable as the mask is
    flux = np.where(usable, flux, np.nan)
    if old[-1] < new[0] or old[0] > new[-1]:
        with pytest.raises(ValueError, match="wavelength must overlap with the grid"):
            resample(flux, old, new)
        return
    try:
        wanted = naive(flux, ivar, usable, old, new)
    except ValueError:  # nothing to interpolate from
        with pytest.raises(ValueError, match="flux must have usable pixels on the grid"):
            resample(flux, old, new, ivar=ivar)
        return
    got = resample(flux, old, new, ivar=ivar)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_flux_is_conserved(seed):
    """The flux of a grid that old pixels cover is theirs."""
    rng = np.random.default_rng(seed)
    new = np.sort(rng.uniform(4000, 5000, 30))
    inner = edges_of(new)
    old = np.r_[3000, np.sort(rng.uniform(3000, 6000, 500)), 6001]
    flux = rng.normal(0, 10, len(old))
    mean, _, bad = resample(flux, old, new)
    assert not bad.any()
    # cut at the outer edges of the grid, as a histogram would be
    a = np.clip(edges_of(old), inner[0], inner[-1])
    np.testing.assert_allclose((mean * np.diff(inner)).sum(), (flux * np.diff(a)).sum(), rtol=1e-9)


def test_noise_is_as_large_as_the_variances_say():
    rng = np.random.default_rng(0)
    old, new = 10 ** np.linspace(3.58, 3.97, 900), np.linspace(3900, 9000, 200)
    sigma = np.linspace(0.5, 4, len(old))
    flux, ivar, mask = resample(
        rng.normal(0, sigma, (4000, len(old))), old, new, ivar=np.tile(sigma**-2, (4000, 1))
    )
    assert not mask.any()
    measured = flux.var(axis=0) * ivar[0]
    # 4000 draws: relative error of a variance sqrt(2 / 4000) = 0.022
    np.testing.assert_allclose(measured, 1, atol=5 * 0.0224)


def test_same_grid_changes_nothing():
    rng = np.random.default_rng(1)
    flux, ivar = rng.normal(size=(3, 3000)), rng.uniform(1, 2, (3, 3000))
    got = resample(flux, paper_grid(), paper_grid(), ivar=ivar)
    np.testing.assert_allclose(got.flux, flux, atol=1e-9)
    np.testing.assert_allclose(got.ivar, ivar, rtol=1e-6)
    assert not got.mask.any()


def test_rows_do_not_know_each_other():
    rng = np.random.default_rng(2)
    old = np.linspace(3800, 9200, 700)
    flux, mask = rng.normal(size=(4, 700)), rng.random((4, 700)) < 0.4
    together = resample(flux, old, paper_grid()[::10], mask=mask)
    assert together.mask.any() and together.ivar is None
    for i in range(4):
        alone = resample(flux[i], old, paper_grid()[::10], mask=mask[i])
        np.testing.assert_array_equal(together.flux[i], alone.flux)
        np.testing.assert_array_equal(together.mask[i], alone.mask)


def test_beyond_the_ends_values_are_repeated_and_marked():
    flux, ivar, mask = resample([1.0, 2, 3], [5.0, 6, 7], np.arange(2.0, 11), ivar=[1.0, 1, 1])
    np.testing.assert_array_equal(flux, [1, 1, 1, 1, 2, 3, 3, 3, 3])
    np.testing.assert_array_equal(mask, [1, 1, 1, 0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(ivar, [0, 0, 0, 1, 1, 1, 0, 0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wavelength": [1.0, 3.0, 2.0]}, "wavelength must be an increasing array"),
        ({"grid": [4.0]}, "grid must be an increasing array of at least 2"),
        ({"grid": [10.0, 11.0]}, r"wavelength must overlap with the grid 10-11, got 1-3"),
        ({"flux": [1.0, 2.0]}, r"flux must have shape \(\.\.\., 3\), got \(2,\)"),
        ({"ivar": [[1.0, 1.0, 1.0]]}, r"ivar must have shape \(3,\), got \(1, 3\)"),
        ({"mask": [True]}, r"mask must have shape \(\.\.\., 3\)|mask must have shape \(3,\)"),
        ({"mask": [True] * 3}, "flux must have usable pixels on the grid 1-2, got none"),
    ],
)
def test_bad_input(change, message):
    given = {"flux": [1.0, 2.0, 3.0], "wavelength": [1.0, 2.0, 3.0], "grid": [1.0, 2.0]}
    with pytest.raises(ValueError, match=message):
        resample(**(given | change))


def test_a_row_without_usable_pixels_is_named():
    flux = np.ones((3, 4))
    flux[2] = np.nan
    with pytest.raises(ValueError, match="flux of row 2 must have usable pixels"):
        resample(flux, np.arange(4.0), [1.0, 2.0])
