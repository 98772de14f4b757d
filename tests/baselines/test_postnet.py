from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dipedl.baselines import PostNet  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.networks import MLP, ConvLin, Training  # noqa: E402

TRAINING = Training(epochs=8, batch_size=64, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)


@pytest.fixture(scope="module")
def data():
    return load_digits()


@pytest.fixture(scope="module")
def fitted(data):
    return PostNet(MLP((64, 32)), TRAINING).fit(data.X_train, data.y_train)


def test_pseudo_counts_are_class_counts_times_densities_of_the_latent_point(fitted, data):
    z = torch.from_numpy(fitted.transform(data.X_test)).float()
    assert z.shape[1] == 6
    with torch.no_grad():
        density = fitted.module_.flow(z).exp().numpy()
    counts = np.bincount(data.y_train)
    np.testing.assert_array_equal(fitted.budget_, counts)
    d = fitted.predict_dirichlet(data.X_test)
    np.testing.assert_allclose(d.concentration, 1 + counts * density, rtol=1e-4)
    np.testing.assert_allclose(d.vacuity, 8 / d.strength, rtol=1e-12)


@pytest.mark.parametrize(("budget", "expected"), [("total", 1010.0), (5, 5.0), (2.5, 2.5)])
def test_budget(budget, expected, data):
    settings = replace(TRAINING, epochs=1)
    model = PostNet(MLP((16,)), settings, budget=budget).fit(data.X_train, data.y_train)
    np.testing.assert_array_equal(model.budget_, np.full(8, expected))
    np.testing.assert_allclose(model.module_.log_budget.numpy(), np.log(expected), rtol=1e-6)


def test_far_away_the_prior_is_left_and_the_ranking_goes_on(fitted, data):
    direction = np.random.default_rng(0).normal(size=64)
    far = direction * np.array([1e2, 1e3, 1e4])[:, None]
    np.testing.assert_array_equal(fitted.uncertainty(far, "vacuity"), 1.0)
    np.testing.assert_allclose(fitted.predict_proba(far), 1 / 8)
    u = fitted.uncertainty(far)
    assert np.isfinite(u).all() and (np.diff(u) > 0).all()
    assert u[0] > fitted.uncertainty(data.X_test).max()
    # Labels do not tie either: the classes' pseudo-counts decide.
    np.testing.assert_array_equal(fitted.predict(far), fitted.logits(far).argmax(axis=1))


def test_a_last_batch_of_one_row(data):
    """Batch normalisation has no variance of one row."""
    settings = replace(TRAINING, epochs=1, batch_size=10)
    model = PostNet(MLP((16,)), settings).fit(data.X_train[:101], data.y_train[:101])
    assert np.isfinite(model.predict_proba(data.X_test)).all()


def test_validation_score_is_the_loss(data):
    X, y = data.X_train, data.y_train
    model = PostNet(MLP((16,)), replace(TRAINING, epochs=2))
    model.fit(X[:500], y[:500], validation=(X[500:], y[500:]))
    d = model.predict_dirichlet(X[500:])
    expected = d.expected_log_loss(y[500:]) - 1e-5 * d.differential_entropy
    np.testing.assert_allclose(model.history_.score[-1], expected.mean(), rtol=1e-4)


def test_published_configuration():
    model = PostNet.as_published()
    assert model.backbone == ConvLin()
    assert (model.latent_dim, model.n_layers, model.entropy_weight) == (6, 6, 1e-5)
    assert model.training.learning_rate == 5e-5 and model.training.restore_best
