"""Each backbone against what it says: sizes, counts of weights, seeds, gradients."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dipedl.networks import MLP, ConvLin, FastCNN, LeNet5, PoolCNN, ResNet18, SmallCNN, WideResNet  # noqa: E402

IMAGE = (1, 28, 28)
BACKBONES = [
    LeNet5(),
    ConvLin(),
    ConvLin(spectral_norm=True, features="conv"),
    FastCNN(),
    ResNet18(width=8),
    ResNet18(width=8, spectral_norm=True),
    SmallCNN(),
    PoolCNN(width=8, features=12),
    WideResNet(10, 1, mean=(0.5,), sd=(0.25,)),
    WideResNet(10, 1, spectral_norm=True, mean=(0.5,), sd=(0.25,)),
    MLP((32, 16), activation="tanh", dropout=0.2),
]


def build(backbone, shape=IMAGE, k=10, seed=0):
    return backbone.build(shape, k, torch.Generator().manual_seed(seed))


def weights(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def count(network):
    return sum(p.numel() for p in network.parameters())


@pytest.fixture
def images():
    return torch.rand(6, 784, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("backbone", BACKBONES, ids=repr)
def test_head_of_features_is_the_output(backbone, images):
    network = build(backbone).eval()
    features = network.features(images)
    assert features.shape == (6, network.n_features)
    torch.testing.assert_close(network.head(features), network(images))
    assert network(images).shape == (6, 10)
    assert network(images).isfinite().all()


@pytest.mark.parametrize("backbone", BACKBONES, ids=repr)
def test_weights_come_from_the_generator_alone(backbone):
    state = torch.get_rng_state()
    first = build(backbone)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(5)
    again, other = build(backbone), build(backbone, seed=1)
    torch.set_rng_state(state)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
        assert value.isfinite().all()
    assert not torch.equal(weights(first), weights(other))


@pytest.mark.parametrize("backbone", BACKBONES, ids=repr)
def test_every_weight_has_a_gradient(backbone, images):
    network = build(backbone)
    network(images).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("backbone", BACKBONES, ids=repr)
def test_backbones_are_values(backbone):
    assert copy.deepcopy(backbone) == backbone == pickle.loads(pickle.dumps(backbone))
    assert len({backbone, copy.deepcopy(backbone)}) == 1
    assert eval(repr(backbone)) == backbone


@pytest.mark.parametrize("backbone", BACKBONES, ids=repr)
def test_rows_do_not_mix_in_eval_mode(backbone, images):
    network = build(backbone).double().eval()
    alone = torch.cat([network(row[None]) for row in images.double()])
    torch.testing.assert_close(network(images.double()), alone, rtol=1e-9, atol=1e-12)


def test_sizes_are_those_of_the_papers():
    # counted by hand from the descriptions: weights + biases, layer by layer
    lenet = (25 * 20 + 20) + (20 * 25 * 50 + 50) + (1250 * 500 + 500) + (500 * 10 + 10)
    assert count(build(LeNet5())) == lenet
    convolutions = (25 * 64 + 64) + 2 * (64 * 25 * 64 + 64)
    linear = (576 * 64 + 64) + 2 * (64 * 64 + 64) + (64 * 10 + 10)
    for features, width in [("conv", 576), ("hidden", 64)]:
        network = build(ConvLin(features=features))
        assert count(network) == convolutions + linear and network.n_features == width
    # the ImageNet one has 11,689,512, with a 7 x 7 stem of 3 channels and 1,000 classes
    expected = 11_689_512 - 64 * 3 * 49 + 64 * 9 - 513_000 + 5_130
    assert count(build(ResNet18())) == expected == 11_172_810
    assert build(ResNet18()).n_features == 512
    assert build(LeNet5()).n_features == 500 and build(FastCNN()).n_features == 96


def test_resnet_keeps_28_pixels_in_its_first_stage(images):
    network = build(ResNet18(width=4))
    sizes = []
    for layer in network.body:
        layer.register_forward_hook(lambda _, __, out: sizes.append(tuple(out.shape[1:])))
    network(images)
    assert sizes[0] == (4, 28, 28)
    assert sizes[3:12] == [
        (4, 28, 28),
        (4, 28, 28),
        (8, 14, 14),
        (8, 14, 14),
        (16, 7, 7),
        (16, 7, 7),
        (32, 4, 4),
        (32, 4, 4),
        (32, 1, 1),
    ]


def test_a_residual_block_adds_its_input(images):
    network = build(ResNet18(width=4)).eval()
    block = network.body[3]
    for parameter in block.residual[3].parameters():
        nn.init.zeros_(parameter)
    x = torch.rand(2, 4, 5, 5)
    torch.testing.assert_close(block(x), x)


@pytest.mark.parametrize(
    "backbone", [LeNet5(), FastCNN(dropout=0.5), PoolCNN(dropout=0.5), MLP(dropout=0.5)], ids=repr
)
def test_dropout_acts_after_the_features(backbone, images):
    network = build(backbone).train()
    dropped = [m for m in network.head.modules() if isinstance(m, nn.Dropout)]
    assert [layer.p for layer in dropped] == [0.5]


def test_colours_and_other_sizes():
    X = torch.rand(2, 3 * 16 * 20)
    for backbone in (
        LeNet5(),
        ConvLin(),
        FastCNN(4),
        ResNet18(width=8),
        SmallCNN(),
        PoolCNN(4, 8),
        WideResNet(10, 1),
        MLP(),
    ):
        assert build(backbone, (3, 16, 20), 4)(X).shape == (2, 4)


@pytest.mark.parametrize(
    ("backbone", "least"),
    [(LeNet5(), 12), (ConvLin(), 8), (FastCNN(), 4), (SmallCNN(), 4), (PoolCNN(), 9)],
)
def test_images_that_are_too_small(backbone, least):
    build(backbone, (1, least, least))(torch.zeros(2, least * least))
    with pytest.raises(ValueError, match=rf"needs images of at least {least} x {least} pixels"):
        build(backbone, (1, least - 1, least))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLP(activation="gelu"), "activation must be one of .*got 'gelu'"),
        (lambda: MLP(()), r"hidden must hold integers >= 1, at least one, got \(\)"),
        (lambda: MLP((4, 0)), "hidden must hold integers"),
        (lambda: MLP(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (lambda: LeNet5(-0.1), "dropout must be in"),
        (lambda: FastCNN(width=0), "width must be an integer >= 1, got 0"),
        (lambda: FastCNN(dropout=2), "dropout must be in"),
        (lambda: ResNet18(width=0), "width must be"),
        (lambda: PoolCNN(width=0), "width must be an integer >= 1, got 0"),
        (lambda: PoolCNN(features=0), "features must be an integer >= 1, got 0"),
        (lambda: PoolCNN(dropout=1), r"dropout must be in \[0, 1\), got 1"),
        (lambda: SmallCNN(channels=0), "channels must be an integer >= 1"),
        (lambda: SmallCNN(n_features=0), "n_features must be an integer >= 1"),
        (lambda: ConvLin(features="all"), r"features must be one of \['conv', 'hidden'\]"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
