"""Tests of a stream of rows for drift from the rows a model knows, at a stated false-alarm rate."""

from .drift_monitor import DriftMonitor
from .report import DriftReport
from .windows import ColumnBins, Estimate, Window

__all__ = ["ColumnBins", "DriftMonitor", "DriftReport", "Estimate", "Window"]
