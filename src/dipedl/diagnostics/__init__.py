"""What the held-out data say about a fitted model, in plain words, with numbers and remedies."""

from ..writing.finding import Diagnosis, Finding, FindingWarning
from ._diagnose import diagnose

__all__ = ["Diagnosis", "Finding", "FindingWarning", "diagnose"]
