"""Held-out rows that stay with a module, and what its density says of single inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor, nn

from ..gaussians.factor import explain_rows
from ..held_out import HeldOut, Origin
from ..maths.array_namespace import to_numpy
from ..maths.scores import confidence
from .class_gaussians import ClassGaussians

__all__ = []

#: Where rows came from, in words; the place in the order is what a state holds.
_SOURCES: dict[Origin, str] = {
    "in-sample": "in-sample rows",
    "left out": "held-out rows of the loader",
    "given": "held-out inputs",
    "given twice": "inputs, many of them given to fit too",
}
#: Parts of the fused score, as columns of ``held_out_.components``.
DENSITY_PART, CONFIDENCE_PART = "density", "confidence"
_ROWS = ("scores", "log_density", "logits", "labels", "source", "memorised")
_EMPTY = torch.empty(0, dtype=torch.float32, device="cpu")


class KeptRows(nn.Module):
    """Scores, log-densities, logits and labels of held-out rows.

    They are in ``state_dict``, but no buffers: they stay on the host and in their own types, and no
    exported graph holds them. Empty before the fit. Logits and labels are empty where nothing was
    learned from them, log-densities where they are the scores.
    """

    def __init__(self) -> None:
        super().__init__()
        self._set(**dict.fromkeys(_ROWS, _EMPTY))

    @property
    def is_empty(self) -> bool:
        return not len(self.scores)

    def keep(
        self,
        scores: Any,
        log_density: Any,
        logits: Any,
        labels: Any,
        origin: Origin,
        memorised: bool,
    ) -> None:
        """Take rows: scores (m,), log-densities (m,), logits (m, k) and labels (m,) or None.

        `memorised` is true if the network seems to know them by heart.
        """
        self._set(
            scores=_compress(scores),
            log_density=_compress(log_density),
            logits=_compress(logits),
            labels=_EMPTY if labels is None else torch.from_numpy(labels).to(torch.int32),
            source=torch.tensor(list(_SOURCES).index(origin), device="cpu"),
            memorised=torch.tensor(int(memorised), device="cpu"),
        )

    def held_out(self) -> HeldOut:
        """The rows as every model keeps them; probabilities are those of the bare network."""
        scores = to_numpy(self.scores)
        origin = list(_SOURCES)[int(self.source)]
        held = HeldOut(scores, f"{len(scores)} {_SOURCES[origin]}", origin=origin)
        if not len(self.labels):
            return held
        proba = special.softmax(to_numpy(self.logits), axis=1)
        held = replace(held, proba=proba, labels=self.labels.numpy().astype(np.int64))
        if not len(self.log_density):
            return held
        parts = np.column_stack([to_numpy(self.log_density), confidence(proba)])
        return replace(held, components=parts, component_names=(DENSITY_PART, CONFIDENCE_PART))

    def _set(self, **rows: Tensor) -> None:
        self.rows = rows
        #: The evidence model that was learned from these rows; None for rows that were loaded.
        self.model: Any = None

    def keep_model(self, model: Any, density: ClassGaussians, classes: np.ndarray) -> None:
        """Keep the evidence model learned from these rows, with parts that cards can read."""
        gaussians = ReadableGaussians(density, classes.tolist())
        model.density_ = FusedParts(gaussians) if len(self.log_density) else gaussians
        model.features_ = model.columns_ = None
        # Not known is not denied: what comes without an error is suspect then.
        model.memorised_ = bool(self.memorised.any()) or None
        self.model = model

    def __getattr__(self, name: str) -> Any:
        rows = self.__dict__.get("rows", {})
        return rows[name] if name in rows else super().__getattr__(name)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        destination.update({f"{prefix}{name}": rows for name, rows in self.rows.items()})

    def _load_from_state_dict(
        self, state: Any, prefix: str, local: Any, strict: bool, missing: list[str], *rest: Any
    ) -> None:
        found = {name: state.get(f"{prefix}{name}") for name in self.rows}
        if found["memorised"] is None:
            # States of before do not say.
            found["memorised"] = _EMPTY
        missing += [f"{prefix}{name}" for name, rows in found.items() if rows is None]
        if None not in found.values():
            self._set(**{name: rows.detach().cpu().clone() for name, rows in found.items()})


def _compress(values: np.ndarray | None) -> Tensor:
    """The numbers as float32 where that holds every digit, else as float64."""
    if values is None:
        return _EMPTY
    exact = torch.from_numpy(np.asarray(values, dtype=np.float64))
    single = exact.float()
    return single if bool((single.double() == exact).all()) else exact


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
        X = self.density.centre(self._tensor(Z))
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
