"""What is learned on held-out rows: temperature, cross-fitting, pseudo-outliers."""

from .crossfit import content_folds, fold_pairs, row_hash, splits
from .held_out import Calibration
from .pseudo_outliers import synthetic_departures
from .temperature import Temperature

__all__ = [
    "Calibration",
    "Temperature",
    "content_folds",
    "fold_pairs",
    "row_hash",
    "splits",
    "synthetic_departures",
]
