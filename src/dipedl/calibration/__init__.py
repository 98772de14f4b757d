"""What is learned on held-out rows: temperature, spread, cross-fitting, pseudo-outliers."""

from .crossfit import content_folds, fold_pairs, row_hash, splits
from .held_out import HeldOut
from .pseudo_outliers import make_pseudo_outliers
from .rehearsal import Rehearsal
from .temperature import Temperature

__all__ = [
    "HeldOut",
    "Rehearsal",
    "Temperature",
    "content_folds",
    "fold_pairs",
    "make_pseudo_outliers",
    "row_hash",
    "splits",
]
