"""Explain single answers, and diagnose a fitted model by its held-out rows.

The package isn't called ``explain``: `dipedl.explain` is the function.
"""

from ..writing.finding import Diagnosis, Finding, FindingWarning
from ._diagnose import diagnose
from ._explain import explain, reasons
from .cards import BaselineCard, Card

__all__ = [
    "BaselineCard",
    "Card",
    "Diagnosis",
    "Finding",
    "FindingWarning",
    "diagnose",
    "explain",
    "reasons",
]
