"""Weights of classes in every baseline that trains a network, and priors for classes that are rare.

The reference of a loss is its definition in SciPy, row by row.
"""

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from sklearn.base import clone

torch = pytest.importorskip("torch")

from dipedl.baselines import DAEDL, EDL, REDL, DeepEnsemble, MCDropout, PostNet, ReEDL  # noqa: E402
from dipedl.networks import MLP, TorchClassifier, Training  # noqa: E402

SETTINGS = Training(12, 32, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)
QUICK = Training(1, 64, n_jobs=1)
METHODS = [
    EDL(MLP((16,)), SETTINGS, annealing_epochs=10),
    REDL(MLP((16,)), SETTINGS, annealing_epochs=40),
    ReEDL(MLP((16,)), SETTINGS),
    DAEDL(MLP((16,)), SETTINGS),
    PostNet(MLP((16,)), SETTINGS, latent_dim=2),
    MCDropout(MLP((16,), dropout=0.1), SETTINGS, n_samples=10),
]
ids = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
WEIGHTS = np.array([0.5, 3.0])


@pytest.fixture(scope="module")
def rare():
    """Two classes that overlap, one of them eight times as frequent."""
    rng = np.random.default_rng(0)
    y = (np.arange(450) % 9 == 0).astype(int)
    return rng.normal(size=(450, 2)) + 1.3 * y[:, None], y


def fitted(method, X, y, **params):
    return clone(method).set_params(**params).fit(X, y)


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


@ids
def test_the_loss_is_the_weighted_mean_of_those_of_the_rows(method, rare):
    model = fitted(method, *rare, training=QUICK, class_weight=dict(enumerate(WEIGHTS)))
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
    model = clone(METHODS[0]).set_params(class_weight={1: 5.0}, training=QUICK)
    model.fit(X, y, validation=(X[:50], y[:50]))
    wrong = model.predict(X[:50]) != y[:50]
    np.testing.assert_allclose(model.history_.score, [np.mean(wrong * np.where(y[:50], 5.0, 1.0))])


def test_members_of_an_ensemble_have_the_weights(rare):
    member = TorchClassifier(MLP((4,)), QUICK, class_weight="balanced")
    for fitted_member in DeepEnsemble(member, 2).fit(*rare).members_:
        np.testing.assert_allclose(fitted_member.class_weight_, [450 / 800, 450 / 100])
