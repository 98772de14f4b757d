"""Training settings of the baselines: the defaults, and the published ones."""

from __future__ import annotations

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


def check_published(data: str) -> None:
    """Raise ValueError unless `data` names a published configuration."""
    check_choice("data", data, PUBLISHED)


def published_network(data: str, dropout: float) -> Backbone:
    """The network that EDL, MC dropout and the deep ensemble have in the paper."""
    check_published(data)
    return LeNet5(dropout=dropout) if data == "mnist" else BranchCNN(dropout=dropout)
