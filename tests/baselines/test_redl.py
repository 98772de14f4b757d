from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dipedl.baselines import REDL, ReEDL  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.networks import MLP, ConvLin, Training  # noqa: E402

TRAINING = Training(epochs=8, batch_size=64, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)


@pytest.fixture(scope="module")
def data():
    return load_digits()


def test_the_prior_is_lambda2(data):
    model = REDL(MLP((16,)), replace(TRAINING, epochs=1), lambda2=0.3)
    d = model.fit(data.X_train, data.y_train).predict_dirichlet(data.X_test)
    e = np.logaddexp(0, model.logits(data.X_test))
    np.testing.assert_allclose(d.concentration, 0.3 + e, rtol=1e-12)
    np.testing.assert_array_equal(d.prior, np.full(8, 0.3))
    np.testing.assert_allclose(d.vacuity, 8 * 0.3 / (0.3 + e).sum(axis=1), rtol=1e-12)


def test_the_loss_by_hand():
    # softplus(log(e - 1)) = 1: evidence (1, 1); lambda1 = 0.5, lambda2 = 0.1
    logits = torch.full((1, 2), float(np.log(np.e - 1)), dtype=torch.float64)
    p = 1.1 / (1 + 0.5 + 0.2)
    model = REDL(lambda1=0.5, lambda2=0.1, kl_weight=0.0)
    got = model._loss(logits, torch.tensor([0]), epoch=3)
    np.testing.assert_allclose(got, (1 - p) ** 2 + p**2)


def test_without_its_kl_it_is_re_edl(data):
    X, y = data.X_train[:200], data.y_train[:200]
    settings = replace(TRAINING, epochs=2)
    one = REDL(MLP((16,)), settings, kl_weight=0.0).fit(X, y)
    other = ReEDL(MLP((16,)), settings).fit(X, y)
    np.testing.assert_array_equal(one.logits(X), other.logits(X))


def test_the_kl_is_annealed():
    logits, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3
    model = REDL(annealing_epochs=2)
    start, half, end = (model._loss(logits, y, epoch=t) for t in (0, 1, 2))
    torch.testing.assert_close(half - start, (end - start) / 2)
    assert end > start


def test_published_configuration():
    model = REDL.as_published()
    assert model.backbone == ConvLin() and (model.lambda1, model.lambda2) == (1.0, 0.1)
    t = model.training
    assert (t.epochs, t.batch_size, t.schedule, t.step_size, t.decay) == (60, 64, "step", 15, 0.1)
    assert t.restore_best and t.validate_every == 2
