"""Translation of messages of the library: options of the shell in place of arguments and calls."""

from __future__ import annotations

import csv
import io
import re
import shlex
from ast import literal_eval
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...explanation import Diagnosis, Finding

#: Arguments that errors of the library name in backquotes, and the values that they advise.
_NAMED = re.compile(
    r"`(target|model|drop|types|classes|labels|estimator|proba|time_column|gaps|delimiter|rows|extractor|columns|test|features|out|state|page|key|workers|partitions|density|like)`"
)
_ADVISED = re.compile(r"\b(drop|gaps|types|time_column|rows|row)=(?=[\[{'\"\dN])")
#: Other arguments of the library -> options.
_OPTIONS = {
    r"\b(resume|overwrite)=True\b": r"--\1",
    r"\bcall fit again with the same work\b": "go on with --resume",
    r"\bdensity=GDADensity\(\)": "--density gaussians",
}


_HONEST = "{learn} more rows, or compare another --model."
_MORE = "{more}"
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
    "density_points_the_wrong_way": f"{_OTHER_COLUMNS} {{errors}}",
    "density_adds_nothing_on_errors": "{errors}",
    "density_informative": "{errors}",
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


def diagnosis_in_shell(diagnosis: Diagnosis, in_parts: bool = False) -> Diagnosis:
    """Return a diagnosis with remedies that the shell has, for a fit `in_parts` or in memory."""
    findings = (in_shell(found, in_parts=in_parts) for found in diagnosis.findings)
    return replace(diagnosis, findings=tuple(findings))


def in_shell(found: Finding, learn: str = "Fit on", in_parts: bool = False) -> Finding:
    """Return the finding with a remedy of the shell; `learn` begins those that ask for rows.

    Of a fit `in_parts` a tenth of the rows is held out.
    """
    from ..table.advice import ERRORS, RANKINGS

    remedy = found.remedy
    if remedy and found.code in REMEDIES:
        ranking = RANKINGS.get(str(found.numbers.get("answers_ranked_by")))
        errors = ERRORS.format(ranking=ranking)
        needed = int(found.numbers.get("needed", 0))
        more = f"{learn} at least {needed} rows"
        if in_parts:
            more = f"{learn} about {10 * needed:,} rows, of which a tenth is held out"
        remedy = REMEDIES[found.code].format_map(
            {**found.numbers, "learn": learn, "errors": errors, "more": more}
        )
    return replace(found, text=with_options(found.text), remedy=with_options(remedy))


def with_options(text: str) -> str:
    """Return a text of the library with its arguments as the options that give them."""
    for argument, option in _OPTIONS.items():
        text = re.sub(argument, option, text)
    text = _NAMED.sub(lambda found: _option(found[1]), text)
    parts, last = [], 0
    for found in _ADVISED.finditer(text):
        if found.start() < last:
            continue
        for end in range(found.end() + 1, len(text) + 1):
            try:
                value = literal_eval(text[found.end() : end])
            except (ValueError, SyntaxError):
                continue
            if not text[end : end + 1].isalnum():
                parts += [text[last : found.start()], f"{_option(found[1])} {_as_value(value)}"]
                last = end
                break
    return "".join(parts) + text[last:]


def _option(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"


def _as_value(value: Any) -> str:
    if isinstance(value, dict):
        return as_typed(f"{name}={of}" for name, of in value.items())
    if isinstance(value, list):
        return as_typed(value)
    return "0" if value is None else shlex.quote(str(value))


def as_typed(names: Iterable[object]) -> str:
    """Return names as they are typed: between commas, and in quotes where needed."""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return shlex.quote(line.getvalue().removesuffix("\r\n"))
