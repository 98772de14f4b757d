"""Diagnosis of a fitted model: what its held-out rows say, with numbers and remedies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import optimize, special, stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from ..calibration.spread import LOW, RARE, SURE, Spread
from ..calibration.temperature import BOUNDS
from ..decisions.pipelines import last_step_with
from ..decisions.rejection import risk_upper_bound
from ..decisions.sets import prediction_sets
from ..dirichlet import max_prob
from ..evidence import CautionBudget, alarm_threshold
from ..evidence_model import CAUTION, EvidenceModel
from ..features.encoding import PARTS
from ..features.pipelines import names_after
from ..held_out import HeldOut, has_learned_rows, held_out_findings
from ..inputs import PRIOR
from ..maths.scores import auroc
from ..metrics import ece
from ..writing.finding import Diagnosis, Finding, Number
from ..writing.text import plain_labels
from .caution_curve import CautionCurve

Names = tuple[str, ...]
Numbers = dict[str, Number]

NO_CURVE = Finding(
    "caution_curve_missing",
    "ok",
    "What caution buys on unknown inputs is not shown. That takes pseudo-outliers, which are made "
    "of numbers without gaps only, for DensitySelector, FusedDensity and the default density of "
    "DIPClassifier.",
)
#: Level of tests; standard deviations from which a difference is no chance.
_LEVEL, _SIGMAS = 0.01, 3.0
_TINY = 1e-12
#: Share of rows with one and the same score from which a density counts as constant.
_MOST_TIED = 0.5
_SAME_RANKING = 0.95
#: Errors below which an AUROC is mostly noise.
_FEW_ERRORS = 20
_HUGE = 1e6
#: How to call what ranks errors, by its name.
_CALLS = {
    "max_prob": "uncertainty(X, 'max_prob')",
    "predict_proba": "the largest probability of predict_proba(X)",
    "score": "uncertainty(X, 'vacuity')",
}
_LOW = 0.01
#: Vacuity of the rarest 1 % below which the evidence cannot be said to move anything there.
_UNMOVED = 0.05
#: Half points further out than this many tail units count as out of reach,
_REACH = 2.0
#: if no more than this share of held-out rows lies beyond them.
_BEYOND = 1e-4
_MOST_DOUBLINGS = 200
#: Over the budget by this factor: the budget is spent on the same rows, other measures cost more.
_SLACK = 1.25
_CHANGED = 0.005
#: Temperatures outside of this range say that the classifier's confidence was far off.
_USUAL = (0.5, 2.0)
_AT_BOUND = 1e-3
#: Rows per column below which a classifier of all rows is surer than those of the folds;
#: `research/benchmarks/set_coverage.py` measures by how much.
_FEW_PER_COLUMN = 10
_GAP = 0.02
_SMALLEST = float(np.finfo(np.float64).tiny)
#: Of fewer rows a class cannot be judged.
_FEW_OF_CLASS = 5
_TAKES_ALL, _SURPLUS, _LOW_RECALL = 0.9, 0.1, 0.5
#: Of the prediction sets that classes are looked for in.
_COVERAGE = 0.9
#: A class counts as driving alarms if flagged this many times as often as asked for.
_MANY_TIMES = 3.0
_DOMINANT, _FEW_FLAGGED = 0.9, 20
_NAMED = 5
_RARE_CLASSES = "Weigh or resample the rare classes, or use another classifier."
#: Of fewer rows the estimated error is off by a factor of two now and then.
_FEW_ROWS = 200


def diagnose(clf: Any) -> Diagnosis:
    """Judge a fitted model by its held-out in-distribution rows.

    Looks at the rows that the model holds out, or was given by ``calibrate``: no new input is
    needed, and no OOD input is used, so nothing here says how well OOD inputs are seen, unless
    `DIPClassifier.rehearse_unknown` has run.

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
    findings = list(held_out_findings(held_out, clf))
    findings += information_findings(held_out, clf)
    if clf.has_evidence:
        findings.append(_reach(clf.evidence_))
        if held_out.has_labels:
            findings.append(_cost(clf.evidence_))
    findings += probability_findings(held_out, clf)
    findings += class_findings(held_out, clf)
    if clf.has_evidence:
        findings += selection_findings(clf.evidence_.density_)
        findings += feature_findings(clf.evidence_)
        findings += interval_findings(held_out, clf)
    if (rehearsed := getattr(clf, "unknown_rehearsal_", None)) is not None:
        findings.append(rehearsed.finding())
    curve = CautionCurve.of(clf.evidence_) if clf.has_evidence else None
    priced = clf.has_evidence and isinstance(clf.evidence_.normalizer_, CautionBudget)
    if curve is None and held_out.has_labels and priced:
        findings.append(NO_CURVE)
    return Diagnosis(tuple(findings), held_out.source, curve)


def information_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield scores that do not vary, that repeat the classifier, or that point the wrong way."""
    tied = _largest_tie(held_out)
    if tied <= _MOST_TIED:
        if held_out.has_labels and clf.has_evidence:
            yield _compare_scores(held_out, clf)
        return
    numbers: Numbers = {"share_tied": tied, "spread": score_range(held_out)}
    code, what, so = "score_constant", "uncertainty", "hardly an input can be flagged"
    remedy = "Use a classifier or a method whose uncertainty takes more values."
    if clf.has_evidence:
        code, what, so = "density_constant", "density", "the evidence is the same everywhere"
        remedy = f"Check the features that the density sees. {_another_density(clf)}."
    same = f"The {what} gives {tied:.0%} of the held-out rows one and the same score"
    text = f"{same}: it cannot tell what is typical, and {so}."
    yield Finding(code, "warning", text, numbers, remedy)


def _largest_tie(held_out: HeldOut) -> float:
    """Return the largest share of inputs that have one and the same score, to 12 digits."""
    width = score_range(held_out)
    if width <= _TINY * max(1.0, abs(held_out.lowest)):
        return 1.0
    _, inverse = np.unique(np.round(held_out.scores / width, 12), return_inverse=True)
    return float(np.bincount(inverse, weights=held_out.counts).max() / held_out.total)


def _another_density(clf: Any) -> str:
    """Return the remedy for a density that says too little: replace it, or its features."""
    if not hasattr(clf, "estimator"):
        return "Have the density see other layers of the network (features)"
    other = "Give features that hold more of the inputs"
    return other if clf.evidence_.density is None else f"{other}, or leave density=None"


def _compare_scores(held_out: HeldOut, clf: Any) -> Finding:
    """Compare how the score, the classifier and both together rank the held-out errors."""
    # The classifier's own doubt: after a temperature it depends on the score.
    doubt = max_prob(held_out.before_calibration().proba)
    rank = float(stats.spearmanr(-held_out.scores, doubt).statistic) if np.ptp(doubt) > 0 else 0.0
    errors = int(held_out.wrong.sum())
    numbers: Numbers = {"rank_correlation": rank, "errors": errors}
    another = _another_density(clf)
    if abs(rank) >= _SAME_RANKING:
        return Finding(
            "density_repeats_classifier",
            "warning",
            "The score ranks inputs as the classifier's own confidence does (rank correlation "
            f"{rank:.2f}): inputs that the classifier is wrongly sure about are not flagged "
            "either.",
            numbers,
            f"{another}: it should see the input itself, not the classifier's outputs.",
        )
    if errors < _FEW_ERRORS or errors > len(held_out.scores) - _FEW_ERRORS:
        return Finding(
            "density_distinct",
            "ok",
            "The score and the classifier's doubt are different rankings (rank correlation "
            f"{rank:.2f}); {errors} held-out errors are too few to say more.",
            numbers,
        )
    by_score = _auroc(held_out, -held_out.scores)
    sd = _auroc_sd(by_score, errors, len(held_out.scores) - errors)
    beyond = _beyond(held_out, doubt)
    numbers |= {
        "auroc_score": by_score,
        "auroc_max_prob": _auroc(held_out, max_prob(_classifier_proba(held_out, clf))),
        "auroc_predict_proba": _auroc(held_out, max_prob(posterior_mean(clf.evidence_))),
        "auroc_sd": sd,
        "p_value_beyond": beyond,
    }
    numbers["errors_ranked_by"] = best = _best_ranking(numbers, *_CALLS)
    # What an answer holds, without the classifier's own probabilities.
    numbers["answers_ranked_by"] = _best_ranking(numbers, "predict_proba", "score")
    compared = (
        "Held-out errors are spotted by the score with AUROC {auroc_score:.2f} ± {auroc_sd:.2f}, "
        "by the classifier's own confidence with {auroc_max_prob:.2f}, by the confidence with the "
        "evidence with {auroc_predict_proba:.2f}"
    ).format_map(numbers)
    ranking = f"Rank likely errors by {_CALLS[best]}, OOD inputs by vacuity or p-value."
    if by_score < 0.5 - _SIGMAS * sd:
        return Finding(
            "density_points_the_wrong_way",
            "warning",
            f"{compared}: errors lie where the density is higher, so it points the wrong way.",
            numbers,
            f"{another}. {ranking}",
        )
    if by_score < 0.5 + _SIGMAS * sd and beyond > _LEVEL:
        return Finding(
            "density_adds_nothing_on_errors",
            "note",
            f"{compared}: on known data the score says nothing beyond the classifier. Only inputs "
            "of another kind would show whether it sees those.",
            numbers,
            f"{another}. {ranking}",
        )
    text = f"{compared}; rank correlation of the first two {rank:.2f}."
    return Finding("density_informative", "ok", text, numbers, ranking)


def _best_ranking(numbers: Mapping[str, Number], *among: str) -> str:
    """Return the name in `_CALLS` of the uncertainty that ranks held-out errors best.

    The score only if it is better by more than the standard deviation of its AUROC.
    """
    reached = {name: float(numbers[f"auroc_{name}"]) for name in among}
    reached["score"] -= float(numbers["auroc_sd"])
    return max(reached, key=lambda name: reached[name])


def _auroc(held_out: HeldOut, uncertainty: np.ndarray) -> float:
    wrong, counts = held_out.wrong, held_out.counts
    return auroc(-uncertainty[~wrong], -uncertainty[wrong], counts[~wrong], counts[wrong])


def _auroc_sd(auroc: float, n_out: int, n_in: int) -> float:
    """Standard deviation of an AUROC by Hanley and McNeil (1982)."""
    a, q1, q2 = auroc, auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)
    variance = a * (1 - a) + (n_out - 1) * (q1 - a * a) + (n_in - 1) * (q2 - a * a)
    return float(np.sqrt(max(variance, 0.0) / (n_out * n_in)))


def _beyond(held_out: HeldOut, doubt: np.ndarray) -> float:
    """Return the p-value of the score in a logistic model of the errors beside the confidence."""
    confidence = special.logit(np.clip(doubt, 1e-12, 1 - 1e-12))
    typical = special.ndtri((stats.rankdata(held_out.scores) - 0.5) / len(held_out.scores))
    columns = np.column_stack([confidence, typical])
    columns = (columns - columns.mean(axis=0)) / np.where(
        columns.std(axis=0), columns.std(axis=0), 1
    )
    gain = _log_likelihood(held_out, columns) - _log_likelihood(held_out, columns[:, :1])
    return float(stats.chi2.sf(2 * max(gain, 0.0), df=1))


def _log_likelihood(held_out: HeldOut, columns: np.ndarray) -> float:
    model = LogisticRegression(C=_HUGE, max_iter=1000).fit(columns, held_out.wrong, held_out.counts)
    log_p = model.predict_log_proba(columns)
    log_own = np.where(held_out.wrong, log_p[:, 1], log_p[:, 0])
    return float((held_out.counts * log_own).sum())


def _reach(evidence: EvidenceModel) -> Finding:
    """Judge by where the half point lies, and how rare an input out there would be."""
    held_out = evidence.held_out_
    low, median = score_quantile(held_out, _LOW), score_quantile(held_out, 0.5)
    half = half_point(evidence)
    lost, at_median = evidence.vacuity(np.array([low, median])).tolist()
    units = (low - half) / max(median - low, _TINY * max(1.0, abs(low)))
    beyond, log10_rarity = held_out.average(held_out.scores <= half), _log10_rarity(held_out, half)
    numbers: dict[str, float] = {
        "vacuity_at_1_percent": lost,
        "vacuity_at_median": at_median,
        "score_at_1_percent": low,
        "score_at_half": half,
        "tail_units": units,
        "share_beyond_half": beyond,
        "log10_rarity": log10_rarity,
    }
    if held_out.has_labels:
        moved = 0.5 * np.abs(posterior_mean(evidence) - held_out.proba).sum(axis=1)
        numbers["mass_moved"] = held_out.average(moved)
    where = (
        "At the lowest 1% of held-out scores an answer has lost "
        f"{f'{lost:.0%}' if lost >= 0.005 else 'less than 0.5%'} of its confidence; half of it is "
        f"lost {_where(units)}, {_rarity(-log10_rarity)}."
    )
    finite: Numbers = {name: value for name, value in numbers.items() if np.isfinite(value)}
    if not (units > _REACH and lost < _UNMOVED and beyond <= _BEYOND):
        return Finding("evidence_scale", "ok", where, finite)
    return Finding(
        "evidence_never_moves",
        "warning",
        f"The evidence hardly ever changes a probability. {where} Mean probabilities of OOD inputs "
        "will be those of the classifier alone, however low their scores rank.",
        finite,
        move_half_point(evidence, sooner=True),
    )


def move_half_point(evidence: EvidenceModel, *, sooner: bool) -> str:
    """Return the remedy by which an input loses confidence sooner, or later."""
    normalizer = evidence.normalizer_
    gamma = f"{'lower gamma below' if sooner else 'raise gamma above'} {evidence.gamma:g}."
    if evidence.normalizer is None:
        caution = CAUTION if evidence.caution is None else evidence.caution
        if sooner:
            return f"Raise caution above {caution:g}, or {gamma}"
        return f"Lower caution below {caution:g}, or {gamma}" if caution else gamma.capitalize()
    if not isinstance(normalizer, CautionBudget):
        why = ", which puts the loss where held-out data end" if sooner else ""
        return f"Use normalizer=CautionBudget(){why}, or {gamma}"
    if sooner:
        return f"Raise the budget of the normalizer above {normalizer.budget:g}, or {gamma}"
    if normalizer.budget:
        return f"Lower the budget of the normalizer below {normalizer.budget:g}, or {gamma}"
    return gamma.capitalize()


def _log10_rarity(held_out: HeldOut, score: float) -> float:
    """Return log10 of the share of ID inputs below `score`; an exponential tail beyond all."""
    inside = held_out.average(held_out.scores <= score)
    if inside > 0:
        return float(np.log10(inside))
    edge = score_quantile(held_out, 0.05)
    tail = held_out.scores < edge
    if not tail.any():
        return float(-np.log10(held_out.total + 1))
    below = edge - np.maximum(held_out.scores[tail], held_out.lowest)
    excess = float(np.average(below, weights=held_out.counts[tail]))
    share = held_out.average(tail)
    return float(np.log10(share) - (edge - score) / max(excess, _TINY) / np.log(10))


def _where(units: float) -> str:
    if not np.isfinite(units):
        return "nowhere"
    if units <= 0:
        return "within the range of ID scores"
    if units < 0.1:
        return "just beyond the lowest 1%"
    return f"{units:.1f} times as far beyond the lowest 1% as these lie below the median"


def _rarity(power: float) -> str:
    """Say that a share 10**-power of the ID inputs lies so low."""
    if not np.isfinite(power):
        return "at no score at all"
    if power < 1:
        return f"above {10**-power:.0%} of the ID inputs"
    if power < 4:
        return f"where about 1 in {10**power:,.0f} ID inputs lies"
    return (
        f"where an ID input would be as rare as 1 in 10^{power:.0f} (an exponential tail assumed)"
    )


def _cost(evidence: EvidenceModel) -> Finding:
    """Judge by what caution costs on held-out rows, against the price that is allowed."""
    held_out = evidence.rows_in_budget()
    proba, mean = evidence.held_out_classifier_proba(), posterior_mean(evidence)
    numbers = _cost_numbers(held_out, proba, mean)
    full, unit, budget = _budget(evidence)
    relative = (numbers["brier_mean"] - full) / max(unit, _TINY)
    numbers |= {"brier_cost_relative": relative, "brier_unit": unit}
    allowed = ""
    if np.isfinite(budget):
        numbers |= {"budget": budget, "brier_allowed": full + budget * unit}
        allowed = f" (allowed: {numbers['brier_allowed']:.3g})"
    gap = _squared_error(held_out, mean) - _squared_error(held_out, proba)
    noise = 3 * np.std(gap) / np.sqrt(held_out.total)
    changed = numbers["labels_changed"]
    labels = f"{changed:.1%} of the labels change" if changed > 0 else "no label changes"
    cost = (
        "On held-out rows the evidence changes the Brier score from {brier_bare:.3g} to "
        f"{{brier_mean:.3g}}{allowed}, NLL from {{nll_bare:.3g}} to {{nll_mean:.3g}}; {labels}."
    ).format_map(numbers)
    if changed > _CHANGED and numbers["accuracy_cost"] > 0:
        return Finding(
            "evidence_changes_labels",
            "warning",
            f"The prior overrules the classifier on ID data. {cost}",
            {**numbers},
            f"Use an even prior (prior={PRIOR}), or a smaller one.",
        )
    if relative > _SLACK * budget and numbers["brier_cost"] > noise:
        return Finding(
            "evidence_moves_known_inputs",
            "warning",
            f"The evidence costs inputs of the known kind more confidence than it may. {cost}",
            {**numbers},
            move_half_point(evidence, sooner=False),
        )
    return Finding("evidence_cost", "ok", cost, {**numbers})


def _cost_numbers(held_out: HeldOut, proba: np.ndarray, mean: np.ndarray) -> dict[str, float]:
    numbers = {}
    for name, P in (("bare", proba), ("mean", mean)):
        numbers[f"brier_{name}"] = held_out.average(_squared_error(held_out, P))
        numbers[f"nll_{name}"] = _nll(held_out, P)
        numbers[f"accuracy_{name}"] = held_out.average(P.argmax(axis=1) == held_out.labels)
    for measure in ("brier", "nll"):
        numbers[f"{measure}_cost"] = numbers[f"{measure}_mean"] - numbers[f"{measure}_bare"]
    numbers["accuracy_cost"] = numbers["accuracy_bare"] - numbers["accuracy_mean"]
    # The classifier breaks a tie to the last bit.
    of_label = np.take_along_axis(mean, proba.argmax(axis=1)[:, None], axis=1)[:, 0]
    numbers["labels_changed"] = held_out.average(mean.max(axis=1) > of_label * (1 + _TINY))
    return numbers


def _squared_error(held_out: HeldOut, P: np.ndarray) -> np.ndarray:
    """Return the Brier score of each held-out row with probabilities P (m, k), shape (m,)."""
    return np.asarray(((P - np.eye(P.shape[1])[held_out.labels]) ** 2).sum(axis=1))


def _nll(held_out: HeldOut, P: np.ndarray) -> float:
    own = P[np.arange(len(P)), held_out.labels]
    return held_out.average(-np.log(np.maximum(own, _SMALLEST)))


def _budget(evidence: EvidenceModel) -> tuple[float, float, float]:
    """Return the Brier score before any cost, the unit of costs, and the share of it allowed.

    None is set by a budget of another kind. Of a `CautionBudget` that is given, costs count from
    the lowest score of any half-point within it.
    """
    normalizer, price = evidence.normalizer_, evidence.price()
    if evidence.normalizer is None:
        return price.free, price.unit, (price.allowed - price.free) / price.unit
    if not isinstance(normalizer, CautionBudget):
        return price.free, price.unit, CAUTION
    if normalizer.measure != "brier":
        return price.free, price.unit, np.inf
    lowest, budget = normalizer.lowest_loss_, float(normalizer.budget)
    return lowest, (normalizer.allowed_loss_ - lowest) / budget if budget else lowest, budget


def posterior_mean(evidence: EvidenceModel) -> np.ndarray:
    """Return the posterior mean of each labelled held-out row, (m, k)."""
    held_out = evidence.held_out_
    return np.asarray(evidence.dirichlet(held_out.proba, held_out.scores).mean)


def score_range(held_out: HeldOut) -> float:
    """Return the range of the scores but for those of zero density."""
    return max(float(held_out.scores.max()) - held_out.lowest, 0.0)


def score_quantile(held_out: HeldOut, q: float) -> float:
    """Return the score with a share `q` of the inputs at or below it; never of zero density."""
    return max(held_out.quantile(q), held_out.lowest)


def half_point(evidence: EvidenceModel) -> float:
    """Return the score at which half of the confidence is lost: vacuity 1/2; -inf without any."""
    held_out = evidence.held_out_
    top = float(held_out.scores.max())
    step = max(score_range(held_out), _TINY * max(1.0, abs(top)))
    if evidence.vacuity(np.array([top]))[0] >= 0.5:
        return top
    below = top - step * 2.0 ** np.arange(_MOST_DOUBLINGS)
    lost = np.flatnonzero(evidence.vacuity(below) >= 0.5)
    if len(lost) == 0:
        return -np.inf

    def doubt(score: float) -> float:
        return float(evidence.vacuity(np.array([score]))[0]) - 0.5

    return float(optimize.bisect(doubt, below[lost[0]], top, maxiter=2 * _MOST_DOUBLINGS))


def _classifier_proba(held_out: HeldOut, clf: Any) -> np.ndarray:
    """Return probabilities (m, k) of the calibrated classifier, or of the baseline.

    Those of a prediction have the temperature of the mean, which makes up for doubt.
    """
    if clf.has_evidence:
        return np.asarray(clf.evidence_.held_out_classifier_proba())
    return np.asarray(held_out.proba)


def probability_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield the temperature, and confidence against accuracy."""
    if not held_out.has_labels:
        return
    known = held_out.bare_proba is not None
    if known and hasattr(clf.evidence_.calibrator_, "temperature_"):
        yield _temperature(held_out, clf)
    yield _confidence(held_out, clf)


def _temperature(held_out: HeldOut, clf: Any) -> Finding:
    temperature = float(clf.evidence_.calibrator_.temperature_)
    numbers: Numbers = {"temperature": temperature}
    for name, P in (("before", held_out.bare_proba), ("after", _classifier_proba(held_out, clf))):
        numbers[f"nll_{name}"] = _nll(held_out, P)
        numbers[f"ece_{name}"] = ece(held_out.labels, P)
    fitted = (
        "The classifier's temperature is {temperature:.3g}: held-out NLL {nll_before:.4f} before, "
        "{nll_after:.4f} after, ECE {ece_before:.3f} before, {ece_after:.3f} after."
    ).format_map(numbers)
    if (np.abs(np.log(temperature / np.array(BOUNDS))) < _AT_BOUND).any():
        return Finding(
            "temperature_at_bound",
            "warning",
            f"{fitted} It stopped at the end of its range: no temperature repairs these "
            "probabilities.",
            numbers,
            "Look for leaked or mislabelled rows, and for probabilities of exactly 0 and 1. "
            f"{_beyond_a_temperature(clf)}",
        )
    if _USUAL[0] <= temperature <= _USUAL[1]:
        return Finding("temperature", "ok", fitted, numbers)
    frozen = isinstance(getattr(clf, "estimator", None), FrozenEstimator)
    few = held_out.total < _FEW_PER_COLUMN * getattr(clf, "n_features_in_", 0)
    surer = temperature > 1 and few and held_out.origin == "left out" and not frozen
    than_in_folds = (
        " Fitted to all rows it is surer still than in the folds, which have fewer: prediction "
        "sets may hold the true class a few points less often than asked. Ask for a higher "
        "coverage, or set rows aside to calibrate with."
    )
    which = "over" if temperature > 1 else "under"
    return Finding(
        "temperature_far_from_one",
        "note",
        f"{fitted} The bare classifier is far {which}-confident.{than_in_folds * surer}",
        numbers,
        "Use the probabilities of this model, not those of the bare classifier.",
    )


def _confidence(held_out: HeldOut, clf: Any) -> Finding:
    confidence = _classifier_proba(held_out, clf).max(axis=1)
    gap = confidence - ~held_out.wrong
    mean = held_out.average(gap)
    sd = float(np.sqrt(held_out.average((gap - mean) ** 2) / held_out.total))
    claimed, accuracy = held_out.average(confidence), held_out.average(~held_out.wrong)
    numbers: Numbers = {"confidence": claimed, "accuracy": accuracy, "gap": mean, "gap_sd": sd}
    claim = (
        f"On held-out rows the classifier claims to be right in {claimed:.1%} of cases and is "
        f"right in {accuracy:.1%}."
    )
    if abs(mean) <= max(_SIGMAS * sd, _GAP):
        return Finding("classifier_confidence", "ok", claim, numbers)
    code, severity = ("overconfident", "warning") if mean > 0 else ("timid", "note")
    return Finding(
        f"classifier_{code}",
        severity,
        f"{claim} The gap is {abs(mean):.1%} ± {sd:.1%} (one standard deviation); a density does "
        "not repair confidence on known data.",
        numbers,
        _honest_confidence(clf, timid=mean < 0),
    )


def _honest_confidence(clf: Any, *, timid: bool) -> str:
    """Return the remedy where confidence is not accuracy."""
    if not clf.has_evidence:
        return (
            "The probabilities of a baseline are its own: "
            f"DIPClassifier(FrozenEstimator({type(clf).__name__}(...))) calibrates them on rows "
            "that it has not seen."
        )
    if clf.evidence_.calibrator is not None:
        return "Leave calibrator=None, which fits a temperature."
    if timid:
        return (
            "A temperature sharpens only as far as held-out rows insist: hold out more, or use "
            "calibrator=Temperature(confidence=0)."
        )
    return _beyond_a_temperature(clf)


def _beyond_a_temperature(clf: Any) -> str:
    """Return the remedy where a temperature does not repair the probabilities."""
    if not hasattr(clf, "estimator"):
        return "A temperature is not enough for this network: train it with label smoothing."
    inner = clf.estimator
    inner = inner.estimator if isinstance(inner, FrozenEstimator) else inner
    if isinstance(inner, CalibratedClassifierCV) and inner.method == "isotonic":
        return "Neither temperature nor isotonic regression is enough: use another classifier."
    return (
        "A temperature is not enough for this classifier: calibrate it by "
        "CalibratedClassifierCV(estimator, method='isotonic')."
    )


def class_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield collapsed classes, false alarms by class, and by part of the density."""
    names = tuple(map(str, plain_labels(np.asarray(clf.classes_))))
    threshold = alarm_threshold(held_out.scores, clf.alarm_rate, held_out.weights)
    flagged, reachable = held_out.scores < threshold, np.isfinite(threshold)
    if held_out.has_labels:
        rows = np.bincount(held_out.labels, weights=held_out.counts, minlength=len(names))
        yield _collapse(held_out, names, rows)
        yield _coverage(held_out, clf, names, rows)
        if len(thin := np.flatnonzero(rows < _FEW_OF_CLASS)):
            yield Finding(
                "class_with_few_rows",
                "note",
                f"{_subject(names, thin)} held out fewer than {_FEW_OF_CLASS} times: too few rows "
                "to judge by, and to the density such inputs look rare.",
                {f"rows of {names[c]}": float(rows[c]) for c in thin},
                "Collect more rows of each, and have some among the rows given to calibrate.",
            )
        if reachable:
            yield _alarms(held_out, clf, names, flagged)
    if reachable and clf.has_evidence:
        yield from _parts(held_out, clf.evidence_.density_, flagged)


def _collapse(held_out: HeldOut, names: Names, rows: np.ndarray) -> Finding:
    """Judge by the held-out rows of each class (k,) if one takes all or is lost."""
    counts, k = held_out.counts, len(names)
    predicted = np.bincount(held_out.proba.argmax(axis=1), weights=counts, minlength=k)
    hits = np.bincount(held_out.labels, weights=counts * ~held_out.wrong, minlength=k)
    known = np.flatnonzero(rows > 0)
    recall = hits[known] / rows[known]
    numbers: Numbers = {
        f"recall of {names[c]}": float(r) for c, r in zip(known, recall, strict=True)
    }
    top = int(predicted.argmax())
    share, true_share = predicted[top] / rows.sum(), rows[top] / rows.sum()
    numbers["largest_predicted_share"] = float(share)
    if share > _TAKES_ALL and share > true_share + _SURPLUS:
        return Finding(
            "one_class_takes_all",
            "warning",
            f"The classifier says {names[top]!r} for {share:.0%} of held-out rows, of which "
            f"{true_share:.0%} are.",
            numbers,
            _RARE_CLASSES,
        )
    if len(never := np.flatnonzero((rows >= _FEW_OF_CLASS) & (predicted == 0))):
        return Finding(
            "class_never_predicted",
            "warning",
            f"{_subject(names, never)} never predicted on held-out rows, though "
            f"{int(rows[never].sum())} of them belong there.",
            numbers,
            _RARE_CLASSES,
        )
    whole = np.round(hits[known])
    misses = np.maximum(rows[known] - whole, 1e-9)
    upper = stats.beta.ppf(1 - _LEVEL / len(known), whole + 1, misses)
    weak = known[(upper < _LOW_RECALL) & (rows[known] >= _FEW_OF_CLASS)]
    worst = int(recall.argmin())
    lowest = (
        f"Lowest recall on held-out rows: {recall[worst]:.0%}, of class {names[known[worst]]!r}."
    )
    if len(weak):
        lost = f"{_subject(names, weak)} recognised in less than half of the cases. {lowest}"
        return Finding("class_nearly_lost", "note", lost, numbers, _RARE_CLASSES)
    return Finding("classes", "ok", f"Every class is predicted. {lowest}", numbers)


def _coverage(held_out: HeldOut, clf: Any, names: Names, rows: np.ndarray) -> Finding:
    """Judge by the held-out rows of each class (k,) if sets of all rows leave a class out."""
    P = clf.answer_proba(held_out.proba, held_out.scores)
    sets = prediction_sets(P, P, held_out.labels, coverage=_COVERAGE, weights=held_out.weights)
    inside = sets[np.arange(len(P)), held_out.labels]
    covered = np.bincount(held_out.labels, weights=held_out.counts * inside, minlength=len(names))
    known = np.flatnonzero(rows > 0)
    shares = covered[known] / rows[known]
    numbers: Numbers = {"coverage": _COVERAGE}
    numbers |= {f"in sets of {names[c]}": float(s) for c, s in zip(known, shares, strict=True)}
    upper = risk_upper_bound(np.floor(covered[known]), rows[known], 1 - _LEVEL / len(known))
    left_out = known[upper < _COVERAGE / 2]
    worst = int(shares.argmin())
    text = (
        f"Sets that hold the true class in {_COVERAGE:.0%} of all cases hold it in "
        f"{shares[worst]:.0%} of those of class {names[known[worst]]!r}, the least of any class."
    )
    if not len(left_out):
        return Finding("sets_by_class", "ok", text, numbers)
    return Finding(
        "sets_leave_out_class",
        "warning",
        f"{_subject(names, left_out)} in less than half of the prediction sets that should hold "
        f"{'it' if len(left_out) == 1 else 'them'}. {text}",
        numbers,
        "Ask for predict_set(X, by_class=True), which holds the coverage within each class.",
    )


def _alarms(held_out: HeldOut, clf: Any, names: Names, flagged: np.ndarray) -> Finding:
    """Judge by the share of each class that is flagged, and Fisher's test of more than elsewhere.

    The p-values are adjusted to hold together.
    """
    shares, p_values = np.full(len(names), np.nan), np.ones(len(names))
    for c in np.unique(held_out.labels):
        inside = held_out.labels == c
        table = [[(flagged & part).sum(), (~flagged & part).sum()] for part in (inside, ~inside)]
        shares[c] = float(np.average(flagged[inside], weights=held_out.counts[inside]))
        p_values[c] = stats.fisher_exact(table, alternative="greater")[1]
    p_values = holm(p_values)
    overall = held_out.average(flagged)
    numbers: Numbers = {"flagged": overall, "false_alarm_rate": clf.alarm_rate}
    for name, share, p in zip(names, shares, p_values, strict=True):
        if np.isfinite(share):
            numbers |= {f"flagged of {name}": float(share), f"p_value of {name}": float(p)}
    worst = int(np.nanargmax(shares))
    alarms = (
        f"{overall:.1%} of held-out rows lie below the alarm threshold; of class {names[worst]!r} "
        f"{shares[worst]:.0%}, the most of any class."
    )
    drives = np.flatnonzero((p_values < _LEVEL) & (shares > _MANY_TIMES * clf.alarm_rate))
    if not len(drives):
        return Finding("alarms_by_class", "ok", alarms, numbers)
    shrink = " Or a density with a covariance per class and shrinkage does."
    return Finding(
        "class_drives_alarms",
        "note",
        f"{_subject(names, drives)} flagged far more often than others (p = "
        f"{p_values[drives].max():.1g} at most, after Holm's correction). {alarms}",
        numbers,
        "The rate of false alarms holds over all inputs, not within each class; with "
        "predict_ood(X, by_class=True) it does. More rows of that class even it out."
        f"{shrink * clf.has_evidence}",
    )


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values so that they hold together, by Holm (1979)."""
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps * p_values[order]), 1.0)
    return adjusted


def _parts(held_out: HeldOut, density: Any, flagged: np.ndarray) -> Iterator[Finding]:
    """Yield which part of a density of several is the lowest where inputs are flagged."""
    components, known = held_out.components, held_out.component_names
    # A selector may use one component of all that were scored.
    used = getattr(density, "component_names_", known)
    names = [name for name in known if name in used]
    if components is None or len(names) < 2 or flagged.sum() < _FEW_FLAGGED:
        return
    components = components[:, [known.index(name) for name in names]]
    ranks = stats.rankdata(components, axis=0)[flagged]
    lowest = np.bincount(ranks.argmin(axis=1), minlength=len(names)) / flagged.sum()
    top = int(lowest.argmax())
    numbers: Numbers = {f"lowest by {n}": float(s) for n, s in zip(names, lowest, strict=True)}
    text = (
        f"Of the flagged held-out rows {lowest[top]:.0%} are rarest by {names[top]!r}, out of "
        f"{len(names)} parts."
    )
    if lowest[top] <= _DOMINANT:
        yield Finding("parts_share_alarms", "ok", text, numbers)
        return
    remedy = f"{names[top]!r} alone would be cheaper and say nearly the same."
    yield Finding("one_part_drives_alarms", "note", text, numbers, remedy)


def _subject(names: Names, classes: np.ndarray) -> str:
    """Return the classes as the subject of a sentence, with its verb."""
    first = ", ".join(repr(names[c]) for c in classes[:_NAMED])
    more = f" and {len(classes) - _NAMED} more" if len(classes) > _NAMED else ""
    return f"Class {first} is" if len(classes) == 1 else f"Classes {first}{more} are"


def selection_findings(density: Any) -> Iterator[Finding]:
    """Yield the ranking of a density that chooses among candidates; nothing for others."""
    ranking: Sequence[Mapping[str, Any]] = getattr(density, "ranking_", [])
    failed: dict[str, str] = {row["name"]: row["failed"] for row in ranking if row.get("failed")}
    failed |= getattr(density, "failed_", {})
    working = [row for row in ranking if not row.get("failed")]
    if working:
        chosen, *others = working
        numbers = _numbers(chosen)
        choice = f"{chosen['name']!r}, first of {len(working)} candidates{_marks(chosen)}"
        if others:
            choice += f"; the runner-up is {others[0]['name']!r}{_marks(others[0])}"
            numbers |= {f"runner-up {name}": value for name, value in _numbers(others[0]).items()}
        yield Finding("density_chosen", "ok", f"The density is {choice}.", numbers)
    if failed:
        candidates = len(failed) + (len(working) or len(getattr(density, "estimators_", {})))
        reasons = "; ".join(f"{name!r}: {why.rstrip('.')}" for name, why in failed.items())
        yield Finding(
            "candidates_failed",
            "warning" if 2 * len(failed) > candidates else "note",
            f"{len(failed)} of {candidates} candidate densities could not be fitted. {reasons}.",
            {"failed": len(failed), "candidates": candidates},
            "Most often features are constant, copied or too many for the rows: see the reasons.",
        )


def _marks(row: Mapping[str, Any]) -> str:
    """Return the two criteria of the choice in words, as far as they are known."""
    names = {"errors": "errors of the classifier", "pseudo_outliers": "pseudo-outliers"}
    numbers = _numbers(row)
    known = [f"{names[key]} {numbers[key]:.3f}" for key in names if key in numbers]
    return f" (AUROC: {', '.join(known)})" if known else ""


def _numbers(row: Mapping[str, Any]) -> Numbers:
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if np.isfinite(value)}


def feature_findings(evidence: EvidenceModel) -> Iterator[Finding]:
    """Yield the default features of a pipeline or of a table with text or gaps."""
    features = getattr(evidence, "features_", None)
    if evidence.features is not None or not isinstance(features, Pipeline):
        return
    steps = features.named_steps
    prepare, reduced, encoder = (steps.get(name) for name in ("prepare", "reduce", "encode"))
    p, origins, left_out = int(features[-1].n_features_in_), [], []
    if prepare is not None:
        own = prepare.estimator if isinstance(prepare, FrozenEstimator) else prepare
        names = ", ".join(type(step).__name__ for _, step in own.steps)
        origins.append(f"what the classifier's own steps make of X ({names})")
    if encoder is not None:
        inputs = names_after(prepare, None)
        columns = {
            part: ", ".join(
                str(c if inputs is None or isinstance(c, str) else inputs[c]) for c in of
            )
            for part, _, of in encoder.transformers_
        }
        known = (f"{text} ({columns[part]})" for part, text in PARTS.items() if part in columns)
        origins.append("; ".join(known))
        left_out = [c for name, _, of in encoder.transformers_ if name == "remainder" for c in of]
    components = "" if reduced is None else f", of {reduced.n_features_in_} features {p} components"
    unseen = f" It does not see {', '.join(map(str, left_out))}: hardly a value comes twice."
    drop = "Drop these columns, or make something of them that comes again."
    yield Finding(
        "density_features",
        "note" if left_out else "ok",
        f"The density sees {p} standardised features: "
        f"{'; of it '.join(origins) or 'the columns of X'}{components}.{unseen * bool(left_out)}",
        {"features": p, "left_out": len(left_out)},
        drop * bool(left_out),
    )


def interval_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield the learned strength and its support; nothing without one."""
    spread: Spread | None = getattr(clf, "spread_", None)
    if spread is None:
        return
    rows: Numbers = {"rows": spread.n_}
    if not spread.supported:
        yield Finding(
            "intervals_unsupported",
            "warning",
            f"{spread.n_:g} rows, or one class, cannot tell how wrong the probabilities are: "
            "intervals are wide, but not near 0 and 1.",
            rows,
            "Give more rows with labels of all classes, by fit or calibrate.",
        )
        return
    numbers: Numbers = {"strength": spread.strength_, "error": spread.error_, **rows}
    numbers["variance"] = spread.variance_
    estimated = (
        f"Intervals are those of {spread.strength_:.3g} labels where evidence is typical: the "
        f"probabilities are off by {np.sqrt(spread.error_):.3f} (root of the mean squared "
        f"distance), estimated on {spread.n_:g} held-out rows, or groups of them."
    )
    learned = has_learned_rows(held_out, clf)
    if learned:
        yield Finding(
            "intervals_of_seen_rows",
            "warning",
            f"{estimated} The classifier has learned these rows: it errs more on new ones, and "
            "intervals are too narrow.",
            numbers,
            "Calibrate with rows that the classifier has not seen.",
        )
    else:
        yield Finding("intervals_estimated", "ok", estimated, numbers)
    if not learned and spread.rarest_ < RARE:
        yield Finding(
            "intervals_of_a_rare_class",
            "note",
            f"The rarest class has {spread.rarest_:.1%} of the rows of an average class. A "
            f"probability well below 1 / {spread.strength_:.3g} may lie outside of its interval: "
            "one strength is given for all classes of an input.",
            {"share": spread.rarest_, "strength": spread.strength_},
            "Give more rows of it, or read its intervals with care.",
        )
    if not learned and spread.strength_ < LOW:
        yield Finding(
            "intervals_of_few_labels",
            "note",
            f"The probabilities are off by as much as those of {spread.strength_:.2g} labels. A "
            "probability well below one half may lie above its own interval.",
            {"strength": spread.strength_},
            "Give more rows, or a classifier that errs less, such as a forest of more trees.",
        )
    if not learned and spread.confidence_ > SURE:
        yield Finding(
            "intervals_without_noise",
            "note",
            f"Held-out rows get {spread.confidence_:.3f} for their most probable class: labels are "
            "nearly without noise. A true probability of 0 or 1 lies outside of nearly every "
            "interval, though it is missed by little.",
            {"confidence": spread.confidence_},
            "Read such an interval as near 0 or near 1.",
        )
    if spread.n_ < _FEW_ROWS:
        yield Finding(
            "intervals_of_few_rows",
            "note",
            f"The width of the intervals was estimated on {spread.n_:g} rows, or groups of them, "
            "and may be off by a factor of two.",
            rows,
            f"Give at least {_FEW_ROWS} rows, or groups, if widths matter.",
        )
    if not spread.refitted_:
        yield Finding(
            "intervals_of_frozen_classifier",
            "note",
            "The classifier was not fitted again: the width of the intervals rests on these rows "
            "alone, and is too small if the classifier was fitted on them.",
            remedy="Give rows that the classifier was not fitted on.",
        )
