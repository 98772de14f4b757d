"""Training settings of the baselines: the defaults, and the published ones."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from ..density.gaussian import GDADensity
from ..networks.augmentations import CropFlipRotate
from ..networks.backbones import (
    MLP,
    VGG16,
    Backbone,
    BranchCNN,
    ConvLin,
    ConvLin1d,
    LeNet5,
    WideResNet,
)
from ..networks.checks import check_choice
from ..networks.training import Training

#: Trains LeNet5 on MNIST well, in minutes on a CPU.
TRAINING = Training(epochs=8, learning_rate=2e-3, schedule="one-cycle")

#: The paper's settings for cross-entropy, on MNIST and on LAMOST.
_STEPS = Training(
    epochs=50, batch_size=128, learning_rate=1e-3, schedule="step", step_size=10, decay=0.5
)
#: The paper's settings for the wide network of CIFAR-10, whatever its loss.
_WIDE = Training(
    epochs=100,
    batch_size=128,
    optimizer="sgd",
    learning_rate=0.1,
    weight_decay=5e-4,
    schedule="cosine",
    augment=CropFlipRotate(),
)
#: Those of R-EDL and Re-EDL: the best of the checks after every other epoch.
_BEST = Training(epochs=60, batch_size=64, restore_best=True, validate_every=2)
_RELAXED = {
    "mnist": (ConvLin(), replace(_BEST, schedule="step", step_size=15, decay=0.1)),
    "cifar10": (
        VGG16(),
        replace(_BEST, epochs=200, learning_rate=1e-4, augment=CropFlipRotate()),
    ),
    "spectra": (MLP((256, 256, 256)), _BEST),
}
_DECAYING = Training(
    epochs=50, batch_size=64, learning_rate=1e-3, schedule="exponential", decay=0.95
)
_DAEDL = {
    "mnist": (ConvLin(spectral_norm=True, features="conv"), _DECAYING),
    "cifar10": (
        VGG16(spectral_norm=True),
        replace(_DECAYING, epochs=100, augment=CropFlipRotate()),
    ),
    "spectra": (ConvLin1d(spectral_norm=True, features="conv"), _DECAYING),
}
_PATIENT = replace(_BEST, epochs=50, learning_rate=5e-5, patience=10)
_POSTNET = {
    "mnist": (ConvLin(), _PATIENT),
    "cifar10": (
        ConvLin(),
        replace(_PATIENT, epochs=200, learning_rate=5e-4, augment=CropFlipRotate()),
    ),
    "spectra": (MLP((64, 64, 64)), _PATIENT),
}

#: Data with published configurations; "spectra" are those of LAMOST.
PUBLISHED = ("mnist", "cifar10", "spectra")


def as_published(
    cls: Any,
    *,
    data: str = "mnist",
    image_shape: tuple[int, ...] | None = None,
    random_state: Any = 0,
) -> Any:
    """The configuration of the paper or of the released code; see the notes of the class.

    Parameters
    ----------
    data : {"mnist", "cifar10", "spectra"}, default="mnist"
        The configuration for images of MNIST or of CIFAR-10, or that for spectra of LAMOST.
    image_shape, random_state
        As of the class; images of CIFAR-10 are (3, 32, 32) unless given.
    """
    check_choice("data", data, PUBLISHED)
    shape = published_shape(data, image_shape)
    return cls(**deepcopy(cls._published[data]), image_shape=shape, random_state=random_state)


def published_network(data: str, dropout: float) -> tuple[Backbone, Training]:
    """Return the network that EDL, MC dropout and the deep ensemble have, and its training."""
    check_choice("data", data, PUBLISHED)
    if data == "cifar10":
        return WideResNet(dropout=dropout, spectral_norm=True), _WIDE
    return LeNet5(dropout=dropout) if data == "mnist" else BranchCNN(dropout=dropout), _STEPS


def published_shape(data: str, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the shape of an input, or that of CIFAR-10, which a row does not tell."""
    return (3, 32, 32) if shape is None and data == "cifar10" else shape


def _settings(networks: dict[str, Any], **settings: Any) -> dict[str, dict[str, Any]]:
    """Return settings by data: network and training of each, and what all data share."""
    return {
        data: {"backbone": backbone, "training": training, **settings}
        for data, (backbone, training) in networks.items()
    }


_EDL_DROPOUT = {"mnist": 0.5, "cifar10": 0.3, "spectra": 0.0}
_DECAYED = replace(_STEPS, schedule="constant")
EDL = _settings(
    {data: published_network(data, dropout) for data, dropout in _EDL_DROPOUT.items()},
    loss="mse", evidence="relu", kl_weight=1.0, annealing_epochs=10,
)  # fmt: skip
EDL["mnist"]["training"] = replace(_DECAYED, weight_decay=5e-3)
EDL["spectra"]["training"] = replace(_DECAYED, weight_decay=1e-4)
REDL = _settings(_RELAXED, lambda1=1.0, lambda2=0.1, annealing_epochs=10)
REEDL = _settings(_RELAXED, lambda2=0.8)
REEDL["mnist"]["lambda2"] = 0.1
DAEDL = _settings(_DAEDL, kl_weight=0.05, density=GDADensity(shrinkage=1e-6))
POSTNET = _settings(_POSTNET)
MC_DROPOUT = _settings(
    {d: published_network(d, 0.3 if d == "cifar10" else 0.5) for d in PUBLISHED}, n_samples=50
)
