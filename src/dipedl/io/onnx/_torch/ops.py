"""Operations that PyTorch's exporter lacks, or translates without care for overflow."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import torch

from .._nodes.log_ndtr import erfc_coefficients

#: ``onnx.TensorProto.INT64``
_INT64 = 7


def translations() -> dict[Any, Callable[..., Any]]:
    """ONNX of log sigmoid, log(exp a + exp b), log Phi and of a look-up in sorted rows.

    The first two are finite wherever PyTorch's own are. The exporter's are ``Log(Sigmoid(x))`` and
    ``Log(Exp(a) + Exp(b))``: -inf below -104 in float32, and inf above 88. It lacks the
    others.
    """
    from onnxscript import opset18

    # its annotations omit the constants that the tracer accepts
    op: Any = opset18

    def log_sigmoid(x: Any) -> Any:
        zero = op.CastLike(0.0, x)
        return op.Sub(op.Min(x, zero), _log1p(op.Exp(op.Neg(op.Abs(x)))))

    def logaddexp(a: Any, b: Any) -> Any:
        # the difference of equal infinities is NaN, and not needed
        gap = op.Where(op.Equal(a, b), op.CastLike(0.0, a), op.Abs(op.Sub(a, b)))
        return op.Add(op.Max(a, b), _log1p(op.Exp(op.Neg(gap))))

    def log_ndtr(z: Any) -> Any:
        x = op.Div(op.Abs(z), op.CastLike(2**0.5, z))
        t = op.Div(op.CastLike(2.0, z), op.Add(x, op.CastLike(2.0, z)))
        v = op.Sub(op.Add(t, t), op.CastLike(1.0, z))
        polynomial = op.CastLike(0.0, z)
        for c in erfc_coefficients()[::-1].tolist():
            polynomial = op.Add(op.Mul(polynomial, v), op.CastLike(c, z))
        tail = op.Sub(op.Sub(op.Log(t), op.Mul(x, x)), op.CastLike(log(2), z))
        lower = op.Add(tail, polynomial)
        upper = _log1p(op.Neg(op.Exp(lower)))
        return op.Where(op.Less(z, op.CastLike(0.0, z)), lower, upper)

    def searchsorted(table: Any, values: Any, **options: Any) -> Any:
        """Number of entries of each row of the table (r, m) below values (r, n)."""
        below = op.Less(op.Unsqueeze(table, [1]), op.Unsqueeze(values, [2]))
        return op.ReduceSum(op.Cast(below, to=_INT64), [2], keepdims=0)

    def _log1p(x: Any) -> Any:
        return op.Log(op.Add(op.CastLike(1.0, x), x))

    aten = torch.ops.aten
    return {
        aten.log_sigmoid.default: log_sigmoid,
        aten.logaddexp.default: logaddexp,
        aten.special_log_ndtr.default: log_ndtr,
        aten.searchsorted.Tensor: searchsorted,
    }
