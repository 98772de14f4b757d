"""Training settings of the baselines: the defaults, and the published ones."""

from __future__ import annotations

from typing import Any

from ..networks.augmentations import CropFlipRotate
from ..networks.backbones.branch_cnn import BranchCNN
from ..networks.backbones.deep_cnns import WideResNet
from ..networks.backbones.network import Backbone
from ..networks.backbones.small_cnns import LeNet5
from ..networks.checks import check_choice
from ..networks.training import Training

#: Trains LeNet5 on MNIST well, in minutes on a CPU.
TRAINING = Training(epochs=8, learning_rate=2e-3, schedule="one-cycle")

#: The paper's settings for cross-entropy, on MNIST and on LAMOST.
STEPS = Training(
    epochs=50, batch_size=128, learning_rate=1e-3, schedule="step", step_size=10, decay=0.5
)

#: The paper's settings for the wide network of CIFAR-10, whatever its loss.
WIDE = Training(
    epochs=100,
    batch_size=128,
    optimizer="sgd",
    learning_rate=0.1,
    weight_decay=5e-4,
    schedule="cosine",
    augment=CropFlipRotate(),
)

#: Data with published configurations; "spectra" are those of LAMOST.
PUBLISHED = ("mnist", "cifar10", "spectra")
#: Channels, height and width of an image of CIFAR-10.
_COLOUR = (3, 32, 32)


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
    return cls(**cls._published(data), image_shape=shape, random_state=random_state)


def published_network(data: str, dropout: float) -> Backbone:
    """The network that EDL, MC dropout and the deep ensemble have in the paper."""
    check_choice("data", data, PUBLISHED)
    if data == "cifar10":
        return WideResNet(dropout=dropout, spectral_norm=True)
    return LeNet5(dropout=dropout) if data == "mnist" else BranchCNN(dropout=dropout)


def published_training(data: str) -> Training:
    """The training of that network by cross-entropy."""
    return WIDE if data == "cifar10" else STEPS


def published_shape(data: str, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the shape of an input, or that of CIFAR-10, which a row does not tell."""
    return _COLOUR if shape is None and data == "cifar10" else shape
