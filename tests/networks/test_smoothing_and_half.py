"""Label smoothing of `TorchClassifier`, and bfloat16 on the CPU."""

import numpy as np
import pytest
from scipy.special import log_softmax

torch = pytest.importorskip("torch")


from dipedl.networks import MLP, TorchClassifier, Training  # noqa: E402

QUICK = Training(epochs=3, batch_size=16, learning_rate=0.01, device="cpu", n_jobs=1)


def blobs(n=90, k=3):
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    return rng.normal(size=(n, 4)) + 3 * np.eye(4)[y], y


def test_smoothed_loss_by_its_definition():
    outputs = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 1, 2, 3, 4, 0, 1])
    for share in (0.0, 0.3):
        target = (1 - share) * np.eye(5)[y.numpy()] + share / 5
        expected = -(target * log_softmax(outputs.numpy(), axis=1)).sum(axis=1).mean()
        loss = TorchClassifier(MLP((4,)), label_smoothing=share)._loss(outputs, y, epoch=0)
        assert float(loss) == pytest.approx(expected, rel=1e-12)


def test_validation_score_is_not_smoothed():
    X, y = blobs()
    model = TorchClassifier(MLP((8,)), QUICK, label_smoothing=0.5, precision="float64")
    model.fit(X[:60], y[:60], (X[60:], y[60:]))
    log_p = np.log(model.predict_proba(X[60:]))
    assert model.history_.score[-1] == pytest.approx(-log_p[range(30), y[60:]].mean(), rel=1e-5)


def test_half_precision_trains_as_well():
    X, y = blobs(180)
    scores, found = [], []
    for amp in (False, True):
        training = Training(
            epochs=20, batch_size=16, learning_rate=0.01, device="cpu", amp=amp, n_jobs=1
        )
        model = TorchClassifier(MLP((16,)), training).fit(X[:90], y[:90])
        scores.append(model.score(X[90:], y[90:]))
        found.append(model.predict_proba(X[90:]))
    assert min(scores) > 0.9 and abs(scores[0] - scores[1]) < 0.04
    assert 0 < np.abs(found[0] - found[1]).max() < 0.1  # another run, but nearly the same one
