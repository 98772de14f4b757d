"""Operations whose usual translation to ONNX loses the far end of the scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def translations() -> dict[Any, Callable[..., Any]]:
    """ONNX of log sigmoid and log(exp a + exp b), finite wherever PyTorch's own are.

    The exporter's are ``Log(Sigmoid(x))`` and ``Log(Exp(a) + Exp(b))``: -inf below -104 in float32,
    and inf above 88.
    """
    from onnxscript import opset18

    # its annotations leave out the constants that the tracer takes
    op: Any = opset18

    def log_sigmoid(x: Any) -> Any:
        zero = op.CastLike(0.0, x)
        return op.Sub(op.Min(x, zero), _log1p(op.Exp(op.Neg(op.Abs(x)))))

    def logaddexp(a: Any, b: Any) -> Any:
        # equal infinities have no difference, and need none
        gap = op.Where(op.Equal(a, b), op.CastLike(0.0, a), op.Abs(op.Sub(a, b)))
        return op.Add(op.Max(a, b), _log1p(op.Exp(op.Neg(gap))))

    def _log1p(x: Any) -> Any:
        return op.Log(op.Add(op.CastLike(1.0, x), x))

    aten = torch.ops.aten
    return {aten.log_sigmoid.default: log_sigmoid, aten.logaddexp.default: logaddexp}
