"""What no baseline is fitted with: the error and the argument that it names."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from torch import nn

from dipedl.baselines import (
    ASH,
    CEDL,
    DAEDL,
    DDU,
    DICE,
    DUQ,
    EDL,
    FDBD,
    FEDL,
    GEN,
    IBEDL,
    IEDL,
    NCI,
    REDL,
    SCALE,
    SNGP,
    SWAG,
    CoP,
    CoRP,
    DeepEnsemble,
    Energy,
    EnsembleDirichlet,
    KNNDistance,
    LastLayerLaplace,
    Mahalanobis,
    MaxLogit,
    MaxSoftmax,
    MCDropout,
    NatPN,
    NNGuide,
    PostNet,
    ReAct,
    ReEDL,
    RelativeMahalanobis,
    Residual,
    ViM,
)
from dipedl.baselines.mc_dropout import check_dropout
from dipedl.networks import MLP, TorchClassifier, Training
from dipedl.networks.backbones import Network

RNG = np.random.default_rng(0)
Y = np.arange(150) % 3
X = RNG.normal(size=(150, 4)) + Y[:, None]
ONCE = Training(epochs=1, batch_size=64, n_jobs=1)
NAMES = ["EDL", "REDL", "ReEDL", "DAEDL", "PostNet", "MCDropout", "DeepEnsemble"]


class Logits(LogisticRegression):
    """Gives logits of a form of its own."""

    given = np.zeros((150, 6))

    def logits(self, X):
        return self.given


class NaNLogits(Logits):
    given = np.full((150, 3), np.nan)


class Doubled(LogisticRegression):
    """Has other logits than its weights."""

    def decision_function(self, X):
        return 2 * super().decision_function(X)


@dataclass(frozen=True)
class Deep(MLP):
    """Two layers after the features."""

    def _layers(self, shape, k):
        body, _, width = super()._layers(shape, k)
        return body, nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, k)), width


def sampled(layer):
    return lambda: check_dropout(Network((1, 1, 4), nn.Flatten(), layer, 4))


#: Baseline that is fitted, or call; error; and a pattern with the named argument and what came.
CASES = [
    (DeepEnsemble(n_members=1), ValueError, "n_members must be an integer >= 2, got 1"),
    (DeepEnsemble(n_members=2.0), TypeError, "n_members must be an integer >= 2, got 2.0"),
    (DeepEnsemble(GaussianNB()), TypeError, "must have a parameter random_state"),
    (DeepEnsemble("net"), TypeError, "estimator must be a classifier object, got 'net'"),
    (DeepEnsemble(FrozenEstimator(ExtraTreesClassifier())), TypeError, "estimator .*frozen"),
    *(
        (cls(MLP((8,)), ONCE, **settings), ValueError, message)
        for cls, settings, message in (
            (EDL, {"loss": "ce"}, "loss must be one of .*'digamma', 'log', 'mse'.*'ce'"),
            (EDL, {"evidence": "tanh"}, "evidence must be one of .*'tanh'"),
            (EDL, {"kl_weight": -1}, "kl_weight must be >= 0, got -1"),
            (EDL, {"annealing_epochs": -1}, "annealing_epochs must be an integer >= 0"),
            (REDL, {"annealing_epochs": 1.5}, "annealing_epochs.*or a share of the epochs in"),
            (EDL, {"kl_weight": np.nan}, "kl_weight must be >= 0, got nan"),
            (REDL, {"lambda2": 0.0}, r"lambda2 must be > 0, got 0\.0"),
            (REDL, {"lambda1": -0.1}, "lambda1 must be >= 0"),
            (REDL, {"evidence": None}, "evidence must be one of"),
            (ReEDL, {"lambda2": -1}, "lambda2 must be > 0"),
            (DAEDL, {"kl_weight": -1}, "kl_weight must be >= 0"),
            (PostNet, {"latent_dim": 0}, "latent_dim must be an integer >= 1"),
            (PostNet, {"n_layers": 0}, "n_layers must be an integer >= 1"),
            (PostNet, {"entropy_weight": -1}, "entropy_weight must be >= 0"),
            (PostNet, {"budget": "one"}, "budget must be one of .*'counts', 'total'.*'one'"),
            (PostNet, {"budget": 0}, "budget must be > 0, or one of"),
            (IEDL, {"fisher_weight": -1}, "fisher_weight must be >= 0, got -1"),
            (IBEDL, {"bottleneck": -1}, "bottleneck must be >= 0, got -1"),
            (IBEDL, {"n_noises": 0}, "n_noises must be an integer >= 1, got 0"),
            (FEDL, {"hidden": 0}, "hidden must be an integer >= 1, got 0"),
            (FEDL, {"n_layers": 0}, "n_layers must be an integer >= 1, got 0"),
            (NatPN, {"latent_dim": 0}, "latent_dim must be an integer >= 1, got 0"),
            (NatPN, {"entropy_weight": -1}, "entropy_weight must be >= 0"),
            (SNGP, {"n_fourier": 0}, "n_fourier must be an integer >= 1, got 0"),
            (SNGP, {"length_scale": 0.0}, "length_scale must be finite and > 0, got 0.0"),
            (SNGP, {"ridge": -1.0}, "ridge must be finite and > 0, got -1.0"),
            (DUQ, {"embedding": 0}, "embedding must be an integer >= 1, got 0"),
            (DUQ, {"length_scale": -1.0}, "length_scale must be finite and > 0, got -1.0"),
            (DUQ, {"momentum": 1.0}, r"momentum must be in \[0, 1\), got 1.0"),
            (DUQ, {"gradient_penalty": -1}, "gradient_penalty must be >= 0, got -1"),
            (MCDropout, {"n_samples": 0}, "n_samples must be an integer >= 1, got 0"),
            (SWAG, {"n_samples": 0}, "n_samples must be an integer >= 1, got 0"),
            (SWAG, {"rank": 1}, "rank must be an integer >= 2, got 1"),
            (SWAG, {"iterates": ONCE}, "iterates must have at least 2 epochs"),
        )
    ),
    (MCDropout(MLP((8,)), ONCE, n_samples=2.5), TypeError, "n_samples must be an integer >= 1"),
    (SWAG(MLP((8,)), ONCE, iterates=20), TypeError, "iterates must be None or a Training, got 20"),
    (MCDropout("lenet", ONCE), TypeError, "backbone must be None or an Architecture"),
    (MCDropout(MLP((8,), dropout=0.0), ONCE), ValueError, r"between 0 and 1, got \[0.0\]"),
    (sampled(nn.AlphaDropout(0.5)), ValueError, r"layers \['AlphaDropout'\]"),
    (sampled(nn.Identity()), ValueError, "got no Dropout layer"),
    (sampled(nn.Dropout(1.0)), ValueError, r"between 0 and 1, got \[1.0\]"),
    (Energy(RandomForestClassifier()), TypeError, "method logits or decision_function"),
    (Energy(temperature=0.0), ValueError, "temperature must be finite and > 0, got 0.0"),
    (Energy(temperature="1"), TypeError, "temperature must be a number .*> 0, got '1'"),
    (lambda: Energy(Logits()).fit(X, Y).uncertainty(X), ValueError, r"\(150, 3\), .*\(150, 6\)"),
    (lambda: Energy(NaNLogits()).fit(X, Y).uncertainty(X), ValueError, "logits .* finite"),
    (MaxSoftmax(Perceptron()), TypeError, "estimator must have a method predict_proba"),
    (MaxSoftmax(FrozenEstimator(object())), TypeError, "estimator must be a classifier object"),
    (MaxSoftmax("net"), TypeError, "estimator must be a classifier object, got 'net'"),
    (KNNDistance(n_neighbors=151), ValueError, "must lie in 1..n_samples = 150, got 151"),
    (KNNDistance(n_neighbors=0), ValueError, "n_neighbors must be an integer >= 1"),
    (Mahalanobis(features="pixels"), TypeError, "features must be None, 'passthrough' or"),
    (Mahalanobis(shrinkage="much"), ValueError, "shrinkage must be None, a number"),
    (MaxLogit(GaussianNB()), TypeError, "method logits or decision_function"),
    (NNGuide(GaussianNB()), TypeError, "method logits or decision_function"),
    (NNGuide(n_neighbors=151), ValueError, "n_neighbors must lie in 1..n_samples = 150, got 151"),
    (NNGuide(bank=0.0), ValueError, r"bank must be in \(0, 1\], got 0.0"),
    (GEN(gamma=0.0), ValueError, r"gamma must be in \(0, 1\], got 0.0"),
    (GEN(n_largest=0), ValueError, "n_largest must be an integer >= 1, got 0"),
    (NCI(alpha=-1.0), ValueError, "alpha must be >= 0, got -1.0"),
    (RelativeMahalanobis(shrinkage=-1.0), ValueError, "shrinkage must be in"),
    (Residual(n_components=4), ValueError, "n_components must be below n_features = 4, got 4"),
    (Residual(n_components=-1), ValueError, "n_components must be an integer >= 0, got -1"),
    (lambda: ViM(n_components=3).fit(X[:, [0, 1, 1, 0]], Y), ValueError, "lower n_components"),
    (CoP(explained_variance=1.0), ValueError, "explained_variance must be in .*, got 1.0"),
    (CoRP(gamma=0.0), ValueError, "gamma must be > 0, got 0.0"),
    (CoRP(n_fourier=0), ValueError, "n_fourier must be an integer >= 1, got 0"),
    *((of(percentile=100), ValueError, "percentile .* 100") for of in (ReAct, ASH, SCALE, DICE)),
    (FDBD(GaussianNB()), TypeError, "estimator .* no linear_head.. and no coef_"),
    (FDBD(Doubled()), TypeError, "other logits than its weights"),
    (FDBD(TorchClassifier(Deep(), ONCE)), TypeError, "is not linear; take a backbone"),
    (FDBD(PostNet(MLP((8,)), ONCE)), TypeError, "no head after its features"),
    (EnsembleDirichlet(GaussianNB()), TypeError, "estimator must have a method sample_proba"),
    (CEDL(GaussianNB()), TypeError, "estimator must have a method predict_dirichlet"),
    (CEDL(image_shape=(2, 3)), ValueError, r"columns for image_shape=\(2, 3\), got 4"),
    (CEDL(n_views=1), ValueError, "n_views must be an integer >= 2, got 1"),
    (CEDL(beta=-1), ValueError, "beta must be >= 0, got -1"),
    (CEDL(delta=-1), ValueError, "delta must be >= 0, got -1"),
    (LastLayerLaplace(prior_precision=0.0), ValueError, "prior_precision must be finite and > 0"),
    (LastLayerLaplace(GaussianNB()), TypeError, "estimator .* no linear_head.. and no coef_"),
    (DUQ(training=replace(ONCE, compile=True)), ValueError, "compile=False for DUQ, got .*True"),
    (DUQ(training=replace(ONCE, compile="graph")), ValueError, "for DUQ, got compile='graph'"),
    (DDU(shrinkage=2.0), ValueError, r"shrinkage must be in \[0, 1\], got 2.0"),
]


@pytest.mark.parametrize(("ask", "error", "message"), CASES)
def test_it_is_refused_by_name(ask, error, message):
    with pytest.raises(error, match=message):
        ask.fit(X, Y) if hasattr(ask, "fit") else ask()
