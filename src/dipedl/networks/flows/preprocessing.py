"""Fitted bijections before a flow: standardisation of features, dequantisation of pixels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...maths.arrays import check_flag, check_integer, check_number
from ..checks import check_pixels

__all__ = ["Dequantization", "Standardization"]


class Preprocessor(nn.Module, ABC):
    """A fitted bijection from rows x to rows y, each feature by itself.

    One that `is_noisy` adds new noise to every training batch.
    """

    is_noisy: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return y (n, d) and log |det dy/dx| (n,)."""

    @abstractmethod
    def inverse(self, y: Tensor) -> Tensor:
        """Return x (n, d) for y (n, d)."""

    def noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return x (n, d) with the noise of training."""
        return x

    def log_cell(self) -> float:
        """Return the log width, in units of x, of the cell that the noise fills."""
        return -math.inf


@dataclass(frozen=True)
class Standardization:
    """``y = (x - mean) / sd`` of each feature; its Jacobian is part of every log-density.

    Attributes
    ----------
    jacobian : bool
        True.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import Standardization
    >>> rows = torch.tensor([[0.0], [4.0]], dtype=torch.float64)
    >>> y, log_det = Standardization().build(rows)(rows)
    >>> y.flatten().tolist(), [round(v, 4) for v in log_det.tolist()]
    ([-1.0, 1.0], [-0.6931, -0.6931])
    """

    jacobian = True

    def check(self, name: str, X: Tensor) -> None:
        """Accept any finite rows."""

    def build(self, X: Tensor) -> Preprocessor:
        """The map fitted on rows X (n, d) in float64.

        Raises
        ------
        ValueError
            If a feature is constant, so that it has no density, or overflows.
        """
        sd, mean = torch.std_mean(X, dim=0, correction=0)
        overflowing = torch.nonzero(~sd.isfinite()).flatten().tolist()
        if overflowing:
            raise ValueError(
                f"the variance of features {overflowing[:5]} overflows; rescale the features"
            )
        # a constant of 0.1 has a deviation of 1e-17 by rounding
        constant = torch.nonzero(X.amax(0) == X.amin(0)).flatten().tolist()
        if constant:
            raise ValueError(f"features {constant[:5]} are constant and have no density; drop them")
        return _Standardize(mean, sd)


class _Standardize(Preprocessor):
    def __init__(self, mean: Tensor, sd: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("sd", sd)

    mean: Tensor
    sd: Tensor

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return (x - self.mean) / self.sd, -self.sd.log().sum().expand(len(x))

    def inverse(self, y: Tensor) -> Tensor:
        return y * self.sd + self.mean


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
    logit : float, default=1e-6
        The lam above, in (0, 1/2).
    jacobian : bool, default=True
        Whether log-densities include the Jacobian of this map, and so are densities of pixels.
        The DIP-EDL paper leaves it out: log-densities of y.

    References
    ----------
    Theis, van den Oord, Bethge, "A note on the evaluation of generative models", ICLR 2016, sec.
    3.1; Dinh, Sohl-Dickstein, Bengio, "Density estimation using Real NVP", ICLR 2017, sec. 4.1.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import Dequantization
    >>> pixels = torch.tensor([[0.0, 1.0]])
    >>> y, log_det = Dequantization().build(pixels)(pixels)
    >>> [round(v, 3) for v in y[0].tolist()]
    [-6.236, 6.236]
    """

    levels: int = 256
    logit: float = 1e-6
    jacobian: bool = True

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        check_flag("jacobian", self.jacobian)
        check_integer("levels", self.levels, 2)
        check_number("logit", self.logit, "in (0, 1/2)", lambda lam: 0 < lam < 0.5)

    def check(self, name: str, X: Tensor) -> None:
        """Raise ValueError unless rows X (n, d) hold pixels in [0, 1]."""
        other = ", or use preprocessing=Standardization() for features that are no pixels"
        check_pixels(name, X, f" for {self!r}", other)

    def build(self, X: Tensor) -> Preprocessor:
        """The map. Rows X (n, d) are checked; nothing is fitted."""
        self.check("X", X)
        return _Dequantize(self.levels, self.logit)


class _Dequantize(Preprocessor):
    is_noisy = True

    def __init__(self, levels: int, lam: float) -> None:
        super().__init__()
        self.levels, self.lam = levels, lam

    def noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return x with noise u - 1/2 in units of a grey level: `forward` adds the half."""
        u = torch.rand(x.shape, dtype=x.dtype, device=x.device, generator=generator)
        return x + (u - 0.5) / (self.levels - 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        cell = ((self.levels - 1) * x + 0.5) / self.levels
        scale = math.log((self.levels - 1) / self.levels) * x.shape[1]
        inside = self.lam + (1 - 2 * self.lam) * cell
        low, high = inside.log(), (-inside).log1p()
        scale += math.log1p(-2 * self.lam) * x.shape[1]
        return low - high, scale - (low + high).sum(dim=1)

    def inverse(self, y: Tensor) -> Tensor:
        cell = (y.sigmoid() - self.lam) / (1 - 2 * self.lam)
        top = self.levels - 1
        return (cell * self.levels).floor().clamp(0, top) / top

    def log_cell(self) -> float:
        return -math.log(self.levels - 1)
