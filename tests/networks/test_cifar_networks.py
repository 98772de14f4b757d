"""The networks of the CIFAR-10 experiments: sizes, work, order of layers, normalisation."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from dipedl.networks import VGG16, ConvLin, WideResNet  # noqa: E402
from dipedl.networks.backbones.deep_cnns import CIFAR_MEAN, CIFAR_SD  # noqa: E402

COLOUR = (3, 32, 32)


def build(backbone, shape=COLOUR, k=10, seed=0):
    return backbone.build(shape, k, torch.Generator().manual_seed(seed))


def count(network):
    return sum(p.numel() for p in network.parameters())


def multiplications(network):
    """Counted layer by layer for one image, without computing anything."""
    total = []
    network = network.to("meta").eval()

    def conv(layer, _, out):
        per_pixel = layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]
        total.append(per_pixel * out[0].numel())

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(conv)
        elif isinstance(layer, nn.Linear):
            layer.register_forward_hook(lambda layer, _, out: total.append(layer.weight.numel()))
    network(torch.zeros(1, 3072, device="meta"))
    return sum(total)


def residual_weights(width):
    """By hand from the description: convolutions, shortcuts, batch normalisations."""
    total, before = 3 * 9 * 16, 16
    for after in (16 * width, 32 * width, 64 * width):
        total += 9 * before * after + 7 * 9 * after * after + before * after
        total += 2 * before + 7 * 2 * after
        before = after
    return total + 2 * before + before * 10 + 10


def test_wide_resnet_has_the_size_and_the_work_of_the_paper():
    network = build(WideResNet())
    assert count(network) == residual_weights(10) == 36_479_194
    assert network.n_features == 640
    assert not any(isinstance(m, nn.Conv2d) and m.bias is not None for m in network.modules())
    assert sum(isinstance(m, nn.Dropout) and m.p == 0.3 for m in network.modules()) == 12
    # stride in the second convolution; in the first it would be 5.2
    assert round(multiplications(network) / 1e9, 2) == 5.95


def test_vgg_has_the_size_and_the_work_of_the_paper():
    network = build(VGG16())
    layout = [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert [m.out_channels for m in convolutions] == layout
    expected = sum(9 * a * b + b + 2 * b for a, b in zip([3, *layout], layout, strict=False))
    expected += 2 * (512 * 512 + 512) + 5130
    assert count(network) == expected == 15_253_578 and network.n_features == 512
    assert [m.p for m in network.head if isinstance(m, nn.Dropout)] == [0.5, 0.5]
    for layer in convolutions[1::4]:
        deviation = (2 / (9 * layer.out_channels)) ** 0.5
        assert abs(float(layer.weight.detach().std()) / deviation - 1) < 0.03
        assert not layer.bias.detach().any()
    assert round(multiplications(network) / 1e9, 3) == 0.314


def test_conv_lin_takes_colour():
    network = build(ConvLin(features="conv"))
    assert network.n_features == 1024 and network(torch.zeros(2, 3072)).shape == (2, 10)
    assert round(multiplications(build(ConvLin())) / 1e6, 1) == 37.8
    assert round(count(build(ConvLin())) / 1e6, 2) == 0.28


@pytest.mark.parametrize("stride", [1, 2])
def test_a_wide_block_by_hand(stride):
    """Pre-activation: the shortcut takes the raw input, the second convolution has the stride."""
    network = build(WideResNet(10, 1)).double().eval()
    block = [layer for layer in network.body if hasattr(layer, "shortcut")][stride - 1]
    norm, _, first, _, norm_2, _, second = block.residual
    generator = torch.Generator().manual_seed(0)
    for layer in (norm, norm_2):
        layer.running_mean.normal_(generator=generator)
        layer.running_var.uniform_(0.5, 2, generator=generator)
    X = torch.randn(2, 16, 8, 8, generator=generator, dtype=torch.float64)

    def normal(layer, x):
        centred = (x - layer.running_mean[:, None, None]).clone()
        return centred / (layer.running_var[:, None, None] + layer.eps).sqrt()

    h = F.conv2d(normal(norm, X).clamp(min=0), first.weight, padding=1)
    assert h.shape[2:] == (8, 8)
    h = F.conv2d(normal(norm_2, h).clamp(min=0), second.weight, padding=1, stride=stride)
    short = X if stride == 1 else F.conv2d(X, block.shortcut.weight, stride=2)
    torch.testing.assert_close(block(X), h + short)


def test_wide_resnet_halves_twice_and_averages_what_is_left():
    network, shapes = build(WideResNet(16, 2)).eval(), []
    for layer in network.body:
        layer.register_forward_hook(lambda _, __, out: shapes.append(tuple(out.shape[1:])))
    features = network.features(torch.rand(2, 3072))
    stages = [(32, 32, 32)] * 2 + [(64, 16, 16)] * 2 + [(128, 8, 8)] * 2
    assert shapes[1:8] == [(16, 32, 32), *stages]
    maps = network.body[:-2](torch.rand(2, *COLOUR))
    assert features.min() >= 0 and maps.shape == (2, 128, 8, 8)
    torch.testing.assert_close(network.body[-2:](maps), maps.mean(dim=(2, 3)))


@pytest.mark.parametrize("backbone", [WideResNet(10, 1), VGG16(width=2)], ids=repr)
def test_pixels_are_normalised_first(backbone):
    network, seen = build(backbone), []
    network.body[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    X = torch.rand(4, 3072, generator=torch.Generator().manual_seed(0))
    network(X)
    mean, sd = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2023, 0.1994, 0.2010])
    images = X.reshape(4, 3, 1024).permute(0, 2, 1)
    expected = ((images - mean) / sd).permute(0, 2, 1).reshape(4, *COLOUR)
    torch.testing.assert_close(seen[0], expected)
    assert CIFAR_MEAN == (0.4914, 0.4822, 0.4465) and CIFAR_SD == (0.2023, 0.1994, 0.2010)
    assert "mean=[0.4914, 0.4822, 0.4465]" in repr(network)


@pytest.mark.parametrize(
    "backbone",
    [WideResNet(10, 1, spectral_norm=True), VGG16(spectral_norm=True, width=2)],
    ids=repr,
)
def test_spectral_norm_is_on_every_layer(backbone):
    network = build(backbone)
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert all(nn.utils.parametrize.is_parametrized(layer, "weight") for layer in layers)
    assert len(layers) == (1 + 6 + 2 + 1 if isinstance(backbone, WideResNet) else 16)
    network.eval()
    for layer in layers:
        top = torch.linalg.matrix_norm(layer.weight.flatten(1), 2)
        assert 0.9 < float(top) < 1.3  # 15 iterations from a random start


def test_vgg_is_a_value_of_its_seed_and_all_of_it_learns():
    network, again, other = (build(VGG16(width=2), seed=seed) for seed in (0, 0, 1))
    for name, value in network.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    assert not torch.equal(network.body[1].weight, other.body[1].weight)
    network(torch.rand(6, 3072)).square().sum().backward()
    assert all(p.grad is not None for p in network.parameters())
    network.eval()
    X = torch.rand(3, 3072)
    torch.testing.assert_close(network.head(network.features(X)), network(X))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: WideResNet(depth=27), ValueError, "depth must be 4 more .* got 27; such as 10"),
        (lambda: WideResNet(depth=4), ValueError, "at least 10, got 4"),
        (lambda: WideResNet(width=0), ValueError, "width must be an integer >= 1, got 0"),
        (lambda: WideResNet(dropout=1), ValueError, r"dropout must be in \[0, 1\), got 1"),
        (lambda: VGG16(width=0), ValueError, "width must be an integer >= 1, got 0"),
        (lambda: VGG16(dropout=-1), ValueError, r"dropout must be in \[0, 1\), got -1"),
        (lambda: VGG16(mean=0.5), TypeError, "mean must be a tuple of numbers, got 0.5"),
        (lambda: VGG16(sd=(0.0,)), ValueError, r"sd must be a tuple of numbers > 0, .*\(0.0,\)"),
        (lambda: WideResNet(sd=()), ValueError, "at least one and finite"),
        (lambda: WideResNet(mean=(float("nan"),)), ValueError, "mean must be"),
        (
            lambda: build(VGG16(), (1, 32, 32)),
            ValueError,
            r"mean must hold 1 value or 1, one for each channel .*mean=\(0.5,\)",
        ),
        (lambda: build(VGG16(), (3, 31, 32)), ValueError, "at least 32 x 32 pixels"),
        (lambda: build(WideResNet(), (3, 3, 32)), ValueError, "at least 4 x 4 pixels"),
    ],
)
def test_bad_settings(make, error, message):
    with pytest.raises(error, match=message):
        make()
