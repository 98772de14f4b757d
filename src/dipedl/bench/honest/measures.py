"""What the study was to show, one statement after the other: met, missed and where, or not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from .table import Line, StudyTable, share

__all__ = ["Measure", "measures", "regret"]

_OURS = "default"
_TEMPERATURE = "temperature"
_GDA = "gaussians"
_LIKELIHOOD_FAILS = ("fashion-mnist", "mnist")


@dataclass(frozen=True)
class Measure:
    """A statement and what became of it.

    Attributes
    ----------
    statement : str
        What was asked.
    found : str
        What came out, in numbers.
    met : bool or None
        None where the rows for it are missing.
    misses : tuple of str
        Where it fails, each with its number.
    """

    statement: str
    found: str
    met: bool | None
    misses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A line, its number, whether that is as good as asked, and what it comes from."""

    line: Line
    value: float
    good: bool
    note: str = ""


def measures(table: StudyTable) -> list[Measure]:
    """Every measure, in the order of the study; those that lack rows say so."""
    makers: tuple[Callable[[StudyTable], Measure], ...] = (
        _above_every_baseline,
        _never_far_below,
        _foreign_brier,
        _known_brier,
        _nll,
        _ece,
        _regret,
        _likelihood_failure,
        _cost_of_fit,
        _cost_of_prediction,
    )
    return [make(table) for make in makers]


def regret(table: StudyTable, method: str = _OURS) -> dict[Line, float]:
    """By line, the best candidate's AUROC, chosen with the foreign labels, less the method's."""
    candidates = [column.name for column in table.named("candidate")]
    found = {}
    for line in table.lines:
        values = [table.value(line, name, "auroc") for name in candidates]
        values = [value for value in values if np.isfinite(value)]
        own = table.value(line, method, "auroc")
        if values and np.isfinite(own):
            found[line] = max(values) - own
    return found


def _above_every_baseline(table: StudyTable) -> Measure:
    statement = "Mean AUROC above the mean of every single baseline, on the lines it has"
    ours = table.values(_OURS, "auroc")
    names = [c.name for c in (*table.named("bare"), *table.named("baseline"))]
    behind, seen = [], []
    for name in names:
        theirs = table.values(name, "auroc")
        both = np.isfinite(ours) & np.isfinite(theirs)
        if both.any():
            mean, other = ours[both].mean(), theirs[both].mean()
            seen.append(other if both.all() else -np.inf)
            if mean <= other:
                behind.append(f"{name}: {mean:.3f} against {other:.3f} on {both.sum()} lines")
    if not seen:
        return _not_run(statement)
    found = f"{np.nanmean(ours):.3f}; best baseline that answers everywhere {max(seen):.3f}"
    return Measure(statement, found, not behind, tuple(behind))


def _never_far_below(table: StudyTable) -> Measure:
    return _each(
        "Never more than .02 below the bare classifier's AUROC",
        list(_compared(table, "auroc", lambda ours, bare: ours - bare, lambda v: v >= -0.02)),
        "worst {min:+.3f}, mean {mean:+.3f}",
        "{value:+.3f}",
    )


def _foreign_brier(table: StudyTable) -> Measure:
    judged = list(_compared(table, "brier_ood", share, lambda v: v <= 0.6))
    measure = _each(
        "OOD Brier at most 60 % of the bare classifier's, in the mean over lines",
        judged,
        "{ratio:.0%} (mean over mean), {tempered:.0%} of the temperature-scaled classifier's; mean "
        "of the lines' own shares {mean:.0%}",
        "{value:.0%}",
        ratio=_overall(table, "brier_ood", table.lines),
        tempered=_overall(table, "brier_ood", table.lines, _TEMPERATURE),
    )
    return _by_mean(measure, _overall(table, "brier_ood", table.lines) <= 0.6)


def _known_brier(table: StudyTable) -> Measure:
    lines = table.known()
    judged = list(
        _compared(
            table, "brier_id", lambda ours, bare: share(ours, bare) - 1, lambda v: v <= 0.02, lines
        )
    )
    cost = _overall(table, "brier_id", lines) - 1
    measure = _each(
        "ID Brier at most 2 % above the bare classifier's, in the mean over classifiers",
        judged,
        "{ratio:+.1%} (mean over mean); mean of the classifiers' own {mean:+.1%}",
        "{value:+.1%}",
        ratio=cost,
    )
    return _by_mean(measure, cost <= 0.02)


def _nll(table: StudyTable) -> Measure:
    lines = table.known()
    judged = list(
        _compared(
            table,
            "nll",
            lambda ours, other: share(ours, other) - 1,
            lambda v: v <= 0.02,
            lines,
            _TEMPERATURE,
        )
    )
    cost = _overall(table, "nll", lines, _TEMPERATURE) - 1
    measure = _each(
        "NLL at most 2 % (the budget) above temperature scaling's, in the mean over classifiers",
        judged,
        "{ratio:+.1%} (mean over mean); median of the classifiers' own {median:+.1%}",
        "{value:+.1%}",
        ratio=cost,
    )
    return _by_mean(measure, cost <= 0.02)


def _ece(table: StudyTable) -> Measure:
    judged = list(
        _compared(
            table,
            "ece",
            lambda ours, other: ours - other,
            lambda v: v <= 0.02,
            table.known(),
            _TEMPERATURE,
        )
    )
    measure = _each(
        "ECE at most .02 (the budget) above temperature scaling's, in the mean over classifiers",
        judged,
        "mean {mean:+.3f}",
        "{value:+.3f}",
    )
    return _by_mean(measure, float(np.mean([j.value for j in judged] or [0.0])) <= 0.02)


def _regret(table: StudyTable) -> Measure:
    judged = [Judged(line, value, value <= 0.02) for line, value in regret(table).items()]
    measure = _each(
        "Mean AUROC within .02 of the candidate chosen with foreign labels",
        judged,
        "mean regret {mean:+.3f}, worst {max:+.3f}",
        "{value:+.3f}",
    )
    return _by_mean(measure, float(np.mean([j.value for j in judged] or [0.0])) <= 0.02)


def _likelihood_failure(table: StudyTable) -> Measure:
    dataset, ood = _LIKELIHOOD_FAILS
    lines = [line for line in table.lines if (line.dataset, line.ood) == (dataset, ood)]
    judged = [
        Judged(line, value, value >= 0.95)
        for line in lines
        if np.isfinite(value := table.value(line, _OURS, "auroc"))
    ]
    return _each(
        "Fashion-MNIST against MNIST: AUROC at least .95, by every classifier",
        judged,
        "lowest {min:.3f}",
        "{value:.3f}",
    )


def _cost_of_fit(table: StudyTable) -> Measure:
    judged = [
        Judged(line, spent, spent <= 1)
        for line in table.known()
        if np.isfinite(spent := _fit_share(table, line))
    ]
    density = [_fit_share(table, line, without_classifier=True) for line in table.known()]
    return _each(
        "Fit, the classifier's own included, at most 3 times that with a single GDA and one pass "
        "of scoring for each candidate (processor time)",
        judged,
        "{mean:.2f} of what is allowed in the mean, worst {max:.2f}, {density:.2f} in the mean "
        "without the classifier's own",
        "{value:.2f} of what is allowed",
        density=float(np.nanmean(density)) if judged else np.nan,
    )


def _fit_share(table: StudyTable, line: Line, *, without_classifier: bool = False) -> float:
    """Our fit over what is allowed."""
    ours, gda = (table.costs.get((line.dataset, line.classifier, m)) for m in (_OURS, _GDA))
    if ours is None or gda is None:
        return np.nan
    bare = table.costs[line.dataset, line.classifier, table.bare]
    passes = sum(
        max(cost["predict"] - bare["predict"], 0.0) * cost["rows"]
        for column in table.named("candidate")
        if (cost := table.costs.get((line.dataset, line.classifier, column.name)))
    )
    own, single = ours["fit"], gda["fit"]
    if without_classifier:
        own, single = own - ours["classifier"], single - gda["classifier"]
    return float(own / (3 * single + passes))


def _cost_of_prediction(table: StudyTable) -> Measure:
    judged = []
    for line in table.known():
        key = line.dataset, line.classifier
        ours, bare = (table.costs.get((*key, method)) for method in (_OURS, table.bare))
        if ours is not None and bare is not None and bare["predict"] > 0:
            more = ours["predict"] / bare["predict"] - 1
            judged.append(Judged(line, more, more <= 0.1))
    return _each(
        "Prediction at most 10 % above one pass of the classifier (processor time)",
        judged,
        "median {median:+.0%}",
        "{value:+.0%}",
    )


def _compared(
    table: StudyTable,
    metric: str,
    compare: Callable[[float, float], float],
    good: Callable[[float], bool],
    lines: list[Line] | None = None,
    other: str | None = None,
) -> Iterator[Judged]:
    """Our default against another method (the bare one), on the lines where both answered."""
    for line in table.lines if lines is None else lines:
        ours = table.value(line, _OURS, metric)
        theirs = table.value(line, other or table.bare, metric)
        if np.isfinite(ours) and np.isfinite(theirs):
            value = compare(ours, theirs)
            yield Judged(line, value, good(value), f" ({theirs:.4f} to {ours:.4f})")


def _overall(
    table: StudyTable, metric: str, lines: Iterable[Line], other: str | None = None
) -> float:
    """Mean of ours over mean of another method's (the bare one's)."""
    lines = list(lines)
    ours, bare = (table.values(m, metric, lines) for m in (_OURS, other or table.bare))
    both = np.isfinite(ours) & np.isfinite(bare)
    return share(float(ours[both].mean()), float(bare[both].mean())) if both.any() else np.nan


def _each(
    statement: str,
    judged: list[Judged],
    found: str,
    miss: str,
    **more: float,
) -> Measure:
    """A measure of every line, met if all are good."""
    if not judged:
        return _not_run(statement)
    values = np.array([entry.value for entry in judged])
    numbers = {"min": values.min(), "max": values.max(), "mean": values.mean()} | more
    text = found.format(**numbers, median=np.median(values))
    bad = [entry for entry in judged if not entry.good]
    misses = tuple(f"{e.line}: {miss.format(value=e.value)}{e.note}" for e in bad)
    return Measure(statement, f"{text}; {len(misses)} of {len(judged)} miss", not misses, misses)


def _by_mean(measure: Measure, met: bool) -> Measure:
    """The same, judged by its mean; single misses stay named."""
    if measure.met is None:
        return measure
    return replace(measure, met=met)


def _not_run(statement: str) -> Measure:
    return Measure(statement, "the rows for it are missing", None)
