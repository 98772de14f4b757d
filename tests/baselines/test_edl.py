from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dipedl.baselines import EDL, REDL  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.networks import MLP, LeNet5, Training  # noqa: E402

TRAINING = Training(epochs=8, batch_size=64, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)


@pytest.fixture(scope="module")
def data():
    return load_digits()


@pytest.mark.parametrize("loss", ["mse", "log", "digamma"])
@pytest.mark.parametrize("evidence", ["softplus", "exp"])
def test_every_loss_and_evidence_learns(loss, evidence, data):
    model = EDL(MLP((64, 32)), TRAINING, loss=loss, evidence=evidence)
    assert model.fit(data.X_train, data.y_train).score(data.X_test, data.y_test) > 0.93


def test_relu_evidence_loses_classes(data):
    """The published choice: a class whose unit gives nothing for any row gets no gradient."""
    dead, right = 0, []
    for seed in range(3):
        model = EDL(MLP((64, 32)), TRAINING, evidence="relu", random_state=seed)
        model.fit(data.X_train, data.y_train)
        dead += (model.logits(data.X_train) <= 0).all(axis=0).sum()
        right.append(model.score(data.X_test, data.y_test))
    assert dead >= 1 and max(right) > 0.5


@pytest.mark.parametrize("evidence", ["softplus", "exp", "relu"])
def test_concentration_is_one_plus_evidence(evidence, data):
    settings = replace(TRAINING, epochs=1)
    model = EDL(MLP((16,)), settings, evidence=evidence).fit(data.X_train, data.y_train)
    logits = model.logits(data.X_test)
    e = {"softplus": np.logaddexp(0, logits), "exp": np.exp(logits), "relu": logits.clip(0)}
    d = model.predict_dirichlet(data.X_test)
    np.testing.assert_allclose(d.concentration, 1 + e[evidence], rtol=1e-12)
    total = e[evidence].sum(axis=1)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.uncertainty(data.X_test), -np.log(total), rtol=1e-9)
    np.testing.assert_allclose(d.vacuity, 8 / (8 + total), rtol=1e-12)


def test_the_loss_is_annealed(data):
    model = EDL(annealing_epochs=4, kl_weight=0.5)
    logits, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3
    start, half, end, later = (model._loss(logits, y, epoch=t) for t in (0, 2, 4, 9))
    without = EDL(kl_weight=0.0)._loss(logits, y, epoch=9)
    assert start == without and end == later
    torch.testing.assert_close(half - start, (end - start) / 2)
    assert end > start


@pytest.mark.parametrize(
    ("length", "weights"), [(1.0, [0, 1 / 7, 1]), (0.5, [0, 2 / 7, 1]), (0.0, [1] * 3)]
)
def test_a_share_of_the_epochs_ends_with_the_full_weight(length, weights):
    """Of 8 epochs the first, second and last; an int would count epochs whatever the training."""
    for cls in (EDL, REDL):
        model = cls(training=replace(TRAINING, epochs=8), annealing_epochs=length)
        found = [model._annealed(epoch) for epoch in (0, 1, 7)]
        np.testing.assert_allclose(found, weights, rtol=1e-12)
        alone = cls(training=replace(TRAINING, epochs=1))
        assert alone._annealed(0) == 0.0


def test_misleading_evidence_is_pushed_out(data):
    """With the KL, evidence for wrong classes is less than without."""
    wrong = []
    for weight in (0.0, 1.0):
        model = EDL(MLP((64, 32)), TRAINING, kl_weight=weight, annealing_epochs=0)
        d = model.fit(data.X_train, data.y_train).predict_dirichlet(data.X_test)
        others = d.concentration - 1
        others[np.arange(len(others)), data.y_test] = 0
        wrong.append(others.sum(axis=1).mean())
    assert wrong[1] < 0.5 * wrong[0]


def test_no_evidence_at_all_is_infinitely_uncertain(data):
    model = EDL(MLP((16,)), replace(TRAINING, epochs=1), evidence="relu")
    model.fit(data.X_train, data.y_train)
    with torch.no_grad():
        model.module_.head[-1].bias -= 1e3
    assert (model.uncertainty(data.X_test) == np.inf).all()
    np.testing.assert_array_equal(model.uncertainty(data.X_test, "vacuity"), 1.0)
    np.testing.assert_array_equal(model.predict_proba(data.X_test), 1 / 8)


def test_published_configuration():
    model = EDL.as_published()
    assert model.backbone == LeNet5(dropout=0.5)
    assert (model.loss, model.evidence, model.annealing_epochs) == ("mse", "relu", 10)
    assert (model.training.epochs, model.training.weight_decay) == (50, 5e-3)
