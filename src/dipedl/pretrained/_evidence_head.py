"""From log-density and logits to a Dirichlet, with every learned number in a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor, nn

from ..calibration.held_out import HeldOut
from ..calibration.rehearsal import Rehearsal
from ..calibration.temperature import Temperature
from ..decisions._narrow import ShortDirichlet
from ..dirichlet import Dirichlet
from ..evidence import CautionBudget, Identity, log_evidence
from ..evidence._base import AffineNormalizer
from ..evidence._logistic import LogisticNormalizer
from ..evidence_model import EvidenceModel
from ..inputs import check_positive_number, check_rate, prior_vector
from ..maths.evidence import (
    affine,
    capped,
    concentration,
    inverse_temperature,
    logistic,
    sharpening_share,
    vacuity,
)
from ._supported import SupportedStrength
from .dirichlet_output import DirichletOutput

PASSTHROUGH = "passthrough"
#: Normalisers whose map is in `maths.evidence`; Identity is affine.
_MAPS: tuple[Any, ...] = (LogisticNormalizer, AffineNormalizer, Identity)
_NUMBERS = (
    "temperature",
    "location",
    "scale",
    "log_odds",
    "log_full",
    "offset",
    "sharp_from",
    "sharp_in_full",
)


class EvidenceHead(nn.Module):
    """Temperature, normaliser, prior and threshold; the last step of `DIPModule`.

    Parameters are those of `DIPModule`; `dtype` is that of the buffers.
    """

    prior: Tensor
    temperature: Tensor
    location: Tensor
    scale: Tensor
    log_odds: Tensor
    log_full: Tensor
    offset: Tensor
    sharp_from: Tensor
    sharp_in_full: Tensor

    def __init__(
        self,
        *,
        prior: Any,
        gamma: float,
        max_evidence: float | None,
        normalizer: Any,
        calibrator: Any,
        spread: Any,
        false_alarm_rate: float,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        check_positive_number("gamma", gamma)
        if max_evidence is not None:
            check_positive_number("max_evidence", max_evidence)
        check_rate(false_alarm_rate)
        _check_calibrator(calibrator)
        self.normalizer = CautionBudget() if normalizer is None else normalizer
        _check_normalizer(self.normalizer)
        self.bounded = isinstance(self.normalizer, LogisticNormalizer)
        self.slope = float(getattr(self.normalizer, "slope", 1.0))
        self.prior_setting, self.gamma = prior, float(gamma)
        self.max_evidence = None if max_evidence is None else float(max_evidence)
        self.calibrator, self.false_alarm_rate = calibrator, float(false_alarm_rate)
        self.supported = None if spread is None else SupportedStrength(spread, dtype)
        self.register_buffer("prior", torch.empty(0, dtype=dtype, device="cpu"))
        for name in _NUMBERS:
            self.register_buffer(name, torch.tensor(torch.nan, dtype=dtype, device="cpu"))

    @property
    def is_fitted(self) -> bool:
        return self.prior.numel() > 0

    @property
    def spread(self) -> Rehearsal | None:
        """The learner of the strength, unfitted."""
        return None if self.supported is None else self.supported.spread

    @property
    def needs_proba(self) -> bool:
        """Whether anything learns from held-out probabilities and labels."""
        normalizer = has_fit_parameter(self.normalizer, "proba")
        return bool(normalizer) or not isinstance(self.calibrator, str)

    def learned(self, held: HeldOut, *, n: float, k: int) -> EvidenceModel:
        """The evidence side learned from held-out rows, n rows of the density and k classes.

        The same steps as `dipedl.DIPClassifier` takes, by the same code.
        """
        return EvidenceModel(
            normalizer=self.normalizer,
            calibrator=self.calibrator,
            false_alarm_rate=self.false_alarm_rate,
            prior=prior_vector(self.prior_setting, k),
            gamma=self.gamma,
            max_evidence=self.max_evidence,
        ).learn(held, n=n)

    def learn(self, held: HeldOut, Z: Any, *, n: float, k: int) -> None:
        """Take what is learned from held-out rows into the buffers, as for `learned`.

        `Z` (m, p) are their features, or None without a spread.
        """
        model = self.learned(held, n=n, k=k)
        if self.supported is not None:
            self.supported.learn(model, held, Z)
        numbers = {
            "temperature": getattr(model.calibrator_, "temperature_", 1.0),
            "location": getattr(model.normalizer_, "location_", 0.0),
            "scale": getattr(model.normalizer_, "scale_", 1.0),
            "log_odds": getattr(model.normalizer_, "log_odds_", 0.0),
            "log_full": float(log_evidence(np.zeros(1), n, self.gamma)[0]),
            "offset": model.offset_,
            "sharp_from": model.sharpening_[0],
            "sharp_in_full": model.sharpening_[1],
        }
        # Tensors made in inference mode could not be compiled or saved for a gradient later.
        with torch.inference_mode(False):
            for name, number in numbers.items():
                setattr(self, name, torch.full_like(getattr(self, name), number))
            self.prior = torch.from_numpy(model.prior).to(self.prior)

    def forward(self, log_density: Tensor, logits: Tensor) -> DirichletOutput:
        """Dirichlets of log-densities (n,) and logits (n, k), in their wider dtype."""
        logits, log_density = _wide(logits, log_density)
        evidence = self.log_evidence(log_density)
        share = sharpening_share(log_density, self.sharp_from, self.sharp_in_full)
        steepness = inverse_temperature(self.temperature, share)
        proba = torch.softmax(logits * steepness[:, None], dim=1)
        alpha = concentration(evidence, proba, self.prior)
        mean = alpha / alpha.sum(dim=1, keepdim=True)
        if self.supported is not None:
            alpha = mean * self.supported(evidence)[:, None]
        return DirichletOutput(alpha, evidence, mean, vacuity(evidence, self.prior))

    def log_evidence(self, log_density: Tensor) -> Tensor:
        """``log(n gamma) + z`` of log-densities (n,), in nats."""
        place = (log_density, self.location, self.scale)
        z = logistic(*place, self.slope, self.log_odds) if self.bounded else affine(*place)
        evidence: Tensor = capped(self.log_full + z, self.max_evidence)
        return evidence

    def flags(self, log_density: Tensor) -> Tensor:
        """+1, or -1 where the score lies below the alarm threshold or is NaN, int64 (n,)."""
        return torch.where(log_density >= self.offset, 1, -1)

    def dirichlet(self, log_density: Tensor, logits: Tensor) -> Dirichlet:
        found = self(log_density, logits)
        prior = self.prior.to(found.concentration.dtype)
        short = self.supported is not None and self.supported.learned().falls_short
        kind = ShortDirichlet if short else Dirichlet
        return kind(found.concentration, found.log_evidence, prior)

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        given = state.get(f"{prefix}prior")
        if isinstance(given, Tensor) and given.ndim == 1:
            # Unfitted, it does not know the number of classes.
            self.prior = self.prior.new_empty(given.shape)
        super()._load_from_state_dict(state, prefix, *rest)


def _wide(logits: Tensor, log_density: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the wider of their dtypes, at least float32."""
    dtype = torch.promote_types(logits.dtype, log_density.dtype)
    dtype = torch.promote_types(dtype, torch.float32)
    return logits.to(dtype), log_density.to(dtype)


def _check_normalizer(normalizer: Any) -> None:
    if any(isinstance(normalizer, m) and type(normalizer)._apply is m._apply for m in _MAPS):
        return
    raise TypeError(
        "normalizer must be one whose map is affine or logistic in the log-density "
        "(CautionBudget, QuantileEvidence, ZScore, RobustZScore or Identity of dipedl.evidence), "
        f"so that it becomes part of the network's graph, got {normalizer!r}"
    )


def _check_calibrator(calibrator: Any) -> None:
    passthrough = isinstance(calibrator, str) and calibrator == PASSTHROUGH
    if calibrator is None or passthrough or type(calibrator) is Temperature:
        return
    raise TypeError(
        "calibrator must be None, 'passthrough' or dipedl.calibration.Temperature(), so that it "
        f"becomes part of the network's graph, got {calibrator!r}"
    )
