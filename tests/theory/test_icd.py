import numpy as np
import pytest

from dipedl.theory.icd import covariate_indexed_posterior, icd_posterior, icd_predictive


def test_tempered_posterior_and_its_vacuity():
    """Interpolation result of the paper: vacuity alpha0 / (alpha0 + nu) at every training point."""
    y, prior = np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0])
    for nu in (1.0, 10.0, 1000.0):
        d = icd_posterior(y, prior, nu=nu)
        np.testing.assert_allclose(d.concentration, prior + nu * np.eye(3)[y])
        np.testing.assert_allclose(d.vacuity, 6 / (6 + nu))


def test_posterior_by_numerical_integration():
    """The posterior mean of p under likelihood p_y^nu and a Beta prior, by quadrature."""
    a, b, nu = 1.5, 2.5, 3.0
    p = (np.arange(200_000) + 0.5) / 200_000
    weight = p ** (a - 1 + nu) * (1 - p) ** (b - 1)
    expected = (weight * p).sum() / weight.sum()
    d = icd_posterior(np.array([0]), np.array([a, b]), nu=nu)
    np.testing.assert_allclose(d.mean[0, 0], expected, rtol=1e-6)


def test_predictive_is_the_prior_mean():
    np.testing.assert_allclose(icd_predictive([1.0, 3.0]), [0.25, 0.75])


def test_covariate_indexed_against_a_naive_count(rng):
    X, y = rng.integers(0, 3, (60, 2)), rng.integers(0, 4, 60)
    X_new = np.array([[0, 0], [2, 1], [7, 7]])
    prior = np.array([1.0, 0.5, 2.0, 1.0])
    d = covariate_indexed_posterior(X, y, X_new, prior, nu=0.5)
    for i, x in enumerate(X_new):
        labels = y[(x == X).all(axis=1)]
        counts = np.bincount(labels, minlength=4)
        np.testing.assert_allclose(d.concentration[i], prior + 0.5 * counts)
    np.testing.assert_allclose(d.vacuity[2], 1.0)


def test_covariates_of_another_width_are_refused():
    with pytest.raises(ValueError):
        covariate_indexed_posterior(np.ones((3, 2)), np.zeros(3, int), np.ones((1, 3)), np.ones(2))


@pytest.mark.parametrize("y", [np.array([-1]), np.array([3]), np.array([True]), np.array([0.5])])
def test_labels_that_are_no_class_index_are_refused(y):
    with pytest.raises(ValueError, match="y must"):
        icd_posterior(y, np.ones(3))
