"""Explain single answers, and diagnose a fitted model by its held-out rows.

The package isn't called ``explain``: `dipedl.explain` is the function.
"""

from ..writing.finding import Diagnosis, Finding, FindingWarning
from .cards import BaselineCard, Card
from .caution_curve import CautionCurve
from .diagnosis import diagnose
from .explainer import explain, reasons
from .unknown_classes import UnknownRehearsal, rehearse_unknown

__all__ = [
    "BaselineCard",
    "Card",
    "CautionCurve",
    "Diagnosis",
    "Finding",
    "FindingWarning",
    "UnknownRehearsal",
    "diagnose",
    "explain",
    "reasons",
    "rehearse_unknown",
]
