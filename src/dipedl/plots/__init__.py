"""Figures of uncertainty: functions of arrays, Axes in, Axes out; Displays that ask an estimator.

Without `ax` each draws on a new `matplotlib.figure.Figure` of its own, never on pyplot's
global state: pass ``ax=plt.gca()`` to work with pyplot, or take ``.figure`` of what comes back and
``savefig`` it. Nothing is shown but by a notebook, where a Display at the end of a cell is its
picture. Matplotlib is imported on the first call.
"""

from .calibration import (
    ReliabilityDisplay,
    RiskCoverageDisplay,
    promised_risk,
)
from .caution import CautionDisplay
from .plane import EvidenceMapDisplay, dirichlet_bars
from .unknown import UnknownCounts, UnknownRehearsalDisplay, unknown_counts, unknown_matrix
from .vacuity import VacuityHistogramDisplay, vacuity_against

__all__ = [
    "CautionDisplay",
    "EvidenceMapDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "UnknownCounts",
    "UnknownRehearsalDisplay",
    "VacuityHistogramDisplay",
    "dirichlet_bars",
    "promised_risk",
    "unknown_counts",
    "unknown_matrix",
    "vacuity_against",
]
