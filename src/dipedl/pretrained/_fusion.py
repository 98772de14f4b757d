"""The log-density and the network's own confidence as one score."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor, nn

from ..density.combined._normal_scores import NormalScores
from ..maths.array_namespace import to_numpy
from ..maths.fusion import MARGIN, fused_score
from ..maths.scores import LEAST_DOUBT, confidence

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

    def blank(self) -> DensityAlone:
        return DensityAlone()


class ConfidenceFusion(nn.Module):
    r"""``s = -sqrt(-2 [log Phi(z_d + 1) + log Phi(z_c)]) + 1e-3 (z_d + z_c) / 2``.

    z_d and z_c are normal scores of the log-density and of the confidence among held-out rows, of
    at most 65 knots each: `dipedl.density.FusedDensity` of one density and the classifier, both of
    weight 1. Each may object to an input and neither can vouch for it; the density begins to
    object one standard deviation below its median.
    """

    needs_logits = True
    knots: Tensor
    values: Tensor
    scales: Tensor

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("knots", torch.empty(2, 0, dtype=dtype, device="cpu"))
        self.register_buffer("values", torch.empty(2, 0, dtype=dtype, device="cpu"))
        unknown = torch.full((2,), torch.nan, dtype=dtype, device="cpu")
        self.register_buffer("scales", unknown)

    def learn(self, log_density: np.ndarray, logits: Any) -> np.ndarray:
        """Learn from held-out log-densities (m,) and logits (m, k), and give their scores (m,).

        Each row is scored by tables of rows without it, as new ones are: thresholds from tables
        that the row itself has set would be crossed too often.
        """
        sure = confidence(special.softmax(logits, axis=1))
        self._tabulate(log_density, sure)
        scores, block = np.empty(len(sure)), np.arange(len(sure)) % _BLOCKS
        for own in (block == b for b in np.unique(block)):
            others = self.blank()
            others._tabulate(log_density[~own], sure[~own])
            scores[own] = others._scores(log_density[own], logits[own])
        return scores

    def _tabulate(self, log_density: np.ndarray, sure: np.ndarray) -> None:
        """Take the tables of log-densities and confidences (m,) into the buffers."""
        tables = [_table("log-density", log_density), _table("confidence", sure)]
        size = max(len(table.knots_) for table in tables)
        # Filled up with the last knot, which is never looked beyond.
        knots = np.array([_filled(table.knots_, size) for table in tables])
        values = np.array([_filled(table.normal_scores_, size) for table in tables])
        # Tensors made in inference mode could not be compiled or saved for a gradient later.
        with torch.inference_mode(False):
            self.knots = torch.from_numpy(knots).to(self.knots)
            self.values = torch.from_numpy(values).to(self.values)
            self.scales = torch.from_numpy(np.array([t.scale_ for t in tables])).to(self.scales)

    def _scores(self, log_density: np.ndarray, logits: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            rows = (torch.from_numpy(part).to(self.knots) for part in (log_density, logits))
            return to_numpy(self(*rows))

    def blank(self) -> ConfidenceFusion:
        return ConfidenceFusion(self.knots.dtype).to(self.knots.device)

    def forward(self, log_density: Tensor, logits: Tensor) -> Tensor:
        """Score (n,) of log-densities (n,) and logits (n, k), in standard deviations."""
        sure = _confidence(logits.to(self.knots.dtype))
        z = self._normal_scores(torch.stack([log_density.to(self.knots.dtype), sure]))
        # PyTorch has no log_ndtr on Apple's GPUs.
        host = z.cpu() if z.device.type == "mps" else z
        fused: Tensor = fused_score(host, (MARGIN, 0.0), (1.0, 1.0)).to(z.device)
        return fused

    def _normal_scores(self, x: Tensor) -> Tensor:
        """Of x (2, n): linear between the knots and, with the slope of the lower tail, beyond."""
        low, high = self.knots[:, :1], self.knots[:, -1:]
        inside = torch.minimum(torch.maximum(x, low), high)
        last = self.knots.shape[1] - 1
        right = torch.searchsorted(self.knots, inside).clamp(1, last)
        x0, x1 = self.knots.gather(1, right - 1), self.knots.gather(1, right)
        y0, y1 = self.values.gather(1, right - 1), self.values.gather(1, right)
        # The first of equal knots ends its piece; the first piece alone may have no width.
        share = (inside - x0) / (x1 - x0).clamp(min=torch.finfo(x.dtype).tiny)
        beyond = (x - inside) / self.scales[:, None]
        return y0 + share * (y1 - y0) + beyond.clamp(-_FAR, _FAR)

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        for name in ("knots", "values"):
            given = state.get(f"{prefix}{name}")
            if isinstance(given, Tensor) and given.ndim == 2:
                # Unfitted, it does not know the number of held-out rows.
                setattr(self, name, getattr(self, name).new_empty(given.shape))
        super()._load_from_state_dict(state, prefix, *rest)


Score = DensityAlone | ConfidenceFusion
FUSED, DENSITY = "fused", "density"


def score_of(name: Any, dtype: torch.dtype) -> Score:
    """The blank score of this name, with tables of a dtype; ValueError if there is none."""
    if name not in (FUSED, DENSITY):
        raise ValueError(f"score must be one of {[FUSED, DENSITY]}, got {name!r}")
    return ConfidenceFusion(dtype) if name == FUSED else DensityAlone()


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


def _confidence(logits: Tensor) -> Tensor:
    proba = torch.softmax(logits, dim=1)
    classes = torch.arange(proba.shape[1], device=proba.device)
    # Summed over the other classes: 1 - max is 0 for every confident row, and they all tie.
    others = torch.where(classes == proba.argmax(dim=1, keepdim=True), 0.0, proba).sum(1)
    return -torch.log(others.clamp(min=LEAST_DOUBT))


def _filled(table: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([table, np.full(size - len(table), table[-1])])
