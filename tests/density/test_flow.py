"""FlowDensity and its layers: it integrates to one, finds known densities, refuses the rest."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

torch = pytest.importorskip("torch")
zuko = pytest.importorskip("zuko")

from torch import nn  # noqa: E402

from dipedl.density import FlowDensity  # noqa: E402
from dipedl.density import flow as flow_file  # noqa: E402
from dipedl.networks import Dequantization, MaskedAutoregressive, Standardization, Training  # noqa: E402
from dipedl.networks.flows.masked_autoregressive import (  # noqa: E402
    MADE,
    BatchNorm,
    MaskedLinear,
    Normalise,
    spread_degrees,
)
from weekly import sample_of  # noqa: E402

SMALL = MaskedAutoregressive(2, (16,))
NORMS = MaskedAutoregressive(2, (12, 12), True, True, True)
ZUKO = {
    "MAF": partial(zuko.flows.MAF, transforms=2, hidden_features=(16,)),
    "NSF": partial(zuko.flows.NSF, transforms=1, hidden_features=(16,), bins=4),
    "RealNVP": partial(zuko.flows.RealNVP, transforms=2, hidden_features=(16,)),
    "NICE": partial(zuko.flows.NICE, transforms=2, hidden_features=(16,)),
    "BPF": partial(zuko.flows.BPF, transforms=1, degree=6, hidden_features=(16,)),
}
QUICK = Training(epochs=4, batch_size=32, learning_rate=0.01, n_jobs=1)


def density(flow=SMALL, training=QUICK, **arguments):
    return FlowDensity(flow, training=training, **arguments)


def frame(names):
    return pytest.importorskip("pandas").DataFrame(banana(60, 2), columns=list(names))


def banana(n, d, seed=0):
    """Bent clouds in unlike units (n, d)."""
    z = np.random.default_rng(seed).normal(size=(n, d))
    X = z * np.linspace(0.5, 2.0, d)
    X[:, 1:] += 0.5 * z[:, :-1] ** 2
    return X + 3


def mass(fitted, X, points):
    """Integral of the density over a box around X, by importance sampling from a wide Student t."""
    wide = stats.multivariate_t(
        X.mean(axis=0), 4 * np.atleast_2d(np.cov(X.T)), df=3, seed=np.random.default_rng(0)
    )
    drawn = wide.rvs(points).reshape(points, -1)
    ratio = np.exp(fitted.score_samples(drawn) - wide.logpdf(drawn))
    return ratio.mean(), 6 * ratio.std() / np.sqrt(points)


@pytest.mark.parametrize("d", sample_of([1, 2, 3], 1))
@pytest.mark.parametrize("flow", [SMALL, NORMS], ids=["plain", "residual, norms"])
def test_it_integrates_to_one(flow, d):
    X = banana(300, d)
    fitted = density(flow).fit(X)
    total, error = mass(fitted, X, 20_000)
    assert error < 0.2
    assert abs(total - 1) < error


@pytest.mark.parametrize("name", sample_of(ZUKO, 0, 2))
def test_flows_of_zuko_integrate_to_one(name):
    fitted = density(ZUKO[name]).fit(banana(200, 2))
    axis = np.linspace(-40, 60, 300)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(fitted.score_samples(grid)).sum() * (axis[1] - axis[0]) ** 2
    assert total == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("d", [1, 2])
def test_it_integrates_to_one_over_pixels(d):
    """On a grid: levels are so fine that the cells outside [0, 1] hold nothing."""
    X = np.random.default_rng(0).beta(3, 4, size=(300, d))
    X[:, d - 1] = X.mean(axis=1)
    fitted = density(preprocessing=Dequantization(2**20)).fit(X)
    n = 4000 if d == 1 else 250
    axis = (np.arange(n) + 0.5) / n
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    total = np.exp(fitted.score_samples(grid)).mean()
    assert total == pytest.approx(1, abs=1e-3)


def test_log_density_approaches_the_entropy_of_a_gaussian():
    """In 3 dimensions, correlated: the flow's family holds the truth."""
    scatter = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.4], [0.0, -0.4, 0.5]])
    normal = stats.multivariate_normal([5.0, 0.0, -100.0], scatter, seed=1)
    X, held_out = normal.rvs(1500), normal.rvs(3000)
    training = Training(12, 50, learning_rate=0.01, schedule="cosine", n_jobs=1)
    fitted = density(training=training).fit(X)
    gap = normal.logpdf(held_out).mean() - fitted.score(held_out)  # = KL, up to sampling error
    assert -0.005 < gap < 0.03
    assert fitted.score(held_out) == pytest.approx(-normal.entropy(), abs=0.1)


def test_samples_follow_the_density():
    X = banana(200, 2)
    fitted = density(NORMS).fit(X)
    drawn = fitted.sample(4000, random_state=3)
    assert drawn.shape == (4000, 2)
    # E_p[p] by samples against the integral of p^2 on a grid
    axis = np.linspace(-20, 40, 300)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    squared = np.exp(2 * fitted.score_samples(grid)).sum() * (axis[1] - axis[0]) ** 2
    p = np.exp(fitted.score_samples(drawn))
    assert abs(p.mean() - squared) < 6 * p.std() / np.sqrt(len(p))
    np.testing.assert_array_equal(drawn, fitted.sample(4000, random_state=3))


def test_bits_per_dimension_by_hand():
    X = np.random.default_rng(0).integers(0, 4, (50, 3)) / 3
    fitted = density(preprocessing=Dequantization(4)).fit(X)
    noisy = fitted.preprocessing_.noise(torch.tensor(X), torch.Generator().manual_seed(123))
    y, log_det = fitted.preprocessing_(noisy)
    with torch.no_grad():
        # four levels: cells of width 1/3 in units of x
        nats = (fitted.flow_().log_prob(y) + log_det - 3 * np.log(3)).mean().item()
    got = fitted.bits_per_dimension(X, random_state=FixedSeed(123))
    assert got == pytest.approx(-nats / 3 / np.log(2))
    assert fitted.bits_per_dimension(X) == fitted.bits_per_dimension(X)


class FixedSeed(np.random.RandomState):
    def __init__(self, value):
        super().__init__(0)
        self.value = value

    def randint(self, *_):
        return self.value


def test_scores_do_not_depend_on_the_chunk(monkeypatch):
    X = banana(100, 3)
    fitted = density(NORMS).fit(X)
    score = fitted.score_samples(X)
    monkeypatch.setattr(flow_file, "_CHUNK", 7)
    np.testing.assert_allclose(fitted.score_samples(X), score, rtol=1e-12)
    np.testing.assert_allclose(fitted.score_samples(X[::-1])[::-1], score, rtol=1e-12)


def test_float32_answers_are_float64_arrays_near_those_of_float64():
    X = banana(100, 3)
    exact, rough = (density(NORMS, dtype=dtype).fit(X) for dtype in ("float64", "float32"))
    score = rough.score_samples(X)
    assert score.dtype == np.float64
    np.testing.assert_allclose(score, exact.score_samples(X), rtol=1e-5, atol=1e-5)


def test_the_seed_decides_and_global_randomness_is_left_alone():
    X = banana(60, 2)
    state = torch.get_rng_state()
    fitted = [density(ZUKO["NSF"], random_state=seed).fit(X) for seed in (0, 0, 1)]
    a, b, c = (f.score_samples(X) for f in fitted)
    fitted[0].sample(3)
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)
    assert torch.equal(torch.get_rng_state(), state)


def test_validation_chooses_the_epoch_and_its_weights_are_restored():
    X, held_out = banana(40, 2), banana(400, 2, seed=5)
    early = Training(60, 8, learning_rate=0.03, patience=3, restore_best=True, n_jobs=1)
    fitted = density(MaskedAutoregressive(3, (64,)), early).fit(X, validation=held_out)
    history = fitted.history_
    assert history.stopped_early
    assert history.best_epoch == len(history.score) - 1 - 3 == int(np.argmin(history.score))
    # history is in standard units: the Jacobian of the preprocessing is the difference
    log_det = fitted.preprocessing_(torch.tensor(held_out))[1].mean().item()
    assert -fitted.score(held_out) + log_det == pytest.approx(min(history.score), rel=1e-5)


def test_validation_may_come_with_labels():
    X, held_out = banana(40, 2), banana(30, 2, seed=5)
    a = density().fit(X, validation=held_out)
    b = density().fit(X, np.zeros(40), validation=(held_out, np.zeros(30)))
    np.testing.assert_array_equal(a.score_samples(X), b.score_samples(X))


def test_a_share_is_held_out_by_default():
    X = banana(50, 2)
    assert None not in density().fit(X).history_.score
    assert set(density(validation_fraction=0).fit(X).history_.score) == {None}


def test_augmentation_comes_before_the_noise():
    X = np.random.default_rng(0).integers(0, 2, (40, 3)) / 1
    seen = []

    def inverted(x, generator):
        seen.append(x.clone())
        return 1 - x

    training = Training(epochs=1, batch_size=40, augment=inverted, n_jobs=1)
    fitted = density(training=training, preprocessing=Dequantization(), validation_fraction=0)
    fitted.fit(X)
    assert set(torch.cat(seen).unique().tolist()) <= {0.0, 1.0}
    plain = density(training=Training(1, 40, n_jobs=1), validation_fraction=0)
    plain.set_params(preprocessing=Dequantization()).fit(1 - X)
    assert fitted.history_.loss == pytest.approx(plain.history_.loss, rel=1e-4)


def test_augmentation_works_on_features_in_their_own_units():
    X = banana(60, 2)
    shifted = Training(30, 30, learning_rate=0.03, augment=lambda x, generator: x + 3, n_jobs=1)
    fitted = density(training=shifted, validation_fraction=0).fit(X)
    assert fitted.score(X + 3) > fitted.score(X)


def test_training_goes_on_from_a_checkpoint(tmp_path):
    X = banana(60, 2)
    image = np.random.default_rng(0).integers(0, 256, (60, 3)) / 255

    class Stop(Exception):
        pass

    def stop(report):
        raise Stop

    for arguments, rows in ({}, X), ({"preprocessing": Dequantization()}, image):
        path = tmp_path / f"{len(arguments)}.pt"
        whole = density(**arguments).fit(rows)
        with pytest.raises(Stop):
            density(**arguments).fit(rows, checkpoint=path, progress=stop)
        again = density(**arguments).fit(rows, checkpoint=path)
        np.testing.assert_array_equal(again.score_samples(rows), whole.score_samples(rows))
        with pytest.raises(ValueError, match="of another run"):
            density(NORMS, **arguments).fit(rows, checkpoint=path)
    with pytest.raises(ValueError, match="of another run"):
        density(preprocessing=Dequantization(128)).fit(image, checkpoint=path)


def test_far_rows_underflow_to_minus_infinity_never_to_nan():
    X = banana(100, 3)
    for flow in (SMALL, NORMS, ZUKO["NSF"]):
        fitted = density(flow).fit(X)
        far = X[:4] + np.array([[1e3], [1e9], [1e15], [1e300]])
        score = fitted.score_samples(far)
        assert (np.diff(score[:3]) < 0).all()
        assert score[0] < fitted.score_samples(X).min()
        assert np.isneginf(score[2:]).all()


def test_a_row_that_has_no_density_is_named():
    X = banana(50, 2)
    fitted = density().fit(X)
    with torch.no_grad():
        next(fitted.flow_.parameters()).fill_(torch.nan)
    with pytest.raises(ValueError, match=r"50 of 50 rows is NaN.*rows \[0, 1, 2, 3, 4\]"):
        fitted.score_samples(X)


def test_a_failed_fit_leaves_the_last_one():
    X = banana(50, 2)
    fitted = density().fit(X)
    score = fitted.score_samples(X)
    fitted.set_params(training=Training(20, 10, "sgd", learning_rate=1e6, n_jobs=1))
    with pytest.raises(FloatingPointError):
        fitted.fit(X)
    np.testing.assert_array_equal(fitted.score_samples(X), score)


FORMS = [Dequantization(), Dequantization(4), Dequantization(2, 0.05)]


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


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_noise_fills_the_cell_of_each_level_and_the_inverse_finds_the_level(form):
    top = form.levels - 1
    x = torch.tensor([[0.0, 1.0, round(top / 3) / top]], dtype=torch.float64).expand(4000, 3)
    map_ = form.build(x)
    noisy = map_.noise(x, torch.Generator().manual_seed(0))
    y, _ = map_(noisy)
    torch.testing.assert_close(map_.inverse(y), x)
    cell = (expit(y.numpy()) - form.logit) / (1 - 2 * form.logit)
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


def test_standardization_is_exact_far_from_zero():
    x = 1e6 + torch.randn(500, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    map_ = Standardization().build(x)
    y, log_det = map_(x)
    torch.testing.assert_close(y.mean(dim=0), torch.zeros(2).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(y.var(dim=0, correction=0), torch.ones(2).double())
    torch.testing.assert_close(log_det, -x.std(dim=0, correction=0).log().sum().expand(500))
    torch.testing.assert_close(map_.inverse(y), x)


def test_with_the_jacobian_it_is_a_density_of_pixels_else_of_logits():
    X = levels(60, 2).numpy()
    pixels = density(preprocessing=Dequantization()).fit(X)
    logits = density(preprocessing=Dequantization(jacobian=False)).fit(X)
    log_det = pixels.preprocessing_(torch.tensor(X))[1].numpy()
    np.testing.assert_allclose(pixels.score_samples(X), logits.score_samples(X) + log_det)
    assert pixels.bits_per_dimension(X) == pytest.approx(logits.bits_per_dimension(X))


def test_samples_are_grey_levels():
    X = levels(60, 3, 7).numpy()
    flow = density(preprocessing=Dequantization(8)).fit(X)
    drawn = flow.sample(50, random_state=1)
    assert drawn.shape == (50, 3)
    np.testing.assert_allclose(drawn * 7, np.round(drawn * 7), atol=1e-12)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    flow.score_samples(drawn)


IMAGES = levels(40, 4).numpy()
OUTSIDE = [np.where(np.arange(160).reshape(40, 4) == 13, v, IMAGES) for v in (-0.01, 1.02, 255.0)]
PIXELS = "must hold pixels in .*divide images of 0..255 by 255"
ROWS, OF_PIXELS = banana(40, 2), partial(density, preprocessing=Dequantization())
HUGE = np.insert(ROWS[1:], 0, [0.0, 1e200], axis=0)
CONSTANT = [np.insert(banana(30, 2), 1, v, axis=1) for v in (0.0, 0.1, 1e6 + 0.1)]

#: Call, error, and a pattern with the named argument and what came.
REFUSED = [
    *(
        (lambda a=a: MaskedAutoregressive(**a), ValueError, message)
        for a, message in (
            ({"transforms": 0}, "transforms must be an integer >= 1, got 0"),
            ({"hidden": ()}, "hidden must be a tuple of one width or more"),
            ({"hidden": 64}, "hidden must be a tuple of one width or more, got 64"),
            ({"hidden": (8, 0)}, "each width of hidden must be an integer >= 1, got 0"),
            ({"hidden": (8, 16), "residual": True}, "must repeat one width"),
            ({"panels": 0}, "panels must be an integer >= 1, got 0"),
        )
    ),
    (lambda: Dequantization(1), ValueError, "levels must be an integer >= 2, got 1"),
    (lambda: Dequantization(2.5), TypeError, "levels must be an integer"),
    (lambda: Dequantization(logit=0.0), ValueError, "logit must be in"),
    (lambda: Dequantization(logit=0.5), ValueError, "logit must be in"),
    *(
        (lambda a=a: FlowDensity(**{"training": QUICK} | a).fit(ROWS), error, message)
        for a, error, message in (
            ({"flow": "maf"}, TypeError, "flow must be None, a MaskedAutoregressive or a callable"),
            ({"flow": lambda d: torch.nn.Linear(d, d)}, TypeError, "a zuko flow, got Linear"),
            ({"dtype": "float16"}, ValueError, "dtype must be one of.*got 'float16'"),
            ({"validation_fraction": 1.0}, ValueError, "validation_fraction must be in"),
            ({"validation_fraction": -0.1}, ValueError, "validation_fraction must be in"),
            ({"preprocessing": "logit"}, TypeError, "preprocessing must be None"),
            ({"training": {"epochs": 3}}, TypeError, "training must be None or a Training"),
        )
    ),
    (lambda: density().fit(ROWS, validation=banana(10, 3)), ValueError, "validation .*expecting 2"),
    (
        lambda: density().fit(ROWS, validation=np.full((3, 2), np.nan)),
        ValueError,
        "validation must be as X: .*contains NaN",
    ),
    (
        lambda: density().fit(frame("ab"), validation=frame("ba")),
        ValueError,
        "validation must be as X: .*feature names",
    ),
    (
        lambda: density(validation_fraction=0.9).fit(ROWS[:2]),
        ValueError,
        "validation_fraction=0.9 leaves none of 2 rows",
    ),
    (lambda: density().fit(ROWS).sample(2.0), TypeError, "n_samples must be an integer"),
    (lambda: density().fit(ROWS[:1]), ValueError, "minimum of 2 is required"),
    (
        lambda: density(training=Training(2, patience=2, n_jobs=1), validation_fraction=0).fit(
            ROWS
        ),
        ValueError,
        "patience and restore_best need validation",
    ),
    (lambda: density().fit(ROWS).bits_per_dimension(ROWS), TypeError, "preprocessing=Dequantiz"),
    *((lambda c=c: density().fit(c), ValueError, r"features \[1\] are const") for c in CONSTANT),
    (lambda: density().fit(HUGE), ValueError, r"1e\+200 at row 0, column 1"),
    *((lambda w=w: OF_PIXELS().fit(w), ValueError, f"X {PIXELS}") for w in OUTSIDE),
    *(
        (call, ValueError, f"{name} {PIXELS}")
        for call, name in (
            (lambda: OF_PIXELS().fit(IMAGES, validation=OUTSIDE[0]), "validation"),
            (lambda: OF_PIXELS().fit(IMAGES).score_samples(OUTSIDE[0]), "X"),
            (lambda: OF_PIXELS().fit(IMAGES).bits_per_dimension(OUTSIDE[0]), "X"),
        )
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


LAYERS = {
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


@pytest.mark.parametrize("d", sample_of([1, 2, 5], 1))
@pytest.mark.parametrize("form", LAYERS.values(), ids=LAYERS)
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
    flow = warmed(MaskedAutoregressive(2, (12,), **LAYERS["norms"]).build(3, generator()), 3)
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
    maf = FlowDensity.paper().flow
    assert maf == MaskedAutoregressive.paper()
    assert (maf.transforms, maf.hidden, maf.residual) == (10, (1024,) * 20, True)
    assert maf.batch_norm and maf.between_batch_norm
    sizes = [masked_weights(MADE(784, (1024,) * blocks, residual=True)) for blocks in (1, 2)]
    assert sizes[0] == 784 * 1024 + 2 * 1024**2 + 2 * 1024 * 784
    assert 10 * (sizes[0] + 19 * (sizes[1] - sizes[0])) == 443_514_880


def masked_weights(module):
    layers = [m for m in module.modules() if isinstance(m, MaskedLinear)]
    return sum(m.in_features * m.out_features for m in layers)
