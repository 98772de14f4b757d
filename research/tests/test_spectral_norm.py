import numpy as np
import pytest
import torch
from torch import nn

from dipedl_bench.spectral_norm import add_spectral_norm, remove_spectral_norm


def layers(scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    module = nn.Sequential(nn.Conv2d(2, 5, 3, bias=False), nn.Flatten(), nn.Linear(45, 4))
    for parameter in module.parameters():
        parameter.data = scale * torch.randn(parameter.shape, generator=generator)
    return module.double()


def norms(module):
    found = [module[0].weight.flatten(1), module[2].weight]
    return [np.linalg.svd(w.detach().numpy(), compute_uv=False)[0] for w in found]


def generator():
    return torch.Generator().manual_seed(0)


def converge(module, steps=150):
    module.train()
    x = torch.zeros(2, 2, 5, 5, dtype=torch.float64)
    for _ in range(steps):
        module(x)
    return module.eval()


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_norm_is_one_whatever_the_weight(scale):
    module = converge(add_spectral_norm(layers(scale), generator()))
    np.testing.assert_allclose(norms(module), 1, rtol=1e-6)


def test_agrees_with_pytorch_in_value_and_gradient():
    ours = converge(add_spectral_norm(layers(), generator()))
    theirs = layers()
    for i in (0, 2):
        nn.utils.parametrizations.spectral_norm(theirs[i])
    converge(theirs)
    x = torch.randn(3, 2, 5, 5, dtype=torch.float64)
    gradients = []
    for module in (ours, theirs):
        module(x).square().sum().backward()
        gradients.append(module[2].parametrizations.weight.original.grad)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-7, atol=1e-10)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-9)


def test_power_iteration_while_training_only_and_backward_twice():
    module = add_spectral_norm(layers(), generator())
    u = module[0].parametrizations.weight[0].u
    before = u.clone()
    x = torch.zeros(1, 2, 5, 5, dtype=torch.float64)
    module.eval()(x)
    assert torch.equal(u, before)
    module.train()
    # two passes before one backward: the vectors of the first must not change under it
    (module(x) + module(x + 1)).sum().backward()
    # in place: a recorded step reads and writes one and the same memory
    assert module[0].parametrizations.weight[0].u is u and not torch.equal(u, before)


def test_baked_weights_answer_alike():
    module = add_spectral_norm(layers(), generator())
    x = torch.randn(3, 2, 5, 5, dtype=torch.float64)
    module.train()(x)
    expected = module.eval()(x)
    plain = remove_spectral_norm(module)
    assert set(plain.state_dict()) == {"0.weight", "2.weight", "2.bias"}
    torch.testing.assert_close(plain(x), expected, rtol=0, atol=0)
