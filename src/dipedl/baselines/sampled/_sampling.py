"""Uncertainties of several samples of the class probabilities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...maths.scores import entropy, max_prob, mutual_information

Reduction = Callable[[np.ndarray], np.ndarray]


_KINDS: dict[str, Reduction] = {
    "mutual_information": mutual_information,
    "entropy": lambda samples: entropy(samples.mean(axis=0)),
    "max_prob": lambda samples: max_prob(samples.mean(axis=0)),
}


def uncertainty_of(kind: str) -> Reduction:
    """The function of samples (m, n, k) that gives an uncertainty (n,)."""
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {list(_KINDS)}, got {kind!r}")
    return _KINDS[kind]
