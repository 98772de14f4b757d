"""Zero mean and unit variance, as preprocessing of a flow."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ._preprocessor import Preprocessor

__all__ = ["Standardization"]


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
    >>> from dipedl.nn import Standardization
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
