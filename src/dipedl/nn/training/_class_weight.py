"""Class weights of a loss, for rare classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._checks import check_number

#: None, "balanced", or a weight per label.
ClassWeight = str | Mapping[Any, float] | None


def class_weights(given: ClassWeight, classes: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Weight of each of the classes (k,), for the class numbers `targets` (n,) of training rows.

    "balanced" gives every class the same total, ``n / (k n_c)``; a label that a mapping lacks has
    weight 1.
    """
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str):
        if given != "balanced":
            raise ValueError(
                f"class_weight must be None, 'balanced' or a mapping of labels, got {given!r}"
            )
        return len(targets) / (len(classes) * np.bincount(targets))
    if not isinstance(given, Mapping):
        raise TypeError(
            "class_weight must be None, 'balanced' or a mapping such as {0: 1.0, 1: 3.0}, "
            f"got {given!r}"
        )
    labels = classes.tolist()
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise ValueError(
            f"class_weight has the keys {unknown}, which are no labels of y; its classes are "
            f"{labels}"
        )
    for label, weight in given.items():
        check_number(f"class_weight[{label!r}]", weight, "> 0", lambda w: w > 0)
    return np.array([float(given.get(label, 1.0)) for label in labels])
