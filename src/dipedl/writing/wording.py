"""Severity, sentence and remedy of each finding; the checks find the numbers."""

from __future__ import annotations

from typing import Any

from .finding import Finding, Number

_OWN_ROWS = "look more typical than new ones"
_RARE = "Weigh or resample the rare classes, or use another classifier."

Sentences = dict[str, tuple[str, str]]

#: By severity and code: sentence and remedy, with names of numbers and of other words in braces.
_WARNINGS: Sentences = {
    "calibration_in_sample": (
        "Thresholds and scale of the evidence come from rows that the density was fitted on. They "
        f"{_OWN_ROWS}, so more new inputs are flagged, and lose confidence, than the settings say.",
        "{hold_out}",
    ),
    "calibration_given_to_fit": (
        f"Statistics come from {{source}}. The model knows these rows: they {_OWN_ROWS}, and its "
        "errors look rarer, so too many new inputs are flagged and sets cover too little.",
        "Calibrate with rows that fit has not seen, or call fit without calibration.",
    ),
    "calibration_copies": (
        "{share:.0%} of the rows have a copy, as rows of few discrete columns do. Folds share "
        "copies, so the classifier knows the label of a held-out row better than that of a new "
        "one: prediction sets may cover some percentage points less than they state.",
        "{hold_out}",
    ),
    "calibration_too_few": (
        "{rows:g} held-out rows are too few for a false-alarm rate of {rate}: at least "
        "{least_for_an_alarm} are needed before any input can be flagged, and {needed} before the "
        "rate is steady.",
        "{more_rows}; or ask for a higher false_alarm_rate than {false_alarm_rate:g}.",
    ),
    "calibration_one_class": (
        "All {rows:g} held-out rows are of class {name!r}: what is learned from them, such as a "
        "temperature, thresholds, sets and intervals, holds for no other class.",
        "{every_class}",
    ),
    "score_constant": (
        "The uncertainty of {share_tied:.0%} of the held-out rows is one and the same: it cannot "
        "tell what is typical, and hardly an input can be flagged.",
        "Use a classifier or a method whose uncertainty takes more values.",
    ),
    "density_constant": (
        "The density gives {share_tied:.0%} of the held-out rows one and the same score: it cannot "
        "tell what is typical, and the evidence is the same everywhere.",
        "Check the features that the density sees. {another_density}.",
    ),
    "density_repeats_classifier": (
        "The score ranks inputs as the classifier's own confidence does (rank correlation "
        "{rank_correlation:.2f}): inputs that the classifier is wrongly sure about are not flagged "
        "either.",
        "{another_density}: it should see the input itself, not the classifier's outputs.",
    ),
    "density_points_the_wrong_way": (
        "{compared}: errors lie where the density is higher, so it points the wrong way.",
        "{another_density}. {ranking}",
    ),
    "evidence_never_moves": (
        "The evidence hardly ever changes a probability. {where} Mean probabilities of OOD inputs "
        "will be those of the classifier alone, however low their scores rank.",
        "{sooner}",
    ),
    "evidence_changes_labels": (
        "The prior overrules the classifier on ID data. {cost}",
        "Use an even prior (prior=1.0), or a smaller one.",
    ),
    "evidence_moves_known_inputs": (
        "The evidence costs inputs of the known kind more confidence than it may. {cost}",
        "{later}",
    ),
    "temperature_at_bound": (
        "{fitted} It stopped at the end of its range: no temperature repairs these probabilities.",
        "Look for leaked or mislabelled rows, and for probabilities of exactly 0 and 1. {beyond}",
    ),
    "classifier_overconfident": ("{claim} {wide}", "{honest}"),
    "one_class_takes_all": (
        "The classifier says {top!r} for {largest_predicted_share:.0%} of held-out rows, of which "
        "{true_share:.0%} are.",
        _RARE,
    ),
    "class_never_predicted": (
        "{classes} never predicted on held-out rows, though {count} of them belong there.",
        _RARE,
    ),
    "intervals_unsupported": (
        "{rows:g} rows, or one class, cannot tell how wrong the probabilities are: intervals are "
        "wide, but not near 0 and 1.",
        "Give more rows with labels of all classes, by fit or calibrate.",
    ),
    "intervals_of_seen_rows": (
        "{rehearsed} The classifier has learned these rows: it errs more on new ones, and "
        "intervals are too narrow.",
        "Calibrate with rows that the classifier has not seen.",
    ),
}
_NOTES: Sentences = {
    "density_frozen": (
        "The density came fitted and is judged on the rows given to fit. If it learned from them, "
        f"they {_OWN_ROWS}.",
        "Call {calibrate} with rows that the density has not seen.",
    ),
    "classifier_frozen": (
        "The classifier came fitted and is judged on the rows given to fit. {seen}",
        "Call {calibrate} with rows that the classifier has not seen.",
    ),
    "calibration_small": (
        "{spread} (one standard deviation over the choice of rows).",
        "{more_rows}, if the rates matter.",
    ),
    "labels_missing": (
        "The held-out rows have no {missing}: nothing can be said about what the density adds to "
        "the classifier, what the evidence costs, and which class suffers.",
        "Give rows with labels to {calibrate}.",
    ),
    "density_adds_nothing_on_errors": (
        "{compared}: on known data the score says nothing beyond the classifier. Only inputs of "
        "another kind would show whether it sees those.",
        "{another_density}. {ranking}",
    ),
    "candidates_failed": (
        "{failed} of {candidates} candidate densities could not be fitted. {reasons}.",
        "Most often features are constant, copied or too many for the rows: see the reasons.",
    ),
    "temperature_far_from_one": (
        "{fitted} The bare classifier is far {which}-confident.{surer}",
        "Use the probabilities of this model, not those of the bare classifier.",
    ),
    "classifier_timid": ("{claim} {wide}", "{honest}"),
    "class_nearly_lost": (
        "{classes} recognised in less than half of the cases. {lowest}",
        _RARE,
    ),
    "class_with_few_rows": (
        "{classes} held out fewer than {few} times: too few rows to judge by, and to the density "
        "such inputs look rare.",
        "Collect more rows of each, and have some among the rows given to calibrate.",
    ),
    "class_drives_alarms": (
        "{classes} flagged far more often than others (p = {largest_p:.1g} at most, after Holm's "
        "correction). {alarms}",
        "The rate of false alarms holds over all inputs, not within each class. More rows of that "
        "class even it out.{or_shrink}",
    ),
    "one_part_drives_alarms": (
        "{parts}",
        "{top!r} alone would be cheaper and say nearly the same.",
    ),
    "intervals_of_few_rows": (
        "The width of the intervals was estimated on {rows:g} rows and may be off by a factor of "
        "two.",
        "Give at least {enough} rows if widths matter.",
    ),
    "intervals_of_frozen_classifier": (
        "The classifier was not fitted again: the width of the intervals rests on these rows "
        "alone, and is too small if the classifier was fitted on them.",
        "Give rows that the classifier was not fitted on.",
    ),
    "intervals_of_a_rare_class": (
        "The rarest class has {share:.1%} of the rows of an average class. A probability well "
        "below 1 / {strength:.3g} may lie outside of its interval: one strength is given for all "
        "classes of an input.",
        "Give more rows of it, weighted by sample_weight, or read its intervals with care.",
    ),
    "intervals_without_noise": (
        "Held-out rows get {confidence:.3f} for their most probable class: labels are nearly "
        "without noise. A true probability of 0 or 1 lies outside of nearly every interval, though "
        "it is missed by little.",
        "Read such an interval as near 0 or near 1.",
    ),
}
_CHECKED: Sentences = {
    "calibration_source": ("Statistics come from {source}.", ""),
    "calibration_size": ("{spread}.", ""),
    "labels": ("{errors} held-out errors to compare scores by.", ""),
    "errors_too_few": (
        "The classifier makes {errors} errors on held-out rows, too few to judge which score spots "
        "errors.",
        "",
    ),
    "density_distinct": (
        "The score and the classifier's doubt are different rankings (rank correlation "
        "{rank_correlation:.2f}); {errors} held-out errors are too few to say more.",
        "",
    ),
    "density_informative": (
        "{compared}; rank correlation of the first two {rank_correlation:.2f}.",
        "{ranking}",
    ),
    "density_chosen": ("The density is {choice}.", ""),
    "density_features": (
        "The density sees {features} standardised features: {origins}.{unseen}",
        "{drop}",
    ),
    "evidence_scale": ("{where}", ""),
    "evidence_cost": ("{cost}", ""),
    "temperature": ("{fitted}", ""),
    "classifier_confidence": ("{claim}", ""),
    "classes": ("Every class is predicted. {lowest}", ""),
    "alarms_by_class": ("{alarms}", ""),
    "parts_share_alarms": ("{parts}", ""),
    "intervals_rehearsed": ("{rehearsed}", ""),
}
_SENTENCES = {"warning": _WARNINGS, "note": _NOTES, "ok": _CHECKED}


def finding(
    code: str, numbers: dict[str, Number] | None = None, severity: str = "", **words: Any
) -> Finding:
    """Return the finding of that code, its sentences filled with `numbers` and other `words`.

    `severity` takes the place of the usual one.
    """
    (usual,) = (level for level, sentences in _SENTENCES.items() if code in sentences)
    known = {**(numbers or {}), **words}
    text, remedy = (part.format_map(known) for part in _SENTENCES[usual][code])
    return Finding(code, severity or usual, text, numbers or {}, remedy)
