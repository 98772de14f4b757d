"""What can be done about a finding with the model at hand."""

from __future__ import annotations

from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from ..evidence import CautionBudget
from ..evidence_model import EvidenceModel


def another_density(clf: Any) -> str:
    """How the density is replaced, or sees something else."""
    if not _is_classifier(clf):
        return "Have the density see other layers of the network (features)"
    other = "Give features that hold more of the inputs"
    return other if clf.evidence_.density is None else f"{other}, or leave density=None"


def equal_alarms(clf: Any) -> str:
    """How alarms are shared out more evenly among the classes."""
    own = (
        " Or a density with a covariance per class and shrinkage does." if clf._has_evidence else ""
    )
    return (
        "The rate of false alarms holds over all inputs, not within each class. More rows of that "
        f"class even it out.{own}"
    )


def nearer_half_point(evidence: EvidenceModel) -> str:
    """How an input loses confidence sooner."""
    gamma = f"lower gamma below {evidence.gamma:g}."
    if isinstance(evidence.normalizer_, CautionBudget):
        return (
            f"Raise the budget of the normalizer above {evidence.normalizer_.budget:g}, or {gamma}"
        )
    return (
        "Use normalizer=CautionBudget(), which puts the loss where held-out data end, or " + gamma
    )


def farther_half_point(evidence: EvidenceModel) -> str:
    """How an input loses confidence later."""
    gamma = f"raise gamma above {evidence.gamma:g}."
    if not isinstance(evidence.normalizer_, CautionBudget):
        return f"Use normalizer=CautionBudget(), or {gamma}"
    budget = evidence.normalizer_.budget
    lower = f"Lower the budget of the normalizer below {budget:g}, or " if budget else ""
    return lower + gamma if lower else gamma.capitalize()


def honest_confidence(clf: Any, *, timid: bool) -> str:
    """How confidence comes to what accuracy is."""
    if not clf._has_evidence:
        return (
            "The probabilities of a baseline are its own: "
            f"DIPClassifier(FrozenEstimator({type(clf).__name__}(...))) calibrates them on rows "
            "that it has not seen."
        )
    if clf.evidence_.calibrator is not None:
        return "Leave calibrator=None, which fits a temperature."
    if timid:
        return (
            "A temperature sharpens only as far as held-out rows insist: hold out more, or use "
            "calibrator=Temperature(confidence=0)."
        )
    return _beyond_a_temperature(clf)


def other_probabilities(clf: Any) -> str:
    """What to look for where no temperature repairs the probabilities."""
    doubt = "Look for leaked or mislabelled rows, and for probabilities of exactly 0 and 1."
    return f"{doubt} {_beyond_a_temperature(clf)}"


def _beyond_a_temperature(clf: Any) -> str:
    if not _is_classifier(clf):
        return "A temperature is not enough for this network: train it with label smoothing."
    given = clf.estimator
    given = given.estimator if isinstance(given, FrozenEstimator) else given
    if isinstance(given, CalibratedClassifierCV) and given.method == "isotonic":
        return "Neither temperature nor isotonic regression is enough: use another classifier."
    return (
        "A temperature is not enough for this classifier: calibrate it by "
        "CalibratedClassifierCV(estimator, method='isotonic')."
    )


def _is_classifier(clf: Any) -> bool:
    """Whether a model wraps a classifier of scikit-learn's kind: a `DIPModule` has a network."""
    return hasattr(clf, "estimator")
