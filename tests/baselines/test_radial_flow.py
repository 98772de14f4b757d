"""Radial flows: bijections with the right log-determinant, and densities that integrate to one."""

import pytest

torch = pytest.importorskip("torch")

from dipedl.baselines.postnet import RadialFlow  # noqa: E402


def flow(n_classes=3, dim=2, n_layers=6, spread=2.0, seed=0):
    """A flow whose parameters are far from harmless ones, in float64."""
    generator = torch.Generator().manual_seed(seed)
    made = RadialFlow(n_classes, dim, n_layers, generator).double()
    with torch.no_grad():
        for parameter in made.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(spread * noise)
    return made


def points(n, dim, scale=2.0, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, dim, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_log_det_is_that_of_the_jacobian(dim):
    f = flow(dim=dim)
    z = points(20, dim)
    _, log_det = f.transform(z)
    for c in range(3):
        jacobian = torch.stack(
            [torch.autograd.functional.jacobian(lambda x, c=c: f.transform(x)[0][0, c], row[None])
             for row in z]
        ).reshape(20, dim, dim)  # fmt: skip
        sign, expected = torch.linalg.slogdet(jacobian)
        assert (sign > 0).all()  # a bijection that keeps its orientation
        torch.testing.assert_close(log_det[:, c], expected, rtol=1e-8, atol=1e-10)


def test_log_density_is_that_of_the_image_plus_the_log_det():
    f, z = flow(dim=4), points(7, 4)
    u, log_det = f.transform(z)
    base = torch.distributions.MultivariateNormal(torch.zeros(4).double(), torch.eye(4).double())
    torch.testing.assert_close(f(z), base.log_prob(u) + log_det)


@pytest.mark.parametrize(("dim", "seed"), [(1, 0), (1, 1), (1, 2), (2, 0)])
def test_density_integrates_to_one(dim, seed):
    # Narrow peaks at the centres need a fine grid; far tails are Gaussian.
    f = flow(dim=dim, spread=0.7, seed=seed)
    n, half = (40_001, 30.0) if dim == 1 else (1_201, 14.0)
    axis = torch.linspace(-half, half, n, dtype=torch.float64)
    grid = torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)
    with torch.no_grad():
        mass = sum(f(part).exp().sum(dim=0) for part in grid.split(200_000))
    mass = mass * float(axis[1] - axis[0]) ** dim
    torch.testing.assert_close(mass, torch.ones(3).double(), rtol=0, atol=5e-3)


def test_each_class_has_its_own_layers():
    together, z = flow(n_classes=3), points(5, 2)
    for c in range(3):
        alone = RadialFlow(1, 2).double()
        with torch.no_grad():
            for mine, shared in zip(alone.parameters(), together.parameters(), strict=True):
                mine.copy_(shared[:, c : c + 1])
        torch.testing.assert_close(alone(z)[:, 0], together(z)[:, c])


def test_finite_at_a_centre_and_far_away():
    f = flow(n_classes=1, dim=2, n_layers=1)
    z = torch.cat([f.center[0].detach(), points(5, 2, 1e6)]).requires_grad_()
    value = f(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert torch.isfinite(value).all() and torch.isfinite(slope).all()


@pytest.mark.parametrize("name", ["n_classes", "dim", "n_layers"])
def test_bad_sizes(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        RadialFlow(**{"n_classes": 2, "dim": 2, "n_layers": 2, name: 0})


def test_gradients_of_inputs_and_parameters():
    f = flow(dim=2, n_layers=2, spread=0.5)
    z = points(3, 2).requires_grad_()

    def density(z, *parameters):
        named = dict(zip(dict(f.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(f, named, (z,))

    assert torch.autograd.gradcheck(density, (z, *f.parameters()))
