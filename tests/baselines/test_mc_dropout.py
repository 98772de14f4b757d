"""MC dropout: the samples are those of the network with units removed by hand."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import nn

from dipedl.baselines import MCDropout
from dipedl.baselines.mc_dropout import _with_dropout, sample_outputs
from dipedl.networks import MLP, FastCNN, Training
from dipedl.networks.backbones import Network

QUICK = Training(epochs=5, batch_size=16, learning_rate=0.02, n_jobs=1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return np.clip(rng.uniform(size=(3, 16))[y] + rng.normal(scale=0.1, size=(60, 16)), 0, 1), y


@pytest.fixture(scope="module")
def fitted(data):
    return MCDropout(MLP((20, 12), dropout=0.4), QUICK, precision="float64").fit(*data)


def test_mean_and_mutual_information_of_the_samples(fitted, data):
    P = fitted.sample_proba(data[0])
    assert P.shape == (50, 60, 3)
    np.testing.assert_allclose(fitted.predict_proba(data[0]), P.mean(axis=0), rtol=1e-12)

    def entropy(p):
        return -(p * np.log(p)).sum(axis=-1)

    naive = entropy(P.mean(axis=0)) - entropy(P).mean(axis=0)
    np.testing.assert_allclose(fitted.uncertainty(data[0]), naive, atol=1e-12)
    total = fitted.uncertainty(data[0], kind="entropy")
    np.testing.assert_allclose(total, entropy(P.mean(axis=0)), rtol=1e-10)
    largest = fitted.uncertainty(data[0], kind="max_prob")
    np.testing.assert_allclose(largest, 1 - P.mean(axis=0).max(axis=1), atol=1e-12)
    assert (fitted.uncertainty(data[0]) > 1e-4).all()


def test_a_sample_is_the_network_without_some_units(fitted, data):
    """Independent of the code: solve for the units that a pass has kept, and compare all rows."""
    first, second, last = (m for m in fitted.module_.modules() if isinstance(m, nn.Linear))
    generator = torch.Generator().manual_seed(fitted.sample_seeds_[7])
    keep = [torch.rand(1, n, generator=generator).numpy() >= 0.4 for n in (20, 12)]
    weights = [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in (first, second, last)]
    h = data[0]
    for (W, b), kept in zip(weights, [*keep, None], strict=True):
        h = h @ W.T + b
        if kept is not None:
            h = np.maximum(h, 0) * kept / 0.6
    np.testing.assert_allclose(fitted.sample_proba(data[0])[7], softmax(h, axis=1), rtol=1e-9)


def test_channels_are_dropped_whole():
    body = nn.Sequential(nn.Dropout2d(0.5), nn.Flatten())
    network = Network((6, 2, 2), body, nn.Identity(), 24).eval()
    outputs = sample_outputs(network, torch.ones(2, 24), [1, 2, 3]).reshape(3, 2, 6, 4)
    assert (outputs == outputs[..., :1]).all()
    assert 0 < (outputs == 0).float().mean() < 1


class Mirrored(Network):
    """Averages over both directions of a row, around a body with dropout."""

    def features(self, X):
        return (super().features(X) + super().features(X.flip(1))) / 2


def test_features_of_a_body_with_dropout_are_those_of_the_network():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU())
    network = Mirrored((1, 1, 6), body, nn.Linear(8, 2), 8).eval()
    X = torch.rand(5, 6)
    generator = torch.Generator().manual_seed(3)
    kept = [torch.rand(1, 8, generator=generator) >= 0.5 for _ in range(2)]
    halves = [
        (body[1](rows) * keep * 2).relu() for rows, keep in zip((X, X.flip(1)), kept, strict=True)
    ]
    expected = network.head((halves[0] + halves[1]) / 2)
    torch.testing.assert_close(sample_outputs(network, X, [3])[0], expected)


def test_the_network_itself_is_left_alone(fitted, data):
    kinds = [type(m) for m in fitted.module_.modules()]
    before = {k: v.clone() for k, v in fitted.module_.state_dict().items()}
    logits = fitted.logits(data[0])
    fitted.uncertainty(data[0])
    assert [type(m) for m in fitted.module_.modules()] == kinds
    assert not fitted.module_.training
    for name, value in fitted.module_.state_dict().items():
        assert torch.equal(value, before[name])
    np.testing.assert_array_equal(fitted.logits(data[0]), logits)


def test_batch_normalisation_stays_in_evaluation(data):
    """Statistics of the batch would make a row's answer depend on the other rows."""
    mc = MCDropout(FastCNN(width=4, dropout=0.3), QUICK, precision="float64").fit(*data)
    whole = mc.uncertainty(data[0])
    alone = [mc.uncertainty(row[None])[0] for row in data[0][:5]]
    np.testing.assert_allclose(alone, whole[:5], rtol=1e-9)
    np.testing.assert_allclose(mc.uncertainty(data[0][::-1]), whole[::-1], rtol=1e-9)


def test_chunks_see_the_same_networks(fitted, data):
    """1200 rows are more than two chunks: copies of a row get the same answer in all of them."""
    X = np.tile(data[0], (20, 1))
    tiles = fitted.sample_proba(X).reshape(50, 20, 60, 3)
    np.testing.assert_allclose(tiles, np.broadcast_to(tiles[:, :1], tiles.shape), rtol=1e-10)


def test_the_passes_of_dropout_share_the_layers_before_it():
    backbone = MLP((12, 8, 6), dropout=0.5)
    X = np.random.default_rng(0).normal(size=(20, 54))
    model = MCDropout(backbone, Training(1, 10, n_jobs=1), n_samples=7, precision="float64")
    model.fit(X, np.arange(20) % 2)
    calls = []
    model.module_.body[1].register_forward_hook(lambda *given: calls.append(1))
    samples = model.sample_proba(X)
    assert len(calls) == 1
    # the reference: the whole network, once for each pattern
    for seed, sample in zip(model.sample_seeds_, samples, strict=True):
        generator = torch.Generator()
        whole = _with_dropout(model.module_, generator)
        generator.manual_seed(seed)
        logits = whole(torch.from_numpy(X)).detach().numpy()
        np.testing.assert_allclose(sample, softmax(logits, axis=1), rtol=1e-12)
