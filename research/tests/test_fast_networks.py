"""Fast networks of CIFAR-10 against what they say, NumPy's padding and plain loops."""

from collections import Counter
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from networks_by_hand import (
    COLOUR,
    build,
    count,
    equally_often,
    generator,
    layers_of,
    multiplications,
    output_shapes,
)
from sklearn.frozen import FrozenEstimator
from torch import nn

from dipedl.baselines import MCDropout
from dipedl.networks import MLP, LayerFeatures, TorchClassifier, Training, train
from dipedl_bench.fast_networks import (
    CropFlip,
    Muon,
    PoolCNN,
    WhitenedCNN,
    _Whitening,
    muon,
    orthogonal,
)

QUICK = Training(epochs=2, batch_size=16)


def test_sizes_and_work_are_as_said():
    # a 2 x 2 convolution, three blocks of two 3 x 3 ones with batch normalisation, and the head
    weights = 24 * 13 + 9 * (24 * 64 + 64 * 64 + 64 * 192 + 3 * 192 * 192)
    weights += 2 * (2 * 64 + 4 * 192) + 192 * 10 + 10
    assert count(build(PoolCNN(), COLOUR)) == weights
    for backbone, k, work in ((PoolCNN(), 192, 82e6), (WhitenedCNN(), 256, 118e6)):
        network = build(backbone, COLOUR)
        assert network.n_features == k
        assert multiplications(network, 3072) == pytest.approx(work, rel=0.01)


def test_pool_cnn_pools_early_and_takes_maxima():
    network, X = build(PoolCNN(), COLOUR).eval(), torch.rand(2, 3072, generator=generator())
    shapes = output_shapes(layers_of(network.body), network, X)
    sides = [(24, 31), (64, 31), (64, 15), (192, 15), (192, 7), (192, 7), (192, 3)]
    assert shapes == [(channels, side, side) for channels, side in sides]
    maps = network.body[:-2](X.reshape(2, *COLOUR))
    assert torch.equal(network.features(X), maps.amax(dim=(2, 3)))


def test_pixels_are_centred_first():
    X = torch.rand(2, 3, 32, 32, generator=generator())
    torch.testing.assert_close(build(PoolCNN(4, 4), COLOUR).body[0](X), (X - 0.5) / 0.25)


@pytest.mark.parametrize("backbone", [PoolCNN(dropout=0.5), WhitenedCNN(dropout=0.5)], ids=repr)
def test_dropout_acts_after_the_features(backbone):
    network = build(backbone)
    assert [m.p for m in network.head.modules() if isinstance(m, nn.Dropout)] == [0.5]


def coloured_images(rng, y):
    X = rng.uniform(0, 0.6, (len(y), 3, 10, 10)).astype(np.float32)
    X[np.arange(len(y)), y] += 0.4
    return X.reshape(len(y), -1)


@pytest.mark.parametrize(
    ("backbone", "settings"),
    [(PoolCNN(8, 8), {}), (WhitenedCNN(8, 8), {"optimizer": "sgd", "learning_rate": 0.3})],
    ids=["PoolCNN", "WhitenedCNN"],
)
def test_they_learn(backbone, settings):
    y = np.arange(160) % 3
    X = coloured_images(np.random.default_rng(0), y)
    settings = {"learning_rate": 1e-2, "schedule": "one-cycle"} | settings
    training = Training(8, 16, n_jobs=1, **settings)
    model = TorchClassifier(backbone, training, image_shape=(3, 10, 10)).fit(X[:112], y[:112])
    assert model.score(X[112:], y[112:]) > 0.9
    if isinstance(backbone, WhitenedCNN):
        whitening, expected = model.module_.body[0], _Whitening(3)
        expected.learn(torch.tensor(X[:112]).reshape(-1, 3, 10, 10))
        torch.testing.assert_close(whitening.weight, expected.weight)


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


def test_a_shortcut_leads_around_the_last_two_convolutions_of_a_block():
    network = build(WhitenedCNN(8, 12, residual=True), (3, 16, 16)).eval()
    blocks = [b for b in network.modules() if isinstance(b, nn.Sequential) and len(b) == 5]
    found = []
    for block in blocks:
        block.register_forward_hook(lambda _, given, got: found.append((*given, got)))
    network(torch.rand(2, 3 * 16 * 16, generator=generator()))
    assert len(blocks) == 3
    for (first, norm, gelu, second, last), (given, got) in zip(blocks, found, strict=True):
        torch.testing.assert_close(got, given + last(second(gelu(norm(first(given))))))


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
def test_features_are_means_over_an_image_its_mirror_image_and_its_shifts(mirrored, shifted):
    """Against NumPy's flips and slices, one view at a time."""
    X = torch.rand(4, 3, 16, 16, generator=generator())
    plain = build(WhitenedCNN(8, 12), (3, 16, 16))
    averaged = build(WhitenedCNN(8, 12, mirrored=mirrored, shifted=shifted), (3, 16, 16))
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


def test_layers_of_a_network_that_averages_views_see_the_image_itself():
    """The views are passed through the body only where its mean is asked for."""
    y = np.arange(60) % 2
    X = np.random.default_rng(0).uniform(0, 0.5, (60, 256)) + 0.5 * y[:, None]
    clf = TorchClassifier(WhitenedCNN(8, 12, mirrored=True, shifted=True), QUICK).fit(X, y)
    alone = deepcopy(clf)
    alone.module_.mirrored = alone.module_.shifted = False
    passes = []
    clf.module_.body[0].register_forward_hook(lambda *_: passes.append(1))
    for layers, views in ((["body.2", "body"], 1), (["body.2", "head"], 6)):
        of_views = LayerFeatures(FrozenEstimator(clf), layers).fit(X)
        passes.clear()
        found, expected = of_views.transform(X), []
        assert len(passes) == views
        for name, width in zip(layers, of_views.widths_, strict=True):
            network = clf if name == "head" else alone
            expected.append(LayerFeatures(FrozenEstimator(network), [name]).fit(X).transform(X))
            assert expected[-1].shape == (len(X), width)
        np.testing.assert_allclose(found, np.hstack(expected), atol=1e-6)


def test_mc_dropout_has_the_features_of_the_network():
    """Those of a mirrored network are means over an image and its mirror image."""
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 100)), np.arange(40) % 2
    mc = MCDropout(WhitenedCNN(width=4, features=6, dropout=0.4, mirrored=True), QUICK).fit(X, y)
    flipped = X.reshape(-1, 10, 10)[:, :, ::-1].reshape(X.shape)
    np.testing.assert_allclose(mc.sample_proba(flipped), mc.sample_proba(X), atol=1e-6)
    assert np.ptp(mc.uncertainty(X)) > 1e-5


@pytest.mark.parametrize("backbone", [PoolCNN(), WhitenedCNN()], ids=repr)
def test_inputs_that_are_too_small(backbone):
    build(backbone, (3, 9, 9))(torch.zeros(2, 243))
    with pytest.raises(ValueError, match="needs images of at least 9 x 9 pixels"):
        build(backbone, (3, 8, 9))


@pytest.mark.parametrize("cls", [PoolCNN, WhitenedCNN])
@pytest.mark.parametrize("name", ["width", "features", "dropout"])
def test_settings_are_checked(cls, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        cls(**{name: 1.0 if name == "dropout" else 0})


def ramp(b, shape):
    return torch.arange(b * int(np.prod(shape)), dtype=torch.float64).reshape(b, -1)


def candidates(image, shift):
    """Every cut of one image (c, h, w), by a plain loop over NumPy's reflection."""
    _, h, w = image.shape
    padded = np.pad(image, ((0, 0), (shift, shift), (shift, shift)), mode="reflect")
    for down in range(2 * shift + 1):
        for right in range(2 * shift + 1):
            cut = padded[:, down : down + h, right : right + w]
            yield (down, right, False), cut
            yield (down, right, True), cut[:, :, ::-1]


def cuts(shape, shift, b, seed=0):
    """Return the change made to each of b images, by comparison with every candidate."""
    X = ramp(b, shape)
    found = CropFlip(shape, shift)(X, generator(seed)).numpy().reshape(b, *shape)
    for image, result in zip(X.numpy().reshape(b, *shape), found, strict=True):
        yield [key for key, cut in candidates(image, shift) if np.array_equal(cut, result)]


@pytest.mark.parametrize(("shape", "shift"), [((3, 6, 8), 2), ((1, 5, 4), 3), ((2, 3, 3), 1)])
def test_crop_flip_gives_one_cut_of_every_image(shape, shift):
    # in a narrow image two cuts may be the same: its reflection comes round
    assert all(cuts(shape, shift, 40))


def test_crop_flip_reaches_all_equally_often():
    n = 4000
    found = Counter(match for (match,) in cuts((1, 5, 6), 1, n))
    assert equally_often(found.values(), 3 * 3 * 2)
    mirrored = sum(count for (_, _, flip), count in found.items() if flip)
    assert abs(mirrored - n / 2) < 4 * np.sqrt(n / 4)


def test_cutout_puts_the_mean_colour_into_one_square_of_each_image():
    b, shape, side = 500, (2, 6, 7), 3
    X = ramp(b, shape)
    plain = CropFlip(shape, 1)(X, generator()).reshape(b, *shape)
    found = CropFlip(shape, 1, cutout=side)(X, generator()).reshape(b, *shape)
    mean = plain.mean((0, 2, 3))
    corners = Counter()
    for before, after in zip(plain, found, strict=True):
        changed = (before != after).all(0)
        rows, columns = (np.flatnonzero(changed.any(axis)) for axis in (1, 0))
        np.testing.assert_array_equal(rows, rows[0] + np.arange(side))
        np.testing.assert_array_equal(columns, columns[0] + np.arange(side))
        assert changed.sum() == side**2 and torch.equal(after[:, ~changed], before[:, ~changed])
        torch.testing.assert_close(after[:, changed], mean[:, None].expand(-1, side**2))
        corners[rows[0], columns[0]] += 1
    assert equally_often(corners.values(), 4 * 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(CropFlip, (32, 32)), "image_shape must be .*longer than shift=2"),
        (partial(CropFlip, (3, 2, 32)), "image_shape must be .*longer than shift=2"),
        (partial(CropFlip, (3, 32, 2)), "image_shape must be .*longer than shift=2"),
        (partial(CropFlip, shift=0), "shift must be an integer >= 1, got 0"),
        (partial(CropFlip, (3, 5, 6), cutout=5), "cutout must be smaller .* 5 x 6"),
        (partial(CropFlip, cutout=-1), "cutout must be an integer >= 0"),
        (partial(CropFlip(), torch.zeros(2, 10), None), "rows of 3072 pixels, got 10; pass"),
    ],
)
def test_settings_of_a_crop_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


SHAPES = [(8, 72), (72, 8), (24, 24)]


def matrix(shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_become_about_one_and_vectors_stay(shape):
    U, values, Vt = torch.linalg.svd(matrix(shape), full_matrices=False)
    spread = U @ torch.diag(torch.linspace(1, 3, len(values))) @ Vt
    turned = U.T @ orthogonal(spread) @ Vt.T
    assert turned.diagonal().min() > 0.6 and turned.diagonal().max() < 1.3
    torch.testing.assert_close(turned, torch.diag(turned.diagonal()), atol=1e-5, rtol=0)


def naive(kernel, gradients, lr):
    """Kernels after each gradient, in float64."""
    momentum = np.zeros_like(kernel)
    for gradient in gradients:
        momentum = 0.6 * momentum + gradient
        x = (gradient + 0.6 * momentum).reshape(len(kernel), -1)
        x = x / np.linalg.norm(x)
        for _ in range(3):
            x = 3.4445 * x - 4.7750 * x @ x.T @ x + 2.0315 * x @ x.T @ x @ x.T @ x
        kernel = kernel * np.sqrt(len(kernel)) / np.linalg.norm(kernel)
        kernel = kernel - 0.2 * lr * x.reshape(kernel.shape)
    return kernel


def test_kernels_follow_a_naive_loop_and_all_else_is_sgd():
    options = {"lr": 0.5, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}
    kernel, bias, twin = (nn.Parameter(matrix(s, seed=1)) for s in ((4, 3, 2, 2), (4,), (4,)))
    start = kernel.detach().double().numpy()
    ours = Muon([kernel, bias], [kernel], fused=True, **options)
    sgd = torch.optim.SGD([twin], **options)
    gradients = [matrix((4, 3, 2, 2), seed) for seed in (2, 3, 4)]
    for gradient in gradients:
        kernel.grad, bias.grad, twin.grad = gradient.clone(), matrix((4,), 9), matrix((4,), 9)
        ours.step()
        sgd.step()
    expected = naive(start, [g.double().numpy() for g in gradients], lr=0.5)
    np.testing.assert_allclose(kernel.detach().numpy(), expected, atol=1e-5)
    torch.testing.assert_close(bias, twin)


class Shifted(nn.Module):
    """Has a parameter with the shape of a kernel that is none, as a flow per class has."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(1, 8, 1, 1))

    def forward(self, maps):
        return maps + self.shift


def loss(outputs, targets, epoch):
    return nn.functional.cross_entropy(outputs, targets)


def trained(*layers, **settings):
    """Layers after training on images of random numbers."""
    module = nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(2))
    settings = {"epochs": 2, "batch_size": 10, "optimizer": muon, "device": "cpu"} | settings
    y = torch.arange(40) % 2
    train(module, loss, (matrix((40, 4, 6, 6)), y), Training(n_jobs=1, **settings), seed=0)
    return module


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 8, 3),
        nn.Conv2d(4, 8, 3, groups=4),
        nn.ConvTranspose2d(4, 8, 3),
        nn.LazyConv2d(8, 3),
        nn.utils.parametrizations.spectral_norm(nn.Conv2d(4, 8, 3)),
        nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 8, 3)),
        nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 8, 3), dim=1),
        nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 8, 3), dim=None),
    ],
    ids=["plain", "grouped", "transposed", "lazy", "spectral_norm", "norm_0", "norm_1", "norm"],
)
def test_only_kernels_of_convolutions_get_the_norm_of_a_kernel(layer):
    module = trained(layer, Shifted(), nn.BatchNorm2d(8), learning_rate=1e-6)
    turned = [
        name
        for name, p in module.named_parameters()
        if p.ndim > 1 and abs(float(p.detach().norm()) / len(p) ** 0.5 - 1) < 1e-4
    ]
    assert len(turned) == 1 and turned[0].startswith(("0.weight", "0.parametrizations.weight"))


def frozen():
    return nn.Conv2d(4, 8, 3).requires_grad_(False)


@pytest.mark.parametrize("layers", [(), (frozen(),)])
def test_it_is_refused_where_it_would_be_sgd(layers):
    with pytest.raises(ValueError, match=r"muon is for .* Sequential has none.* use 'sgd'"):
        trained(*layers)
    with pytest.raises(ValueError, match=r"muon .* Network has none"):
        TorchClassifier(MLP((4,)), Training(optimizer=muon)).fit(np.eye(4), [0, 1, 0, 1])


class Stop(Exception):
    pass


def test_it_learns_and_an_interrupted_run_ends_with_the_same_bits(tmp_path):
    x = matrix((60, 2, 6, 6))
    y = (x[:, 0].mean((1, 2)) > 0).long()
    settings = Training(
        epochs=8, batch_size=10, optimizer=muon, learning_rate=0.1, n_jobs=1, device="cpu"
    )

    def network():
        torch.manual_seed(0)
        layers = nn.Conv2d(2, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2)
        return nn.Sequential(*layers)

    def stop(report):
        if report["epoch"] == 3:
            raise Stop

    whole, parts = network(), network()
    history = train(whole, loss, (x, y), settings, seed=0)
    assert history.loss[-1] < history.loss[0] / 2
    where = {"seed": 0, "checkpoint": tmp_path / "run.pt"}
    with pytest.raises(Stop):
        train(parts, loss, (x, y), settings, progress=stop, **where)
    parts = network()
    train(parts, loss, (x, y), settings, **where)
    assert all(
        torch.equal(a, b) for a, b in zip(whole.parameters(), parts.parameters(), strict=True)
    )


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="PyTorch's is of version 2.9")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_direction_is_that_of_pytorch(shape):
    theirs = nn.Parameter(torch.zeros(shape))
    theirs.grad = matrix(shape)
    torch.optim.Muon([theirs], lr=1.0, momentum=0.0, weight_decay=0.0, ns_steps=3).step()
    longer = max(1, shape[0] / shape[1]) ** 0.5  # theirs, of a matrix with more rows than columns
    ours = longer * orthogonal(matrix(shape))
    # in bfloat16, which has three digits
    torch.testing.assert_close(ours, -theirs.detach(), atol=0.02 * longer, rtol=0.05)


def test_without_a_gradient_or_a_norm_nothing_breaks():
    kernel = nn.Parameter(torch.zeros(2, 3, 3, 3))
    optimizer = Muon([kernel], [kernel], lr=1.0, momentum=0.9, nesterov=True)
    optimizer.step()
    kernel.grad = torch.zeros_like(kernel)
    optimizer.step()
    assert not kernel.detach().any()
