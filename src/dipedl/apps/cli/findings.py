"""Findings about a model with remedies that the shell has: options, not calls of Python."""

from __future__ import annotations

from dataclasses import replace

from ...explanation import Diagnosis, Finding
from ..table.report.advice import ERRORS, RANKINGS
from .terminal import with_options

_HONEST = "{learn} more rows, or compare another --model."
_MORE = "{learn} at least {needed} rows"
_UNFITTED = "Give --model a file that holds the classifier unfitted."
_LABELS = "Fit with a class in each row."
_OTHER_COLUMNS = "Give fit columns that say more of the rows."
_SHARES = "{learn} more rows of the rare classes, or compare another --model."
_LEAKS = "Look for leaks and mislabelled rows by `dipedl check`, or compare another --model."
_RANKS = "Go by flagged and p_value of `dipedl score`"

#: What to do, by the code of the finding; the remedy of any other code is as it is.
REMEDIES = {
    "calibration_in_sample": "{learn} more rows.",
    "density_frozen": _UNFITTED,
    "classifier_frozen": _UNFITTED,
    "calibration_given_to_fit": "Give score and report rows that the fit has not seen.",
    "calibration_too_few": f"{_MORE}, or with a higher --false-alarms than {{false_alarm_rate:g}}.",
    "calibration_small": f"{_MORE}, if the rates matter.",
    "calibration_one_class": "{learn} more rows of the other classes.",
    "labels_missing": _LABELS,
    "score_constant": _OTHER_COLUMNS,
    "density_constant": f"Look for constant columns by `dipedl check`. {_OTHER_COLUMNS}",
    "density_repeats_classifier": _OTHER_COLUMNS,
    "density_points_the_wrong_way": f"{_OTHER_COLUMNS} {ERRORS}",
    "density_adds_nothing_on_errors": ERRORS,
    "density_informative": ERRORS,
    "evidence_never_moves": f"{_RANKS}: they do not depend on the probabilities.",
    "evidence_moves_known_inputs": f"{_RANKS}, and read p_ columns as too modest.",
    "evidence_changes_labels": f"{_RANKS}, and read label with care.",
    "temperature_at_bound": _LEAKS,
    "temperature_far_from_one": "Use the p_ columns of `dipedl score`, not the bare classifier.",
    "classifier_overconfident": _HONEST,
    "classifier_timid": _HONEST,
    "one_class_takes_all": _SHARES,
    "class_never_predicted": _SHARES,
    "class_nearly_lost": _SHARES,
    "class_with_few_rows": "{learn} more rows of such a class.",
    "class_drives_alarms": "The rate of false alarms holds over all rows, not within each class. "
    "More rows of that class even it out.",
    "density_features": "Leave these columns out by --drop, or make something of them that comes "
    "again.",
    "one_part_drives_alarms": "Nothing needs to be done: one part says nearly what all of them do.",
}


def diagnosis_in_shell(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis with remedies that the shell has."""
    return Diagnosis(tuple(map(in_shell, diagnosis.findings)), diagnosis.source)


def in_shell(found: Finding, learn: str = "Fit on") -> Finding:
    """Return the finding with a remedy of the shell; `learn` begins those that ask for rows."""
    remedy = found.remedy
    if remedy and found.code in REMEDIES:
        ranking = RANKINGS.get(str(found.numbers.get("answers_ranked_by")))
        known = {**found.numbers, "learn": learn, "ranking": ranking}
        remedy = REMEDIES[found.code].format_map(known)
    return replace(found, text=with_options(found.text), remedy=with_options(remedy))
