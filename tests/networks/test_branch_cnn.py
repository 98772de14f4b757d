"""The network of the paper on LAMOST: sizes layer by layer, and a plain one with its weights."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dipedl.networks import BranchCNN, TorchClassifier, Training  # noqa: E402

SMALL = BranchCNN((3, 5), channels=4, hidden=(8, 6))


def build(backbone=None, d=806, k=2, seed=0):
    backbone = BranchCNN() if backbone is None else backbone
    return backbone.build((1, 1, d), k, torch.Generator().manual_seed(seed))


def rows(n, d=806, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


class Plain(nn.Module):
    """The description to the letter: Conv1d, normalisation, ReLU, pooling, in that order."""

    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*self.branch(k)) for k in (3, 5, 7, 9, 11))
        dense = []
        for before, after in [(160 * 29, 128), (128, 64), (64, 32)]:
            dense += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
        self.dense, self.last = nn.Sequential(*dense), nn.Linear(32, 2)

    def branch(self, kernel):
        for before in (1, 32, 32):
            yield nn.Conv1d(before, 32, kernel, padding=kernel // 2, bias=False)
            yield from (nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(3, 3))

    def features(self, X):
        return self.dense(torch.cat([b(X[:, None]) for b in self.branches], dim=1).flatten(1))

    def forward(self, X):
        return self.last(self.features(X))


@pytest.fixture
def pair():
    """Ours and a plain one with the same parameters."""
    ours, plain = build(), Plain()
    mine, theirs = list(ours.state_dict().values()), plain.state_dict()
    assert len(mine) == len(theirs)
    for (name, value), source in zip(list(theirs.items()), mine, strict=True):
        theirs[name] = source.reshape(value.shape)
    plain.load_state_dict(theirs)
    return ours, plain


def test_it_has_the_parameters_of_the_paper():
    network = build()
    assert sum(p.numel() for p in network.parameters()) == 678_658
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    shapes = [tuple(layer.weight.shape) for layer in convolutions]
    assert shapes == [(32, b, 1, k) for k in (3, 5, 7, 9, 11) for b in (1, 32, 32)]
    assert all(layer.bias is None for layer in convolutions)
    linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    sizes = [(layer.in_features, layer.out_features) for layer in linear]
    assert sizes == [(4640, 128), (128, 64), (64, 32), (32, 2)]
    assert all(layer.bias is not None for layer in linear)


def test_a_row_shrinks_from_806_to_29_numbers():
    network, lengths = build(), []
    for layer in network.body[0].branches[4]:
        layer.register_forward_hook(lambda layer, given, out: lengths.append(out.shape[1:]))
    assert network.features(rows(2)).shape == (2, 32) and network.n_features == 32
    kept = [tuple(shape) for shape in lengths[::4] + lengths[2::4]]
    assert kept == [(32, 1, n) for n in (806, 268, 89)] + [(32, 1, n) for n in (268, 89, 29)]


def test_outputs_and_gradients_are_those_of_plain_convolutions(pair):
    # in float64: a bias before normalisation has no gradient but for rounding
    ours, plain = (network.double().train() for network in pair)
    X = rows(8).double()
    for network in (ours, plain):
        network(X).square().sum().backward()
    for mine, theirs in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(
            mine.grad.reshape(theirs.shape), theirs.grad, rtol=1e-6, atol=1e-9
        )
    # evaluated in float32, with the running statistics that both have from that batch
    ours, plain, X = ours.float().eval(), plain.float().eval(), X.float()
    torch.testing.assert_close(ours(X), plain(X), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.features(X), plain.features(X), rtol=1e-5, atol=1e-5)
    assert (ours.features(X) >= 0).all() and (ours.features(X) == 0).any()  # after the last ReLU


def test_weights_come_from_the_generator_and_backbones_are_values():
    state = torch.get_rng_state()
    first = build(SMALL, 60)
    assert torch.equal(torch.get_rng_state(), state)
    again, other = build(SMALL, 60), build(SMALL, 60, seed=1)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    assert not torch.equal(first.head[1].weight, other.head[1].weight)
    assert copy.deepcopy(SMALL) == SMALL == pickle.loads(pickle.dumps(SMALL))
    assert eval(repr(SMALL)) == SMALL and len({SMALL, copy.deepcopy(SMALL)}) == 1


def test_dropout_is_after_every_dense_relu():
    layers = [*build(BranchCNN(dropout=0.5)).body, *build(BranchCNN(dropout=0.5)).head]
    drops = [i for i, layer in enumerate(layers) if isinstance(layer, nn.Dropout)]
    assert len(drops) == 3 and all(layers[i].p == 0.5 for i in drops)
    assert all(isinstance(layers[i - 1], nn.ReLU) for i in drops)
    assert all(isinstance(layers[i + 1], nn.Linear) for i in drops)


@pytest.mark.parametrize("amp", [False, True])
def test_it_learns_where_a_line_is(amp):
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    X = rng.normal(size=(160, 54))
    X[np.arange(160), np.where(y == 1, 13, 40)] += 6.0
    training = Training(5, 16, learning_rate=1e-2, schedule="one-cycle", amp=amp, n_jobs=1)
    model = TorchClassifier(SMALL, training, image_shape=(1, 1, 54)).fit(X[:112], y[:112])
    assert model.score(X[112:], y[112:]) > 0.95
    assert model.transform(X[:3]).shape == (3, 6) and np.isfinite(model.logits(X)).all()


def test_a_square_number_of_inputs_is_a_row_as_well():
    model = TorchClassifier(SMALL, Training(1, 8, n_jobs=1)).fit(rows(16, 36).numpy(), [0, 1] * 8)
    assert model.image_shape_ == (1, 6, 6) and model.module_.input_shape == (1, 1, 36)


def test_bad_settings():
    for kernels in [(), (3, 4), (0,)]:
        with pytest.raises(ValueError, match="kernels must hold odd integers >= 1"):
            BranchCNN(kernels)
    with pytest.raises(ValueError, match="hidden must hold integers >= 1"):
        BranchCNN(hidden=())
    with pytest.raises(ValueError, match="channels must be an integer >= 1"):
        BranchCNN(channels=0)
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\)"):
        BranchCNN(dropout=1.0)
    with pytest.raises(ValueError, match="rows of at least 27 numbers, got 26; use MLP"):
        build(d=26)
