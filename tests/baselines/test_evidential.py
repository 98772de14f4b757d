"""EDL, R-EDL, Re-EDL, DAEDL and PostNet on real digits of 8 x 8 pixels, and by hand."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")

from dipedl import Dirichlet  # noqa: E402
from dipedl.baselines import DAEDL, EDL, REDL, DeepEnsemble, MCDropout, PostNet, ReEDL  # noqa: E402
from dipedl.baselines.postnet import RadialFlow  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.density import GaussianMixtureDensity, GDADensity  # noqa: E402
from dipedl.networks import MLP, TorchClassifier, Training  # noqa: E402
from dipedl.protocols import EvidentialClassifier  # noqa: E402

TRAINING = Training(epochs=12, batch_size=64, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)
ONCE = replace(TRAINING, epochs=1)
METHODS = [EDL, REDL, ReEDL, DAEDL, PostNet]
ids = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(6) % 3


def new(method, **changes):
    # R-EDL's KL to a prior of 0.1 is stiff: in epochs of 16 steps it would come before the classes.
    weaker = {"kl_weight": 0.1} if method is REDL else {}
    return method(MLP((64, 32)), replace(TRAINING, **changes), **weaker)


@pytest.fixture(scope="module")
def data():
    return load_digits()


@pytest.fixture(scope="module")
def fitted(data):
    return {m: new(m).fit(data.X_train, data.y_train) for m in METHODS}


@ids
def test_learns(method, fitted, data):
    # A nearest class mean reaches 0.89 here.
    assert fitted[method].score(data.X_test, data.y_test) > 0.95
    assert fitted[method].history_.epochs == 12


@ids
def test_answers_are_those_of_one_dirichlet(method, fitted, data):
    model, X = fitted[method], data.X_test
    assert isinstance(model, EvidentialClassifier)
    d = model.predict_dirichlet(X)
    assert isinstance(d, Dirichlet) and d.concentration.shape == (len(X), 8)
    assert d.concentration.dtype == np.float64
    np.testing.assert_array_equal(model.predict_proba(X), d.mean)
    for kind in ("vacuity", "total", "epistemic"):
        np.testing.assert_array_equal(model.uncertainty(X, kind), getattr(d, kind))
    assert (d.vacuity > 0).all() and (d.vacuity <= 1).all()
    with pytest.raises(ValueError, match=r"kind must be one of .*'log_evidence'.*'mi'"):
        model.uncertainty(X, "mi")


@ids
def test_the_network_in_float32_gives_the_answers_of_float64(method, fitted, data, monkeypatch):
    X = np.concatenate([data.X_test, data.ood["held_out"]])
    single, labels = fitted[method].uncertainty(X), fitted[method].predict(X)
    double = deepcopy(fitted[method])
    double.module_.double()
    monkeypatch.setattr(method, "predict_dtype", lambda self: torch.float64)
    np.testing.assert_allclose(single, double.uncertainty(X), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(labels, double.predict(X))


@ids
def test_validation_data_chooses_the_epoch(method, data):
    X, y = data.X_train, data.y_train
    model = new(method, epochs=4, restore_best=True)
    model.fit(X[:300], y[:300], validation=(X[300:500], y[300:500]))
    scores = np.array(model.history_.score, dtype=float)
    assert model.history_.best_epoch == scores.argmin()
    with pytest.raises(ValueError, match="need validation data"):
        new(method, restore_best=True).fit(X[:50], y[:50])


@pytest.mark.parametrize(
    ("model", "prior"),
    [
        *((EDL(MLP((16,)), ONCE, evidence=e), 1.0) for e in ("softplus", "exp", "relu")),
        (REDL(MLP((16,)), ONCE, lambda2=0.3), 0.3),
        (ReEDL(MLP((16,)), ONCE, lambda2=0.8), 0.8),
    ],
)
def test_concentration_is_prior_plus_evidence(model, prior, data):
    logits = model.fit(data.X_train, data.y_train).logits(data.X_test)
    e = {"softplus": np.logaddexp(0, logits), "exp": np.exp(logits), "relu": logits.clip(0)}
    e, d = e[model.evidence], model.predict_dirichlet(data.X_test)
    np.testing.assert_allclose(d.concentration, prior + e, rtol=1e-12)
    np.testing.assert_array_equal(d.prior, np.full(8, prior))
    np.testing.assert_allclose(d.vacuity, 8 * prior / (prior + e).sum(axis=1), rtol=1e-12)
    with np.errstate(divide="ignore"):
        total = -np.log(e.sum(axis=1))
    np.testing.assert_allclose(model.uncertainty(data.X_test), total, rtol=1e-9)
    if model.evidence == "relu":
        # no evidence at all is infinitely uncertain
        with torch.no_grad():
            model.module_.head[-1].bias -= 1e3
        assert (model.uncertainty(data.X_test) == np.inf).all()
        np.testing.assert_array_equal(model.uncertainty(data.X_test, "vacuity"), 1.0)
        np.testing.assert_array_equal(model.predict_proba(data.X_test), 1 / 8)


def test_the_loss_of_redl_by_hand():
    # softplus(log(e - 1)) = 1: evidence (1, 1); lambda1 = 0.5, lambda2 = 0.1
    logits = torch.full((1, 2), float(np.log(np.e - 1)), dtype=torch.float64)
    p = 1.1 / (1 + 0.5 + 0.2)
    model = REDL(lambda1=0.5, lambda2=0.1, kl_weight=0.0)
    got = model._loss(logits, torch.tensor([0]), epoch=3)
    np.testing.assert_allclose(got, (1 - p) ** 2 + p**2)


def test_without_its_kl_redl_is_re_edl():
    one, other = REDL(kl_weight=0.0), ReEDL()
    first, last = (other._loss(LOGITS, LABELS, epoch=t) for t in (0, 50))
    assert first == last == one._loss(LOGITS, LABELS, epoch=50)


@pytest.mark.parametrize("cls", [EDL, REDL])
def test_the_kl_is_annealed(cls):
    model = cls(annealing_epochs=4, kl_weight=0.5)
    start, half, end, later = (model._loss(LOGITS, LABELS, epoch=t) for t in (0, 2, 4, 9))
    without = cls(kl_weight=0.0)._loss(LOGITS, LABELS, epoch=9)
    assert start == without and end == later > start
    torch.testing.assert_close(half - start, (end - start) / 2)


@pytest.mark.parametrize(
    ("length", "weights"), [(1.0, [0, 1 / 7, 1]), (0.5, [0, 2 / 7, 1]), (0.0, [1] * 3)]
)
@pytest.mark.parametrize("cls", [EDL, REDL])
def test_a_share_of_the_epochs_ends_with_the_full_weight(cls, length, weights):
    """Of 8 epochs the first, second and last; an int would count epochs whatever the training."""
    model = cls(training=replace(TRAINING, epochs=8), annealing_epochs=length)
    bare = cls(training=model.training, kl_weight=0.0)._loss(LOGITS, LABELS, epoch=0)
    full = cls(training=model.training, annealing_epochs=0)._loss(LOGITS, LABELS, epoch=0)
    found = [model._loss(LOGITS, LABELS, epoch=epoch) for epoch in (0, 1, 7)]
    expected = [bare + weight * (full - bare) for weight in weights]
    torch.testing.assert_close(torch.stack(found), torch.stack(expected))
    alone = cls(training=ONCE)
    assert alone._loss(LOGITS, LABELS, epoch=0) == bare


def test_pseudo_counts_are_class_counts_times_densities_of_the_latent_point(fitted, data):
    model = fitted[PostNet]
    z = torch.from_numpy(model.transform(data.X_test)).float()
    assert z.shape[1] == 6
    with torch.no_grad():
        density = model.module_.flow(z).exp().numpy()
    counts = np.bincount(data.y_train)
    np.testing.assert_array_equal(model.budget_, counts)
    d = model.predict_dirichlet(data.X_test)
    np.testing.assert_allclose(d.concentration, 1 + counts * density, rtol=1e-4)
    np.testing.assert_allclose(d.vacuity, 8 / d.strength, rtol=1e-12)


@pytest.mark.parametrize(("budget", "expected"), [("total", 1010.0), (5, 5.0), (2.5, 2.5)])
def test_budget_of_postnet(budget, expected, data):
    model = PostNet(MLP((16,)), ONCE, budget=budget).fit(data.X_train, data.y_train)
    np.testing.assert_array_equal(model.budget_, np.full(8, expected))
    np.testing.assert_allclose(model.module_.log_budget.numpy(), np.log(expected), rtol=1e-6)


def test_far_away_the_prior_is_left_and_the_ranking_goes_on(fitted, data):
    model, direction = fitted[PostNet], np.random.default_rng(0).normal(size=64)
    far = direction * np.array([1e2, 1e3, 1e4])[:, None]
    np.testing.assert_array_equal(model.uncertainty(far, "vacuity"), 1.0)
    np.testing.assert_allclose(model.predict_proba(far), 1 / 8)
    u = model.uncertainty(far)
    assert np.isfinite(u).all() and (np.diff(u) > 0).all()
    assert u[0] > model.uncertainty(data.X_test).max()
    # Labels do not tie either: the classes' pseudo-counts decide.
    np.testing.assert_array_equal(model.predict(far), model.logits(far).argmax(axis=1))


def test_the_score_of_postnet_is_its_loss_and_a_last_batch_may_be_one_row(data):
    """Batch normalisation has no variance of one row."""
    X, y = data.X_train, data.y_train
    model = PostNet(MLP((16,)), replace(TRAINING, epochs=2, batch_size=10))
    model.fit(X[:501], y[:501], validation=(X[501:], y[501:]))
    d = model.predict_dirichlet(X[501:])
    of_label = d.concentration[np.arange(len(d)), y[501:]]
    loss = digamma(d.strength) - digamma(of_label)
    expected = loss - 1e-5 * d.differential_entropy
    np.testing.assert_allclose(model.history_.score[-1], expected.mean(), rtol=1e-4)


def test_concentration_of_daedl_is_that_of_logits_scaled_by_the_density(fitted, data):
    model = fitted[DAEDL]
    X = np.concatenate([data.X_test, data.ood["held_out"]])
    assert type(model.density_) is GDADensity
    gda = GDADensity().fit(model.transform(data.X_train), data.y_train)
    low, high = (f(gda.score_samples(model.transform(data.X_train))) for f in (np.min, np.max))
    q = np.maximum(gda.score_samples(model.transform(X)), low)
    scaled = ((q - low) / (high - low + 1e-12))[:, None] * model.logits(X)
    d = model.predict_dirichlet(X)
    np.testing.assert_allclose(d.concentration, np.exp(scaled), rtol=1e-4)
    np.testing.assert_allclose(model.uncertainty(X), -logsumexp(scaled, axis=1), rtol=1e-4)
    np.testing.assert_allclose(d.vacuity, np.minimum(8 / np.exp(scaled).sum(axis=1), 1), rtol=1e-4)


def test_far_from_the_data_daedl_is_the_uniform_dirichlet(fitted):
    model = fitted[DAEDL]
    far = np.full((3, 64), 1e4) * np.array([[1.0], [2.0], [-5.0]])
    d = model.predict_dirichlet(far)
    np.testing.assert_allclose(d.concentration, 1.0, rtol=1.01e-9)
    np.testing.assert_allclose(d.vacuity, 1.0, rtol=1.01e-9)
    # they tie in what ranks them, and do not in their labels
    np.testing.assert_array_equal(model.uncertainty(far), -np.log(8))
    best = model.predict_proba(far).argmax(axis=1)
    np.testing.assert_array_equal(best, model.logits(far).argmax(axis=1))
    assert best.any()


def test_a_fit_that_is_interrupted_does_not_answer_with_the_old_density(data):
    def stop(report):
        raise KeyboardInterrupt

    X, y = data.X_train[:200], data.y_train[:200]
    model = DAEDL(MLP((16,)), replace(TRAINING, epochs=2)).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, progress=stop)
    with pytest.raises(NotFittedError):
        model.predict_proba(X)


class Blind(BaseEstimator):
    """A density that does not know its own rows."""

    def fit(self, X, y=None):
        return self

    def score_samples(self, X):
        return np.where(X[:, 0] > X[:, 0].min(), 0.0, -np.inf)


def test_the_density_of_daedl_may_be_another_that_knows_its_rows(data):
    mixture = GaussianMixtureDensity(3, random_state=0)
    model = DAEDL(MLP((16,)), ONCE, density=mixture).fit(data.X_train, data.y_train)
    assert isinstance(model.density_, GaussianMixtureDensity) and model.density_ is not mixture
    assert not hasattr(mixture, "mixture_")
    with pytest.raises(ValueError, match=r"density gave -inf for \d+ of the 1010 rows"):
        model.set_params(density=Blind()).fit(data.X_train, data.y_train)


SETTINGS = Training(12, 32, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)
QUICK = Training(1, 64, n_jobs=1)
WEIGHABLE = [
    EDL(MLP((16,)), SETTINGS, annealing_epochs=10),
    REDL(MLP((16,)), SETTINGS, annealing_epochs=40),
    ReEDL(MLP((16,)), SETTINGS),
    DAEDL(MLP((16,)), SETTINGS),
    PostNet(MLP((16,)), SETTINGS, latent_dim=2),
    MCDropout(MLP((16,), dropout=0.1), SETTINGS, n_samples=10),
]
weighable_ids = pytest.mark.parametrize("method", WEIGHABLE, ids=lambda m: type(m).__name__)
WEIGHTS = np.array([0.5, 3.0])


@pytest.fixture(scope="module")
def rare():
    """Two classes that overlap, one of them eight times as frequent."""
    rng = np.random.default_rng(0)
    y = (np.arange(450) % 9 == 0).astype(int)
    return rng.normal(size=(450, 2)) + 1.3 * y[:, None], y


def kl_to_flat(alpha, prior):
    """KL(Dir(alpha) || Dir(prior, ..., prior)) of one row."""
    flat = np.full(len(alpha), prior)
    gap = gammaln(alpha.sum()) - gammaln(alpha).sum() - gammaln(flat.sum()) + gammaln(flat).sum()
    return gap + ((alpha - flat) * (digamma(alpha) - digamma(alpha.sum()))).sum()


def squared(p, label):
    return np.sum((np.eye(len(p))[label] - p) ** 2)


def by_hand(method, logits, label):
    """Loss of one row in epoch 5 with the default settings."""
    other = np.arange(len(logits)) != label
    if isinstance(method, MCDropout):
        return -logits[label] + np.log(np.exp(logits).sum())
    if isinstance(method, REDL | ReEDL):
        evidence = np.log1p(np.exp(logits))
        alpha = evidence + 0.1
        loss = squared(alpha / alpha.sum(), label)
        kl = kl_to_flat(0.1 + other * evidence, 0.1)
        return loss + 5 / method.annealing_epochs * kl if isinstance(method, REDL) else loss
    alpha = np.exp(logits) + (1e-6 if isinstance(method, DAEDL) else 1.0)
    s, k = alpha.sum(), len(alpha)
    if isinstance(method, PostNet):
        entropy = gammaln(alpha).sum() - gammaln(s) + (s - k) * digamma(s)
        entropy -= ((alpha - 1) * digamma(alpha)).sum()
        return digamma(s) - digamma(alpha[label]) - 1e-5 * entropy
    p = alpha / s
    loss = squared(p, label) + (p * (1 - p)).sum() / (s + 1)
    weight = 0.05 if isinstance(method, DAEDL) else 5 / method.annealing_epochs
    return loss + weight * kl_to_flat(np.where(other, alpha, 1.0), 1.0)


@weighable_ids
def test_the_loss_is_the_weighted_mean_of_those_of_the_rows(method, rare):
    weighted = clone(method).set_params(training=QUICK, class_weight=dict(enumerate(WEIGHTS)))
    model = weighted.fit(*rare)
    np.testing.assert_array_equal(model.class_weight_, WEIGHTS)
    outputs = torch.randn(9, 2, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 1, 0, 1, 1, 0, 0, 0, 1])
    pairs = zip(outputs.numpy(), target.tolist(), strict=True)
    each = np.array([by_hand(method, *pair) for pair in pairs])
    weighted = np.mean(WEIGHTS[target.numpy()] * each)
    np.testing.assert_allclose(model._loss(outputs, target, epoch=5), weighted, rtol=2e-5)
    unweighted = clone(method)._loss(outputs, target, epoch=5)
    np.testing.assert_allclose(unweighted, np.mean(each), rtol=2e-5)


def test_errors_on_validation_rows_are_weighted(rare):
    X, y = rare
    model = clone(WEIGHABLE[0]).set_params(class_weight={1: 5.0}, training=QUICK)
    model.fit(X, y, validation=(X[:50], y[:50]))
    wrong = model.predict(X[:50]) != y[:50]
    np.testing.assert_allclose(model.history_.score, [np.mean(wrong * np.where(y[:50], 5.0, 1.0))])


def test_members_of_an_ensemble_have_the_weights(rare):
    member = TorchClassifier(MLP((4,)), QUICK, class_weight="balanced")
    for part in DeepEnsemble(member, 2).fit(*rare).members_:
        np.testing.assert_allclose(part.class_weight_, [450 / 800, 450 / 100])


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
    n, half = (40_001, 30.0) if dim == 1 else (601, 14.0)
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
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 1, got 0"):
        RadialFlow(**{"n_classes": 2, "dim": 2, "n_layers": 2, name: 0})


def test_gradients_of_inputs_and_parameters():
    f = flow(dim=2, n_layers=2, spread=0.5)
    z = points(3, 2).requires_grad_()

    def density(z, *parameters):
        named = dict(zip(dict(f.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(f, named, (z,))

    assert torch.autograd.gradcheck(density, (z, *f.parameters()))
