"""Evidential baselines, SNGP, DUQ, SWAG, Laplace and ensembles, each against its formula."""

import time
from copy import deepcopy
from dataclasses import replace
from math import log, pi
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.ndimage import rotate
from scipy.special import digamma, gammaln, polygamma, softmax
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

torch = pytest.importorskip("torch")

from dipedl.baselines import (  # noqa: E402
    CEDL,
    DUQ,
    FEDL,
    IBEDL,
    IEDL,
    SNGP,
    SWAG,
    DeepEnsemble,
    EnsembleDirichlet,
    LastLayerLaplace,
    MCDropout,
    NatPN,
)
from dipedl.baselines.cedl import measure_conflict  # noqa: E402
from dipedl.baselines.fedl import moments_of_outputs  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.dirichlet import Dirichlet, concentration_of_samples  # noqa: E402
from dipedl.networks import (  # noqa: E402
    MLP,
    FastCNN,
    TorchClassifier,
    Training,
    TrainingPaused,
    train,
    training,
)
from weekly import sample_of  # noqa: E402

TRAINING = Training(epochs=12, batch_size=64, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)
LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(6) % 3


@pytest.fixture(scope="module")
def data():
    return load_digits()


@pytest.fixture(
    scope="module",
    params=sample_of([IEDL, FEDL, IBEDL, NatPN, SNGP, DUQ, SWAG], 0, 4, 5, 6),
    ids=lambda m: m.__name__,
)
def fitted(request, data):
    return request.param(MLP((64, 32)), TRAINING).fit(data.X_train, data.y_train)


def test_it_learns_and_doubts_what_it_has_not_seen(fitted, data):
    # a nearest class mean reaches 0.89 here
    assert fitted.score(data.X_test, data.y_test) > 0.95
    # one radial flow leaves the space between classes dense: NatPN doubts what is far
    unknown = 5 * data.X_test if isinstance(fitted, NatPN) else data.ood["held_out"]
    assert (fitted.uncertainty(data.X_test)[:, None] < fitted.uncertainty(unknown)).mean() > 0.75
    np.testing.assert_allclose(fitted.predict_proba(data.X_test).sum(axis=1), 1, rtol=1e-9)


# ------------------------------------------------------------------------------------------ I-EDL


def iedl_of_row(alpha, label, fisher_weight):
    """Loss of one row, of the whole information matrix, without the KL."""
    S, k = alpha.sum(), len(alpha)
    information = np.diag(polygamma(1, alpha)) - polygamma(1, S) * np.ones((k, k))
    errors = 0.0
    for j, a in enumerate(alpha):
        bias, variance = (j == label) - a / S, a * (S - a) / S**2 / (S + 1)
        errors += polygamma(1, a) * (bias**2 + variance)
    return errors - fisher_weight * np.linalg.slogdet(information)[1]


def kl_of_row(alpha, label):
    a = np.where(np.arange(len(alpha)) == label, 1.0, alpha)
    S, k = a.sum(), len(a)
    log_ratio = gammaln(S) - gammaln(a).sum() - gammaln(k)
    return log_ratio + ((a - 1) * (digamma(a) - digamma(S))).sum()


@pytest.mark.parametrize("fisher_weight", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_the_loss_of_iedl(fisher_weight, scale):
    model = IEDL(fisher_weight=fisher_weight, annealing_epochs=4)
    alpha = 1 + np.logaddexp(0, scale * LOGITS.double().numpy())
    rows = list(zip(alpha, LABELS.numpy(), strict=True))
    expected = np.mean([iedl_of_row(*row, fisher_weight) for row in rows])
    got = model._loss(scale * LOGITS.double(), LABELS, epoch=0)
    np.testing.assert_allclose(got, expected, rtol=1e-7)
    later = model._loss(scale * LOGITS.double(), LABELS, epoch=2)
    np.testing.assert_allclose(later - got, 0.5 * np.mean([kl_of_row(*row) for row in rows]))


# ------------------------------------------------------------------------------------------ F-EDL


def test_moments_of_a_flexible_dirichlet_are_those_of_the_mixture(rng):
    outputs = torch.tensor(rng.normal(size=(5, 7)))
    mean, variance, p = (part.numpy() for part in moments_of_outputs(outputs))
    for row, o in enumerate(outputs.numpy()):
        alpha, tau = np.exp(o[:3]), np.log1p(np.exp(o[6]))
        weights = softmax(o[3:6])
        parts = [Dirichlet((alpha + tau * e)[None]) for e in np.eye(3)]
        m = sum(w * d.mean[0] for w, d in zip(weights, parts, strict=True))
        pairs = zip(weights, parts, strict=True)
        squares = sum(w * (d.variance[0] + d.mean[0] ** 2) for w, d in pairs)
        np.testing.assert_allclose(mean[row], m, rtol=1e-10)
        np.testing.assert_allclose(variance[row], squares - m**2, rtol=1e-8)
        np.testing.assert_allclose(p[row], weights)


def test_a_flexible_dirichlet_of_tau_one_is_a_dirichlet():
    alpha = np.array([[2.0, 5.0, 1.5]])
    tau = np.log(np.e - 1)  # softplus gives 1
    outputs = np.concatenate([np.log(alpha), np.log(alpha / alpha.sum()), [[tau]]], axis=1)
    mean, variance, _ = moments_of_outputs(torch.tensor(outputs))
    d = Dirichlet(alpha)
    np.testing.assert_allclose(mean, d.mean, rtol=1e-12)
    np.testing.assert_allclose(variance, d.variance, rtol=1e-10)


def test_the_loss_and_the_uncertainties_of_fedl(rng):
    outputs, labels = torch.tensor(rng.normal(size=(6, 7))), torch.arange(6) % 3
    mean, variance, p = (part.numpy() for part in moments_of_outputs(outputs))
    expected = [
        sum(
            ((j == y) - mean[i, j]) ** 2 + variance[i, j] + ((j == y) - p[i, j]) ** 2
            for j in range(3)
        )
        for i, y in enumerate(labels.numpy())
    ]
    np.testing.assert_allclose(FEDL()._loss(outputs, labels, epoch=0), np.mean(expected))
    wrong = np.mean(mean.argmax(axis=1) != labels.numpy())
    assert float(FEDL()._score(outputs, labels)) == pytest.approx(wrong)


def test_kinds_of_fedl_add_up(data):
    model = FEDL(MLP((8,)), Training(epochs=1, n_jobs=1)).fit(data.X_train[:99], data.y_train[:99])
    kinds = {kind: model.uncertainty(data.X_test, kind) for kind in ("aleatoric", "total")}
    epistemic = model.uncertainty(data.X_test)
    np.testing.assert_allclose(kinds["aleatoric"] + epistemic, kinds["total"])
    total = 1 - (model.predict_proba(data.X_test) ** 2).sum(axis=1)
    np.testing.assert_allclose(kinds["total"], total, rtol=1e-9)


# ----------------------------------------------------------------------------------------- IB-EDL


def test_the_loss_of_ibedl():
    model, means = IBEDL(n_noises=4, bottleneck=0.3), LOGITS.double()
    outputs = torch.cat([means, 2 - means], dim=1)
    torch.manual_seed(7)
    got = float(model._loss(outputs, LABELS, epoch=0))
    torch.manual_seed(7)
    noise = torch.randn(4, 6, 3, dtype=torch.float64).numpy()
    m, s = means.numpy(), np.log1p(np.exp(2 - means.numpy()))
    expected = 0.0
    for i, label in enumerate(LABELS.numpy()):
        for of_draw in noise:
            alpha = 1 + np.log1p(np.exp(m[i] + s[i] * of_draw[i]))
            S = alpha.sum()
            for j, a in enumerate(alpha):
                bias, variance = (j == label) - a / S, a * (S - a) / S**2 / (S + 1)
                expected += (bias**2 + variance) / 4 / 6
        # divergence of N(m, s^2) from N(0, 1)
        expected += 0.3 / 6 * sum((m[i] ** 2 + s[i] ** 2 - 1) / 2 - np.log(s[i]))
    assert got == pytest.approx(expected, rel=1e-9)
    wrong = np.mean(m.argmax(axis=1) != LABELS.numpy())
    assert float(model._score(outputs, LABELS)) == pytest.approx(wrong)


def test_the_evidence_of_ibedl_is_that_of_many_draws(data, rng):
    model = IBEDL(MLP((16,)), Training(epochs=2, n_jobs=1)).fit(data.X_train, data.y_train)
    X = data.X_test[:5]
    m, raw = np.split(model.logits(X), 2, axis=1)
    draws = m + np.log1p(np.exp(raw)) * rng.normal(size=(200_000, 1, 1))
    d = model.predict_dirichlet(X)
    np.testing.assert_allclose(d.concentration, 1 + np.logaddexp(0, draws).mean(axis=0), rtol=0.01)
    np.testing.assert_array_equal(model.predict(X), model.classes_[d.mean.argmax(axis=1)])


# ------------------------------------------------------------------------------------------ C-EDL


def conflict_of_row(evidence, beta):
    """Conflict of one input from its evidence (views, k)."""
    across = np.mean([of.std() / (of.mean() + 1e-8) for of in evidence.T])
    within = []
    for e in evidence:
        c = [
            min(e[i], e[j]) / max(e[i], e[j]) * min(e[i], e[j]) / e.sum() * 2
            for i in range(len(e))
            for j in range(i)
            if max(e[i], e[j]) > 0
        ]
        within.append(1 - np.exp(-beta * np.sqrt(np.square(c).sum())))
    w = np.mean(within)
    return np.clip(w + across - w * across - 0.5 * (w - across) ** 2, 0, 1)


def test_the_conflict_of_cedl(rng):
    evidence = rng.gamma(0.5, size=(4, 7, 3)) * (rng.random((4, 7, 3)) > 0.2)
    evidence[:, 0] = 0  # of an input without any evidence
    expected = [conflict_of_row(evidence[:, i], 1.5) for i in range(7)]
    np.testing.assert_allclose(measure_conflict(evidence, 1.5), expected, rtol=1e-12)
    sure = np.zeros((4, 1, 3))
    sure[:, :, 1] = 5.0  # one class alone, in all views alike
    np.testing.assert_allclose(measure_conflict(sure, 1.5), 0, atol=1e-12)
    assert measure_conflict(np.ones((4, 1, 3)), 1.5)[0] > 0.4  # all classes alike


class Counts(LogisticRegression):
    """Evidence that is the softplus of its logits."""

    def predict_dirichlet(self, X):
        return Dirichlet(1 + np.logaddexp(0, self.decision_function(X)))


class GaussianCounts(GaussianNB):
    """Evidence that is a probability."""

    def predict_dirichlet(self, X):
        return Dirichlet(1 + self.predict_proba(X))


def test_the_dirichlet_of_cedl_is_that_of_its_views(data):
    X, y = data.X_train[:300], data.y_train[:300]
    model = CEDL(Counts(max_iter=200), image_shape=(8, 8), n_views=9, delta=2.0, random_state=3)
    queries = data.X_test[:6]
    d = model.fit(X, y).predict_dirichlet(queries)
    assert {kind for kind, _ in model.views_} == {"turn", "shift", "noise"}
    for i, x in enumerate(queries):
        views = [x]
        for kind, size in model.views_:
            if kind == "turn":
                image = rotate(x.reshape(8, 8), size, reshape=False, order=1, mode="nearest")
            elif kind == "shift":
                image = np.roll(x.reshape(8, 8), size, axis=0)
            else:  # networks of images refuse pixels outside [0, 1]
                image = np.minimum(np.maximum(x + size, X.min()), X.max())
            views.append(image.ravel())
        evidence = np.logaddexp(0, model.estimator_.decision_function(np.array(views)))
        kept = np.exp(-2.0 * conflict_of_row(evidence, 1.5))
        np.testing.assert_allclose(d.concentration[i], 1 + evidence.mean(axis=0) * kept)
    np.testing.assert_array_equal(model.uncertainty(queries), d.differential_entropy)


def test_views_of_a_table_are_noisy_by_the_range_of_each_column(rng):
    X, y = rng.normal(size=(4000, 2)) * [1.0, 1000.0], np.arange(4000) % 2
    X[y == 1] += [0, 500]
    views = CEDL(GaussianCounts(), n_views=400).fit(X, y).views_
    assert {kind for kind, _ in views} == {"noise"}
    spread = np.std([size for _, size in views], axis=0)
    np.testing.assert_allclose(spread, 0.01 * np.ptp(X, axis=0), rtol=0.15)


# ------------------------------------------------------------------------------------------ NatPN


def test_the_evidence_of_natpn_is_a_density_times_its_budget(data):
    model = NatPN(MLP((16,)), Training(epochs=2, n_jobs=1), latent_dim=3, n_layers=2)
    module = model.fit(data.X_train, data.y_train).module_
    z = torch.tensor(model.transform(data.X_test[:20])).float()
    u = z.double().numpy()[:, None]
    weight, bias = (part.detach().double().numpy() for part in module.layer.parameters())
    classes = softmax(u[:, 0] @ weight.T + bias, axis=1)

    def image(point):
        """The flow of one point, in numbers of NumPy, for a Jacobian by differences."""
        flow = module.flow
        layers = zip(flow.center, flow.raw_scale, flow.raw_slope, strict=True)
        for center, scale, slope in layers:
            c = center[0].detach().double().numpy()
            a, s = (np.log1p(np.exp(part[0].item())) for part in (scale, slope))
            r = np.linalg.norm(point - c)
            point = point + (s - a) / (a + r) * (point - c)
        return point

    d = model.predict_dirichlet(data.X_test[:20])
    for row, point in enumerate(u[:, 0]):
        step = 1e-5 * np.eye(3)
        jacobian = [(image(point + e) - image(point - e)) / 2e-5 for e in step]
        density = np.exp(-0.5 * image(point) @ image(point)) / (2 * pi) ** 1.5
        density *= abs(np.linalg.det(jacobian))
        expected = density * np.exp(1.5 * log(4 * pi)) * classes[row]
        np.testing.assert_allclose(d.concentration[row] - 1, expected, rtol=1e-3, atol=1e-6)


def test_the_flow_of_natpn_ends_at_the_likelihood_of_the_latent_points(data, monkeypatch):
    def mean_log_density():
        made = NatPN(MLP((16,)), Training(epochs=3, n_jobs=1), latent_dim=3)
        module = made.fit(data.X_train, data.y_train).module_
        z = torch.from_numpy(made.transform(data.X_train)).float()
        return float(module.flow(z).detach().mean()), z

    (alone, z), _ = (
        mean_log_density(),
        monkeypatch.setattr(NatPN, "_fit_head", lambda *_, **run: None),
    )
    together, before = mean_log_density()
    torch.testing.assert_close(z, before)  # the encoder stays
    assert alone > together + 0.1


def test_the_second_training_of_natpn_keeps_the_deadline(data, monkeypatch, tmp_path):
    clock = SimpleNamespace(monotonic=lambda: 0.0, perf_counter=time.perf_counter)
    monkeypatch.setattr(training, "time", clock)

    def fit(deadline, progress=None):
        made, run = (
            NatPN(MLP((16,)), Training(epochs=2, n_jobs=1)),
            {"checkpoint": tmp_path / "run"},
        )
        made.fit(data.X_train, data.y_train, progress=progress, deadline=deadline, **run)
        return made.predict_dirichlet(data.X_test).log_evidence

    def stop(report):
        if report["epoch"] == report["epochs"]:
            clock.monotonic = lambda: 2e6

    with pytest.raises(TrainingPaused):
        fit(1e6, stop)
    resumed, whole = fit(3e6), NatPN(MLP((16,)), Training(epochs=2, n_jobs=1))
    whole.fit(data.X_train, data.y_train)
    expected = whole.predict_dirichlet(data.X_test).log_evidence
    np.testing.assert_array_equal(resumed, expected)


def test_evidence_out_of_bounds_has_a_gradient(data):
    model = NatPN(MLP((16,)), Training(epochs=1, n_jobs=1)).fit(data.X_train, data.y_train)
    far = torch.full((2, data.X_train.shape[1]), 1e4, requires_grad=True)
    outputs = model.module_(far)
    outputs.logsumexp(dim=1).sum().backward()
    np.testing.assert_allclose(outputs.detach().logsumexp(dim=1), -30, atol=4)
    assert far.grad.abs().max() > 0


# ------------------------------------------------------------------------------------------- SNGP


def test_the_variance_of_sngp_is_that_of_bayesian_regression(data):
    X = data.X_train[:200]
    settings = Training(epochs=2, n_jobs=1)
    model = SNGP(MLP((16,)), settings, n_fourier=40, ridge=0.5, length_scale=3.0)
    model.fit(X, data.y_train[:200])
    V, a = (part.double().numpy() for part in model.module_.head[0].buffers())

    def phi(rows):
        angles = model.transform(rows) @ V.T + a
        return np.cos(angles) * np.sqrt(2 / 40)

    covariance = np.linalg.inv(np.eye(40) + phi(X).T @ phi(X) / 0.5)
    expected = [row @ covariance @ row for row in phi(data.X_test)]
    np.testing.assert_allclose(model.variance(data.X_test), expected, rtol=1e-3)
    divided = model.logits(data.X_test) / np.sqrt(1 + pi / 8 * np.array(expected))[:, None]
    proba = np.exp(divided) / np.exp(divided).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(data.X_test), proba, rtol=1e-3)
    evidence = np.exp(divided).sum(axis=1)
    np.testing.assert_allclose(model.uncertainty(data.X_test), -np.log(evidence), rtol=1e-3)


def test_products_of_the_features_of_sngp_approach_its_kernel(rng):
    model = SNGP(MLP((6,)), n_fourier=20_000, length_scale=2.0)
    model.image_shape_ = (1, 1, 4)
    fourier = model.build_network(3, seed=0).head[0]
    Z = rng.normal(size=(5, 6)).astype(np.float32)
    phi = fourier(torch.from_numpy(Z)).numpy()
    squared = ((Z[:, None] - Z) ** 2).sum(axis=2)
    np.testing.assert_allclose(phi @ phi.T, np.exp(-squared / 8), atol=0.04)


# ------------------------------------------------------------------------------------------- SWAG


def weights_of(network):
    return np.concatenate([p.detach().double().numpy().ravel() for p in network.parameters()])


def test_the_gaussian_of_swag_is_that_of_the_weights_after_each_epoch(data):
    X, y = data.X_train[:200].astype(np.float32), data.y_train[:200]
    first, then = Training(epochs=2, n_jobs=1), Training(5, 32, "sgd", 0.05, n_jobs=1)
    model = SWAG(MLP((8,)), first, iterates=then, rank=3, n_samples=2).fit(X, y)
    base, weights = TorchClassifier(MLP((8,)), first).fit(X, y), []
    rows = torch.from_numpy(X), torch.from_numpy(np.searchsorted(base.classes_, y))
    for epochs in range(1, 6):
        network = deepcopy(base.module_)
        loss = lambda f, c, epoch: torch.nn.functional.cross_entropy(f, c)  # noqa: E731
        train(network, loss, rows, replace(then, epochs=epochs), seed=base.draw_seed())
        weights.append(weights_of(network))
    W = np.array(weights)
    np.testing.assert_allclose(model.mean_, W.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(model.variance_, W.var(axis=0), atol=1e-12)
    deviations = [W[i] - W[: i + 1].mean(axis=0) for i in (2, 3, 4)]
    np.testing.assert_allclose(model.deviations_, deviations, atol=1e-12)
    np.testing.assert_allclose(weights_of(model.module_), model.mean_, rtol=1e-6, atol=1e-8)


def test_networks_of_swag_have_its_covariance_and_are_averaged(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    then, n = Training(6, 16, "sgd", 0.2, n_jobs=1), 200
    model = SWAG(MLP((2,)), Training(1, n_jobs=1), iterates=then, rank=4, n_samples=n).fit(X, y)
    W, D = np.array([weights_of(member) for member in model.networks_]), model.deviations_
    covariance = np.diag(model.variance_) / 2 + sum(np.outer(d, d) for d in D) / (2 * 3)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(W.mean(axis=0), model.mean_, atol=3.4 * scale.max() / n**0.5)
    assert np.abs((np.cov(W.T) - covariance) / np.outer(scale, scale)).max() < 5.6 / n**0.5
    inputs = torch.from_numpy(X[:4]).float()
    P = np.array([member(inputs).detach().softmax(dim=1).numpy() for member in model.networks_])
    np.testing.assert_allclose(model.predict_proba(X[:4]), P.mean(axis=0), atol=1e-6)
    mean_entropy = -(P * np.log(P)).sum(axis=2).mean(axis=0)
    entropy = -(P.mean(axis=0) * np.log(P.mean(axis=0))).sum(axis=1)
    np.testing.assert_allclose(model.uncertainty(X[:4]), entropy - mean_entropy, atol=1e-5)


def test_networks_of_swag_have_batch_normalisation_of_their_own(data):
    X, y = data.X_train[:100] / data.X_train.max(), data.y_train[:100]
    then = Training(2, 32, "sgd", 0.05, n_jobs=1)
    model = SWAG(FastCNN(width=4), Training(1, n_jobs=1), iterates=then, n_samples=2).fit(X, y)
    for network in (model.module_, *model.networks_):
        layer = next(m for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d))
        inputs = []
        layer.register_forward_hook(lambda _, given, out, inputs=inputs: inputs.append(given[0]))
        network(torch.tensor(X, dtype=torch.float32))
        np.testing.assert_allclose(
            layer.running_mean, inputs[0].mean(dim=(0, 2, 3)).detach(), atol=1e-5
        )
        np.testing.assert_allclose(
            layer.running_var, inputs[0].var(dim=(0, 2, 3)).detach(), rtol=1e-4
        )


# -------------------------------------------------------------------------------------------- DUQ


def new_duq(**settings):
    model = DUQ(MLP((6,), activation="tanh"), embedding=5, length_scale=0.8, **settings)
    model.image_shape_ = (1, 1, 4)
    model.module_ = model.build_network(3, seed=0)
    return model, model.module_.backbone.head


def test_the_kernels_of_duq(rng):
    model, kernels = new_duq()
    X = torch.tensor(rng.normal(size=(7, 4))).float()
    Z = model.module_.features(X).detach().numpy()
    weights, centroids = kernels.weight.detach().numpy(), (kernels.sums / kernels.counts[:, None])
    expected = [
        [
            -(((W @ z - e) ** 2).mean()) / (2 * 0.8**2)
            for W, e in zip(weights, centroids.numpy(), strict=True)
        ]
        for z in Z
    ]
    np.testing.assert_allclose(model.module_(X).detach(), expected, rtol=1e-4)


def test_the_loss_of_duq_and_its_gradient_penalty(rng):
    model, _ = new_duq(gradient_penalty=0.3)
    double = model.module_.double().train()
    X, y = torch.tensor(rng.normal(size=(5, 4))), torch.tensor([0, 1, 2, 0, 1])
    got = float(model._loss(double(X), y, epoch=0).detach())
    double.eval()
    plain, K = new_duq(gradient_penalty=0.3)[0].module_.double().eval(), None

    def kernels(rows):
        return np.exp(plain(torch.tensor(rows)).detach().numpy())

    K = kernels(X.numpy())
    total = 0.0
    for row, (x, label) in enumerate(zip(X.numpy(), y.numpy(), strict=True)):
        for c in range(3):
            total -= log(K[row, c]) if c == label else log(1 - K[row, c])
        steps = 1e-6 * np.eye(4)
        slopes = [(kernels((x + e)[None]) - kernels((x - e)[None])).sum() / 2e-6 for e in steps]
        total += 0.3 * (np.square(slopes).sum() - 1) ** 2
    assert got == pytest.approx(total / 5, rel=1e-5)


def test_centroids_of_duq_are_moving_averages(rng):
    model, kernels = new_duq(momentum=0.9)
    counts, sums = kernels.counts.clone().numpy(), kernels.sums.clone().numpy()
    weights = kernels.weight.detach().numpy()
    for _ in range(3):
        X, y = torch.tensor(rng.normal(size=(8, 4))).float(), torch.arange(8) % 3
        Z = model.module_.features(X).detach().numpy()
        model._loss(model.module_.train()(X), y, epoch=0)
        for c in range(3):
            own = [weights[c] @ z for z, label in zip(Z, y.numpy(), strict=True) if label == c]
            counts[c] = 0.9 * counts[c] + 0.1 * len(own)
            sums[c] = 0.9 * sums[c] + 0.1 * sum(own)
    np.testing.assert_allclose(kernels.counts, counts, rtol=1e-5)
    np.testing.assert_allclose(kernels.sums, sums, rtol=1e-4, atol=1e-5)
    assert "inputs" not in vars(model.module_) and "embedded" not in vars(kernels)


# ---------------------------------------------------------------------------------------- Laplace


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_laplace_is_the_gaussian_of_the_whole_kronecker_product(rng, fit_intercept):
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    queries = rng.normal(size=(6, 3)) * 3
    rule = LogisticRegression(fit_intercept=fit_intercept).fit(X, y)
    model = LastLayerLaplace(FrozenEstimator(rule), prior_precision=0.7).fit(X, y)
    ones = np.ones((50, 1))
    Z = np.hstack([X, ones]) if fit_intercept else X
    P = rule.predict_proba(X)
    A, G = sum(np.outer(z, z) for z in Z), sum(np.diag(p) - np.outer(p, p) for p in P) / 50
    covariance = np.linalg.inv(np.kron(G, A) + 0.7 * np.eye(3 * Z.shape[1]))
    for query, p in zip(queries, model.predict_proba(queries), strict=True):
        z = np.append(query, 1.0) if fit_intercept else query
        J = block_diag(z, z, z)
        expected = np.diag(J @ covariance @ J.T)
        f = rule.decision_function(query[None])[0]
        np.testing.assert_allclose(p, softmax(f / np.sqrt(1 + pi * expected / 8)), rtol=1e-8)


def test_the_prior_precision_has_the_largest_marginal_likelihood(rng):
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    rule = LogisticRegression().fit(X, y)
    tau = LastLayerLaplace(FrozenEstimator(rule)).fit(X, y).prior_precision_
    Z, P = np.hstack([X, np.ones((50, 1))]), rule.predict_proba(X)
    A, G = Z.T @ Z, np.diag(P.mean(axis=0)) - P.T @ P / 50
    weights = np.append(rule.coef_, rule.intercept_)

    def evidence(t):
        H = np.kron(G, A) + t * np.eye(12)
        return 6 * np.log(t) - t / 2 * weights @ weights - np.linalg.slogdet(H)[1] / 2

    assert all(evidence(tau) > evidence(t) for t in (tau * 1.02, tau / 1.02, 10 * tau, tau / 10))


# -------------------------------------------------------------------------------------- ensembles


def test_an_ensemble_as_a_dirichlet_has_its_moments(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    ensemble = DeepEnsemble(ExtraTreesClassifier(5, max_depth=3, random_state=0), n_members=4)
    model = EnsembleDirichlet(ensemble).fit(X, y)
    d, samples = model.predict_dirichlet(X), model.estimator_.sample_proba(X)
    np.testing.assert_allclose(d.mean, samples.mean(axis=0), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(model.predict_proba(X), d.mean)
    summed = samples.var(axis=0, ddof=1).sum(axis=1)
    np.testing.assert_allclose(d.variance.sum(axis=1), summed, rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(model.uncertainty(X), d.epistemic)
    np.testing.assert_array_equal(model.uncertainty(X, "vacuity"), d.vacuity)


def test_passes_of_dropout_are_an_ensemble(data):
    dropout = MCDropout(MLP((16,), dropout=0.3), Training(epochs=2, n_jobs=1), n_samples=6)
    dropout.fit(data.X_train, data.y_train)
    model = EnsembleDirichlet(FrozenEstimator(dropout)).fit(data.X_train, data.y_train)
    with pytest.raises(ValueError, match=r"samples must .* m >= 2, got"):
        concentration_of_samples(dropout.sample_proba(data.X_test[:2])[:1])
    P = dropout.predict_proba(data.X_test)
    np.testing.assert_allclose(model.predict_proba(data.X_test), P, rtol=1e-5, atol=1e-7)
