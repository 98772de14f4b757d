"""Scores of the parts of a density that has several, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Name of the component that the classifier itself gives.
CLASSIFIER = "classifier"


def stacked_components(
    scores: Sequence[Mapping[str, np.ndarray]], parts: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Components of several sets of rows as those of all; only of `parts` and the classifier."""
    names = [name for name in scores[0] if name in parts or name == CLASSIFIER]
    return {name: np.concatenate([s[name] for s in scores]) for name in names}
