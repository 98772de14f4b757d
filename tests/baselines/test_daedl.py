from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")

from dipedl.baselines import DAEDL  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.density import GaussianMixtureDensity, GDADensity  # noqa: E402
from dipedl.networks import MLP, ConvLin, Training  # noqa: E402

TRAINING = Training(epochs=8, batch_size=64, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)


@pytest.fixture(scope="module")
def data():
    return load_digits()


@pytest.fixture(scope="module")
def fitted(data):
    return DAEDL(MLP((64, 32)), TRAINING).fit(data.X_train, data.y_train)


def test_concentration_is_that_of_logits_scaled_by_the_density(fitted, data):
    X = np.concatenate([data.X_test, data.ood["held_out"]])
    assert type(fitted.density_) is GDADensity
    gda = GDADensity().fit(fitted.transform(data.X_train), data.y_train)
    low, high = (f(gda.score_samples(fitted.transform(data.X_train))) for f in (np.min, np.max))
    q = np.maximum(gda.score_samples(fitted.transform(X)), low)
    scaled = ((q - low) / (high - low + 1e-12))[:, None] * fitted.logits(X)
    d = fitted.predict_dirichlet(X)
    np.testing.assert_allclose(d.concentration, np.exp(scaled), rtol=1e-4)
    np.testing.assert_allclose(fitted.uncertainty(X), -logsumexp(scaled, axis=1), rtol=1e-4)
    np.testing.assert_allclose(d.vacuity, np.minimum(8 / np.exp(scaled).sum(axis=1), 1), rtol=1e-4)


def test_far_from_the_data_it_is_the_uniform_dirichlet(fitted):
    far = np.full((3, 64), 1e4) * np.array([[1.0], [2.0], [-5.0]])
    d = fitted.predict_dirichlet(far)
    np.testing.assert_allclose(d.concentration, 1.0, rtol=1.01e-9)
    np.testing.assert_allclose(d.vacuity, 1.0, rtol=1.01e-9)
    # they tie in what ranks them, and do not in their labels
    np.testing.assert_array_equal(fitted.uncertainty(far), -np.log(8))
    best = fitted.predict_proba(far).argmax(axis=1)
    np.testing.assert_array_equal(best, fitted.logits(far).argmax(axis=1))
    assert best.any()


def test_a_fit_that_is_interrupted_does_not_answer_with_the_old_density(data):
    def stop(report):
        raise KeyboardInterrupt

    X, y = data.X_train[:200], data.y_train[:200]
    model = DAEDL(MLP((16,)), replace(TRAINING, epochs=2)).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, progress=stop)
    with pytest.raises(NotFittedError):
        model.predict_proba(X)


def test_the_density_may_be_another(data):
    settings = replace(TRAINING, epochs=1)
    mixture = GaussianMixtureDensity(3, random_state=0)
    model = DAEDL(MLP((16,)), settings, density=mixture).fit(data.X_train, data.y_train)
    assert isinstance(model.density_, GaussianMixtureDensity) and model.density_ is not mixture
    assert not hasattr(mixture, "mixture_")


def test_a_density_that_does_not_know_its_own_rows_is_refused(data):
    class Blind(BaseEstimator):
        def fit(self, X, y=None):
            return self

        def score_samples(self, X):
            return np.where(X[:, 0] > X[:, 0].min(), 0.0, -np.inf)

    model = DAEDL(MLP((16,)), replace(TRAINING, epochs=1), density=Blind())
    with pytest.raises(ValueError, match=r"density gave -inf for \d+ of the 1010 rows"):
        model.fit(data.X_train, data.y_train)


def test_the_loss_is_the_bayes_risk_and_a_constant_share_of_kl():
    logits, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3
    bare, half, whole = (DAEDL(kl_weight=w)._loss(logits, y, epoch=0) for w in (0.0, 0.05, 0.1))
    torch.testing.assert_close(half - bare, (whole - bare) / 2)
    assert DAEDL()._loss(logits, y, epoch=40) == half
    alpha = 1e-6 + logits.exp()
    misleading = torch.where(torch.nn.functional.one_hot(y, 3) > 0, 1.0, alpha)
    ones = torch.distributions.Dirichlet(torch.ones(6, 3))
    kl = torch.distributions.kl_divergence(torch.distributions.Dirichlet(misleading), ones)
    torch.testing.assert_close(half - bare, 0.05 * kl.mean(), rtol=1e-4, atol=1e-6)


def test_published_configuration():
    model = DAEDL.as_published()
    assert model.backbone == ConvLin(spectral_norm=True, features="conv")
    assert (model.training.schedule, model.training.decay) == ("exponential", 0.95)
    assert model.kl_weight == 0.05 and not model.training.restore_best
