"""A graph run by onnxruntime on the example that it was traced with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._session import largest_gap, session

#: Largest difference in float32, where far inputs lose digits on both sides, and in float64.
_TOLERANCE = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-5}


def check_graph(proto: Any, inputs: Mapping[str, Tensor], known: Sequence[Tensor]) -> None:
    """Raise ValueError unless the first outputs of the graph for these inputs are the known ones.

    Tolerances are 1e-3 in float32 and 1e-5 in float64, relative where a value is above one.
    """
    try:
        run = session(proto)
        feeds = {needed.name: _array(inputs[needed.name]) for needed in run.get_inputs()}
        found = run.run(None, feeds)
    except ImportError:
        raise
    # onnxruntime's errors share only this class.
    except Exception as error:
        raise ValueError(
            "the graph was made, but onnxruntime cannot run it on the CPU, so nothing was written: "
            f"{error}; it has no bfloat16, and no convolution of float64: export module.float()"
        ) from error
    for output, mine, theirs in zip(proto.graph.output, found, known, strict=False):
        right = _array(theirs)
        gap, row = largest_gap(_numbers(mine), _numbers(right))
        if not gap <= _TOLERANCE[right.dtype]:
            raise ValueError(
                f"the graph disagrees with the module: {output.name} of row {row} of the example "
                f"is {mine[row]} in onnxruntime and {right[row]} in PyTorch (difference {gap:.2g});"
                " nothing was written. Please report it with the network"
            )


def _array(tensor: Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        raise TypeError("an input is bfloat16")
    return np.asarray(tensor.detach().cpu().numpy())


def _numbers(values: np.ndarray) -> np.ndarray:
    """Replace NaN by a number, since NaN is the expected output for NaN."""
    return np.nan_to_num(values.astype(np.float64), nan=-1.0, posinf=np.inf, neginf=-np.inf)
