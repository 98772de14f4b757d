"""The network of DAEDL on LAMOST, against plain one-dimensional layers with its weights."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dipedl.networks import ConvLin1d, TorchClassifier, Training  # noqa: E402
from dipedl.networks.spectral_norm import remove_spectral_norm  # noqa: E402


def build(backbone, d=806, k=2):
    return backbone.build((1, 1, d), k, torch.Generator().manual_seed(0))


def plain(network):
    """Conv1d, ReLU and MaxPool1d(4) three times, then 768-64-64-64-2."""
    layers = []
    for before in (1, 64, 64):
        layers += [nn.Conv1d(before, 64, 5, padding=2), nn.ReLU(), nn.MaxPool1d(4)]
    layers += [nn.Flatten()]
    for before in (768, 64, 64):
        layers += [nn.Linear(before, 64), nn.ReLU()]
    reference = nn.Sequential(*layers, nn.Linear(64, 2))
    for theirs, mine in zip(reference.parameters(), network.parameters(), strict=True):
        theirs.data = mine.data.reshape(theirs.shape)
    return reference


@pytest.mark.parametrize(("features", "width"), [("hidden", 64), ("conv", 768)])
def test_it_equals_plain_layers(features, width):
    network = build(ConvLin1d(features=features))
    X = torch.randn(8, 806, generator=torch.Generator().manual_seed(1))
    reference = plain(network)
    torch.testing.assert_close(network(X), reference(X[:, None]), rtol=1e-5, atol=1e-6)
    inner = reference[:10] if features == "conv" else reference[:-1]
    torch.testing.assert_close(network.features(X), inner(X[:, None]), rtol=1e-5, atol=1e-6)
    assert network.n_features == width == network.features(X).shape[1]
    expected = (5 * 64 + 64) + 2 * (64 * 64 * 5 + 64) + (768 * 64 + 64) + 2 * (64 * 64 + 64) + 130
    assert sum(p.numel() for p in network.parameters()) == expected


def test_spectral_normalisation_is_on_every_layer():
    network = build(ConvLin1d(spectral_norm=True))
    network.train()
    for _ in range(30):
        network(torch.randn(4, 806, generator=torch.Generator().manual_seed(2)))
    layers = [
        x for x in remove_spectral_norm(network).modules() if isinstance(x, nn.Conv2d | nn.Linear)
    ]
    norms = [float(torch.linalg.matrix_norm(x.weight.detach().flatten(1), 2)) for x in layers]
    assert len(norms) == 7
    np.testing.assert_allclose(norms, 1.0, atol=0.03)


def test_it_trains_and_refuses_short_rows():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = rng.normal(size=(120, 70)) + 2 * np.outer(2 * y - 1, np.sin(np.arange(70) / 5))
    training = Training(6, 16, learning_rate=5e-3, schedule="one-cycle", n_jobs=1)
    model = TorchClassifier(ConvLin1d(), training).fit(X[:80], y[:80])
    assert model.score(X[80:], y[80:]) > 0.95
    with pytest.raises(ValueError, match="rows of at least 64 numbers, got 63; use MLP"):
        build(ConvLin1d(), 63)
    with pytest.raises(ValueError, match="features must be one of"):
        ConvLin1d(features="last")
