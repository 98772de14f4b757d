"""Each backbone against what it says: sizes, work, seeds, gradients, and plain layers by hand."""

import copy
import pickle
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dipedl.networks import MLP, FastCNN, LeNet5  # noqa: E402

GREY = (1, 28, 28)
#: A small one of each kind, on images of 28 x 28 pixels: rows of 784 numbers.
BACKBONES = [LeNet5(), FastCNN(), MLP((32, 16), activation="tanh", dropout=0.2)]
each = pytest.mark.parametrize("backbone", BACKBONES, ids=repr)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def build(backbone, shape=GREY, k=10, seed=0):
    return backbone.build(shape, k, generator(seed))


def count(network):
    return sum(p.numel() for p in network.parameters())


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


def test_sizes_are_those_counted_by_hand():
    lenet, fast = build(LeNet5()), build(FastCNN())
    assert (count(lenet), lenet.n_features) == (520 + 25_050 + 625_500 + 5_010, 500)
    assert fast.n_features == 96


@pytest.mark.parametrize("backbone", [LeNet5(), FastCNN(dropout=0.5), MLP(dropout=0.5)], ids=repr)
def test_dropout_acts_after_the_features(backbone):
    head = build(backbone).head
    assert [m.p for m in head.modules() if isinstance(m, nn.Dropout)] == [0.5]


ERRORS = [
    (partial(MLP, activation="gelu"), ValueError, "activation must be one of .*got 'gelu'"),
    (partial(MLP, ()), ValueError, r"hidden must hold integers >= 1, at least one, got \(\)"),
    *(
        (partial(MLP, hidden), ValueError, "hidden must hold integers")
        for hidden in ((4, 0), 64, (64.5,), "64")
    ),
    *(
        (partial(cls, dropout=bad), ValueError, rf"dropout must be in \[0, 1\), got {bad}")
        for cls in (MLP, LeNet5, FastCNN)
        for bad in (1.0, -0.1)
    ),
    (partial(FastCNN, width=0), ValueError, "width must be an integer >= 1, got 0"),
]


@pytest.mark.parametrize(("make", "error", "message"), ERRORS)
def test_settings_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(("backbone", "least"), [(LeNet5(), 12), (FastCNN(), 4)])
def test_images_that_are_too_small(backbone, least):
    build(backbone, (1, least, least))(torch.zeros(2, least * least))
    with pytest.raises(ValueError, match=rf"needs images of at least {least} x {least} pixels"):
        build(backbone, (1, least - 1, least))
