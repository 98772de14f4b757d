"""From log-density to log-evidence: free functions for the maths, tiny classes that normalise.

A normaliser maps a log-density in nats to a dimensionless z; the pseudo-count is then
``n * gamma * exp(z)``.
"""

from .caution_budget import CautionBudget
from .identity import Identity
from .monotone import check_increasing
from .pseudo_count import log_evidence
from .quantile import QuantileEvidence
from .quantiles import alarm_threshold, weighted_quantile
from .rank_normal import RankNormal
from .zscore import RobustZScore, ZScore

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
