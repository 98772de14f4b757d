"""Tests of a stream of rows for drift from the rows a model knows, at a stated false-alarm rate."""

from ...columns import Column
from .drift_monitor import DriftMonitor, DriftReport
from .windows import Estimate, Window

__all__ = ["Column", "DriftMonitor", "DriftReport", "Estimate", "Window"]
