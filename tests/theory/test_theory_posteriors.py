"""Section 2.2 and appendix C: posteriors and predictives of the categorical-Dirichlet models."""

import numpy as np
import pytest
from scipy.special import digamma

from dipedl import Dirichlet

pytest.importorskip("torch")

from theory_tools import assert_mean, icd_posterior

PRIOR = np.array([1.5, 2.0, 2.5])
M = 200_000


def labels_of(P, rng):
    """One label for each row of probabilities P (m, k): the generative model itself."""
    return (rng.random((len(P), 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, P.shape[1] - 1)


def simplex_grid(m=400):
    """Midpoints of a grid of cells that lie inside the triangle {p1 + p2 < 1}, shape (r, 3)."""
    edge = (np.arange(m) + 0.5) / m
    p, q = (side.ravel() for side in np.meshgrid(edge, edge))
    inside = p + q < 1 - 0.25 / m
    return np.stack([p, q, 1 - p - q], axis=1)[inside]


def covariate_indexed_posterior(X, y, X_new):
    """Dir(PRIOR + label counts at x) for each row x of X_new: equal rows share their p."""
    counts = [np.bincount(y[(np.asarray(X) == x).all(axis=1)], minlength=3) for x in X_new]
    return Dirichlet(np.broadcast_to(PRIOR, (len(counts), 3)), prior=PRIOR).update(counts)


def moments_of(d):
    """Mean by the library and mean logarithm of the class probabilities, (n, k) each."""
    return d.mean, digamma(d.concentration) - digamma(d.strength)[:, None]


def test_lemma_c_1_expectation_of_the_dirichlet(rng):
    """If p ~ Dir(alpha) then E[p_k] = alpha_k / alpha_0: normalised Gamma draws, made here."""
    gammas = rng.standard_gamma(np.broadcast_to(PRIOR, (M, 3)))
    assert_mean(gammas / gammas.sum(axis=1, keepdims=True), Dirichlet(PRIOR[None]).mean[0])


@pytest.mark.parametrize("label", [0, 2])
def test_proposition_2_2_posterior_of_the_icd_model(label, rng):
    """The posterior of p_i given Y_i is Dir(alpha + e_{Y_i}).

    Simulate (p, Y) from the model and keep the draws with Y = label: exact posterior draws.
    """
    P = rng.dirichlet(PRIOR, M)
    kept = P[labels_of(P, rng) == label]
    mean, mean_log = moments_of(icd_posterior(np.array([label]), PRIOR))
    assert_mean(kept, mean[0])
    assert_mean(np.log(kept), mean_log[0])


def test_proposition_2_2_posterior_factorises_over_observations(rng):
    """Given Y_1 and Y_2, p_1 and p_2 are independent: their cross-covariance is zero."""
    P = rng.dirichlet(PRIOR, (M, 2))
    Y = np.stack([labels_of(P[:, i], rng) for i in range(2)], axis=1)
    kept = P[(Y == [0, 2]).all(axis=1)]
    posterior = icd_posterior(np.array([0, 2]), PRIOR)
    assert_mean(kept, posterior.mean)
    centred = kept - posterior.mean
    assert_mean(centred[:, 0, :, None] * centred[:, 1, None, :], np.zeros((3, 3)))


def test_proposition_2_2_predictive_of_the_icd_model_ignores_the_data(rng):
    """Y_{n+1} given Y_{1:n} is Cat(alpha / alpha_0), whatever was observed."""
    P = rng.dirichlet(PRIOR, (M, 3))
    Y = np.stack([labels_of(P[:, i], rng) for i in range(3)], axis=1)
    for observed in ([0, 0], [2, 1]):
        new = Y[(Y[:, :2] == observed).all(axis=1), 2]
        assert_mean(np.eye(3)[new], Dirichlet(PRIOR[None]).mean[0])


@pytest.mark.parametrize("nu", [0.5, 1.0, 7.0])
def test_proposition_2_7_posterior_of_the_tempered_icd_model(nu):
    """Prior times p_y^nu, normalised by quadrature over the simplex, is Dir(alpha + nu e_y)."""
    P = simplex_grid()
    kernel = (P ** (PRIOR - 1)).prod(axis=1) * P[:, 1] ** nu
    weights = kernel / kernel.sum()
    posterior = icd_posterior(np.array([1]), PRIOR, nu=nu)
    # the midpoint rule on 400 cells a side: relative error of the order of 1 / 400^1.5
    np.testing.assert_allclose(posterior.mean[0], weights @ P, rtol=1e-3)
    np.testing.assert_allclose(moments_of(posterior)[1][0], weights @ np.log(P), rtol=2e-3)
    log_ratio = np.log(kernel) - Dirichlet(
        np.broadcast_to(posterior.concentration, P.shape)
    ).log_prob(P)
    # the same shape everywhere, not only the same moments
    assert np.ptp(log_ratio) < 1e-9


def test_proposition_2_7_predictive_of_the_tempered_icd_model_ignores_the_data(rng):
    """Weights p_1^nu for what was observed leave the mean of a new p where the prior had it."""
    P = rng.dirichlet(PRIOR, (M, 2))
    assert_mean(P[:, 1], Dirichlet(PRIOR[None]).mean[0], weights=P[:, 0, 2] ** 3.0)


def test_definition_2_6_is_a_pseudo_likelihood():
    """p_y^nu does not sum to one over y; normalised, it would leave the Dirichlet family."""
    nu, P = 3.0, simplex_grid()
    assert (P**nu).sum(axis=1).max() < 1
    kernel = (P ** (PRIOR - 1)).prod(axis=1) * P[:, 1] ** nu / (P**nu).sum(axis=1)
    weights = kernel / kernel.sum()
    mean, square = weights @ P, weights @ P**2
    # a Dirichlet has one strength: mean (1 - mean) / variance - 1 is the same for every class
    strength = mean * (1 - mean) / (square - mean**2) - 1
    assert np.ptp(strength) > 0.5


def test_proposition_c_3_posterior_of_the_covariate_indexed_model(rng):
    """Observations at one x share their p: the posterior is Dir(alpha + label counts at x).

    Prior draws of the p of each distinct x, weighted by the likelihood of all labels.
    """
    X, y = np.array([[0], [0], [0], [1], [1]]), np.array([0, 2, 2, 1, 1])
    P = rng.dirichlet(PRIOR, (M, 2))
    weights = P[:, 0, 0] * P[:, 0, 2] ** 2 * P[:, 1, 1] ** 2
    posterior = covariate_indexed_posterior(X, y, [[0], [1]])
    mean, mean_log = moments_of(posterior)
    assert_mean(P, mean, weights)
    assert_mean(np.log(P), mean_log, weights)


def test_proposition_c_3_predictive_of_the_covariate_indexed_model(rng):
    """Y_{n+1} at x is Cat((alpha + c_x) / (alpha_0 + S_x)), and the prior's mean at a new x."""
    P = rng.dirichlet(PRIOR, (2 * M, 2))  # p at x = 0, and at a new x
    Y = np.stack([labels_of(P[:, 0], rng) for _ in range(3)], axis=1)
    seen = (Y[:, :2] == [0, 2]).all(axis=1)
    predictive = covariate_indexed_posterior([[0], [0]], np.array([0, 2]), [[0], [9]]).mean
    assert_mean(np.eye(3)[Y[seen, 2]], predictive[0])
    assert_mean(np.eye(3)[labels_of(P[seen, 1], rng)], predictive[1])


def test_proposition_c_3_shares_nothing_where_x_is_continuous(rng):
    """No two continuous x are equal: each training point has its own label only, a new x none."""
    X, y = rng.normal(size=(500, 2)), rng.integers(0, 3, 500)
    at_train = covariate_indexed_posterior(X, y, X)
    np.testing.assert_array_equal(at_train.concentration, icd_posterior(y, PRIOR).concentration)
    near = covariate_indexed_posterior(X, y, X + 1e-9)
    np.testing.assert_array_equal(near.mean, np.broadcast_to(Dirichlet(PRIOR[None]).mean, (500, 3)))
