"""Held-out rows of a module: which rows of a loader they are, and how they stay with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor, nn

from ..held_out import HeldOut, Origin
from ..maths.arrays import to_numpy
from .class_gaussians import ClassGaussians, ReadableGaussians
from .evidence_head import CONFIDENCE_PART, DENSITY_PART, FusedParts, evidence_numbers, logit_margin
from .features import Rows

__all__ = []

#: Where rows came from, in words; the place in the order is what a state holds.
_SOURCES: dict[Origin, str] = {
    "in-sample": "in-sample rows",
    "left out": "held-out rows of the loader",
    "given": "held-out inputs",
    "given twice": "inputs, many of them given to fit too",
}
_ROWS = ("scores", "log_density", "logits", "labels", "source", "memorised", "evidence")
#: Share of the rows of a loader that the density does not see.
HELD_OUT_SHARE = 0.1
_GOLDEN = (5**0.5 - 1) / 2
_EMPTY = torch.empty(0, dtype=torch.float32, device="cpu")


class HeldOutRows(nn.Module):
    """Scores, log-densities, logits and labels of held-out rows, and the evidence learned of them.

    They are in ``state_dict``, but no buffers: they stay on the host and in their own types, and no
    exported graph holds them. Empty before the fit. Logits and labels are empty where nothing was
    learned from them, log-densities where they are the scores.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Tensor] = dict.fromkeys(_ROWS, _EMPTY)
        #: The evidence model that was learned from these rows; None until a loaded one is used.
        self.model: Any = None

    def take(
        self,
        scores: Any,
        log_density: Any,
        logits: Any,
        labels: Any,
        origin: Origin,
        memorised: bool,
    ) -> None:
        """Take scores (m,), and log-densities (m,), logits (m, k) and labels (m,) or None.

        `memorised` is true if the network seems to know the rows by heart.
        """
        self.rows = {
            "scores": _compress(scores),
            "log_density": _compress(log_density),
            "logits": _compress(logits),
            "labels": _EMPTY if labels is None else torch.from_numpy(labels).to(torch.int32),
            "source": torch.tensor(list(_SOURCES).index(origin), device="cpu"),
            "memorised": torch.tensor(int(memorised), device="cpu"),
            "evidence": _EMPTY,
        }

    @property
    def origin(self) -> Origin | None:
        """How the rows were got; None before the fit, and for a state without rows."""
        return list(_SOURCES)[int(self.source)] if self.source.numel() else None

    def predictions(self) -> HeldOut:
        """Return the rows as every model has them, with probabilities of the bare network.

        Raises
        ------
        ValueError
            If there are none, or a state does not say where they come from.
        """
        scores, origin = to_numpy(self.scores), self.origin
        if origin is None or not len(scores):
            raise ValueError(
                "this DIPModule holds no held-out rows, or not where they come from; give rows "
                "that nothing has seen to module.calibrate(loader)"
            )
        result = HeldOut(scores, f"{len(scores)} {_SOURCES[origin]}", origin=origin)
        if not len(self.labels):
            return result
        proba = special.softmax(to_numpy(self.logits), axis=1)
        result = replace(result, proba=proba, labels=self.labels.numpy().astype(np.int64))
        if not len(self.log_density):
            return result
        parts = np.column_stack([to_numpy(self.log_density), logit_margin(to_numpy(self.logits))])
        return replace(result, components=parts, component_names=(DENSITY_PART, CONFIDENCE_PART))

    def set_model(self, model: Any, density: ClassGaussians, classes: np.ndarray) -> None:
        """Set the evidence model learned from these rows, with parts that cards can read."""
        gaussians = ReadableGaussians(density, classes.tolist())
        model.density_ = FusedParts(gaussians) if len(self.log_density) else gaussians
        model.features_ = model.columns_ = None
        # Not known is not denied: what comes without an error is suspect then.
        model.memorised_ = bool(self.memorised.any()) or None
        self.model = model
        self.rows["evidence"] = torch.from_numpy(evidence_numbers(model))

    def __getattr__(self, name: str) -> Any:
        rows = self.__dict__.get("rows", {})
        return rows[name] if name in rows else super().__getattr__(name)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        destination.update({f"{prefix}{name}": rows for name, rows in self.rows.items()})

    def _load_from_state_dict(
        self, state: Any, prefix: str, local: Any, strict: bool, missing: list[str], *rest: Any
    ) -> None:
        result = {name: state.get(f"{prefix}{name}") for name in self.rows}
        missing += [f"{prefix}{name}" for name, rows in result.items() if rows is None]
        if None not in result.values():
            self.rows = {name: rows.detach().cpu().clone() for name, rows in result.items()}
            self.model = None


def _compress(values: np.ndarray | None) -> Tensor:
    """The numbers as float32 where that holds every digit, else as float64."""
    if values is None:
        return _EMPTY
    exact = torch.from_numpy(np.asarray(values, dtype=np.float64))
    single = exact.float()
    return single if bool((single.double() == exact).all()) else exact


def spread_evenly(m: int, most: int) -> np.ndarray:
    """Return at most `most` of the rows 0..m-1, ascending: those of the lowest ranks."""
    return np.sort(np.argsort(_ranks(0, m), kind="stable")[:most])


def _ranks(start: int, n: int) -> np.ndarray:
    """Return the ranks, in [0, 1), by which rows start..start+n-1 are chosen, the lowest first.

    The fraction of the place, from 1, times the golden ratio: the rows of any share of the lowest
    ranks are as even as every tenth row, and in step with no period of the data.
    """
    return np.arange(start + 1, start + n + 1) * _GOLDEN % 1.0


@dataclass
class HoldOut:
    """Rows of a stream to hold out: a share of them, at most `most`, those of lowest rank."""

    share: float
    most: int
    _count: int = 0
    _parts: list[tuple[Rows, np.ndarray]] = field(default_factory=list)

    def split(self, rows: Rows) -> Iterator[Rows]:
        """Give the rows that the density learns from; keep the others."""
        ranks = _ranks(self._count, len(rows))
        self._count += len(rows)
        yield from self._part(rows, ranks)
        known = np.concatenate([ranks[:0], *(ranks for _, ranks in self._parts)])
        if len(known) > self.most:
            # Fewer than may stay, so that not every batch to come pushes some out.
            fewer = max(1, self.most * 9 // 10)
            self.share = float(np.partition(known, fewer)[fewer])
            everything, self._parts = self._parts, []
            left = [part for before in everything for part in self._part(*before)]
            parts = zip(*((r.features, r.logits, r.labels) for r in left), strict=True)
            yield Rows(*map(torch.cat, parts))

    def rows(self) -> list[Rows]:
        return [rows for rows, _ in self._parts]

    def _part(self, rows: Rows, ranks: np.ndarray) -> Iterator[Rows]:
        held_out = ranks < self.share
        if held_out.any():
            part = rows if held_out.all() else rows.select(held_out)
            self._parts.append((part, ranks[held_out]))
        if not held_out.all():
            yield rows.select(~held_out)
