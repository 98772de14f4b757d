"""From a stated flow and settings to what the training loop takes."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from zuko.lazy import LazyDistribution

from ..nn.device import plain_defaults, resolve_device, seed_generators
from ..nn.flows.masked_autoregressive import MaskedAutoregressive
from ..nn.flows.preprocessing import Preprocessor
from ..nn.training import Training

_CPU = torch.device("cpu")


class LogDensity(nn.Module):
    """Log-density (n,) of preprocessed rows: what is trained."""

    def __init__(self, flow: nn.Module) -> None:
        super().__init__()
        self.flow = flow

    def forward(self, y: Tensor) -> Tensor:
        """Log-density in nats of each row of y (n, d), shape (n,)."""
        log_density: Tensor = self.flow().log_prob(y)
        return log_density


@dataclass(frozen=True)
class _Augment:
    """The caller's augmentation, noise, and preprocessing of a training batch."""

    first: Any
    preprocessing: Preprocessor

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        x = x if self.first is None else self.first(x, generator)
        y: Tensor = self.preprocessing(self.preprocessing.noise(x, generator))[0]
        return y


def training_inputs(
    rows: Tensor, preprocessing: Preprocessor, settings: Training
) -> tuple[Tensor, Training]:
    """What is fed to training, float32, and the settings with what happens to each batch."""
    if not (preprocessing.is_noisy or settings.augment):
        return preprocessing(rows)[0].float(), settings
    there = deepcopy(preprocessing).to(resolve_device(settings.device), torch.float32)
    return rows.float(), replace(settings, augment=_Augment(settings.augment, there))


def split(rows: Tensor, fraction: float, seed: int) -> tuple[Tensor, Tensor | None]:
    """Rows to train on and rows held out, a share `fraction` of them."""
    if not 0 <= fraction < 1:
        raise ValueError(f"validation_fraction must be in [0, 1), got {fraction!r}")
    n = math.ceil(fraction * len(rows))
    generator = torch.Generator("cpu").manual_seed(seed)
    order = torch.randperm(len(rows), generator=generator, device="cpu")
    return (rows[order[n:]], rows[order[:n]]) if n else (rows, None)


def build(flow: Any, n_features: int, seed: int) -> nn.Module:
    """An untrained flow with parameters drawn from `seed`."""
    flow = MaskedAutoregressive() if flow is None else flow
    if hasattr(flow, "build"):
        with plain_defaults():
            built = flow.build(n_features, torch.Generator("cpu").manual_seed(seed))
        return _checked_flow(built, flow)
    if not callable(flow):
        raise TypeError(
            "flow must be None, a MaskedAutoregressive or a callable n_features -> zuko flow, "
            f"got {flow!r}"
        )
    with seed_generators(seed, _CPU), plain_defaults():
        return _checked_flow(flow(n_features), flow)


def _checked_flow(built: Any, flow: Any) -> nn.Module:
    if not isinstance(built, LazyDistribution):
        raise TypeError(f"flow must give a zuko flow, got {type(built).__name__} from {flow!r}")
    return built  # type: ignore[no-any-return]


def negative_mean(log_density: Tensor, *, epoch: int) -> Tensor:
    """The loss; it is the same in every epoch."""
    return -log_density.mean()


def checked(score: np.ndarray) -> np.ndarray:
    """Log-densities (n,), or a ValueError that names the rows that have none."""
    bad = np.flatnonzero(np.isnan(score) | np.isposinf(score))
    if len(bad):
        raise ValueError(
            f"the log-density of {len(bad)} of {len(score)} rows is NaN or +inf, rows "
            f"{bad[:5].tolist()}: the flow is numerically unstable there; use dtype='float64', a "
            "lower learning rate or clip_norm"
        )
    return score
