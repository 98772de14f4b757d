"""Temperature, spread, cross-fitting and pseudo-outliers, learned on held-out rows."""

from .crossfit import content_folds, fold_pairs, row_hash, splits
from .pseudo_outliers import make_pseudo_outliers
from .rehearsal import Rehearsal
from .temperature import Temperature

__all__ = [
    "Rehearsal",
    "Temperature",
    "content_folds",
    "fold_pairs",
    "make_pseudo_outliers",
    "row_hash",
    "splits",
]
