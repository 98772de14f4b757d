"""SavitzkyGolay: against SciPy, by what it leaves unchanged, and where its values belong."""

import numpy as np
import pytest
from scipy.signal import savgol_filter
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl.apps.spectra import EnergyNormalizer, SavitzkyGolay, toy_spectra

PUBLISHED_TAPS = [-0.0875, 0.0375, 0.13125, 0.19375, 0.225]


# The checks use one to three columns, so no wider window.
@parametrize_with_checks([SavitzkyGolay(1, 0)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("window", "polyorder"), [(10, 3), (11, 3), (4, 1), (7, 2), (2, 1), (40, 5)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_scipy(window, polyorder, dtype):
    flux = EnergyNormalizer().fit_transform(toy_spectra(100).flux).astype(dtype)
    found = SavitzkyGolay(window, polyorder).fit_transform(flux)
    assert found.dtype == dtype
    tolerance = {np.float32: 1e-6, np.float64: 1e-12}[dtype]
    expected = [savgol_filter(row, window, polyorder) for row in flux.astype(np.float64)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_published_taps():
    taps = SavitzkyGolay().fit(np.ones((1, 10))).taps_
    np.testing.assert_allclose(taps, PUBLISHED_TAPS + PUBLISHED_TAPS[::-1], atol=1e-14)


def test_even_window_shifts_all_but_the_ends_by_half_a_pixel():
    t = np.arange(60.0)
    cubic = np.poly1d([2e-4, -0.01, 0.3, 1.0])
    found = SavitzkyGolay().fit_transform(cubic(t)[None, :])[0]
    np.testing.assert_allclose(found[5:-5], cubic(t + 0.5)[5:-5], rtol=1e-12)
    ends = np.r_[0:5, 55:60]
    np.testing.assert_allclose(found[ends], cubic(t)[ends], rtol=1e-12)


@pytest.mark.parametrize(("window", "used"), [(10, 11), (11, 11), (4, 5)])
def test_centred_leaves_cubics_where_they_are_and_is_symmetric(window, used):
    t = np.arange(60.0)
    cubic = np.poly1d([2e-4, -0.01, 0.3, 1.0])(t)[None, :]
    smoothing = SavitzkyGolay(window, centred=True).fit(cubic)
    assert smoothing.window_ == used
    np.testing.assert_allclose(smoothing.transform(cubic), cubic, rtol=1e-12)
    # The mirrored spectrum gives the mirrored answer: no shift of any signal.
    noise = np.random.default_rng(0).normal(size=(3, 60))
    np.testing.assert_allclose(
        smoothing.transform(noise[:, ::-1])[:, ::-1], smoothing.transform(noise), atol=1e-12
    )


def test_centred_equals_the_next_odd_window():
    flux = toy_spectra(5).flux
    np.testing.assert_array_equal(
        SavitzkyGolay(10, centred=True).fit_transform(flux), SavitzkyGolay(11).fit_transform(flux)
    )


def test_window_as_wide_as_the_spectrum():
    flux = np.random.default_rng(0).normal(size=(2, 9))
    np.testing.assert_allclose(
        SavitzkyGolay(9).fit_transform(flux), savgol_filter(flux, 9, 3, axis=1), atol=1e-12
    )


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"window": 0}, ValueError, "window must be an integer >= 1, got 0"),
        ({"window": 9.5}, TypeError, r"window must be an integer >= \d, got 9\.5"),
        ({"polyorder": -1}, ValueError, "polyorder must be an integer >= 0, got -1"),
        ({"polyorder": True}, TypeError, r"polyorder must be an integer >= \d, got True"),
        ({"window": 4, "polyorder": 4}, ValueError, "polyorder must be below window=4, got 4"),
        ({"window": 22}, ValueError, "20 feature.*minimum of 22"),
        ({"window": 20, "centred": True}, ValueError, "20 feature.*minimum of 21"),
    ],
)
def test_parameters_out_of_range(parameters, error, message):
    with pytest.raises(error, match=message):
        SavitzkyGolay(**parameters).fit(np.ones((2, 20)))


def test_nan_is_named():
    flux = toy_spectra(3).flux.copy()
    smoothing = SavitzkyGolay().fit(flux)
    flux[2, 5] = np.nan
    with pytest.raises(ValueError, match=r"got nan .* row 2, column 5; fill masked pixels"):
        smoothing.transform(flux)
