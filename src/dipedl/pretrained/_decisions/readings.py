"""What the density of a module has to say about single inputs, for its cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...gaussians.factor import explain_rows
from ...maths.array_namespace import to_numpy
from ...maths.scores import confidence
from ..class_gaussians import ClassGaussians
from .kept_rows import CONFIDENCE_PART, DENSITY_PART


@dataclass(frozen=True, eq=False)
class ReadableGaussians:
    """The Gaussians of a module, with the names of their classes."""

    density: ClassGaussians
    classes: Sequence[Any]

    def score_samples(self, Z: np.ndarray) -> np.ndarray:
        """Log-density in nats of features Z (n, p), shape (n,)."""
        with torch.no_grad():
            return to_numpy(self.density(self._tensor(Z)))

    def explain_rows(self, Z: np.ndarray, top: int = 5) -> list[dict[str, Any]]:
        """For each row of Z (n, p), its nearest class and the `top` features that make it far."""
        X = self.density.centred(self._tensor(Z))
        coordinates = to_numpy(X.double() + self.density.origin.double())
        near, gradient = _nearest_and_gradient(self.density, X)
        rows: list[dict[str, Any]] = [{}] * len(Z)
        for c in np.unique(near):
            at = np.flatnonzero(near == c)
            mean = self.density.distance.mean_of(int(c), X.shape[1])
            # |x|_C^2 is quadratic: its gradient is twice C^-1 (x - m).
            parts = to_numpy(X[at].double() - mean) * gradient[at] / 2
            center = to_numpy(mean + self.density.origin.double())
            found = explain_rows(center, parts, coordinates[at], top, self.classes[c])
            for i, row in zip(at, found, strict=True):
                rows[i] = row
                for entry in row["features"]:
                    if entry["feature"] == Z.shape[1]:
                        entry["name"] = "log(1 + length)"
        return rows

    def _tensor(self, Z: np.ndarray) -> Tensor:
        return torch.from_numpy(Z).to(self.density.origin)


@dataclass(frozen=True, eq=False)
class FusedParts:
    """The parts of a module's fused score, as `dipedl.density.FusedDensity` names its own."""

    gaussians: ReadableGaussians

    @property
    def component_names_(self) -> tuple[str, str]:
        return DENSITY_PART, CONFIDENCE_PART

    @property
    def estimators_(self) -> dict[str, ReadableGaussians]:
        return {DENSITY_PART: self.gaussians}

    def component_scores(self, Z: np.ndarray, proba: np.ndarray) -> dict[str, np.ndarray]:
        """Log-density of features Z (n, p) and confidence of probabilities (n, k)."""
        return {
            DENSITY_PART: self.gaussians.score_samples(Z),
            CONFIDENCE_PART: confidence(proba),
        }


def _nearest_and_gradient(density: ClassGaussians, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Nearest class of centred rows X (n, p), and the gradient of the squared distance to it."""
    with torch.inference_mode(False), torch.enable_grad():
        rows = X.detach().clone().requires_grad_()
        squared = density.distance(rows)
        near = squared.argmin(dim=1)
        (gradient,) = torch.autograd.grad(squared.gather(1, near[:, None]).sum(), rows)
    return near.cpu().numpy(), to_numpy(gradient)
