"""Gaussians of directions and lengths, beside `GDADensity` of the same coordinates."""

import numpy as np
import pytest
import torch
from torch import nn

from dipedl.density import GDADensity
from dipedl.pretrained import ClassGaussians, DIPModule

K = 3


def rows(n=300, p=8, seed=0):
    """Rows of three directions, each of a length of its own."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = (4 * np.eye(K, p)[y] + rng.normal(size=(n, p))) * rng.lognormal(0.0, 0.7, (n, 1))
    return torch.as_tensor(X), torch.as_tensor(y)


def fitted(X, y, covariance="full", dtype=torch.float64):
    density = ClassGaussians(covariance, coordinates="polar", dtype=dtype)
    for part in range(4):
        density.update(X[part::4], y[part::4], K)
    return density.finish()


def coordinates(X):
    length = np.sqrt((X**2).sum(axis=1, keepdims=True))
    return np.hstack([X / np.where(length > 0, length, 1.0), np.log(1 + length)])


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, K)).double().eval()


def module(X, y, **settings):
    density = ClassGaussians(coordinates="polar", dtype=torch.float64)
    made = DIPModule(mlp(), density=density, **settings)
    return made.fit_density([(X[:200], y[:200])], calibration=[(X[200:], y[200:])])


@pytest.mark.parametrize(
    ("covariance", "named"), [("full", "full"), ("tied", "tied"), ("diagonal", "diag")]
)
def test_gda_density_of_directions_and_log_lengths(covariance, named):
    (X, y), (new, _) = rows(), rows(seed=1)
    theirs = GDADensity(named).fit(coordinates(X.numpy()), y.numpy())
    found = fitted(X, y, covariance)(new)
    np.testing.assert_allclose(found, theirs.score_samples(coordinates(new.numpy())), rtol=1e-9)


def test_log_density_falls_with_distance_from_all_rows():
    X, y = rows()
    away = X[:1].float() * 10.0 ** torch.arange(2, 30)[:, None]
    scores = fitted(X, y, dtype=torch.float32)(away)
    assert (scores[:16].diff() < 0).all()
    # beyond the range of float32
    assert scores[-1] == -torch.inf


def test_a_row_of_zeros_is_the_origin():
    (X, y), zero = rows(), torch.zeros(1, 8, dtype=torch.float64)
    theirs = GDADensity().fit(coordinates(X.numpy()), y.numpy())
    np.testing.assert_allclose(fitted(X, y)(zero), theirs.score_samples(np.zeros((1, 9))))


def test_the_number_of_features_is_that_of_the_network():
    X, y = rows()
    density = fitted(X, y)
    assert density.n_features_ == 8
    with pytest.raises(ValueError, match="features must have 8 columns"):
        density(X[:, :7])
    with pytest.raises(ValueError, match=r"number of features must stay 8 .* got 7"):
        density.update(X[:, :7], y, K)


def test_contributions_sum_to_the_distance_and_name_the_length():
    X, y = rows()
    made = module(X, y, score="density")
    (part,) = made.explain(1e6 * X[:1], top=20)[0].parts
    names = [entry["name"] for entry in part["features"]]
    assert sorted(names) == [*(f"feature {j}" for j in range(5)), "log(1 + length)"]
    assert names[0] == "log(1 + length)"
    density = made.density_
    features = made.network[:-1](1e6 * X[:1])
    nearest = density.distance(density.centre(features)).min()
    parts = sum(entry["contribution"] for entry in part["features"])
    assert parts == pytest.approx(float(nearest))
