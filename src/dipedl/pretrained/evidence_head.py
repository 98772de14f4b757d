"""From log-densities and logits to Dirichlets, with every learned number in a buffer."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor, nn

from ..calibration.spread import Spread, supported_strength
from ..calibration.temperature import Temperature, inverse_temperature
from ..density.ensemble import MARGIN, NormalScores, fuse_scores
from ..dirichlet import Dirichlet, concentration, vacuity
from ..evidence import (
    CautionBudget,
    Identity,
    QuantileEvidence,
    RobustZScore,
    ZScore,
    log_evidence,
)
from ..evidence.normalizers import affine, cap_evidence, logistic
from ..evidence_model import (
    EvidenceModel,
    check_caution,
    interval_caveat,
    sharpening_share,
)
from ..held_out import HeldOut, Origin
from ..inputs import prior_vector
from ..maths.arrays import Array, check_choice, namespace, to_numpy
from .class_gaussians import ReadableGaussians
from .distances import BufferedModule

__all__ = ["DirichletOutput"]


class DirichletOutput(NamedTuple):
    """Dirichlets that `dipedl.pretrained.DIPModule` gives for n inputs and k classes.

    Attributes
    ----------
    concentration : Tensor, shape (n, k)
        ``prior + exp(log_evidence) * p``, for display; capped at exp(80) in float32.
    log_evidence : Tensor, shape (n,)
        ``log(n gamma) + z`` in nats, -inf far from all data: rank by this.
    mean : Tensor, shape (n, k)
        Class probabilities, ``concentration / sum``; the prior's far from all data.
    vacuity : Tensor, shape (n,)
        Share of the prior, in (0, 1].
    """

    concentration: Tensor
    log_evidence: Tensor
    mean: Tensor
    vacuity: Tensor


# Without a name torch.export.save refuses what a program gives.
torch.utils._pytree._register_namedtuple(
    DirichletOutput, serialized_type_name="dipedl.pretrained.DirichletOutput"
)


PASSTHROUGH = "passthrough"
#: Normalisers whose map is in `evidence.normalizers`; Identity is affine.
_BOUNDED = (CautionBudget, QuantileEvidence)
_MAPS: tuple[Any, ...] = (*_BOUNDED, ZScore, RobustZScore, Identity)


_FITTED = {
    "normalizer_": "location_ scale_ log_odds_ n_ exhausted_ full_loss_ lowest_loss_ loss_ "
    "allowed_loss_",
    "calibrator_": "temperature_ minimiser_ nll_ bare_nll_ n_",
}
#: What an evidence model learns besides thresholds, in the order of its `evidence_numbers`.
_NUMBERS = [(part, name) for part, names in _FITTED.items() for name in names.split()]


def evidence_numbers(model: EvidenceModel) -> np.ndarray:
    """Return what an evidence model has learned as numbers; NaN for what it has not."""
    numbers = [getattr(getattr(model, part), name, np.nan) for part, name in _NUMBERS]
    mean = np.nan if model.temperature_ is None else model.temperature_
    return np.array([*numbers, mean, model.offset_, *model.sharpening_], dtype=np.float64)


class EvidenceHead(BufferedModule):
    """Temperature, normaliser, prior and threshold; the last step of `DIPModule`.

    `settings` are parameters of `DIPModule`; `dtype` is that of the buffers.
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

    def __init__(self, dtype: torch.dtype, **settings: Any) -> None:
        super().__init__()
        own = self.settings = EvidenceModel(**settings)
        own.check_parameters()
        check_caution(own.caution, own.normalizer)
        _check_prior(own.prior)
        for name in ("gamma", "max_evidence", "caution", "false_alarm_rate"):
            number = getattr(own, name)
            setattr(own, name, None if number is None else float(number))
        self.blank_normalizer = CautionBudget() if own.normalizer is None else own.normalizer
        _check_in_graph(own.calibrator, self.blank_normalizer)
        self.bounded = isinstance(self.blank_normalizer, _BOUNDED)
        self.slope = float(getattr(self.blank_normalizer, "slope", 1.0))
        self.strength = None if own.spread is None else Strength(dtype)
        for name in self._buffers:
            setattr(self, name, torch.tensor(torch.nan, dtype=dtype, device="cpu"))
        self.prior = self.temperature.new_empty(0)

    @property
    def is_fitted(self) -> bool:
        return self.prior.numel() > 0

    @property
    def needs_proba(self) -> bool:
        """True if anything learns from held-out probabilities and labels."""
        normalizer = has_fit_parameter(self.blank_normalizer, "proba")
        return bool(normalizer) or not isinstance(self.settings.calibrator, str)

    def blank_evidence(self, k: int) -> EvidenceModel:
        """Return the evidence side of `dipedl.DIPClassifier` for k classes, unfitted."""
        blank = copy(self.settings)
        blank.prior = prior_vector(self.settings.prior, k)
        return blank

    def restore_evidence(
        self, held_out: HeldOut, numbers: np.ndarray, *, n: float, k: int
    ) -> EvidenceModel:
        """Return the evidence side with the `numbers` that it learned from `held_out` rows."""
        model = self.blank_evidence(k)
        model.n_, model.normalizer_, model.calibrator_ = n, clone(self.blank_normalizer), None
        if held_out.has_labels and model.calibrator != PASSTHROUGH:
            model.calibrator_ = clone(model.calibrator or Temperature())
        *values, mean, model.offset_, low, high = numbers.tolist()
        model.sharpening_ = low, high
        model.temperature_ = None if np.isnan(mean) else mean
        for (part, name), number in zip(_NUMBERS, values, strict=True):
            if not np.isnan(number):
                value = bool(number) if name == "exhausted_" else number
                setattr(getattr(model, part), name, value)
        model.normalizer_.source_ = held_out.source
        model.held_out_ = model.calibrate_rows(held_out.sort())
        model.spread_ = None if self.strength is None else self.strength.spread()
        return model

    def learn(self, held_out: HeldOut, Z: Any, *, n: float, k: int) -> EvidenceModel:
        """Learn the evidence side from held-out rows, for n rows of the density and k classes.

        It takes the steps of `dipedl.DIPClassifier`, by the same code; its numbers go into the
        buffers. `Z` (m, p) are features of held-out rows that the network has not seen, or None.
        """
        model = self.blank_evidence(k).learn(held_out, n=n)
        model.learn_spread(replace(held_out, Z=Z))
        if self.strength is not None:
            self.strength.take(model.spread_)
            model.spread_ = self.strength.spread()
        numbers = {
            "temperature": 1.0 if model.temperature_ is None else model.temperature_,
            "location": getattr(model.normalizer_, "location_", 0.0),
            "scale": getattr(model.normalizer_, "scale_", 1.0),
            "log_odds": getattr(model.normalizer_, "log_odds_", 0.0),
            "log_full": float(log_evidence(np.zeros(1), n, model.gamma)[0]),
            "offset": model.offset_,
            "sharp_from": model.sharpening_[0],
            "sharp_in_full": model.sharpening_[1],
        }
        for name, number in numbers.items():
            setattr(self, name, torch.full_like(getattr(self, name), number))
        self.prior = torch.from_numpy(model.prior).to(self.prior)
        return model

    def forward(self, log_density: Tensor, logits: Tensor) -> DirichletOutput:
        """Dirichlets of log-densities (n,) and logits (n, k), in the wider dtype of both."""
        dtype = torch.promote_types(logits.dtype, log_density.dtype)
        dtype = torch.promote_types(dtype, torch.float32)
        logits, log_density = logits.to(dtype), log_density.to(dtype)
        evidence = self.log_evidence(log_density)
        share = sharpening_share(log_density, self.sharp_from, self.sharp_in_full)
        steepness = inverse_temperature(self.temperature, share)
        proba = torch.softmax(logits * steepness[:, None], dim=1)
        alpha = concentration(evidence, proba, self.prior, torch)
        mean = alpha / alpha.sum(dim=1, keepdim=True)
        if self.strength is not None:
            alpha = mean * self.strength(evidence, alpha.sum(dim=1))[:, None]
        return DirichletOutput(alpha, evidence, mean, vacuity(evidence, self.prior))

    def log_evidence(self, log_density: Tensor) -> Tensor:
        """``log(n gamma) + z`` of log-densities (n,), in nats."""
        place = (log_density, self.location, self.scale)
        z = logistic(*place, self.slope, self.log_odds) if self.bounded else affine(*place)
        evidence: Tensor = cap_evidence(self.log_full + z, self.settings.max_evidence)
        return evidence

    def flags(self, log_density: Tensor) -> Tensor:
        """+1, or -1 where the score lies below the alarm threshold or is NaN, int64 (n,)."""
        return torch.where(log_density >= self.offset, 1, -1)

    def dirichlet(self, log_density: Tensor, logits: Tensor, origin: Origin | None) -> Dirichlet:
        """Return the Dirichlets of `forward`; `origin` is that of the held-out rows, if known."""
        output = self(log_density, logits)
        prior = self.prior.to(output.concentration.dtype)
        spread = None if self.strength is None else self.strength.spread()
        caveat = interval_caveat(spread, origin)
        return Dirichlet(output.concentration, output.log_evidence, prior, caveat)


def _check_prior(prior: Any) -> None:
    if isinstance(prior, str):
        raise ValueError(
            "prior must be a number, or an array with one for each of the k classes, got "
            f"{prior!r}, which DIPModule does not take; for the frequencies of the classes give "
            "prior=k / 2 * np.bincount(labels, minlength=k) / len(labels)"
        )
    prior_vector(prior, np.asarray(prior).size)


def _check_in_graph(calibrator: Any, normalizer: Any) -> None:
    """Raise TypeError unless the maps of both can become part of the network's graph."""
    if not (calibrator is None or type(calibrator) in (str, Temperature)):
        raise TypeError(
            "calibrator must be None, 'passthrough' or dipedl.calibration.Temperature(), which "
            f"become part of the network's graph, got {calibrator!r}"
        )
    if not any(isinstance(normalizer, m) and type(normalizer)._apply is m._apply for m in _MAPS):
        raise TypeError(
            "normalizer must be one whose map is affine or logistic in the log-density "
            "(CautionBudget, QuantileEvidence, ZScore, RobustZScore or Identity of "
            "dipedl.evidence), which become part of the network's graph, got "
            f"{normalizer!r}"
        )


_LEARNED = ("strength_", "log_evidence_", "error_", "variance_", "n_", "rarest_", "confidence_")


class Strength(nn.Module):
    """Total concentration by log-evidence; all that a `Spread` has learned is in one buffer.

    Zeros where nothing was learned: the concentration is that of the evidence. `dtype` is that of
    the buffer.
    """

    numbers: Tensor

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        unknown = torch.full((len(_LEARNED),), torch.nan, dtype=dtype, device="cpu")
        self.register_buffer("numbers", unknown)

    def take(self, spread: Spread | None) -> None:
        """Take what was learned, or that nothing was."""
        numbers = [0.0 if spread is None else getattr(spread, name) for name in _LEARNED]
        self.numbers = torch.from_numpy(np.array(numbers)).to(self.numbers)

    def spread(self) -> Spread | None:
        """Return the learned strength, on the host; None if nothing was learned."""
        numbers = self.numbers.tolist()
        if not numbers[0] > 0:
            return None
        learned = Spread()
        learned.refitted_ = False
        for name, number in zip(_LEARNED, numbers, strict=True):
            setattr(learned, name, number)
        return learned

    def forward(self, log_evidence: Tensor, total: Tensor) -> Tensor:
        """Strength (n,) at log-evidence (n,), in nats, and concentration (n,) of the evidence."""
        strength, typical = self.numbers[:2].to(log_evidence.dtype)
        supported: Tensor = supported_strength(log_evidence, strength, typical)
        return torch.where(strength > 0, supported, total)


#: Standard deviations are clipped here: float32 cannot tell larger ones apart.
_FAR = 1e9
#: Most knots of a table, and held-out rows a knot: two rows that nearly tie would make a step of
#: the noise of float32.
_KNOTS, _ROWS_PER_KNOT = 65, 8
#: Held-out rows are scored in so many blocks, each by tables of all other rows.
_BLOCKS = 20


class DensityAlone(nn.Module):
    """The log-density is the score."""

    needs_logits = False

    def learn(self, log_density: np.ndarray, logits: np.ndarray | None) -> np.ndarray:
        return log_density

    def forward(self, log_density: Tensor, logits: Tensor) -> Tensor:
        return log_density


class ConfidenceFusion(BufferedModule):
    r"""``s = -sqrt(-2 [log Phi(z_d + 1) + log Phi(z_c)]) + 1e-3 (z_d + z_c) / 2``.

    z_d and z_c are normal scores of the log-density and of `logit_margin` among held-out rows, of
    at most 65 knots each: the formula of `dipedl.density.FusedDensity` for two experts of weight 1.
    Each may object to an input and neither can vouch for it; the density begins to object one
    standard deviation below its median.
    """

    needs_logits = True
    knots: Tensor
    normal_scores: Tensor
    scales: Tensor

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.knots = self.normal_scores = torch.empty(2, 0, dtype=dtype, device="cpu")
        self.scales = torch.full((2,), torch.nan, dtype=dtype, device="cpu")

    def learn(self, log_density: np.ndarray, logits: Any) -> np.ndarray:
        """Learn from held-out log-densities (m,) and logits (m, k), and give their scores (m,).

        Each row is scored by tables of rows without it, as new ones are: thresholds from tables
        that the row itself has set would be crossed too often.
        """
        sure = logit_margin(logits)
        self._tabulate(log_density, sure)
        scores, block = np.empty(len(sure)), np.arange(len(sure)) % _BLOCKS
        for own in (block == b for b in np.unique(block)):
            others = deepcopy(self)
            others._tabulate(log_density[~own], sure[~own])
            rows = (torch.from_numpy(part[own]).to(self.knots) for part in (log_density, logits))
            with torch.no_grad():
                scores[own] = to_numpy(others(*rows))
        return scores

    def _tabulate(self, log_density: np.ndarray, sure: np.ndarray) -> None:
        """Take the tables of log-densities and logit margins (m,) into the buffers."""
        tables = [_table("log-density", log_density), _table("logit margin", sure)]
        size = max(len(table.knots_) for table in tables)
        # Filled up with the last knot, which is never looked beyond.
        knots, values = (
            np.array([np.pad(part, (0, size - len(part)), "edge") for part in parts])
            for parts in zip(*((t.knots_, t.normal_scores_) for t in tables), strict=True)
        )
        self.knots = torch.from_numpy(knots).to(self.knots)
        self.normal_scores = torch.from_numpy(values).to(self.normal_scores)
        self.scales = torch.from_numpy(np.array([t.scale_ for t in tables])).to(self.scales)

    def forward(self, log_density: Tensor, logits: Tensor) -> Tensor:
        """Score (n,) of log-densities (n,) and logits (n, k), in standard deviations."""
        sure = logit_margin(logits.to(self.knots.dtype))
        z = self._normal_scores(torch.stack([log_density.to(self.knots.dtype), sure]))
        # PyTorch has no log_ndtr on Apple's GPUs.
        host = z.cpu() if z.device.type == "mps" else z
        fused: Tensor = fuse_scores(host, host.new_tensor((MARGIN, 0.0)), (1.0, 1.0)).to(z.device)
        return fused

    def _normal_scores(self, x: Tensor) -> Tensor:
        """Return normal scores of x (2, n): linear between knots, of the tail's slope beyond."""
        low, high = self.knots[:, :1], self.knots[:, -1:]
        inside = torch.minimum(torch.maximum(x, low), high)
        last = self.knots.shape[1] - 1
        right = torch.searchsorted(self.knots, inside).clamp(1, last)
        x0, x1 = self.knots.gather(1, right - 1), self.knots.gather(1, right)
        y0, y1 = (self.normal_scores.gather(1, at) for at in (right - 1, right))
        # The first of equal knots ends its piece; the first piece alone may have no width.
        share = (inside - x0) / (x1 - x0).clamp(min=torch.finfo(x.dtype).tiny)
        beyond = (x - inside) / self.scales[:, None]
        return y0 + share * (y1 - y0) + beyond.clamp(-_FAR, _FAR)


FUSED, DENSITY = "fused", "density"
#: Most nats that a class counts in `logit_margin`: a network may rule one out, with -inf.
_MARGIN_CAP = 100.0
#: Parts of the fused score, as columns of ``held_out_.components``.
DENSITY_PART, CONFIDENCE_PART = "density", "confidence"


def blank_score(name: Any, dtype: torch.dtype) -> DensityAlone | ConfidenceFusion:
    """Return the unfitted score of this name, with tables of a dtype."""
    check_choice("score", name, (FUSED, DENSITY))
    return ConfidenceFusion(dtype) if name == FUSED else DensityAlone()


def logit_margin(logits: Array) -> Array:
    """Return ``mean_c min(max_j l_j - l_c, 100)`` of logits or log-probabilities (n, k), (n,).

    In nats; larger is surer. A softmax hides how far the largest logit lies above the others once
    they are small; their difference does not, and what is added to all of a row is no matter.
    Hendrycks et al., "Scaling out-of-distribution detection for real-world settings", ICML (2022),
    on the largest logit.
    """
    margins = namespace(logits).max(logits, axis=1, keepdims=True) - logits
    return margins.clip(max=_MARGIN_CAP).mean(axis=1)


def _table(name: str, column: np.ndarray) -> NormalScores:
    """Normal scores of a column (m,), at knots that are evenly spaced among them."""
    try:
        table = NormalScores().fit(column)
    except ValueError as error:
        raise ValueError(
            f"the {name} is the same, or not finite, for {len(column)} held-out rows, and ranks "
            "none of them; use DIPModule(network, score='density'), or other held-out rows"
        ) from error
    size = int(np.clip(len(column) // _ROWS_PER_KNOT, 2, _KNOTS))
    low, high = table.normal_scores_[[0, -1]]
    spaced = np.linspace(low, high, min(size, len(table.knots_)))
    table.knots_ = np.interp(spaced, table.normal_scores_, table.knots_)
    table.normal_scores_ = spaced
    return table


@dataclass(frozen=True, eq=False)
class FusedParts:
    """The parts of a module's fused score, as `dipedl.density.FusedDensity` names its own."""

    gaussians: ReadableGaussians
    component_names_: ClassVar = (DENSITY_PART, CONFIDENCE_PART)

    @property
    def estimators_(self) -> dict[str, ReadableGaussians]:
        return {DENSITY_PART: self.gaussians}

    def component_scores(self, Z: np.ndarray, proba: np.ndarray) -> dict[str, np.ndarray]:
        """Log-density of features Z (n, p) and logit margin of probabilities (n, k)."""
        with np.errstate(divide="ignore"):
            margin = logit_margin(np.log(proba))
        return {DENSITY_PART: self.gaussians.score_samples(Z), CONFIDENCE_PART: margin}
