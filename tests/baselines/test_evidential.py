"""EDL, R-EDL, Re-EDL, DAEDL and PostNet on real digits of 8 x 8 pixels, and by hand.

What every baseline keeps (seeds, copies, labels that are words, bad rows) is in
test_baseline_conformance.py.
"""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma, logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")

from dipedl import Dirichlet  # noqa: E402
from dipedl.baselines import DAEDL, EDL, REDL, PostNet, ReEDL  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.density import GaussianMixtureDensity, GDADensity  # noqa: E402
from dipedl.networks import MLP, Training  # noqa: E402
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
    with pytest.raises(ValueError, match=r"kind must be one of \['log_evidence', 'vacuity'.*'mi'"):
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
