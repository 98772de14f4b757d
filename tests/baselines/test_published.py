"""The configurations of the papers and of the released code, against their facts."""

import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

from dipedl import baselines  # noqa: E402
from dipedl.baselines import DAEDL, EDL, REDL, DeepEnsemble, MCDropout, PostNet, ReEDL  # noqa: E402
from dipedl.networks import MLP, BranchCNN, ConvLin, ConvLin1d, LeNet5, Training  # noqa: E402

METHODS = [EDL, REDL, ReEDL, DAEDL, PostNet, MCDropout]
STEPS = Training(50, 128, learning_rate=1e-3, schedule="step", step_size=10, decay=0.5)
SELECTED = {"learning_rate": 1e-3, "restore_best": True, "validate_every": 2}
FALLING = Training(60, 64, schedule="step", step_size=15, decay=0.1, **SELECTED)
ANNEALED = {"evidence": "relu", "kl_weight": 1.0, "annealing_epochs": 10, "loss": "mse"}
RELAXED = {"evidence": "softplus", "lambda1": 1.0, "lambda2": 0.1, "annealing_epochs": 10}
POSTERIOR = {"latent_dim": 6, "n_layers": 6, "budget": "counts", "entropy_weight": 1e-5}
PATIENT = Training(50, 64, learning_rate=5e-5, patience=10, restore_best=True, validate_every=2)
DECAYING = Training(50, 64, learning_rate=1e-3, schedule="exponential", decay=0.95)
SPECTRAL = {"spectral_norm": True, "features": "conv"}
PUBLISHED = [
    (EDL, "mnist", LeNet5(), Training(50, 128, weight_decay=5e-3), ANNEALED),
    (EDL, "spectra", BranchCNN(), Training(50, 128, weight_decay=1e-4), ANNEALED),
    (REDL, "mnist", ConvLin(), FALLING, RELAXED),
    (REDL, "spectra", MLP((256, 256, 256)), Training(60, 64, **SELECTED), RELAXED),
    (ReEDL, "mnist", ConvLin(), FALLING, {"evidence": "softplus", "lambda2": 0.1}),
    (ReEDL, "spectra", MLP((256, 256, 256)), Training(60, 64, **SELECTED), {"lambda2": 0.8}),
    (DAEDL, "mnist", ConvLin(**SPECTRAL), DECAYING, {"kl_weight": 0.05}),
    (DAEDL, "spectra", ConvLin1d(**SPECTRAL), DECAYING, {"kl_weight": 0.05}),
    (PostNet, "mnist", ConvLin(), PATIENT, POSTERIOR),
    (PostNet, "spectra", MLP((64, 64, 64)), PATIENT, POSTERIOR),
    (MCDropout, "mnist", LeNet5(dropout=0.5), STEPS, {"n_samples": 50}),
    (MCDropout, "spectra", BranchCNN(dropout=0.5), STEPS, {"n_samples": 50}),
]


def same(mine, theirs):
    """Equal but for settings that the schedule does not use."""
    unused = {"step": (), "constant": ("step_size", "decay"), "exponential": ("step_size",)}
    skip = unused[theirs.schedule]
    ours = {k: v for k, v in vars(mine).items() if k not in skip}
    return ours == {k: v for k, v in vars(theirs).items() if k not in skip}


@pytest.mark.parametrize(("method", "data", "backbone", "training", "settings"), PUBLISHED)
def test_settings_are_those_of_the_papers(method, data, backbone, training, settings):
    model = method.as_published(data=data, image_shape=(28, 28), random_state=7)
    assert model.backbone == backbone and same(model.training, training)
    settings = settings | {"image_shape": (28, 28), "random_state": 7}
    assert settings.items() <= model.get_params(deep=False).items()
    assert repr(clone(model)) == repr(model)


@pytest.mark.parametrize(("data", "backbone"), [("mnist", LeNet5(0.0)), ("spectra", BranchCNN())])
def test_the_ensemble_has_networks_without_dropout(data, backbone):
    ensemble = DeepEnsemble.as_published(data=data, image_shape=(28, 28), random_state=3)
    assert ensemble.n_members == 5 and ensemble.random_state == 3
    assert ensemble.estimator.backbone == backbone and same(ensemble.estimator.training, STEPS)
    assert ensemble.estimator.image_shape == (28, 28)


@pytest.mark.parametrize("name", [*[m.__name__ for m in METHODS], "DeepEnsemble"])
def test_unknown_data(name):
    with pytest.raises(ValueError, match=r"data must be one of .*, got 'iris'"):
        getattr(baselines, name).as_published(data="iris")
