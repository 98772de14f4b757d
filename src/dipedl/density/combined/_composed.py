"""What densities made of other densities share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from .._fitting import is_estimator
from ..custom import CustomDensity


def requires_labels(density: Any) -> bool:
    """Whether an unfitted density cannot be fitted without labels."""
    return isinstance(density, BaseEstimator) and get_tags(density).target_tags.required


def check_offers(densities: tuple[Any, ...], method: str) -> bool:
    """True, or an AttributeError that names the first unfitted density without `method`.

    None stands for a default, which has them all.
    """
    for density in densities:
        if density is not None and not (is_estimator(density) and hasattr(density, method)):
            shown = density if is_estimator(density) else CustomDensity(density)
            raise AttributeError(f"{shown} has no {method}, which all parts need")
    return True


def add_rows(model: Any, X: np.ndarray, y: Any, classes: Any, weights: Any) -> Any:
    """``model.partial_fit`` with as many of the arguments as it takes; a frozen model stays."""
    if isinstance(model, FrozenEstimator):
        return model
    given = {"y": y, "classes": classes, "sample_weight": weights}
    if weights is not None and not _takes(model, "sample_weight"):
        raise ValueError(
            f"sample_weight was given but {type(model).__name__}.partial_fit does not take it; "
            "drop the weights"
        )
    return model.partial_fit(X, **{k: v for k, v in given.items() if _takes(model, k)})


def merged_part(a: Any, b: Any) -> Any:
    """``a + b``; of two frozen densities, which must be the same, the one."""
    if not isinstance(a, FrozenEstimator):
        return a + b
    if not isinstance(b, FrozenEstimator) or a.estimator is not b.estimator:
        raise ValueError(f"cannot merge densities with different frozen parts: {a} and {b}")
    return a


def _takes(model: Any, argument: str) -> bool:
    partial_fit = type("PartialFit", (), {"fit": type(model).partial_fit})
    return bool(has_fit_parameter(partial_fit, argument))
