"""Metrics of class probabilities, of OOD detection and of rejection.

Functions of NumPy arrays; what `metric` has declared carries its direction and kind.
"""

from .bootstrap import ConfidenceInterval, bootstrap_ci
from .classification import (
    accuracy,
    adaptive_ece,
    balanced_accuracy,
    brier_score,
    class_recall,
    ece,
    nll,
)
from .ood import aupr_in, aupr_out, fpr_at_tpr, ood_auroc, ood_brier
from .selective import RiskCoverageCurve, aurc, errors_avoided, risk_coverage_curve

__all__ = [
    "ConfidenceInterval",
    "RiskCoverageCurve",
    "accuracy",
    "adaptive_ece",
    "aupr_in",
    "aupr_out",
    "aurc",
    "balanced_accuracy",
    "bootstrap_ci",
    "brier_score",
    "class_recall",
    "ece",
    "errors_avoided",
    "fpr_at_tpr",
    "nll",
    "ood_auroc",
    "ood_brier",
    "risk_coverage_curve",
]
