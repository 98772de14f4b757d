"""What a `DIPModule` gives."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["DirichletOutput"]


class DirichletOutput(NamedTuple):
    """What `dipedl.pretrained.DIPModule` gives for n inputs and k classes.

    Attributes
    ----------
    concentration : Tensor, shape (n, k)
        ``prior + exp(log_evidence) * p``, for display; capped at exp(80) in float32.
    log_evidence : Tensor, shape (n,)
        ``log(n gamma) + z`` in nats, -inf far from all data: rank by this.
    mean : Tensor, shape (n, k)
        Class probabilities, ``concentration / sum``; the prior's far from all data.
    vacuity : Tensor, shape (n,)
        Share of the prior, in (0, 1].
    """

    concentration: Tensor
    log_evidence: Tensor
    mean: Tensor
    vacuity: Tensor


# Without a name torch.export.save refuses what a program gives.
torch.utils._pytree._register_namedtuple(
    DirichletOutput, serialized_type_name="dipedl.pretrained.DirichletOutput"
)
