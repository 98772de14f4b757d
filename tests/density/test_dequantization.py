"""What a flow is shown: pixels as real numbers, features in standard units."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from dipedl.density import FlowDensity  # noqa: E402
from dipedl.networks import Dequantization, MaskedAutoregressive, Standardization, Training  # noqa: E402

FORMS = [Dequantization(), Dequantization(4), Dequantization(logit=None), Dequantization(2, 0.05)]
TINY = {
    "flow": MaskedAutoregressive(2, (8,)),
    "training": Training(epochs=2, batch_size=32, n_jobs=1),
}


def levels(n, d, top=255, seed=0):
    """Rows (n, d) of grey levels in [0, 1]."""
    drawn = torch.randint(0, top + 1, (n, d), generator=torch.Generator().manual_seed(seed))
    return drawn.double() / top


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_jacobian_against_autograd(form):
    x = levels(5, 4, form.levels - 1)
    map_ = form.build(x)
    y, log_det = map_(x)
    for i in range(len(x)):
        jacobian = torch.autograd.functional.jacobian(lambda r: map_(r[None])[0][0], x[i])
        torch.testing.assert_close(torch.linalg.slogdet(jacobian)[1], log_det[i])
    assert y.isfinite().all()


def test_formula_of_the_paper():
    x = levels(6, 5)
    cell = (255 * x.numpy() + 0.5) / 256
    y, _ = Dequantization().build(x)(x)
    np.testing.assert_allclose(y.numpy(), logit(1e-6 + (1 - 2e-6) * cell), rtol=1e-12)
    plain, _ = Dequantization(logit=None).build(x)(x)
    np.testing.assert_allclose(plain.numpy(), cell, rtol=1e-14)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_noise_fills_the_cell_of_each_level_and_the_inverse_finds_the_level(form):
    top = form.levels - 1
    x = torch.tensor([[0.0, 1.0, round(top / 3) / top]], dtype=torch.float64).expand(4000, 3)
    map_ = form.build(x)
    noisy = map_.noise(x, torch.Generator().manual_seed(0))
    y, _ = map_(noisy)
    torch.testing.assert_close(map_.inverse(y), x)
    cell = (
        y.numpy() if form.logit is None else (expit(y.numpy()) - form.logit) / (1 - 2 * form.logit)
    )
    u = cell * form.levels - x.numpy() * top
    for column in u.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_noise_comes_from_its_generator_and_prediction_has_none():
    x = levels(3, 4)
    map_ = Dequantization().build(x)
    a, b, c = (map_.noise(x, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(map_(x)[0], map_(x)[0])


@pytest.mark.parametrize("bad", [-0.01, 1.02, 255.0])
def test_values_outside_the_unit_interval_are_refused(bad):
    X = levels(40, 4).numpy()
    wrong = X.copy()
    wrong[3, 1] = bad
    flow = FlowDensity(**TINY, preprocessing=Dequantization())
    message = r"must hold pixels in \[0, 1\].*divide images of 0..255 by 255"
    with pytest.raises(ValueError, match=f"X {message}"):
        flow.fit(wrong)
    with pytest.raises(ValueError, match=f"validation {message}"):
        flow.fit(X, validation=wrong)
    flow.fit(X)
    for method in (flow.score_samples, flow.bits_per_dimension):
        with pytest.raises(ValueError, match=f"X {message}"):
            method(wrong)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"levels": 1}, ValueError, "levels must be at least 2, got 1"),
        ({"levels": 2.5}, TypeError, "levels must be an integer"),
        ({"logit": 0.0}, ValueError, "logit must be in"),
        ({"logit": 0.5}, ValueError, "logit must be in"),
    ],
)
def test_no_grey_scale_and_no_logit_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Dequantization(**arguments)


def test_standardization_is_exact_far_from_zero():
    x = 1e6 + torch.randn(500, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    map_ = Standardization().build(x)
    y, log_det = map_(x)
    torch.testing.assert_close(y.mean(dim=0), torch.zeros(2).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(y.var(dim=0, correction=0), torch.ones(2).double())
    torch.testing.assert_close(log_det, -x.std(dim=0, correction=0).log().sum().expand(500))
    torch.testing.assert_close(map_.inverse(y), x)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6 + 0.1])
def test_a_constant_feature_has_no_density(constant):
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[:, 1] = constant
    with pytest.raises(ValueError, match=r"features \[1\] are constant"):
        FlowDensity(**TINY).fit(X)


def test_an_overflowing_variance_is_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[0, 2] = 1e200
    with pytest.raises(ValueError, match=r"1e\+200 at row 0, column 2"):
        FlowDensity(**TINY).fit(X)


def test_with_the_jacobian_it_is_a_density_of_pixels_else_of_logits():
    X = levels(60, 2).numpy()
    pixels = FlowDensity(**TINY, preprocessing=Dequantization()).fit(X)
    logits = FlowDensity(**TINY, preprocessing=Dequantization(jacobian=False)).fit(X)
    log_det = pixels.preprocessing_(torch.tensor(X))[1].numpy()
    np.testing.assert_allclose(pixels.score_samples(X), logits.score_samples(X) + log_det)
    assert pixels.bits_per_dimension(X) == pytest.approx(logits.bits_per_dimension(X))


def test_samples_are_grey_levels():
    X = levels(60, 3, 7).numpy()
    flow = FlowDensity(**TINY, preprocessing=Dequantization(8)).fit(X)
    drawn = flow.sample(50, random_state=1)
    assert drawn.shape == (50, 3)
    np.testing.assert_allclose(drawn * 7, np.round(drawn * 7), atol=1e-12)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    flow.score_samples(drawn)
