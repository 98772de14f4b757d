"""What the held-out data say about a fitted model, in plain words, with numbers and remedies."""

from ._diagnose import diagnose
from ._finding import Diagnosis, Finding, FindingWarning

__all__ = ["Diagnosis", "Finding", "FindingWarning", "diagnose"]
