"""The configurations of the paper on LAMOST, against the facts of the released code."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

torch = pytest.importorskip("torch")

from dipedl import baselines  # noqa: E402
from dipedl.baselines import DAEDL, EDL, REDL, DeepEnsemble, MCDropout, PostNet, ReEDL  # noqa: E402
from dipedl.baselines.mc_dropout import _with_dropout  # noqa: E402
from dipedl.networks import MLP, BranchCNN, ConvLin1d, LeNet5, Training  # noqa: E402

METHODS = [EDL, REDL, ReEDL, DAEDL, PostNet, MCDropout]
STEPS = Training(50, 128, learning_rate=1e-3, schedule="step", step_size=10, decay=0.5)
SELECTED = Training(60, 64, learning_rate=1e-3, restore_best=True, validate_every=2)


def spectra(method):
    return method.as_published(data="spectra")


def same(mine, theirs):
    """Equal but for settings that the schedule does not use."""
    unused = {"step": (), "constant": ("step_size", "decay"), "exponential": ("step_size",)}
    skip = unused[theirs.schedule]
    ours = {k: v for k, v in vars(mine).items() if k not in skip}
    return ours == {k: v for k, v in vars(theirs).items() if k not in skip}


def test_edl():
    model = spectra(EDL)
    assert model.backbone == BranchCNN() and (model.loss, model.evidence) == ("mse", "relu")
    assert (model.kl_weight, model.annealing_epochs) == (1.0, 10)
    assert same(model.training, Training(50, 128, learning_rate=1e-3, weight_decay=1e-4))


def test_redl_and_reedl():
    relaxed, revisited = spectra(REDL), spectra(ReEDL)
    for model in (relaxed, revisited):
        assert model.backbone == MLP((256, 256, 256)) and model.evidence == "softplus"
        assert same(model.training, SELECTED)
    assert (relaxed.lambda1, relaxed.lambda2, revisited.lambda2) == (1.0, 0.1, 0.8)


def test_daedl():
    model = spectra(DAEDL)
    assert model.backbone == ConvLin1d(spectral_norm=True, features="conv")
    published = Training(50, 64, learning_rate=1e-3, schedule="exponential", decay=0.95)
    assert same(model.training, published) and model.kl_weight == 0.05


def test_postnet():
    model = spectra(PostNet)
    assert model.backbone == MLP((64, 64, 64)) and (model.latent_dim, model.n_layers) == (6, 6)
    assert (model.budget, model.entropy_weight) == ("counts", 1e-5)
    assert same(
        model.training,
        Training(50, 64, learning_rate=5e-5, patience=10, restore_best=True, validate_every=2),
    )


@pytest.mark.parametrize(
    ("data", "dropping", "whole"),
    [
        ("spectra", BranchCNN(dropout=0.5), BranchCNN()),
        ("mnist", LeNet5(dropout=0.5), LeNet5(dropout=0.0)),
    ],
)
def test_mc_dropout_and_the_ensemble(data, dropping, whole):
    mc = MCDropout.as_published(data=data, random_state=3)
    assert mc.backbone == dropping and mc.n_samples == 50 and mc.random_state == 3
    ensemble = DeepEnsemble.as_published(data=data, image_shape=(28, 28), random_state=3)
    assert ensemble.n_members == 5 and ensemble.random_state == 3
    assert ensemble.estimator.backbone == whole and ensemble.estimator.image_shape == (28, 28)
    assert same(mc.training, STEPS) and same(ensemble.estimator.training, STEPS)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
def test_it_trains_on_806_features(method):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 806)) + y[:, None]
    model = clone(spectra(method))
    assert repr(model) == repr(spectra(method))
    model.set_params(training=Training(1, 20, n_jobs=1)).fit(X, y)
    assert model.image_shape_ == (1, 1, 806)
    assert np.isfinite(model.predict_proba(X)).all()
    kind = "entropy" if method is MCDropout else "vacuity"
    assert np.isfinite(model.uncertainty(X, kind=kind)).all()


@pytest.mark.parametrize("name", [*[m.__name__ for m in METHODS], "DeepEnsemble"])
def test_unknown_data(name):
    with pytest.raises(
        ValueError, match=r"data must be one of \['cifar10', 'mnist', 'spectra'\], got 'iris'"
    ):
        getattr(baselines, name).as_published(data="iris")


def test_the_passes_of_dropout_share_the_convolutions():
    backbone = BranchCNN((3,), channels=4, hidden=(8, 6), dropout=0.5)
    X = np.random.default_rng(0).normal(size=(20, 54))
    model = MCDropout(backbone, Training(1, 10, n_jobs=1), n_samples=7, precision="float64")
    model.fit(X, np.arange(20) % 2)
    calls = []
    model.module_.body[0].register_forward_hook(lambda *given: calls.append(1))
    samples = model.sample_proba(X)
    assert len(calls) == 1
    # the reference: the whole network, once for each pattern
    for seed, sample in zip(model.sample_seeds_, samples, strict=True):
        generator = torch.Generator()
        whole = _with_dropout(model.module_, generator)
        generator.manual_seed(seed)
        logits = whole(torch.from_numpy(X)).detach().numpy()
        np.testing.assert_allclose(sample, softmax(logits, axis=1), rtol=1e-12)
