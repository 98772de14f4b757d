import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dipedl.networks import PoolCNN, ResNet18, TorchClassifier, Training  # noqa: E402

COLOUR = (3, 32, 32)


def build(backbone):
    return backbone.build(COLOUR, 10, torch.Generator().manual_seed(0)).eval()


def multiplications(network):
    """Counted layer by layer, for one image."""
    total = []

    def conv(layer, _, out):
        per_pixel = layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]
        total.append(per_pixel * out[0].numel())

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(conv)
        elif isinstance(layer, nn.Linear):
            layer.register_forward_hook(lambda layer, _, out: total.append(layer.weight.numel()))
    network(torch.zeros(1, 3072))
    return sum(total)


def test_pool_cnn_has_the_size_it_states():
    network = build(PoolCNN())
    convolutions = 2 * 2 * 3 * 24 + 24
    convolutions += 9 * (24 * 64 + 64 * 64 + 64 * 192 + 3 * 192 * 192)
    norms = 2 * (2 * 64 + 4 * 192)
    count = sum(p.numel() for p in network.parameters())
    assert count == convolutions + norms + 192 * 10 + 10
    assert round(count / 1e6, 1) == 1.2
    found = multiplications(network)
    assert round(found / 1e6) == 82
    assert 6 < multiplications(build(ResNet18())) / found < 8


def test_pool_cnn_sizes_of_its_maps_and_its_features():
    network, shapes = build(PoolCNN()), []
    for layer in network.body:
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda _, __, out: shapes.append(tuple(out.shape[1:])))
    X = torch.rand(2, 3072, generator=torch.Generator().manual_seed(0))
    features = network.features(X)
    assert shapes == [
        (24, 31, 31),
        (64, 31, 31),
        (64, 15, 15),
        (192, 15, 15),
        (192, 7, 7),
        (192, 7, 7),
        (192, 3, 3),
    ]
    maps = network.body[:-2](X.reshape(2, *COLOUR))
    assert torch.equal(features, maps.amax(dim=(2, 3)))


def test_pool_cnn_sees_centred_pixels():
    seen = []
    network = build(PoolCNN(4, 4))
    network.body[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network(torch.stack([torch.zeros(3072), torch.full((3072,), 0.5), torch.ones(3072)]))
    assert [float(image.unique()) for image in seen[0]] == [-2.0, 0.0, 2.0]


def test_pool_cnn_learns_colours():
    rng = np.random.default_rng(0)
    y = np.arange(96) % 3
    X = rng.uniform(0, 0.7, (96, 3, 10, 10)).astype(np.float32)
    X[np.arange(96), y] += 0.3
    training = Training(epochs=20, batch_size=16, learning_rate=5e-3, device="cpu", n_jobs=1)
    model = TorchClassifier(PoolCNN(8, 8), training, image_shape=(3, 10, 10))
    model.fit(X[:64].reshape(64, -1), y[:64])
    assert model.score(X[64:].reshape(32, -1), y[64:]) > 0.9
