"""A graph is run by onnxruntime, and its answers are compared with known ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._plugins import explain_missing


def session(model: Any) -> Any:
    """An onnxruntime session of a model, on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise explain_missing(error, "export_onnx") from error
    options = onnxruntime.SessionOptions()
    # Errors are raised; its warnings concern the graph optimiser only.
    options.log_severity_level = 4
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def largest_gap(found: np.ndarray, right: np.ndarray) -> tuple[float, int]:
    """Largest difference, relative where an entry is above one, and its row; NaN is skipped."""
    big = np.finfo(np.float32).max
    found, right = (np.clip(a, -big, big) for a in (found, right))
    gap = np.abs(found - right) / np.maximum(np.abs(right), 1.0)
    gap = np.where(np.isnan(gap), np.inf, gap)
    gap = np.where(np.isnan(right), 0.0, gap).reshape(len(right), -1).max(axis=1)
    row = int(gap.argmax())
    return float(gap[row]), row
