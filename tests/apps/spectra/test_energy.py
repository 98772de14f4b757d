"""EnergyNormalizer: by its formula, as a member of scikit-learn, and what it refuses."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl.apps.spectra import EnergyNormalizer, toy_spectra


def expected_failures(estimator):
    return {"check_estimators_dtypes": "its integers have rows of zeros, which are refused"}


@parametrize_with_checks([EnergyNormalizer()], expected_failed_checks=expected_failures)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_formula_row_by_row(dtype):
    # More rows than one slice holds.
    flux = toy_spectra(200).flux.astype(dtype)
    kept = flux.copy()
    found = EnergyNormalizer(eps=0.5).fit_transform(flux)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(flux, kept)
    for row, x in zip(found, flux.astype(np.float64), strict=True):
        np.testing.assert_allclose(row, x / (np.linalg.norm(x) + 0.5), rtol=1e-6)


def test_large_flux_does_not_overflow_in_float32():
    flux = np.array([[3e30, 4e30]], dtype=np.float32)
    np.testing.assert_allclose(EnergyNormalizer().fit_transform(flux), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda x: 0 * x, r"energy 0 of row 150 of X is not above eps=1e-08"),
        (lambda x: 1e-17 * x / x.mean(), r"row 150 of X is not above eps.*rescale the flux"),
        (lambda x: 0 * x + 2, "row 150 of X is that of a constant: drop"),
        (lambda x: x - 2 * x.mean(), "row 150 of X must have a positive total flux, got -"),
        (lambda x: np.where(np.arange(len(x)) == 7, np.nan, x), r"got nan .* row 150, column 7"),
        (lambda x: np.where(np.arange(len(x)) == 9, np.inf, x), r"got inf .* row 150, column 9"),
        (lambda x: 1e200 * x, "energy inf of row 150 of X overflows: rescale"),
    ],
)
def test_a_spectrum_without_information_is_named(bad, message):
    flux = toy_spectra(160).flux.astype(np.float64)
    fitted = EnergyNormalizer().fit(flux)
    flux[150] = bad(flux[150])
    for call in (fitted.transform, EnergyNormalizer().fit):
        with pytest.raises(ValueError, match=message):
            call(flux)


@pytest.mark.parametrize("eps", [-1e-9, np.nan, np.inf])
def test_eps_out_of_range(eps):
    with pytest.raises(ValueError, match="eps must be finite and >= 0, got"):
        EnergyNormalizer(eps).fit([[1.0, 2.0]])


def test_eps_zero_takes_faint_spectra():
    np.testing.assert_allclose(EnergyNormalizer(0).fit_transform([[3e-17, 4e-17]]), [[0.6, 0.8]])
