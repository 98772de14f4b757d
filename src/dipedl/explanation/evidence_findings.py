"""Findings about the evidence: loss of confidence, its cost, and width of intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..calibration.rehearsal import RARE, SURE, Rehearsal
from ..dirichlet import vacuity
from ..evidence import CautionBudget, weighted_quantile
from ..evidence_model import EvidenceModel
from ..held_out import HeldOut
from ..held_out_findings import seen_before
from ..writing.finding import Finding, Number
from ..writing.wording import finding

_LOW = 0.01
#: Vacuity of the rarest 1 % below which the evidence cannot be said to move anything there.
_UNMOVED = 0.05
#: Half points further out than this many tail units count as out of reach.
_REACH = 2.0
#: ... if no more than this share of held-out rows lies beyond them.
_BEYOND = 1e-4
#: Relative cost in ID Brier score from which the evidence is too cautious, if no budget is stated.
_BUDGET = 0.02
#: Over the budget by this factor: the budget is spent on the same rows, other measures cost more.
_SLACK = 1.25
_CHANGED = 0.005
_TINY = 1e-12
_MOST_NATS = 700.0
#: Of fewer rows the estimated error is off by a factor of two now and then.
_FEW_ROWS = 200
_MOST_DOUBLINGS = 200


def evidence_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield where confidence is lost, and the price of that on ID data."""
    yield _reach(clf.evidence_)
    if held_out.labelled:
        yield _cost(clf.evidence_)


def _reach(evidence: EvidenceModel) -> Finding:
    numbers = _reach_numbers(evidence)
    units, low = numbers["tail_units"], numbers["vacuity_at_1_percent"]
    where = (
        "At the lowest 1% of held-out scores an answer has lost "
        f"{f'{low:.0%}' if low >= 0.005 else 'less than 0.5%'} of its confidence; half of it is "
        f"lost {_where(units)}, {_rarity(-numbers['log10_rarity'])}."
    )
    stuck = units > _REACH and low < _UNMOVED and numbers["share_beyond_half"] <= _BEYOND
    return finding(
        "evidence_never_moves" if stuck else "evidence_scale",
        {name: value for name, value in numbers.items() if np.isfinite(value)},
        where=where,
        sooner=move_half_point(evidence, sooner=True),
    )


def move_half_point(evidence: EvidenceModel, *, sooner: bool) -> str:
    """Remedy by which an input loses confidence sooner, or later."""
    normalizer = evidence.normalizer_
    gamma = f"{'lower gamma below' if sooner else 'raise gamma above'} {evidence.gamma:g}."
    if not isinstance(normalizer, CautionBudget):
        why = ", which puts the loss where held-out data end" if sooner else ""
        return f"Use normalizer=CautionBudget(){why}, or {gamma}"
    if sooner:
        return f"Raise the budget of the normalizer above {normalizer.budget:g}, or {gamma}"
    if normalizer.budget:
        return f"Lower the budget of the normalizer below {normalizer.budget:g}, or {gamma}"
    return gamma.capitalize()


def _reach_numbers(evidence: EvidenceModel) -> dict[str, float]:
    """Return where the half point lies, and how rare an ID input out there would be."""
    held_out = evidence.held_out_
    low, median = score_quantile(held_out, _LOW), score_quantile(held_out, 0.5)
    half = half_point(evidence)
    at_low, at_median = vacuity_at(evidence, np.array([low, median])).tolist()
    numbers = {
        "vacuity_at_1_percent": at_low,
        "vacuity_at_median": at_median,
        "score_at_1_percent": low,
        "score_at_half": half,
        "tail_units": (low - half) / max(median - low, _TINY * max(1.0, abs(low))),
        "share_beyond_half": held_out.average(held_out.scores <= half),
        "log10_rarity": _log10_rarity(held_out, half),
    }
    if held_out.labelled:
        moved = 0.5 * np.abs(posterior_mean(evidence) - held_out.proba).sum(axis=1)
        numbers["mass_moved"] = held_out.average(moved)
    return numbers


def _log10_rarity(held_out: HeldOut, score: float) -> float:
    """log10 of the share of ID inputs below `score`; beyond all rows an exponential tail."""
    inside = held_out.average(held_out.scores <= score)
    if inside > 0:
        return float(np.log10(inside))
    edge = score_quantile(held_out, 0.05)
    tail = held_out.scores < edge
    if not tail.any():
        return float(-np.log10(held_out.total + 1))
    below = edge - np.maximum(held_out.scores[tail], lowest(held_out))
    excess = float(np.average(below, weights=held_out.counts[tail]))
    share = held_out.average(tail)
    return float(np.log10(share) - (edge - score) / max(excess, _TINY) / np.log(10))


def _where(units: float) -> str:
    if not np.isfinite(units):
        return "nowhere"
    if units <= 0:
        return "within the range of ID scores"
    return (
        f"{units:.1f} times as far beyond the lowest 1% as these lie below the median"
        if units >= 0.1
        else "just beyond the lowest 1%"
    )


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
    held_out, mean = _counted(evidence), posterior_mean(evidence)
    numbers = _cost_numbers(held_out, mean)
    full, unit, budget = _budget(evidence.normalizer_, numbers["brier_bare"])
    relative = (numbers["brier_mean"] - full) / max(unit, _TINY)
    numbers |= {"brier_cost_relative": relative, "brier_unit": unit}
    allowed = ""
    if np.isfinite(budget):
        numbers |= {"budget": budget, "brier_allowed": full + budget * unit}
        allowed = f" (allowed: {numbers['brier_allowed']:.3g})"
    gap = _squared_error(held_out, mean) - _squared_error(held_out, held_out.proba)
    noise = 3 * np.std(gap) / np.sqrt(held_out.total)
    changed, code = numbers["labels_changed"], "evidence_cost"
    if changed > _CHANGED and numbers["accuracy_cost"] > 0:
        code = "evidence_changes_labels"
    elif relative > _SLACK * budget and numbers["brier_cost"] > noise:
        code = "evidence_moves_known_inputs"
    labels = f"{changed:.1%} of the labels change" if changed > 0 else "no label changes"
    cost = (
        "On held-out rows the evidence changes the Brier score from {brier_bare:.3g} to "
        f"{{brier_mean:.3g}}{allowed}, NLL from {{nll_bare:.3g}} to {{nll_mean:.3g}}; {labels}."
    ).format_map(numbers)
    return finding(code, {**numbers}, cost=cost, later=move_half_point(evidence, sooner=False))


def _counted(evidence: EvidenceModel) -> HeldOut:
    """Return the held-out rows; of weight 0 those that a `CautionBudget` does not count."""
    held_out, normalizer = evidence.held_out_, evidence.normalizer_
    if not isinstance(normalizer, CautionBudget):
        return held_out
    counted = normalizer.counted(held_out.scores, held_out.counts)
    return replace(held_out, weights=np.where(counted, held_out.counts, 0.0))


def _cost_numbers(held_out: HeldOut, mean: np.ndarray) -> dict[str, float]:
    own = np.arange(len(held_out.labels)), held_out.labels
    numbers = {}
    for name, P in (("bare", held_out.proba), ("mean", mean)):
        numbers[f"brier_{name}"] = held_out.average(_squared_error(held_out, P))
        losses = np.minimum(-np.log(np.maximum(P[own], np.finfo(float).tiny)), _MOST_NATS)
        numbers[f"nll_{name}"] = held_out.average(losses)
        numbers[f"accuracy_{name}"] = held_out.average(P.argmax(axis=1) == held_out.labels)
    for measure in ("brier", "nll"):
        numbers[f"{measure}_cost"] = numbers[f"{measure}_mean"] - numbers[f"{measure}_bare"]
    numbers["accuracy_cost"] = numbers["accuracy_bare"] - numbers["accuracy_mean"]
    # The classifier breaks a tie to the last bit.
    of_label = np.take_along_axis(mean, held_out.proba.argmax(axis=1)[:, None], axis=1)[:, 0]
    numbers["labels_changed"] = held_out.average(mean.max(axis=1) > of_label * (1 + _TINY))
    return numbers


def _squared_error(held_out: HeldOut, P: np.ndarray) -> np.ndarray:
    """Return the Brier score of each held-out row with probabilities P (m, k), shape (m,)."""
    return np.asarray(((P - np.eye(P.shape[1])[held_out.labels]) ** 2).sum(axis=1))


def _budget(normalizer: Any, bare: float) -> tuple[float, float, float]:
    """Brier score before the evidence costs any, what costs are a share of, and the share allowed.

    None is set by a budget of another kind. Of a `CautionBudget` costs count from the lowest score
    of any half-point within it.
    """
    if not isinstance(normalizer, CautionBudget):
        return bare, bare, _BUDGET
    if normalizer.measure != "brier":
        return bare, bare, np.inf
    lowest, budget = normalizer.lowest_loss_, float(normalizer.budget)
    return lowest, (normalizer.allowed_loss_ - lowest) / budget if budget else lowest, budget


def vacuity_at(evidence: EvidenceModel, scores: np.ndarray) -> np.ndarray:
    """Share of the prior in the prediction at these scores, (m,)."""
    return np.asarray(vacuity(evidence.log_evidence(scores), np.asarray(evidence.prior)))


def posterior_mean(evidence: EvidenceModel) -> np.ndarray:
    """Posterior mean of each labelled held-out row, (m, k)."""
    held_out = evidence.held_out_
    return np.asarray(evidence.dirichlet(held_out.proba, held_out.scores).mean)


def lowest(held_out: HeldOut) -> float:
    """Return the lowest score but for those of zero density."""
    finite = held_out.scores[held_out.finite]
    return float(finite.min()) if len(finite) else 0.0


def score_range(held_out: HeldOut) -> float:
    """Return the range of the scores but for those of zero density."""
    return max(float(held_out.scores.max()) - lowest(held_out), 0.0)


def score_quantile(held_out: HeldOut, q: float) -> float:
    """Score with a share `q` of the inputs at or below it; never that of zero density."""
    return max(weighted_quantile(held_out.scores, q, held_out.weights), lowest(held_out))


def half_point(evidence: EvidenceModel) -> float:
    """Score at which half of the confidence is lost: vacuity 1/2; -inf if there is none."""
    held_out = evidence.held_out_
    top = float(held_out.scores.max())
    step = max(score_range(held_out), 1e-12 * max(1.0, abs(top)))
    if _is_half_lost(evidence, top):
        return top
    for i in range(_MOST_DOUBLINGS):
        low = top - step * 2.0**i
        if _is_half_lost(evidence, low):
            break
    else:
        return -np.inf
    for _ in range(100):
        middle = 0.5 * (low + top)
        low, top = (middle, top) if _is_half_lost(evidence, middle) else (low, middle)
    return low


def _is_half_lost(evidence: EvidenceModel, score: float) -> bool:
    return bool(vacuity_at(evidence, np.array([score]))[0] >= 0.5)


def interval_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield the learned strength and its support; nothing without a `Rehearsal`."""
    spread = getattr(clf, "spread_", None)
    if not isinstance(spread, Rehearsal):
        return
    rows: dict[str, Number] = {"rows": spread.n_}
    if not spread.shares_:
        yield finding("intervals_unsupported", rows)
        return
    learned = seen_before(held_out, clf)
    numbers: dict[str, Number] = {"strength": spread.strength_, "error": spread.error_, **rows}
    largest_first = sorted(spread.shares_.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{name} {share:.0%}" for name, share in largest_first)
    yield finding(
        "intervals_of_seen_rows" if learned else "intervals_rehearsed",
        {**numbers, "refits": spread.refits_},
        rehearsed=f"Intervals are those of {spread.strength_:.3g} labels where evidence is "
        f"typical: the probabilities are off by {np.sqrt(spread.error_):.3f} (root of the mean "
        f"squared distance), estimated on {spread.n_:g} rows against a mixture of {shares}.",
    )
    if not learned and spread.rarest_ < RARE:
        numbers = {"share": spread.rarest_, "strength": spread.strength_}
        yield finding("intervals_of_a_rare_class", numbers)
    if not learned and spread.confidence_ > SURE:
        yield finding("intervals_without_noise", {"confidence": spread.confidence_})
    if spread.n_ < _FEW_ROWS:
        yield finding("intervals_of_few_rows", rows, enough=_FEW_ROWS)
    if not spread.refits_:
        yield finding("intervals_of_frozen_classifier")
