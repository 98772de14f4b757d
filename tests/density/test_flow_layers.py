"""Masks, log-determinants and inverses of the flow's layers, against autograd and a plain copy."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from torch import nn  # noqa: E402

from dipedl.networks import MaskedAutoregressive  # noqa: E402
from dipedl.networks.flows.masked_autoregressive import (  # noqa: E402  # noqa: E402
    MADE,
    BatchNorm,
    MaskedLinear,
    Normalise,
    spread_degrees,
)

FORMS = {
    "plain": {},
    "panels": {"panels": 3},
    "residual": {"residual": True},
    "norms": {"batch_norm": True, "between_batch_norm": True},
    "paper": {"residual": True, "batch_norm": True, "between_batch_norm": True, "panels": 2},
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(n, d, seed=1):
    return torch.randn(n, d, dtype=torch.float64, generator=generator(seed))


def warmed(flow, d):
    """The flow in float64 with running statistics and weights away from where they start."""
    flow = flow.double().train()
    with torch.no_grad():
        for p in flow.parameters():
            p.add_(0.3 * torch.randn(p.shape, dtype=p.dtype, generator=generator(2)))
        for module in flow.modules():
            if isinstance(module, MaskedLinear):
                mask(module)
        flow().log_prob(2 * rows(64, d, 3) + 1)
    return flow.eval()


def mask(layer):
    for weight, stairs in zip(layer.weights, layer._stairs, strict=True):
        weight[:, weight.shape[1] - stairs.shape[1] :].mul_(stairs)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("panels", [1, 3, 7, None])
def test_masked_linear_is_a_masked_product_with_its_gradients(strict, panels):
    degrees, out_degrees = spread_degrees(11, 8), spread_degrees(14, 8)
    layer = MaskedLinear(degrees, out_degrees, strict=strict, panels=panels)
    layer.reset_parameters(generator())
    layer.double()
    allowed = degrees < out_degrees[:, None] if strict else degrees <= out_degrees[:, None]
    weight = layer.dense().detach().requires_grad_()
    assert torch.equal(weight != 0, allowed)

    x, y = rows(5, 11).requires_grad_(), rows(5, 11).requires_grad_()
    expected = nn.functional.linear(y, weight * allowed, layer.bias)
    torch.testing.assert_close(layer(x), expected)
    target = rows(5, 14, 2)
    grads = torch.autograd.grad(layer(x), [x, layer.bias, *layer.weights], target)
    want = torch.autograd.grad(expected, [y, layer.bias, weight], target)
    torch.testing.assert_close(grads[:2], want[:2])
    full = torch.cat([nn.functional.pad(g, (0, 11 - g.shape[1])) for g in grads[2:]])
    torch.testing.assert_close(full, want[2])


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_zeros_stay_zero_through_training(optimizer):
    maf = MaskedAutoregressive(2, (20, 20), residual=True, panels=3)
    flow = maf.build(6, generator())
    step = optimizer(flow.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(5):
        step.zero_grad()
        (-flow().log_prob(rows(30, 6).float()).mean()).backward()
        step.step()
    for layer in (m for m in flow.modules() if isinstance(m, MaskedLinear)):
        for weight, stairs in zip(layer.weights, layer._stairs, strict=True):
            assert (weight[:, weight.shape[1] - stairs.shape[1] :][stairs == 0] == 0).all()


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("hidden", [(3, 3), (40, 40)])
def test_jacobian_of_made_is_strictly_triangular(residual, batch_norm, hidden):
    made = MADE(6, hidden, residual=residual, batch_norm=batch_norm, panels=2)
    made.reset_parameters(generator())
    made.double().eval()
    for output in (0, 1):
        jacobian = torch.autograd.functional.jacobian(lambda x, i=output: made(x)[i][0], rows(1, 6))
        jacobian = jacobian[:, 0]
        assert (jacobian.triu() == 0).all()
        if hidden == (40, 40):  # nothing below the diagonal is lost, in the first layer's reach
            assert (jacobian.abs().sum(dim=1)[1:] > 0).all()
            assert (jacobian.abs().sum(dim=0)[:-1] > 0).all()


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_log_determinant_and_inverse(form, d):
    flow = warmed(MaskedAutoregressive(3, (12, 12), **form).build(d, generator()), d)
    transform, x = flow.transform(), rows(4, d)
    z, log_det = transform.call_and_ladj(x)
    for i in range(len(x)):
        jacobian = torch.autograd.functional.jacobian(lambda r: transform(r[None])[0], x[i])
        torch.testing.assert_close(log_det[i], torch.linalg.slogdet(jacobian)[1])
    torch.testing.assert_close(transform.inv(z), x)
    torch.testing.assert_close(transform.log_abs_det_jacobian(x, z), log_det)
    torch.testing.assert_close(transform(x), z)
    expected = log_det - 0.5 * (z.square().sum(dim=1) + d * math.log(2 * math.pi))
    torch.testing.assert_close(flow().log_prob(x), expected)


def test_rows_do_not_mix_when_evaluating_but_do_in_training():
    flow = warmed(MaskedAutoregressive(2, (12,), **FORMS["norms"]).build(3, generator()), 3)
    x = rows(6, 3)
    torch.testing.assert_close(flow().log_prob(x)[:2], flow().log_prob(x[:2]))
    flow.train()
    assert not torch.allclose(flow().log_prob(x)[:2], flow().log_prob(x[:2]))


def test_normalise_in_training_is_batch_normalisation_with_its_log_determinant():
    layer = Normalise(3).double().train()
    with torch.no_grad():
        layer.raw_weight.add_(torch.tensor([0.0, 1.0, -1.0]))
        layer.bias.add_(0.5)
    x = 3 * rows(50, 3) + 2
    y, log_det = layer().call_and_ladj(x)
    weight = nn.functional.softplus(layer.raw_weight)
    deviation = (x.var(dim=0) + 1e-5).sqrt()
    torch.testing.assert_close(y, weight * (x - x.mean(dim=0)) / deviation + layer.bias)
    torch.testing.assert_close(log_det[0], (weight / deviation).log().sum())
    torch.testing.assert_close(layer.mean, 0.1 * x.mean(dim=0))
    torch.testing.assert_close(layer.var, 0.9 + 0.1 * x.var(dim=0))


def test_a_batch_of_one_row_uses_the_running_statistics():
    x = rows(1, 3)
    layer = Normalise(3).double()
    trained = layer.train()().call_and_ladj(x)
    torch.testing.assert_close(trained, layer.eval()().call_and_ladj(x))
    assert torch.equal(layer.mean, torch.zeros(3).double())
    norm = BatchNorm(3).double()
    torch.testing.assert_close(norm.train()(x), norm.eval()(x))


def test_the_paper_flow_can_be_stated():
    maf = MaskedAutoregressive.paper()
    assert (maf.transforms, maf.hidden, maf.residual) == (10, (1024,) * 20, True)
    assert maf.batch_norm and maf.between_batch_norm
    sizes = [masked_weights(MADE(784, (1024,) * blocks, residual=True)) for blocks in (1, 2)]
    assert sizes[0] == 784 * 1024 + 2 * 1024**2 + 2 * 1024 * 784
    assert 10 * (sizes[0] + 19 * (sizes[1] - sizes[0])) == 443_514_880


def masked_weights(module):
    layers = [m for m in module.modules() if isinstance(m, MaskedLinear)]
    return sum(m.in_features * m.out_features for m in layers)
