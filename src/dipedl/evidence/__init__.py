"""From log-density to log-evidence: free functions for the maths, tiny classes that normalise.

A normaliser maps a log-density in nats to a dimensionless z; the pseudo-count is then
``n * gamma * exp(z)``.
"""

from .caution_budget import CautionBudget
from .normalizers import (
    Identity,
    QuantileEvidence,
    RankNormal,
    RobustZScore,
    ZScore,
    alarm_threshold,
    check_increasing,
    log_evidence,
    weighted_quantile,
)

__all__ = [
    "CautionBudget",
    "Identity",
    "QuantileEvidence",
    "RankNormal",
    "RobustZScore",
    "ZScore",
    "alarm_threshold",
    "check_increasing",
    "log_evidence",
    "weighted_quantile",
]
