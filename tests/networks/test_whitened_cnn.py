"""The fast network for small colour images, against plain reimplementations of its parts."""

import numpy as np
import pytest
import torch
from torch import nn

from dipedl.networks import TorchClassifier, Training, WhitenedCNN
from dipedl.networks.backbones.small_cnns import _Norm, _Whitening


def generator():
    return torch.Generator().manual_seed(0)


def test_size_is_that_of_its_notes():
    network = WhitenedCNN().build((3, 32, 32), 10, generator())
    assert sum(p.numel() for p in network.parameters()) == pytest.approx(1.97e6, rel=0.01)
    counted = []

    def count(layer, inputs, output):
        if isinstance(layer, nn.Conv2d):
            counted.append(output[0].numel() * layer.weight[0].numel())

    for layer in network.modules():
        layer.register_forward_hook(count)
    network(torch.zeros(1, 3072))
    assert sum(counted) == pytest.approx(118e6, rel=0.01)


def test_whitened_patches_have_unit_covariance():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(400, 3, 12, 12)).cumsum(2).cumsum(3) / 20 + 0.5
    layer = _Whitening(3).double()
    layer.learn(torch.tensor(images))
    maps = layer(torch.tensor(images)) - layer.bias[:, None, None]
    rows = maps.detach().permute(0, 2, 3, 1).reshape(-1, 24)[:, :12].numpy()
    second = rows.T @ rows / len(rows)
    off_diagonal = second - np.diag(np.diag(second))
    assert np.abs(off_diagonal).max() < 1e-8
    # the ridge keeps the finest directions below one
    assert np.diag(second).max() == pytest.approx(1, abs=1e-3)
    assert np.diag(second).min() > 0
    np.testing.assert_allclose(maps[:, 12:].detach(), -maps[:, :12].detach(), atol=1e-10)


def test_constant_images_are_no_reason_to_fail():
    layer = _Whitening(3)
    layer.learn(torch.full((5, 3, 8, 8), 0.2))
    assert layer(torch.rand(2, 3, 8, 8)).isfinite().all()


def test_normalisation_is_that_of_torch_with_a_bias_eight_times_as_large():
    ours, theirs = _Norm(4), nn.BatchNorm2d(4, momentum=0.4)
    with torch.no_grad():
        ours.fast_bias.copy_(torch.arange(4.0))
        theirs.bias.copy_(8 * torch.arange(4.0))
    maps = torch.rand(6, 4, 5, 5, generator=generator())
    torch.testing.assert_close(ours(maps), theirs(maps))
    torch.testing.assert_close(ours.eval()(maps), theirs.eval()(maps))


def test_a_wide_convolution_begins_as_the_identity():
    network = WhitenedCNN(width=30, features=40).build((3, 16, 16), 10, generator())
    layer = next(m for m in network.modules() if isinstance(m, nn.Conv2d) and m.out_channels == 30)
    maps = torch.rand(1, 24, 6, 6, generator=generator())
    torch.testing.assert_close(layer(maps)[:, :24], maps)


def test_a_shortcut_leads_around_the_last_two_convolutions_of_a_block():
    network = WhitenedCNN(8, 12, residual=True).build((3, 16, 16), 10, generator()).eval()
    maps, blocks = torch.rand(2, 3 * 16 * 16, generator=generator()), []
    for layer in network.modules():
        if isinstance(layer, nn.Sequential) and len(layer) == 5:
            blocks.append(layer)
            layer.register_forward_hook(lambda layer, given, got: found.append((*given, got)))
    found = []
    network(maps)
    assert len(blocks) == 3
    for (first, norm, gelu, second, last), (given, got) in zip(blocks, found, strict=True):
        torch.testing.assert_close(got, given + last(second(gelu(norm(first(given))))))


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
def test_features_are_means_over_an_image_its_mirror_image_and_its_shifts(mirrored, shifted):
    """Against NumPy's flips and slices, one view at a time."""
    X = torch.rand(4, 3, 16, 16, generator=generator())
    plain = WhitenedCNN(8, 12).build((3, 16, 16), 10, generator())
    averaged = WhitenedCNN(8, 12, mirrored=mirrored, shifted=shifted).build(
        (3, 16, 16), 10, generator()
    )
    rows, padded = X.reshape(4, -1), np.pad(X, [(0, 0)] * 2 + [(1, 1)] * 2, mode="reflect")
    torch.testing.assert_close(averaged.features(rows), plain.features(rows))  # in training
    plain.eval(), averaged.eval()
    places = [(1, 1), (1, 1), (0, 0), (2, 2)] if shifted else [(1, 1)]
    views = [padded[..., i : i + 16, j : j + 16] for i, j in places]
    views += [view[..., ::-1] for view in views] if mirrored else []
    found = [plain.features(torch.tensor(view.reshape(4, -1).copy())) for view in views]
    mean = torch.stack(found).mean(0)
    torch.testing.assert_close(averaged.features(rows), mean)
    torch.testing.assert_close(averaged(rows), plain.head(mean))


def test_a_mirrored_network_takes_an_image_and_its_mirror_image_for_one():
    X = torch.rand(4, 3, 16, 16, generator=generator())
    network = WhitenedCNN(8, 12, mirrored=True).build((3, 16, 16), 10, generator()).eval()
    torch.testing.assert_close(network(X.reshape(4, -1)), network(X.flip(-1).reshape(4, -1)))


def test_training_whitens_first_and_learns_colours():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.uniform(0, 0.5, (60, 3, 10, 10))
    X[np.arange(60), y] += 0.4
    X = X.reshape(60, -1).astype(np.float32)
    training = Training(
        epochs=4, batch_size=10, optimizer="sgd", momentum=0.85, learning_rate=0.3, n_jobs=1
    )
    backbone = WhitenedCNN(width=8, features=8)
    clf = TorchClassifier(backbone, training, image_shape=(3, 10, 10)).fit(X, y)
    assert clf.score(X, y) > 0.95
    whitening = next(m for m in clf.module_.modules() if isinstance(m, _Whitening))
    expected = _Whitening(3)
    expected.learn(torch.tensor(X).reshape(-1, 3, 10, 10))
    torch.testing.assert_close(whitening.weight, expected.weight)


def test_small_images_and_odd_settings_are_refused():
    with pytest.raises(ValueError, match="at least 9 x 9"):
        WhitenedCNN().build((3, 8, 8), 10, generator())
    with pytest.raises(ValueError, match="features must be an integer >= 1"):
        WhitenedCNN(features=0)
    with pytest.raises(ValueError, match="dropout"):
        WhitenedCNN(dropout=1.0)
