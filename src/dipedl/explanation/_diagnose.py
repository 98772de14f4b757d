"""All findings about a model."""

from __future__ import annotations

from typing import Any

from ..decisions.pipelines import last_step_with
from ..held_out_findings import held_out_findings
from ..writing.finding import Diagnosis
from .classifier_findings import class_findings, probability_findings
from .density_findings import feature_findings, information_findings, selection_findings
from .evidence_findings import evidence_findings, interval_findings

_CHECKS = (
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
    """Judge a fitted model by its held-out in-distribution rows.

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
    >>> from dipedl.explanation import diagnose
    >>> clf = DIPClassifier(cv="in-sample").fit(*load_iris(return_X_y=True))
    >>> [finding.code for finding in diagnose(clf).warnings][:1]
    ['calibration_in_sample']
    """
    clf, _ = last_step_with("diagnose", clf)
    held_out = clf.held_out_rows()
    checks = [c for c in _CHECKS if clf.has_evidence or c not in _OF_EVIDENCE]
    return Diagnosis(
        tuple(finding for c in checks for finding in c(held_out, clf)), held_out.source
    )
