"""All findings about a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..calibration.held_out import HeldOut
from ..held_out import held_out_findings
from ..inputs import last_step_with
from ..writing.finding import Diagnosis, Finding
from ._classes import class_findings
from ._evidence import evidence_findings
from ._features import feature_findings
from ._information import information_findings
from ._intervals import interval_findings
from ._probabilities import probability_findings
from ._selection import selection_findings

_CHECKS: tuple[Callable[[HeldOut, Any], Iterator[Finding]], ...] = (
    held_out_findings,
    information_findings,
    evidence_findings,
    probability_findings,
    class_findings,
    selection_findings,
    feature_findings,
    interval_findings,
)
_OF_EVIDENCE = (evidence_findings, selection_findings, feature_findings, interval_findings)


def diagnose(clf: Any) -> Diagnosis:
    """What the held-out in-distribution data say about a fitted model.

    Looks at the rows that the model holds out, or was given by ``calibrate``: no new input is
    needed, and no OOD input is used, so nothing here says how well OOD inputs are seen.

    Parameters
    ----------
    clf : DIPClassifier, DIPModule or a baseline
        Fitted; or a pipeline or search that ends in a classifier. Of a baseline, which has no
        evidence, these are findings on its held-out rows, probabilities, classes and alarms.

    Returns
    -------
    Diagnosis
        Findings with numbers and remedies, worst first; ``print(diagnosis)`` shows a page.

    Raises
    ------
    NotFittedError
        If `clf` is not fitted, or is a baseline without held-out rows.
    TypeError
        If it is another model.

    Notes
    -----
    Comparisons that could be chance are tested (at 1 %, over the classes by Holm's correction) and
    reported only if they are large as well: a healthy model gets no warnings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.diagnostics import diagnose
    >>> clf = DIPClassifier(cv="in-sample").fit(*load_iris(return_X_y=True))
    >>> [finding.code for finding in diagnose(clf).warnings][:1]
    ['calibration_in_sample']
    """
    clf, _ = last_step_with("diagnose", clf)
    held = clf._held_out_rows()
    checks = [c for c in _CHECKS if clf._has_evidence or c not in _OF_EVIDENCE]
    return Diagnosis(tuple(finding for c in checks for finding in c(held, clf)), held.source)
