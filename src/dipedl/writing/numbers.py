"""Numbers as text: those of a user's columns for readers, and what JSON has no number for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return values that ``json.dump`` takes: lists for tuples, text for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def plain_labels(labels: np.ndarray) -> list[Any]:
    """Class labels (k,) as JSON has them; those that it has not, such as dates, as texts.

    Examples
    --------
    >>> plain_labels(np.array([1, 2])), plain_labels(np.array(["2026-01-31"], "datetime64[ns]"))
    ([1, 2], ['2026-01-31T00:00:00.000000000'])
    """
    if labels.dtype.kind in "biufU":
        return list(labels.tolist())
    return [str(label) for label in labels]


def number_text(value: float) -> str:
    """Return four digits; whole numbers from 10,000 to ten million in full, as prices are read.

    Examples
    --------
    >>> number_text(3.14159), number_text(30900.0), number_text(3e8)
    ('3.142', '30900', '3e+08')
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
