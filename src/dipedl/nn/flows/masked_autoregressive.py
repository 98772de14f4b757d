"""`MaskedAutoregressive`, the settings of a masked autoregressive flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from zuko.distributions import DiagNormal
from zuko.flows import Flow, UnconditionalDistribution
from zuko.lazy import LazyTransform

from .._checks import check_choice, check_integer
from ._flow_layers import Autoregressive, Normalise, Order
from ._made import MADE

__all__ = ["MaskedAutoregressive"]

_ORDERS: dict[str, Callable[[int, torch.Generator], Tensor]] = {
    "reversed": lambda n_features, generator: torch.arange(n_features).flip(0),
    "random": lambda n_features, generator: torch.randperm(n_features, generator=generator),
}


@dataclass(frozen=True)
class MaskedAutoregressive:
    """Affine masked autoregressive flow (MAF) over a standard normal.

    Each transformation is: another order of the features, ``y_i = exp(a_i) x_i + b_i`` with a_i and
    b_i from a MADE of the features before i, and optional batch normalisation.

    Parameters
    ----------
    transforms : int, default=5
        Number of transformations.
    hidden : tuple of int, default=(512, 512)
        Widths of the hidden layers of each MADE.
    residual : bool, default=False
        Whether each width stands for a residual block of two layers; then all must be the same.
    batch_norm : bool, default=False
        Batch normalisation within the MADEs.
    between_batch_norm : bool, default=False
        Batch normalisation after each transformation; its log-determinant is included.
    order : {"reversed", "random"}, default="reversed"
        Order of the features in each transformation, relative to the one before.
    panels : int, optional
        Row panels in which masked matrices are stored: more panels skip more zeros
        but need more calls. None suits a CPU (up to 4); 1 suits a GPU.

    Attributes
    ----------
    transforms, hidden, residual, batch_norm, between_batch_norm, order, panels
        As given.

    Notes
    -----
    With batch normalisation the training density of a row depends on its batch; the trained flow
    uses running statistics and is a density.

    Hidden degrees are spread over the features, so that a layer narrower than the features still
    sees them all; assigned one by one (nflows), a layer of 512 sees only the first 512 of 784.

    References
    ----------
    Papamakarios, Pavlakou, Murray, "Masked autoregressive flow for density estimation", NeurIPS
    2017, eqs. 3-5; batch normalisation: its appendix B.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import MaskedAutoregressive
    >>> maf = MaskedAutoregressive(transforms=2, hidden=(16,))
    >>> flow = maf.build(3, torch.Generator().manual_seed(0))
    >>> flow().log_prob(torch.zeros(4, 3)).shape
    torch.Size([4])
    """

    transforms: int = 5
    hidden: tuple[int, ...] = (512, 512)
    residual: bool = False
    batch_norm: bool = False
    between_batch_norm: bool = False
    order: str = "reversed"
    panels: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be built."""
        check_integer("transforms", self.transforms)
        if not isinstance(self.hidden, tuple) or not self.hidden:
            raise ValueError(f"hidden must be a tuple of one width or more, got {self.hidden!r}")
        for width in self.hidden:
            check_integer("each width of hidden", width)
        if self.residual and len(set(self.hidden)) > 1:
            raise ValueError(
                f"hidden must repeat one width when residual=True, got {self.hidden!r}"
            )
        check_choice("order", self.order, _ORDERS)
        check_integer("panels", self.panels, optional=True)

    @classmethod
    def paper(cls) -> Self:
        """The flow of the DIP-EDL paper: 10 transformations of 20 residual blocks of 1024.

        445 million weights on 28 x 28 images. Differences, none of which changes the family: spread
        degrees, and a soft-clipped exponential for the scale where nflows has a softplus.
        """
        return cls(10, (1024,) * 20, True, True, True, panels=1)

    def build(self, n_features: int, generator: torch.Generator) -> Flow:
        """The flow on rows of `n_features`, its parameters drawn from `generator`."""
        layers = [self._layers(n_features, generator) for _ in range(self.transforms)]
        normal = UnconditionalDistribution(
            DiagNormal, loc=torch.zeros(n_features), scale=torch.ones(n_features), buffer=True
        )
        return Flow([layer for group in layers for layer in group], normal)

    def _layers(self, n_features: int, generator: torch.Generator) -> list[LazyTransform]:
        made = MADE(
            n_features,
            self.hidden,
            residual=self.residual,
            batch_norm=self.batch_norm,
            panels=self.panels,
        )
        made.reset_parameters(generator)
        order = Order(_ORDERS[self.order](n_features, generator))
        normalise = [Normalise(n_features)] if self.between_batch_norm else []
        return [order, Autoregressive(made, n_features), *normalise]
