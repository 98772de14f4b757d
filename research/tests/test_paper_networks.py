"""Networks of the suites against what they say: sizes, work, seeds, plain layers by hand."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from networks_by_hand import (
    COLOUR,
    GREY,
    build,
    count,
    generator,
    layers_of,
    multiplications,
)
from torch import nn
from torch.nn import functional as F

from dipedl.networks import TorchClassifier, Training
from dipedl_bench.fast_networks import PoolCNN, WhitenedCNN
from dipedl_bench.paper_networks import (
    VGG16,
    BranchCNN,
    ConvLin,
    ConvLin1d,
    ResNet18,
    WideResNet,
)
from dipedl_bench.spectral_norm import remove_spectral_norm

ROW = (1, 1, 806)
#: A small one of each kind, on images of 28 x 28 pixels: rows of 784 numbers.
BACKBONES = [
    ConvLin(),
    ConvLin(spectral_norm=True, features="conv"),
    ConvLin1d(),
    ResNet18(width=8),
    ResNet18(width=8, spectral_norm=True),
    BranchCNN((3, 5), channels=4, hidden=(8, 6)),
    WideResNet(10, 1, mean=(0.5,), sd=(0.25,)),
    WideResNet(10, 1, spectral_norm=True, mean=(0.5,), sd=(0.25,)),
    PoolCNN(width=8, features=12),
    WhitenedCNN(8, 12, residual=True),
]
each = pytest.mark.parametrize("backbone", BACKBONES, ids=repr)


@pytest.fixture
def images():
    return torch.rand(6, 784, generator=generator())


@each
def test_head_of_features_is_the_output(backbone, images):
    network = build(backbone).eval()
    features, outputs = network.features(images), network(images)
    assert features.shape == (6, network.n_features) and outputs.shape == (6, 10)
    torch.testing.assert_close(network.head(features), outputs)
    assert outputs.isfinite().all()
    # and no row sees another
    network, rows = network.double(), images.double()
    alone = torch.cat([network(row[None]) for row in rows])
    torch.testing.assert_close(network(rows), alone, rtol=1e-9, atol=1e-12)


@each
def test_weights_come_from_the_generator_alone(backbone):
    state = torch.get_rng_state()
    first = build(backbone)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(5)
    again, other = build(backbone).state_dict(), build(backbone, seed=1)
    torch.set_rng_state(state)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again[name]) and value.isfinite().all(), name
    pairs = zip(first.parameters(), other.parameters(), strict=True)
    assert not all(torch.equal(a, b) for a, b in pairs)


@each
def test_every_weight_has_a_gradient(backbone, images):
    network = build(backbone)
    network(images).square().sum().backward()
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@each
def test_backbones_are_values(backbone):
    assert copy.deepcopy(backbone) == backbone == pickle.loads(pickle.dumps(backbone))
    assert len({backbone, copy.deepcopy(backbone)}) == 1
    assert eval(repr(backbone)) == backbone


def residual_weights(width):
    """By hand from the description: convolutions, shortcuts, batch normalisations."""
    total, before = 3 * 9 * 16, 16
    for after in (16 * width, 32 * width, 64 * width):
        total += 9 * before * after + 7 * 9 * after * after + before * after
        total += 2 * before + 7 * 2 * after
        before = after
    return total + 2 * before + before * 10 + 10


VGG = [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
LINEAR = 2 * (64 * 64 + 64)
#: Weights counted by hand from the descriptions, layer by layer; features; multiplications.
SIZES = {
    "ConvLin": (ConvLin(), GREY, 1_664 + 2 * 102_464 + 36_928 + LINEAR + 650, 64, None),
    "ConvLin in colour": (ConvLin(features="conv"), COLOUR, None, 1024, 37.8e6),
    "ConvLin1d": (ConvLin1d(), ROW, 384 + 2 * 20_544 + 49_216 + LINEAR + 650, 64, None),
    # the ImageNet one has a 7 x 7 stem of 3 channels and 1,000 classes
    "ResNet18": (ResNet18(), GREY, 11_689_512 - 9_408 + 576 - 513_000 + 5_130, 512, None),
    "BranchCNN": (BranchCNN(), ROW, 678_658 + 8 * 33, 32, None),
    # the stride in the second convolution; in the first it would be 5.2e9
    "WideResNet": (WideResNet(), COLOUR, residual_weights(10), 640, 5.95e9),
    "VGG16": (
        VGG16(),
        COLOUR,
        sum(9 * a * b + 3 * b for a, b in zip([3, *VGG], VGG, strict=False)) + 530_442,
        512,
        0.314e9,
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_work_are_those_of_the_papers(name):
    backbone, shape, weights, features, work = SIZES[name]
    network = build(backbone, shape)
    assert network.n_features == features and weights in (None, count(network))
    if work is not None:
        assert multiplications(network, int(np.prod(shape))) == pytest.approx(work, rel=0.01)


def test_vgg_has_the_layers_and_the_start_of_the_paper():
    network = build(VGG16(), COLOUR)
    convolutions = layers_of(network, nn.Conv2d)
    assert [layer.out_channels for layer in convolutions] == VGG
    assert [m.p for m in network.head if isinstance(m, nn.Dropout)] == [0.5, 0.5]
    for layer in convolutions[1::4]:
        deviation = (2 / (9 * layer.out_channels)) ** 0.5
        assert abs(float(layer.weight.detach().std()) / deviation - 1) < 0.03
        assert not layer.bias.detach().any()


@pytest.mark.parametrize("stride", [1, 2])
def test_a_wide_block_by_hand(stride):
    """Pre-activation: the shortcut takes the raw input, the second convolution has the stride."""
    network = build(WideResNet(10, 1), COLOUR).double().eval()
    block = [layer for layer in network.body if hasattr(layer, "shortcut")][stride - 1]
    norm, _, first, _, norm_2, _, second = block.residual
    draw = generator()
    for layer in (norm, norm_2):
        layer.running_mean.normal_(generator=draw)
        layer.running_var.uniform_(0.5, 2, generator=draw)
    X = torch.randn(2, 16, 8, 8, generator=draw, dtype=torch.float64)

    def normal(layer, x):
        centred = (x - layer.running_mean[:, None, None]).clone()
        return centred / (layer.running_var[:, None, None] + layer.eps).sqrt()

    h = F.conv2d(normal(norm, X).clamp(min=0), first.weight, padding=1)
    assert h.shape[2:] == (8, 8)
    h = F.conv2d(normal(norm_2, h).clamp(min=0), second.weight, padding=1, stride=stride)
    short = X if stride == 1 else F.conv2d(X, block.shortcut.weight, stride=2)
    torch.testing.assert_close(block(X), h + short)


@pytest.mark.parametrize("backbone", [WideResNet(10, 1), VGG16(width=2)], ids=repr)
def test_pixels_are_normalised_first(backbone):
    network, seen = build(backbone, COLOUR), []
    network.body[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    X = torch.rand(4, 3072, generator=generator())
    network(X)
    mean, sd = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2023, 0.1994, 0.2010])
    # a checkpoint tells networks apart by their text
    assert "mean=[0.4914, 0.4822, 0.4465]" in repr(network)
    images = X.reshape(4, 3, 1024).permute(0, 2, 1)
    expected = ((images - mean) / sd).permute(0, 2, 1).reshape(4, *COLOUR)
    torch.testing.assert_close(seen[0], expected)


@pytest.mark.parametrize(
    ("backbone", "shape", "n_layers"),
    [
        (WideResNet(10, 1, spectral_norm=True), COLOUR, 1 + 6 + 2 + 1),
        (VGG16(spectral_norm=True, width=2), COLOUR, 16),
        (ConvLin1d(spectral_norm=True), ROW, 7),
    ],
    ids=repr,
)
def test_spectral_norm_is_on_every_layer(backbone, shape, n_layers):
    network = build(backbone, shape).train()
    for _ in range(30):
        network(torch.rand(4, int(np.prod(shape)), generator=generator(2)))
    layers = layers_of(remove_spectral_norm(network))
    norms = [float(torch.linalg.matrix_norm(x.weight.detach().flatten(1), 2)) for x in layers]
    assert len(norms) == n_layers
    np.testing.assert_allclose(norms, 1.0, atol=0.06)


def test_dropout_acts_after_the_features():
    network = build(BranchCNN(dropout=0.5))
    assert [m.p for m in network.head.modules() if isinstance(m, nn.Dropout)] == [0.5]
    layers = [*network.body, *network.head]
    drops = [i for i, layer in enumerate(layers) if isinstance(layer, nn.Dropout)]
    assert len(drops) == 3 and all(isinstance(layers[i - 1], nn.ReLU) for i in drops)


class Branches(nn.Module):
    """`BranchCNN` to the letter: Conv1d, normalisation, ReLU, pooling, in that order."""

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

    def forward(self, X):
        return self.last(self.features(X))

    def features(self, X):
        return self.dense(torch.cat([b(X[:, None]) for b in self.branches], dim=1).flatten(1))


def with_weights_of(network, plain):
    """A plain network with the parameters of ours."""
    theirs = plain.state_dict()
    for name, source in zip(theirs, network.state_dict().values(), strict=True):
        theirs[name] = source.reshape(theirs[name].shape)
    plain.load_state_dict(theirs)
    return plain


def test_outputs_and_gradients_are_those_of_plain_convolutions():
    # in float64: a bias before normalisation has no gradient but for rounding
    ours = build(BranchCNN(), ROW, 2).double().train()
    plain = with_weights_of(ours, Branches().double()).train()
    X = torch.randn(8, 806, generator=generator()).double()
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


@pytest.mark.parametrize(("features", "end"), [("hidden", -1), ("conv", 10)])
def test_conv_lin_of_rows_equals_plain_layers(features, end):
    network, plain = build(ConvLin1d(features=features), ROW, 2), []
    for before in (1, 64, 64):
        plain += [nn.Conv1d(before, 64, 5, padding=2), nn.ReLU(), nn.MaxPool1d(4)]
    plain += [nn.Flatten()]
    for before in (768, 64, 64):
        plain += [nn.Linear(before, 64), nn.ReLU()]
    plain = with_weights_of(network, nn.Sequential(*plain, nn.Linear(64, 2)))
    X = torch.randn(8, 806, generator=generator(1))
    torch.testing.assert_close(network(X), plain(X[:, None]), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(network.features(X), plain[:end](X[:, None]), rtol=1e-5, atol=1e-6)


def test_a_square_number_of_inputs_is_a_row_as_well():
    X = torch.randn(16, 36, generator=generator()).numpy()
    backbone = BranchCNN((3, 5), channels=4, hidden=(8, 6))
    model = TorchClassifier(backbone, Training(1, 8, n_jobs=1)).fit(X, [0, 1] * 8)
    assert model.image_shape_ == (1, 6, 6) and model.module_.input_shape == (1, 1, 36)


def rows_with_a_line(rng, y):
    X = rng.normal(size=(len(y), 70))
    X[np.arange(len(y)), np.where(y % 2 == 1, 13, 40)] += 6.0
    return X


@pytest.mark.parametrize(
    ("backbone", "settings"),
    [
        (BranchCNN((3, 5), channels=4, hidden=(8, 6)), {"amp": True}),
        (ConvLin1d(), {"learning_rate": 5e-3}),
    ],
    ids=["BranchCNN", "ConvLin1d"],
)
def test_networks_without_a_reference_learn(backbone, settings):
    y = np.arange(160) % 2
    X = rows_with_a_line(np.random.default_rng(0), y)
    settings = {"learning_rate": 1e-2, "schedule": "one-cycle"} | settings
    training = Training(8, 16, n_jobs=1, **settings)
    model = TorchClassifier(backbone, training, image_shape=(1, 1, 70)).fit(X[:112], y[:112])
    assert model.score(X[112:], y[112:]) > 0.9


INTEGER, SHARE = "must be an integer >= 1, got", r"must be in \[0, 1\), got"
ERRORS = [
    (partial(BranchCNN, hidden=()), ValueError, "hidden must hold integers >= 1"),
    *((partial(BranchCNN, k), ValueError, "kernels must hold") for k in [(), (3, 4), (0,)]),
    (partial(ConvLin, features="all"), ValueError, "features must be 'hidden' or 'conv'"),
    (partial(WideResNet, depth=27), ValueError, "depth must be 4 more .* got 27; such as 10"),
    (partial(WideResNet, depth=4), ValueError, "at least 10, got 4"),
    (partial(VGG16, mean=0.5), TypeError, "mean must be a tuple of numbers, got 0.5"),
    (partial(VGG16, sd=(0.0,)), ValueError, r"sd must be a tuple of numbers > 0, .*\(0.0,\)"),
    (partial(WideResNet, sd=()), ValueError, "sd .* at least one and finite"),
    (partial(WideResNet, mean=(float("nan"),)), ValueError, "mean must be"),
    (
        partial(build, VGG16(), (1, 32, 32)),
        ValueError,
        r"mean must hold 1 value or 1, one for each channel",
    ),
    *(
        (partial(cls, dropout=bad), ValueError, f"dropout {SHARE} {bad}")
        for cls in (BranchCNN, WideResNet, VGG16)
        for bad in (1.0, -0.1)
    ),
    *(
        (partial(cls, **{name: 0}), ValueError, f"{name} {INTEGER} 0")
        for name, classes in {
            "width": (ResNet18, WideResNet, VGG16),
            "channels": (BranchCNN,),
        }.items()
        for cls in classes
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), ERRORS)
def test_settings_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("backbone", "least", "channels"),
    [
        (ConvLin(), 8, 1),
        (WideResNet(10, 1), 4, 3),
        (VGG16(width=2), 32, 3),
        (BranchCNN(), 27, 0),
        (ConvLin1d(), 64, 0),
    ],
)
def test_inputs_that_are_too_small(backbone, least, channels):
    if not channels:
        with pytest.raises(ValueError, match=f"rows of at least {least} numbers, got {least - 1}"):
            build(backbone, (1, 1, least - 1))
        return
    build(backbone, (channels, least, least))(torch.zeros(2, channels * least * least))
    with pytest.raises(ValueError, match=rf"needs images of at least {least} x {least} pixels"):
        build(backbone, (channels, least - 1, least))
