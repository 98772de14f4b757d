"""FlowDensity: it integrates to one, finds known densities, and says no where it must."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import dipedl

torch = pytest.importorskip("torch")
zuko = pytest.importorskip("zuko")

from dipedl.density import FlowDensity  # noqa: E402
from dipedl.density import flow as flow_file  # noqa: E402
from dipedl.networks import Dequantization, MaskedAutoregressive, Training  # noqa: E402

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


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("flow", [SMALL, NORMS], ids=["plain", "residual, norms"])
def test_it_integrates_to_one(flow, d):
    X = banana(300, d)
    fitted = density(flow).fit(X)
    total, error = mass(fitted, X, 20_000)
    assert error < 0.2
    assert abs(total - 1) < error


@pytest.mark.parametrize("name", ZUKO)
def test_flows_of_zuko_integrate_to_one(name):
    fitted = density(ZUKO[name]).fit(banana(200, 2))
    axis = np.linspace(-40, 60, 300)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(fitted.score_samples(grid)).sum() * (axis[1] - axis[0]) ** 2
    assert total == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("logit", [1e-6, None])
@pytest.mark.parametrize("d", [1, 2])
def test_it_integrates_to_one_over_pixels(logit, d):
    """On a grid: levels are so fine that the cells outside [0, 1] hold nothing."""
    X = np.random.default_rng(0).beta(3, 4, size=(300, d))
    X[:, d - 1] = X.mean(axis=1)
    fitted = density(preprocessing=Dequantization(2**20, logit)).fit(X)
    n = 4000 if d == 1 else 250
    axis = (np.arange(n) + 0.5) / n
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    total = np.exp(fitted.score_samples(grid)).mean()
    if logit is None:  # a normal base leaks over the edges
        assert total < 1 + 1e-3
    else:
        assert total == pytest.approx(1, abs=1e-3)


def test_log_density_approaches_the_entropy_of_a_gaussian():
    """In 3 dimensions, correlated: the flow's family holds the truth."""
    scatter = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.4], [0.0, -0.4, 0.5]])
    normal = stats.multivariate_normal([5.0, 0.0, -100.0], scatter, seed=1)
    X, held_out = normal.rvs(2000), normal.rvs(3000)
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


def test_bits_per_dimension_of_noise_is_its_entropy():
    """Uniform grey levels need log2 L bits; a normal base costs a little more."""
    X = np.random.default_rng(0).integers(0, 8, (1000, 2)) / 7
    training = Training(10, 50, learning_rate=0.02, schedule="cosine", n_jobs=1)
    fitted = density(training=training, preprocessing=Dequantization(8)).fit(X)
    assert 2.99 < fitted.bits_per_dimension(X, draws=4) < 3.1


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


def test_bits_per_dimension_needs_pixels():
    with pytest.raises(TypeError, match=r"preprocessing=Dequantization\(\), got Standardization"):
        density().fit(banana(40, 2)).bits_per_dimension(banana(4, 2))


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


def test_diverging_training_is_an_error():
    diverging = Training(20, 10, "sgd", learning_rate=1e6, n_jobs=1)
    with pytest.raises(FloatingPointError):
        density(training=diverging).fit(banana(60, 3))


def test_a_failed_fit_leaves_the_last_one():
    X = banana(50, 2)
    fitted = density().fit(X)
    score = fitted.score_samples(X)
    fitted.set_params(training=Training(20, 10, "sgd", learning_rate=1e6, n_jobs=1))
    with pytest.raises(FloatingPointError):
        fitted.fit(X)
    np.testing.assert_array_equal(fitted.score_samples(X), score)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"flow": "maf"}, TypeError, "flow must be None, a MaskedAutoregressive or a callable"),
        ({"flow": lambda d: torch.nn.Linear(d, d)}, TypeError, "must give a zuko flow, got Linear"),
        ({"dtype": "float16"}, ValueError, "dtype must be one of.*got 'float16'"),
        ({"validation_fraction": 1.0}, ValueError, r"validation_fraction must be in \[0, 1\)"),
        ({"validation_fraction": -0.1}, ValueError, r"validation_fraction must be in \[0, 1\)"),
        ({"preprocessing": "logit"}, TypeError, "preprocessing must be None"),
        ({"training": {"epochs": 3}}, TypeError, "training must be None or a Training"),
    ],
)
def test_bad_arguments_are_refused_in_fit(arguments, error, message):
    with pytest.raises(error, match=message):
        FlowDensity(**{"training": QUICK} | arguments).fit(banana(40, 2))


def test_bad_rows_are_refused():
    X = banana(40, 2)
    with pytest.raises(ValueError, match="validation must have 2 columns as X, got 3"):
        density().fit(X, validation=banana(10, 3))
    with pytest.raises(ValueError, match="validation contains NaN"):
        density().fit(X, validation=np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        density().fit(X[:1])
    early = Training(epochs=2, patience=2, n_jobs=1)
    with pytest.raises(ValueError, match="patience and restore_best need validation"):
        density(training=early, validation_fraction=0).fit(X)


def test_the_paper_density_is_stated_with_its_training():
    paper = FlowDensity.paper(random_state=10)
    training = paper.training
    assert paper.flow == MaskedAutoregressive.paper()
    assert paper.preprocessing == Dequantization(256, 1e-6, jacobian=False)
    assert (training.epochs, training.batch_size, training.patience) == (50, 128, 5)
    assert (training.schedule, training.step_size, training.decay) == ("step", 5, 0.5)
    assert (training.learning_rate, training.weight_decay, training.clip_norm) == (1e-4, 1e-5, 5.0)
    assert clone(paper).flow == paper.flow


def test_it_cannot_be_saved_yet(tmp_path):
    fitted = density().fit(banana(40, 2))
    with pytest.raises(TypeError, match="got FlowDensity"):
        dipedl.save(fitted, tmp_path / "flow.dipedl")
    assert not (tmp_path / "flow.dipedl").exists()
