"""Training settings of the baselines: the defaults, and the published ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from ..nn._checks import check_choice
from ..nn.backbones._network import Backbone
from ..nn.backbones.branch_cnn import BranchCNN
from ..nn.backbones.lenet import LeNet5
from ..nn.training.settings import Training

#: Trains LeNet5 on MNIST well, in minutes on a CPU.
TRAINING = Training(epochs=8, learning_rate=2e-3, schedule="one-cycle")

#: The paper's settings for cross-entropy, on MNIST and on LAMOST.
STEPS = Training(
    epochs=50, batch_size=128, learning_rate=1e-3, schedule="step", step_size=10, decay=0.5
)

#: Data with published configurations; "spectra" are those of LAMOST.
PUBLISHED = ("mnist", "spectra")


class Published(ABC):
    """A network baseline with published configurations, which ``_published`` gives."""

    @classmethod
    def as_published(
        cls,
        *,
        data: str = "mnist",
        image_shape: tuple[int, ...] | None = None,
        random_state: Any = 0,
    ) -> Self:
        """The configuration of the paper or of the released code; see the notes of the class.

        Parameters
        ----------
        data : {"mnist", "spectra"}, default="mnist"
            The configuration for images of MNIST, or that for spectra of LAMOST.
        image_shape, random_state
            As of the class.
        """
        check_choice("data", data, PUBLISHED)
        same: Any = {"image_shape": image_shape, "random_state": random_state}
        return cls(**cls._published(data), **same)

    @classmethod
    @abstractmethod
    def _published(cls, data: str) -> dict[str, Any]:
        """Arguments of the class, without `image_shape` and `random_state`."""


def published_network(data: str, dropout: float) -> Backbone:
    """The network that EDL, MC dropout and the deep ensemble have in the paper."""
    check_choice("data", data, PUBLISHED)
    return LeNet5(dropout=dropout) if data == "mnist" else BranchCNN(dropout=dropout)
