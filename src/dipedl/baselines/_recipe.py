"""How the networks trained by cross-entropy are trained unless told otherwise."""

from __future__ import annotations

from ..nn.training import Training

TRAINING = Training(epochs=8, learning_rate=2e-3, schedule="one-cycle")
