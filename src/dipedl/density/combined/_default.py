"""The density of a classifier that was given none."""

from __future__ import annotations

from typing import Any

from .._fitting import as_density
from .selector import DensitySelector


def unfitted_density(density: Any, random_state: Any = None) -> Any:
    """An unfitted estimator for `density`; None stands for a `DensitySelector`."""
    if density is None:
        return DensitySelector(random_state=random_state)
    return as_density(density, random_state)
