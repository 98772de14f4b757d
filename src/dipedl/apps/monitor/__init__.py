"""Tests of a stream of rows for drift from the rows a model knows, at a stated false-alarm rate."""

from ._accuracy import Estimate
from ._columns import ColumnBins
from ._windows import Window
from .drift_monitor import DriftMonitor
from .report import DriftReport

__all__ = ["ColumnBins", "DriftMonitor", "DriftReport", "Estimate", "Window"]
