"""Dequantisation of pixels, as preprocessing of a flow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .._checks import check_integer, check_number, check_pixels
from ._preprocessor import NoisyPreprocessor

__all__ = ["Dequantization"]


@dataclass(frozen=True)
class Dequantization:
    """Grey levels in [0, 1] to the real line: uniform noise in each level's cell, then a logit.

    ``x' = ((L - 1) x + u) / L`` with u ~ U(0, 1), drawn again for every batch in training, and
    u = 1/2 at prediction, so that a score depends on the image only; then
    ``y = logit(lam + (1 - 2 lam) x')``.

    Parameters
    ----------
    levels : int, default=256
        Number L of grey levels.
    logit : float, optional
        The lam above, default 1e-6, in (0, 1/2); None leaves out the logit.
    jacobian : bool, default=True
        Whether log-densities include the Jacobian of this map, and so are densities of pixels.
        The DIP-EDL paper leaves it out: log-densities of y.

    Attributes
    ----------
    levels, logit, jacobian
        As given.

    References
    ----------
    Theis, van den Oord, Bethge, "A note on the evaluation of generative models", ICLR 2016, sec.
    3.1; Dinh, Sohl-Dickstein, Bengio, "Density estimation using Real NVP", ICLR 2017, sec. 4.1.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import Dequantization
    >>> pixels = torch.tensor([[0.0, 1.0]])
    >>> y, log_det = Dequantization().build(pixels)(pixels)
    >>> [round(v, 3) for v in y[0].tolist()]
    [-6.236, 6.236]
    """

    levels: int = 256
    logit: float | None = 1e-6
    jacobian: bool = True

    def __post_init__(self) -> None:
        """Refuse invalid `levels` or `logit`."""
        check_integer("levels", self.levels)
        if self.levels < 2:
            raise ValueError(f"levels must be at least 2, got {self.levels!r}")
        if self.logit is not None:
            check_number("logit", self.logit, "in (0, 1/2), or None", lambda lam: 0 < lam < 0.5)

    def check(self, name: str, X: Tensor) -> None:
        """Raise ValueError unless rows X (n, d) hold pixels in [0, 1]."""
        other = ", or use preprocessing=Standardization() for features that are no pixels"
        check_pixels(name, X, f" for {self!r}", other)

    def build(self, X: Tensor) -> NoisyPreprocessor:
        """The map. Rows X (n, d) are checked; nothing is fitted."""
        self.check("X", X)
        return _Dequantize(self.levels, self.logit)


class _Dequantize(NoisyPreprocessor):
    def __init__(self, levels: int, lam: float | None) -> None:
        super().__init__()
        self.levels, self.lam = levels, lam

    def noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """X (n, d) with noise u - 1/2 in units of a grey level: `forward` adds the half."""
        u = torch.rand(x.shape, dtype=x.dtype, device=x.device, generator=generator)
        return x + (u - 0.5) / (self.levels - 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        cell = ((self.levels - 1) * x + 0.5) / self.levels
        scale = math.log((self.levels - 1) / self.levels) * x.shape[1]
        if self.lam is None:
            return cell, x.new_full((len(x),), scale)
        inside = self.lam + (1 - 2 * self.lam) * cell
        low, high = inside.log(), (-inside).log1p()
        scale += math.log1p(-2 * self.lam) * x.shape[1]
        return low - high, scale - (low + high).sum(dim=1)

    def inverse(self, y: Tensor) -> Tensor:
        cell = y if self.lam is None else (y.sigmoid() - self.lam) / (1 - 2 * self.lam)
        top = self.levels - 1
        return (cell * self.levels).floor().clamp(0, top) / top

    def log_cell(self) -> float:
        return -math.log(self.levels - 1)
