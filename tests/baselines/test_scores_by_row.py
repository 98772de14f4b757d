"""Post-hoc scores against their formulas, written for one row at a time; linear heads."""

from math import cos, exp, log, sqrt

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import EmpiricalCovariance
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl.baselines import (
    ASH,
    DICE,
    FDBD,
    GEN,
    NCI,
    SCALE,
    CoP,
    CoRP,
    KLMatching,
    MaxLogit,
    NNGuide,
    ReAct,
    RelativeMahalanobis,
    Residual,
    ViM,
)
from dipedl.baselines.post_hoc import linear_head
from dipedl.networks import MLP, TorchClassifier, Training

P, K = 12, 4


class Net(ClassifierMixin, BaseEstimator):
    """A fitted network: features are a ReLU of a product, logits a linear layer of them."""

    def __init__(self, seed=0):
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.inner_ = rng.normal(size=(5, P))
        self.weight_, self.bias_ = rng.normal(size=(K, P)), rng.normal(size=K)
        self.classes_, self.n_features_in_ = np.arange(K), 5

    def fit(self, X, y):
        return self

    def transform(self, X):
        return np.maximum(np.asarray(X) @ self.inner_, 0)

    def linear_head(self):
        return self.weight_, self.bias_

    def logits(self, X):
        return self.transform(X) @ self.weight_.T + self.bias_

    def predict_proba(self, X):
        return softmax(self.logits(X), axis=1)


class Identity(Net):
    """Logits are the inputs."""

    def __init__(self):
        self.weight_, self.bias_ = np.eye(3), np.zeros(3)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def transform(self, X):
        return np.asarray(X)


@pytest.fixture
def case(rng):
    """Training rows, labels, rows that are asked, and the network."""
    y = rng.integers(0, K, 120)
    return rng.normal(size=(120, 5)) + y[:, None], y, rng.normal(size=(30, 5)) * 2, Net()


def energy(f):
    top = max(f)
    return -(top + log(sum(exp(v - top) for v in f)))


def linear(z, weight, bias):
    return [
        sum(w * v for w, v in zip(row, z, strict=True)) + b
        for row, b in zip(weight, bias, strict=True)
    ]


def norm(v):
    return sqrt(sum(x * x for x in v))


def check(method, case, expected, rtol=1e-9):
    """Compare the scores of a method with ``expected(z, f, p)`` of features, logits, proba."""
    X, y, queries, net = case
    got = method.set_params(estimator=FrozenEstimator(net)).fit(X, y).uncertainty(queries)
    rows = zip(net.transform(queries), net.logits(queries), net.predict_proba(queries), strict=True)
    by_row = [expected(*row) for row in rows]
    assert got.dtype == np.float64 and np.ptp(by_row) > 0
    np.testing.assert_allclose(got, by_row, rtol=rtol, atol=1e-11)


def test_max_logit(case):
    check(MaxLogit(), case, lambda z, f, p: -max(f))


@pytest.mark.parametrize(("gamma", "m"), [(0.1, 100), (0.5, 2), (1.0, 1)])
def test_generalised_entropy(case, gamma, m):
    def expected(z, f, p):
        return sum((q * (1 - q)) ** gamma for q in sorted(p)[::-1][:m])

    # 1 - q of the largest loses digits in this formula, not in the score
    check(GEN(gamma=gamma, n_largest=m), case, expected, rtol=1e-6)


def test_generalised_entropy_does_not_tie_sure_rows():
    method = GEN(Identity(), gamma=1.0).fit(np.eye(6)[:, :3], [0, 1, 2] * 2)
    u = method.uncertainty([[0.0, 0.0, 50.0], [0.0, 60.0, 0.0], [50.0, 0.0, 0.0]])
    # four terms: what the largest leaves, and both others
    np.testing.assert_allclose(u, 4 * np.exp([-50.0, -60.0, -50.0]))


def test_kl_matching(case):
    X, _, _, net = case
    train = net.predict_proba(X)
    templates = [train[train.argmax(axis=1) == c].mean(axis=0) for c in range(K)]

    def expected(z, f, p):
        return min(
            sum(a * log(a / b) for a, b in zip(p, d, strict=True) if a > 0) for d in templates
        )

    check(KLMatching(), case, expected, rtol=1e-7)


def test_a_class_that_is_never_predicted_is_matched_by_certainty():
    X = np.array([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [9.0, 0.0, 5.0]] * 2)
    method = KLMatching(Identity()).fit(X, [0, 1, 2] * 2)
    np.testing.assert_array_equal(method.templates_[2], [0, 0, 1])
    u = method.uncertainty([[0.0, 0.0, 2000.0], [0.0, 0.0, 0.0]])
    assert u[0] == 0 and np.isfinite(u).all()


def test_relative_mahalanobis(case):
    X, y, _, net = case
    Z = net.transform(X)
    means = np.array([Z[y == c].mean(axis=0) for c in range(K)])
    tied = EmpiricalCovariance(assume_centered=True).fit(Z - means[y]).precision_
    whole = EmpiricalCovariance().fit(Z).precision_

    def expected(z, f, p):
        d = z - Z.mean(axis=0)
        return min((z - m) @ tied @ (z - m) for m in means) - d @ whole @ d

    check(RelativeMahalanobis(shrinkage=None), case, expected, rtol=1e-6)


def test_decision_boundaries(case):
    X, _, _, net = case
    mean = net.transform(X).mean(axis=0)

    def expected(z, f, p):
        best = int(np.argmax(f))
        others = [c for c in range(K) if c != best]
        to = [(f[best] - f[c]) / norm(net.weight_[best] - net.weight_[c]) for c in others]
        return -sum(to) / len(others) / norm(z - mean)

    check(FDBD(), case, expected)


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.3])
def test_neural_collapse(case, alpha):
    X, _, _, net = case
    mean = net.transform(X).mean(axis=0)

    def expected(z, f, p):
        along = sum(w * v for w, v in zip(net.weight_[np.argmax(f)], z - mean, strict=True))
        return -along / norm(z - mean) - alpha * sum(abs(v) for v in z)

    check(NCI(alpha=alpha), case, expected)


@pytest.mark.parametrize("percentile", [50, 90.0])
def test_react(case, percentile):
    X, _, _, net = case
    top = np.percentile(net.transform(X).ravel(), percentile)
    check(
        ReAct(percentile=percentile),
        case,
        lambda z, f, p: energy(linear([min(v, top) for v in z], net.weight_, net.bias_)),
    )


@pytest.mark.parametrize("percentile", [30, 65, 90, 99])
def test_activation_shaping_and_scaling(case, percentile):
    net, n_kept = case[-1], max(1, P - round(P * percentile / 100))

    def shaped(z, prune):
        kept = sorted(range(P), key=lambda j: -z[j])[:n_kept]
        factor = exp(sum(z) / sum(z[j] for j in kept))
        large = [factor * v if j in kept or not prune else 0.0 for j, v in enumerate(z)]
        return energy(linear(large, net.weight_, net.bias_))

    check(ASH(percentile=percentile), case, lambda z, f, p: shaped(z, prune=True))
    check(SCALE(percentile=percentile), case, lambda z, f, p: shaped(z, prune=False))


def test_of_equal_features_the_first_are_kept(rng):
    X, y = rng.integers(0, 4, (90, 10)).astype(float), np.arange(90) % 3
    method = ASH(percentile=60).fit(X, y)
    for z, u in zip(X, method.uncertainty(X), strict=True):
        kept = sorted(range(10), key=lambda j: -z[j])[:4]
        large = np.zeros(10)
        large[kept] = z[kept] * exp(z.sum() / z[kept].sum())
        assert u == pytest.approx(energy(method.head_.logits(large[None])[0]))


def test_features_of_any_sign_are_shaped_by_a_bounded_factor(rng):
    X, y = rng.normal(size=(60, 20)), rng.integers(0, 2, 60)
    for method in (ASH(), SCALE()):
        u = method.fit(X, y).uncertainty(np.concatenate([X, -np.abs(X), 0 * X[:1]]))
        # e^10 at most: a tenth of the features holds a tenth of the sum
        assert np.isfinite(u).all() and np.abs(u).max() < np.exp(10) * 100


def test_sparse_weights(case):
    X, _, _, net = case
    mean = net.transform(X).mean(axis=0)
    contribution = [[w * m for w, m in zip(row, mean, strict=True)] for row in net.weight_]
    least = np.percentile(np.ravel(contribution), 75)
    sparse = [
        [w if c > least else 0.0 for w, c in zip(row, of, strict=True)]
        for row, of in zip(net.weight_, contribution, strict=True)
    ]
    method = DICE(percentile=75)
    check(method, case, lambda z, f, p: energy(linear(z, sparse, net.bias_)))
    assert np.count_nonzero(method.sparse_head_.weight) == K * P // 4


def principal(Z, origin, D):
    """Projector beyond the D directions of largest second moment, by singular vectors."""
    rows = np.linalg.svd(Z - origin)[2][:D]
    return np.eye(Z.shape[1]) - rows.T @ rows


@pytest.mark.parametrize("D", [None, 0, 3, 11])
def test_residual_and_virtual_logit(case, D):
    X, _, _, net = case
    Z, origin = net.transform(X), np.linalg.lstsq(net.weight_, -net.bias_, rcond=None)[0]
    np.testing.assert_allclose(net.weight_ @ origin + net.bias_, 0, atol=1e-12)
    beyond = principal(Z, origin, P // 2 if D is None else D)
    alpha = net.logits(X).max(axis=1).mean() / np.mean([norm(beyond @ (z - origin)) for z in Z])
    check(Residual(n_components=D), case, lambda z, f, p: norm(beyond @ (z - origin)))
    virtual = lambda z, f, p: alpha * norm(beyond @ (z - origin)) + energy(f)  # noqa: E731
    check(ViM(n_components=D), case, virtual)


def test_the_origin_of_a_last_layer_whose_weights_sum_to_zero():
    """Without one of its classes the layer says as much: rounding is not inverted."""
    X, y = load_iris(return_X_y=True)
    for order in (y, 2 - y, (y + 1) % 3):
        fitted = Residual().fit(X, order)
        W, b = fitted.head_.weight[:-1], fitted.head_.bias[:-1]
        origin = np.linalg.lstsq(W, -b, rcond=None)[0]
        np.testing.assert_allclose(fitted.origin_, origin, rtol=1e-6)


def reconstruction(train, share):
    mean = train.mean(axis=0)
    values, rows = np.linalg.svd(train - mean, full_matrices=False)[1:]
    shares = np.cumsum(values**2) / (values**2).sum()
    q = next(i for i, s in enumerate(shares) if s >= share) + 1
    return lambda v: norm((v - mean) - rows[:q].T @ (rows[:q] @ (v - mean)))


@pytest.mark.parametrize("share", [0.3, 0.85, 0.99])
def test_cosine_pca(case, share):
    X, _, _, net = case
    unit = np.array([z / norm(z) for z in net.transform(X)])
    error = reconstruction(unit, share)
    check(CoP(explained_variance=share), case, lambda z, f, p: error(z / norm(z)), rtol=1e-7)


def test_cosine_gaussian_pca(case):
    X, _, _, net = case
    method = CoRP(n_fourier=40, gamma=0.7)
    fourier = method.set_params(estimator=FrozenEstimator(net)).fit(X, case[1]).fourier_
    columns, offsets = fourier.random_weights_.T, fourier.random_offset_

    def phi(z):
        u = z / norm(z)
        angles = (v @ u + a for v, a in zip(columns, offsets, strict=True))
        return np.array([sqrt(2 / 40) * cos(angle) for angle in angles])

    error = reconstruction(np.array([phi(z) for z in net.transform(X)]), 0.8)
    check(method, case, lambda z, f, p: error(phi(z)), rtol=1e-7)


def test_products_of_fourier_features_approach_the_kernel(case):
    _, _, queries, net = case
    method = CoRP(FrozenEstimator(net), gamma=2.0, n_fourier=2000, explained_variance=0.1)
    Z = net.transform(queries)
    phi = method.fit(queries, np.arange(30) % K).fourier_.transform(
        unit := Z / np.linalg.norm(Z, axis=1, keepdims=True)
    )
    exact = np.exp(-2 * ((unit[:, None] - unit) ** 2).sum(axis=2))
    np.testing.assert_allclose(phi @ phi.T, exact, atol=0.15)


def test_guidance_by_neighbours(case):
    X, _, _, net = case
    bank = list(zip(net.transform(X), net.logits(X), strict=True))

    def expected(z, f, p):
        guides = [-energy(g) * (z @ b) / norm(z) / norm(b) for b, g in bank]
        return energy(f) * np.mean(sorted(guides)[-7:])

    check(NNGuide(n_neighbors=7, bank=1.0), case, expected)


def test_the_bank_is_a_random_part_of_the_rows(case):
    X, y, _, net = case
    one = NNGuide(FrozenEstimator(net), n_neighbors=3, bank=0.1).fit(X, y)
    other = NNGuide(FrozenEstimator(net), n_neighbors=3, bank=0.1, random_state=1).fit(X, y)
    assert one.guides_.shape == (12, P) and not np.array_equal(one.guides_, other.guides_)
    small = NNGuide(FrozenEstimator(net), n_neighbors=20, bank=0.1).fit(X, y)
    assert small.guides_.shape == (20, P)


# ------------------------------------------------------------------------------------------ heads


def test_the_head_of_a_network_gives_its_logits(rng):
    X, y = rng.normal(size=(80, 6)), rng.integers(0, 3, 80)
    once = Training(epochs=1, n_jobs=1)
    net = TorchClassifier(MLP((16, 8), dropout=0.3), once).fit(X, y)
    for estimator in (net, FrozenEstimator(net), make_pipeline(StandardScaler(), net).fit(X, y)):
        head = linear_head(estimator, X, 3)
        got = head.logits(head.features.transform(X))
        own = estimator if hasattr(estimator, "logits") else estimator[-1]
        rows = X if own is estimator else estimator[0].transform(X)
        np.testing.assert_allclose(got, own.logits(rows), rtol=1e-4, atol=1e-5)
        assert head.weight.shape == (3, 8) and head.bias.shape == (3,)


@pytest.mark.parametrize("k", [2, 3])
def test_the_head_of_a_linear_classifier_gives_its_logits(rng, k):
    X, y = rng.normal(size=(80, 6)), rng.integers(0, k, 80)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    for estimator in (LogisticRegression(), LinearDiscriminantAnalysis(), scaled):
        logits = (estimator.fit(X, y).decision_function(X)).reshape(80, -1)
        logits = np.column_stack([-logits / 2, logits / 2]) if k == 2 else logits
        head = linear_head(FrozenEstimator(estimator), X, k)
        Z = X if head.features is None else head.features.transform(X)
        np.testing.assert_allclose(head.logits(Z), logits, atol=1e-10)
