"""How the networks of the baselines are trained unless told otherwise."""

from __future__ import annotations

from ..nn.training import Training

#: Healthy on MNIST with LeNet5, in minutes on a CPU.
TRAINING = Training(epochs=8, learning_rate=2e-3, schedule="one-cycle")
