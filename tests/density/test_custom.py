"""CustomDensity: torch distributions, objects without fit, objects with and without labels."""

import numpy as np
import pytest
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture

from dipedl.density import CustomDensity, GaussianDensity, GDADensity
from dipedl.density.base import log_density


class Normal:
    """A flow, as it were: fitted already, has log_prob only."""

    def log_prob(self, X):
        return stats.norm.logpdf(X).sum(axis=1)


class Both(Normal):
    def score_samples(self, X):
        return np.full(len(X), 7.0)


class Fitted:
    """No scikit-learn estimator; remembers what its fit was given."""

    def __init__(self):
        self.seen = None

    def fit(self, X):
        self.seen = X
        return self

    def score_samples(self, X):
        return -np.abs(X - self.seen.mean(axis=0)).sum(axis=1)


class Labelled(Fitted):
    def fit(self, X, y):
        self.labels = y
        return super().fit(X)


@pytest.fixture
def X(rng):
    return rng.normal(size=(20, 2))


def test_object_without_fit_is_taken_as_it_is(X):
    model = Normal()
    density = CustomDensity(model).fit(X)
    assert density.model_ is model
    np.testing.assert_array_equal(density.score_samples(X), stats.norm.logpdf(X).sum(axis=1))


def test_another_parameter_after_the_fit_changes_no_answer(X):
    density = CustomDensity(GaussianMixture()).fit(X)
    before = density.score_samples(X)
    for other in (None, Normal()):
        np.testing.assert_array_equal(density.set_params(model=other).score_samples(X), before)


def test_object_with_fit_is_copied_and_fitted(X):
    model = Fitted()
    density = CustomDensity(model).fit(X)
    assert model.seen is None
    assert density.model_ is not model
    expected = -np.abs(X - X.mean(axis=0)).sum(axis=1)
    np.testing.assert_array_equal(density.score_samples(X), expected)


def test_labels_go_to_a_fit_that_takes_them(X):
    y = np.arange(20) % 2
    assert np.array_equal(CustomDensity(Labelled()).fit(X, y).model_.labels, y)
    expected = GDADensity().fit(X, y).score_samples(X)
    got = CustomDensity(GDADensity()).fit(X, y).score_samples(X)
    np.testing.assert_array_equal(got, expected)


def test_scikit_learn_model(X):
    mixture = GaussianMixture(2, random_state=0)
    got = CustomDensity(mixture).fit(X).score_samples(X)
    np.testing.assert_array_equal(got, mixture.fit(X).score_samples(X))


def test_score_samples_goes_before_log_prob(X):
    assert (CustomDensity(Both()).fit(X).score_samples(X) == 7.0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_distribution(X, dtype):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, dtype)
    location = torch.tensor([1.0, -1.0], dtype=dtype, requires_grad=True)
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=dtype)
    normal = torch.distributions.MultivariateNormal(location, covariance)
    score = CustomDensity(normal, dtype=dtype).fit(X).score_samples(X)
    expected = stats.multivariate_normal([1, -1], covariance.numpy()).logpdf(X)
    assert isinstance(score, np.ndarray) and score.dtype == np.float64
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(score, expected, rtol=tolerance, atol=tolerance)


class Shifted(GaussianDensity):
    """A density of a user that changes the scores of one of ours, and nothing else."""

    def score_samples(self, X):
        return super().score_samples(X) - 5


@pytest.mark.parametrize("frozen", [False, True])
def test_scores_of_a_subclass_are_its_own(rng, frozen):
    X = rng.normal(size=(40, 2))
    density = Shifted().fit(X)
    expected = GaussianDensity().fit(X).log_density(X) - 5
    held = FrozenEstimator(density) if frozen else density
    np.testing.assert_array_equal(log_density(held, X), expected)
    np.testing.assert_allclose(log_density(GaussianDensity().fit(X), X), expected + 5, rtol=1e-12)
