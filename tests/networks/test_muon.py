"""Muon against PyTorch's own, singular value decompositions and a loop in NumPy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dipedl.networks import MLP, TorchClassifier, Training, train  # noqa: E402
from dipedl.networks.muon import Muon, orthogonal  # noqa: E402

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
    settings = {"epochs": 2, "batch_size": 10, "optimizer": "muon", "device": "cpu"} | settings
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
    with pytest.raises(ValueError, match=r'"muon" is for .* Sequential has none.* use "sgd"'):
        trained(*layers)
    with pytest.raises(ValueError, match=r'"muon" .* Network has none'):
        TorchClassifier(MLP((4,)), Training(optimizer="muon")).fit(np.eye(4), [0, 1, 0, 1])


class Stop(Exception):
    pass


def test_it_learns_and_an_interrupted_run_ends_with_the_same_bits(tmp_path):
    x = matrix((60, 2, 6, 6))
    y = (x[:, 0].mean((1, 2)) > 0).long()
    settings = Training(
        epochs=8, batch_size=10, optimizer="muon", learning_rate=0.1, n_jobs=1, device="cpu"
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
