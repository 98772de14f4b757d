"""Words of a report: its first sentences, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scipy.stats import binom

from ...explanation import Diagnosis
from .evaluate import RATE, Evaluation

ERRORS = "To find likely errors, rank rows by {ranking}."
#: How errors rank, by the name in the numbers of a finding.
RANKINGS = {
    "predict_proba": "the largest p_ column, not by vacuity or p_value",
    "score": "vacuity or p_value, not by the largest p_ column",
}
#: Shares and scores from which something is said.
_MISCALIBRATED, _RARELY_FOUND, _MANY, _FEW, _SEEN = 0.05, 0.5, 2.0, 200, 0.05


def headline(found: Evaluation) -> str:
    """Return the result in a few sentences."""
    n, flagged = len(found.test), found.test.answers.flagged.mean()
    sentences = []
    if found.scores:
        safe = found.trust[0]
        sentences.append(f"{found.scores['accuracy']:.1%} of {n:,} test rows are answered rightly.")
        if safe.right is not None:
            sentences.append(
                f"Of the {safe.share:.0%} that are like the training rows and leave one class open,"
                f" {safe.right:.1%} are."
            )
    else:
        sentences.append(f"{n:,} rows were answered; without classes nothing is known of mistakes.")
    sentences.append(
        f"{flagged:.1%} are flagged as unlike the training rows, where "
        f"{false_alarm_rate(found):.0%} would be by chance."
    )
    sentences += [
        f"Of {one.rows:,} {one.name} {one.flagged:.1%} are flagged ({one.flagged_by_entropy:.1%} "
        "by the classifier's own entropy, with as many false alarms)."
        for one in found.unknown
    ]
    return " ".join(sentences)


def false_alarm_rate(found: Evaluation) -> float:
    """Return the share of rows like those of the fit that the model flags."""
    return float(found.model.classifier.evidence_.false_alarm_rate)


def next_steps(found: Evaluation) -> list[str]:
    """Return what to do about the findings, in order; never empty."""
    of_model = (f"{one.text} {one.remedy}".strip() for one in found.diagnosis.warnings)
    return [*_seen(found), *_drift(found), *_mistakes(found), *of_model] or [
        "Nothing calls for action. Answer what is not flagged, and show flagged rows to a person."
    ]


def _seen(found: Evaluation) -> Iterator[str]:
    if found.seen > _SEEN:
        yield (
            f"The fit was given {found.seen:.0%} of these rows: the numbers say little about new "
            "ones. Give rows that it has not seen."
        )


def _drift(found: Evaluation) -> Iterator[str]:
    changed = [d.usual.name for d in found.drifts if d.changed]
    flagged, rate = found.test.answers.flagged, false_alarm_rate(found)
    many = binom.sf(flagged.sum() - 1, len(flagged), rate) < RATE
    columns = f" Look first at: {', '.join(changed[:5])}." if changed else ""
    monitor = found.drift
    differs = monitor is not None and (monitor.alarm or (monitor.window and monitor.window.differs))
    if differs or (many and flagged.mean() > _MANY * rate):
        yield (
            f"The rows differ from those of the fit: {flagged.mean():.1%} are flagged.{columns} "
            "If they are mistakes, mend their source; if the world changed, fit again with such "
            "rows."
        )
    elif changed:
        yield f"Some columns differ from those of the fit, the rows as a whole do not.{columns}"
    new = [f"{d.usual.name} ({', '.join(d.new)})" for d in found.drifts if d.new]
    if new:
        yield f"There are levels that the fit never saw: {'; '.join(new)}. They count as unknown."
    if found.test.refused:
        yield (
            f"Rows that could not be read: {found.test.refused:,}; `dipedl score` lists them, with "
            "reasons."
        )


def _mistakes(found: Evaluation) -> Iterator[str]:
    if found.strange:
        named = ", ".join(f"{name} ({n:,})" for name, n in found.strange.items())
        yield f"Classes that the model does not know: {named}. Fit again with rows of them."
    scores = found.scores
    if scores and scores["ece"] > max(_MISCALIBRATED, scores["ece_by_chance"]):
        yield _calibration(scores)
    rare = [line.name for line in found.classes if line.found < _RARELY_FOUND]
    if rare:
        yield (
            f"Fewer than half of the rows are found of: {', '.join(rare)}. More rows of them, or a "
            "column that tells them apart, would help."
        )
    if found.scores and len(found.test) < _FEW:
        yield f"{len(found.test):,} test rows give rough numbers; use {_FEW} or more."


def _calibration(scores: Mapping[str, float]) -> str:
    """Return what to do about probabilities that are no frequencies."""
    off, bare = scores["ece"], scores["classifier_ece"]
    modest = scores["confidence"] <= scores["accuracy"]
    word = "is too modest" if modest else "claims too much"
    sentence = f"The confidence is off by {off:.3f} on average and {word}"
    again = "fit again with newer rows, or do not read probabilities as frequencies."
    if bare >= off:
        return f"{sentence}: {again}"
    why = ", because dipedl lowers it where evidence is little" if modest else ""
    sentence += f"{why}; the classifier's own probabilities are off by {bare:.3f}"
    if bare > _MISCALIBRATED:
        return f"{sentence} too: {again}"
    return f"{sentence}. For frequencies take those (in Python: classifier_proba)."


def error_ranking(diagnosis: Diagnosis) -> str:
    """Return how rows are ranked by likely errors; "" if unknown.

    Unknown with few held-out errors, and where classifier and density rank alike.
    """
    for found in diagnosis.findings:
        if "answers_ranked_by" in found.numbers:
            ranking = RANKINGS[str(found.numbers["answers_ranked_by"])]
            proba, score = (
                float(found.numbers[f"auroc_{name}"]) for name in ("predict_proba", "score")
            )
            return (
                f"{ERRORS.format(ranking=ranking)} On held-out rows of the fit the p_ columns find "
                f"errors with AUROC {proba:.2f}, vacuity and p-value with {score:.2f}."
            )
    return ""
