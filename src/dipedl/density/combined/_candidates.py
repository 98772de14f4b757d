"""The candidates of a density made of several: their names, and tests that drop or mark one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from .._fitting import log_density
from ..gda import GDADensity
from ..knn import KNNDensity
from .relative import RelativeDensity

#: Name of the component that the classifier itself gives.
CLASSIFIER = "classifier"
#: Rows that the nearest neighbours are sought among.
NEIGHBOUR_ROWS = 8_000

Candidates = list[tuple[str, Any]]
Rows = np.ndarray
#: How far out a ray is asked whether the score still falls, and how many axes are rays.
_DISTANCES = (1e4, 1e8)
_AXES = 50


def default_candidates() -> Candidates:
    """Densities of each kind that is the best of all on some data and poor on other."""
    # Whatever the global configuration says, densities see arrays.
    unit = Normalizer().set_output(transform="default")
    return [
        ("gaussians", GDADensity()),
        ("tied-gaussians", GDADensity("tied")),
        ("unit-gaussians", make_pipeline(unit, GDADensity())),
        ("relative", RelativeDensity()),
        ("neighbours", KNNDensity(max_rows=NEIGHBOUR_ROWS)),
        ("unit-neighbours", make_pipeline(unit, KNNDensity(max_rows=NEIGHBOUR_ROWS))),
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
    """Whether the score does not fall below all rows X (n, p), and on, on each of many rays.

    The rays leave the mean along axes, towards rows and at random; they are asked so far out that a
    density of directions alone no longer changes. A ratio is blind whatever they say: there are
    directions in which all classes have one mean.
    """
    if isinstance(part.steps[-1][1] if isinstance(part, Pipeline) else part, RelativeDensity):
        return True
    rows = X[np.linspace(0, len(X) - 1, min(len(X), 200)).astype(int)]
    rays = _rays(X, rows)
    near, far = (log_density(part, X.mean(axis=0) + distance * rays) for distance in _DISTANCES)
    lowest = log_density(part, rows).min()
    # Where both are -inf there is nothing further to fall.
    return not (((far < near - 1) & (far < lowest)) | np.isneginf(far)).all()


def _rays(X: Rows, rows: Rows) -> Rows:
    """Directions from the mean of X (n, p), in standard deviations of the features."""
    p = X.shape[1]
    spread = X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    rng = np.random.default_rng(0)
    axes = np.eye(p)[np.linspace(0, p - 1, min(p, _AXES)).astype(int)]
    aside = rng.normal(size=(_AXES, p))
    return np.vstack([axes * spread, -axes * spread, aside * spread, rows - X.mean(axis=0)])
