"""The candidates of a density made of several: their names, and tests that drop or mark one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from .._fitting import log_density
from ..gda import GDADensity
from ..knn import KNNDensity
from .relative import RelativeDensity

#: Name of the component that the classifier itself gives.
CLASSIFIER = "classifier"

Candidates = list[tuple[str, Any]]
Rows = np.ndarray


def default_candidates() -> Candidates:
    """Densities of each kind that is the best of all on some data and poor on other."""
    return [
        ("gaussians", GDADensity()),
        ("tied-gaussians", GDADensity("tied")),
        ("unit-gaussians", make_pipeline(Normalizer(), GDADensity())),
        ("relative", RelativeDensity()),
        ("neighbours", KNNDensity()),
        ("unit-neighbours", make_pipeline(Normalizer(), KNNDensity())),
    ]


def named_candidates(candidates: Candidates | None) -> Candidates:
    """The candidates as pairs of name and density, checked; None stands for the default ones."""
    if candidates is None:
        return default_candidates()
    try:
        named = [(name, density) for name, density in candidates]
        names = {str(name) for name, _ in named if isinstance(name, str)}
    except (TypeError, ValueError):
        named, names = [], set()
    if not named or len(names) < len(named) or CLASSIFIER in names:
        raise ValueError(
            "candidates must be (name, density) pairs with a name each, none of them "
            f"{CLASSIFIER!r}, such as [('gaussians', GDADensity())], got {candidates!r}"
        )
    return named


def shift_of(folds: Sequence[Rows]) -> float:
    """Largest distance of the median of a fold from the typical one, in spreads, beyond chance."""
    low, middle, high = np.transpose(
        [np.quantile(scores, [0.16, 0.5, 0.84], method="nearest") for scores in folds]
    )
    # Where the density is zero scores are -inf, and no shift can be told.
    with np.errstate(invalid="ignore"):
        spread = float(np.median(high - low)) / 2
        far = np.abs(middle - np.median(middle))
        chance = 4 * spread / np.sqrt([len(scores) for scores in folds])
        beyond = float((far - chance).max())
    return beyond / spread if np.isfinite(beyond) and spread > 0 else 0.0


def blind_to_distance(part: Any, X: Rows) -> bool:
    """Whether rows a hundred times as far from the mean do not all fall below the lowest row."""
    rows = X[np.linspace(0, len(X) - 1, min(len(X), 200)).astype(int)]
    mean = rows.mean(axis=0)
    sizes = np.sqrt(((rows - mean) ** 2).mean(axis=0))
    aside = np.random.default_rng(0).normal(size=rows.shape) * sizes
    far = mean + 100 * np.concatenate([rows - mean, aside])
    lowest = np.quantile(log_density(part, rows), 0.01, method="nearest")
    return bool((log_density(part, far) < lowest).mean() < 0.95)
