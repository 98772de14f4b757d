"""Evidence from a network's outputs, and the exact log of its total."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .._checks import check_choice

__all__ = ["evidence_from_logits", "log_evidence_from_logits"]

# Cap of exp: beyond it a sum over classes overflows float32 (float64). The log of the evidence
# stays exact.
_TOP = {torch.float32: 80.0, torch.float64: 300.0}
# Below this log(softplus(x)) is x to the last bit.
_SOFTPLUS_LINEAR = -40.0


def _exp(logits: Tensor) -> Tensor:
    return logits.clamp(max=_TOP[logits.dtype]).exp()


def _log_softplus(logits: Tensor) -> Tensor:
    above = F.softplus(logits.clamp(min=_SOFTPLUS_LINEAR)).log()
    return torch.where(logits > _SOFTPLUS_LINEAR, above, logits)


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "softplus": F.softplus,
    "exp": _exp,
}
_LOG: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda logits: F.relu(logits).log(),
    "softplus": _log_softplus,
    "exp": lambda logits: logits,
}


def evidence_from_logits(logits: Tensor, function: str = "softplus") -> Tensor:
    """Evidence for each class, >= 0.

    Parameters
    ----------
    logits : Tensor, shape (n, k)
        Outputs of a network, float32 or float64.
    function : {"relu", "softplus", "exp"}, default="softplus"
        With "relu" an output below zero gets no gradient: a class whose unit is dead for every
        input is lost, with about a tenth of MNIST's accuracy. "exp" is capped at exp(80) (float64:
        exp(300)), so it never overflows.

    Returns
    -------
    Tensor, shape (n, k)

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import evidence_from_logits
    >>> evidence_from_logits(torch.tensor([[-1.0, 2.0]]), "relu")
    tensor([[0., 2.]])
    """
    check_choice("evidence", function, _FUNCTIONS)
    return _FUNCTIONS[function](logits)


def log_evidence_from_logits(logits: Tensor, function: str = "softplus") -> Tensor:
    """Log of the total evidence of each row, without ties far from the data.

    Parameters
    ----------
    logits : Tensor, shape (n, k)
        Outputs of a network, float32 or float64.
    function : {"relu", "softplus", "exp"}, default="softplus"
        As for `evidence_from_logits`; with "relu" a row without evidence gives ``-inf``.

    Returns
    -------
    Tensor, shape (n,)

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import log_evidence_from_logits
    >>> log_evidence_from_logits(torch.tensor([[-900.0, -900.0]]), "exp")
    tensor([-899.3068])
    """
    check_choice("evidence", function, _LOG)
    return torch.logsumexp(_LOG[function](logits), dim=1)
