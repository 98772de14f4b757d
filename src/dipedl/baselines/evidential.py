"""Shared part of the evidential baselines: a trained network and its Dirichlets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..dirichlet import DIRICHLET_KINDS, Dirichlet
from ..maths.arrays import check_choice, check_integer, check_number
from ..networks.evidential_losses import (
    evidence_from_logits,
    kl_misleading,
    log_evidence_from_logits,
)
from ..networks.torch_classifier import TorchEstimator
from ..networks.training import Training

#: Trains LeNet5 on MNIST well, in minutes on a CPU.
TRAINING = Training(epochs=8, learning_rate=2e-3, schedule="one-cycle")


class Evidential:
    """A network with one Dirichlet per input: the network in float32, the Dirichlet in float64.

    Mixed into a `TorchEstimator` that gives ``_risk`` of evidence (n, k) and target (n,), shape
    (n,), or a ``_loss`` and ``predict_dirichlet`` of its own.
    """

    classes_: Any
    get_params: Any
    logits: Any
    training_settings: Any
    weighted_mean: Callable[..., Tensor]
    _risk: Callable[[Tensor, Tensor], Tensor]
    _default_training: ClassVar[Training] = TRAINING

    # Parameters of the methods that have them.
    evidence: str = "exp"
    kl_weight: float = 0.0
    annealing_epochs: Any = 0
    lambda2: float = 1.0

    def predict_dirichlet(self, X: Any) -> Dirichlet:
        """The Dirichlet ``prior + evidence`` of each of the n inputs X (n, d), in float64."""
        rows, prior = torch.from_numpy(self.logits(X)), float(self.lambda2)
        log_evidence = log_evidence_from_logits(rows, self.evidence).numpy()
        evidence = evidence_from_logits(rows, self.evidence).numpy()
        return Dirichlet(prior + evidence, log_evidence, prior)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), the means of the Dirichlets, shape (n, k)."""
        return np.asarray(self.predict_dirichlet(X).mean)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each input of X (n, d), shape (n,).

        The network's outputs rank the classes as the probabilities do, also where the evidence
        rounds away and probabilities tie.
        """
        best = self.logits(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def uncertainty(self, X: Any, kind: str = "log_evidence") -> np.ndarray:
        """Uncertainty of each input of X (n, d), shape (n,); higher is less sure, always.

        The `kind` "log_evidence" is the negative log of the total evidence. It ranks like the
        vacuity, also where the vacuity rounds to 1; no evidence gives ``inf``. Others are those of
        the Dirichlet: "vacuity", "total", "aleatoric", "epistemic", "differential_entropy".
        """
        if kind == "log_evidence":
            return -self._log_evidence(X)
        check_choice("kind", kind, ["log_evidence", *DIRICHLET_KINDS])
        return np.asarray(getattr(self.predict_dirichlet(X), kind))

    def _log_evidence(self, X: Any) -> np.ndarray:
        return np.asarray(self.predict_dirichlet(X).log_evidence)

    #: Annealed losses cannot be compared between epochs.
    _score: ClassVar[Any] = TorchEstimator.error_rate

    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        evidence = evidence_from_logits(outputs, self.evidence)
        weight = self.kl_weight * self._annealing_weight(epoch)
        alpha = evidence + self.lambda2
        return self._with_kl(self._risk(evidence, target), alpha, target, weight, self.lambda2)

    def _annealing_weight(self, epoch: int) -> float:
        """Weight of the KL in an epoch; a float `annealing_epochs` is a share of the training."""
        length = self.annealing_epochs
        if isinstance(length, float) and length > 0:
            length = max(1.0, length * (self.training_settings().epochs - 1))
        return min(1.0, epoch / length) if length else 1.0

    def _with_kl(
        self, risk: Tensor, alpha: Tensor, target: Tensor, weight: float, prior: float = 1.0
    ) -> Tensor:
        """Mean of the risk (n,) plus the KL on misleading evidence."""
        if weight > 0:
            risk = risk + weight * kl_misleading(alpha, target, prior)
        return self.weighted_mean(risk, target)

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_choice("evidence", self.evidence, ("exp", "relu", "softplus"))
        for name, value in self.get_params(deep=False).items():
            if name in ("lambda1", "kl_weight", "entropy_weight", "fisher_weight"):
                check_number(name, value, ">= 0", lambda x: x >= 0)
        length = self.annealing_epochs
        if isinstance(length, float):
            allowed = "an integer >= 0, or a share of the epochs in [0, 1]"
            check_number("annealing_epochs", length, allowed, lambda x: 0 <= x <= 1)
        else:
            check_integer("annealing_epochs", length, 0)
        check_number("lambda2", self.lambda2, "> 0", lambda x: x > 0)
