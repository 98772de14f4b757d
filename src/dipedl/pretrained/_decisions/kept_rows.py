"""Held-out rows that stay with a module: every threshold is computed from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor, nn

from ...calibration.held_out import HeldOut, Origin
from ...maths.array_namespace import to_numpy
from ...maths.scores import confidence

#: Where rows came from, in words; the place in the order is what a state holds.
_SOURCES: dict[Origin, str] = {
    "in-sample": "in-sample rows",
    "left out": "held-out rows of the loader",
    "given": "held-out inputs",
    "given twice": "inputs, many of them given to fit too",
}
#: Parts of the fused score, as columns of ``held_out_.components``.
DENSITY_PART, CONFIDENCE_PART = "density", "confidence"
_GOLDEN = (5**0.5 - 1) / 2
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

        `memorised` says whether the network seems to know them by heart.
        """
        self._set(
            scores=_small(scores),
            log_density=_small(log_density),
            logits=_small(logits),
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
        #: The evidence model that was learned from these rows, once it was asked for.
        self.model: Any = None

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


def spread_evenly(m: int, most: int) -> np.ndarray:
    """At most `most` of the rows 0..m-1, ascending: even, and in step with no period of them."""
    places = np.arange(1, m + 1) * _GOLDEN % 1.0
    return np.sort(np.argsort(places, kind="stable")[:most])


def _small(values: np.ndarray | None) -> Tensor:
    """The numbers as float32 where that holds every digit, else as float64."""
    if values is None:
        return _EMPTY
    exact = torch.from_numpy(np.asarray(values, dtype=np.float64))
    single = exact.float()
    return single if bool((single.double() == exact).all()) else exact
