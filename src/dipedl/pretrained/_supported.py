"""The strength that held-out labels support, as a step of a network's graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from torch import Tensor, nn

from .._fold import typical_evidence
from ..calibration.held_out import HeldOut
from ..calibration.rehearsal import Rehearsal
from ..evidence_model import EvidenceModel
from ..fitting.classifiers import FittedClassifier
from ..maths.evidence import supported_strength

_NUMBERS = ("strength_", "log_evidence_", "error_", "n_", "rarest_", "confidence_")
#: What a rehearsal may mix where the classifier is frozen.
_SHARES = ("recalibrated classifier", "linear", "trees", "kernel", "boosting")


class SupportedStrength(nn.Module):
    """Total concentration by log-evidence; all that a `Rehearsal` has learned is in one buffer.

    `spread` is the learner, which stays unfitted; `dtype` that of the buffer.
    """

    numbers: Tensor

    def __init__(self, spread: Any, dtype: torch.dtype) -> None:
        super().__init__()
        if type(spread) is not Rehearsal:
            raise TypeError(
                "spread must be None or dipedl.calibration.Rehearsal(), so that it becomes part of "
                f"the network's graph, got {spread!r}"
            )
        self.spread = spread
        unknown = torch.full((len(_NUMBERS) + len(_SHARES),), torch.nan, dtype=dtype, device="cpu")
        self.register_buffer("numbers", unknown)

    def learn(self, evidence: EvidenceModel, held: HeldOut, Z: np.ndarray) -> None:
        """Rehearse on held-out rows with features Z (m, p), for evidence learned from them.

        The same steps as `dipedl.DIPClassifier` takes with a frozen classifier.
        """
        k = held.proba.shape[1]
        columns = FrozenEstimator(_LastColumns(k))
        found = clone(self.spread).fit(
            np.column_stack([Z, held.proba]),
            held.labels,
            Z,
            FittedClassifier(columns, np.arange(k), columns),
            log_evidence=evidence.log_evidence(held.scores),
            prior=evidence.prior,
            typical=typical_evidence(evidence),
            calibrator=evidence.calibrator_,
        )
        numbers = [getattr(found, name) for name in _NUMBERS]
        numbers += [found.shares_.get(name, 0.0) for name in _SHARES]
        # Tensors made in inference mode could not be compiled or saved for a gradient later.
        with torch.inference_mode(False):
            self.numbers = torch.from_numpy(np.array(numbers)).to(self.numbers)

    def learned(self) -> Rehearsal:
        """The fitted learner, on the host."""
        found: Rehearsal = clone(self.spread)
        numbers = self.numbers.tolist()
        for name, number in zip(_NUMBERS, numbers, strict=False):
            setattr(found, name, number)
        shares = zip(_SHARES, numbers[len(_NUMBERS) :], strict=True)
        found.shares_, found.refits_ = {name: share for name, share in shares if share}, 0
        return found

    def forward(self, log_evidence: Tensor) -> Tensor:
        """Strength (n,) at log-evidence (n,), in nats."""
        strength, typical = self.numbers[:2].to(log_evidence.dtype)
        found: Tensor = supported_strength(log_evidence, strength, typical)
        return found


class _LastColumns(BaseEstimator):
    """A classifier whose k probabilities are the last columns of its inputs."""

    def __init__(self, k: int) -> None:
        self.k = k

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Of rows X (n, p + k), shape (n, k)."""
        return X[:, -self.k :].copy()
