"""Whether the density says anything that the classifier does not say itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ..calibration.held_out import HeldOut
from ..maths.scores import max_prob
from ..writing.finding import Finding
from ._probabilities import uncalibrated
from ._remedies import another_density
from ._vacuity import lowest, posterior_mean, spread

_SAME_RANKING = 0.95
#: Errors below which an AUROC is mostly noise.
_FEW_ERRORS = 20
_SIGMAS = 3.0
_LEVEL = 0.01
#: Share of rows with one and the same score from which a density counts as constant.
_MOST_TIED = 0.5
_HUGE = 1e6
#: How to call what ranks errors, by its name.
_CALLS = {
    "max_prob": "uncertainty(X, 'max_prob')",
    "predict_proba": "the largest probability of predict_proba(X)",
    "score": "uncertainty(X, 'vacuity')",
}


def information_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """Whether scores vary, repeat the classifier, or point the wrong way."""
    tied = _largest_tie(held)
    if tied > _MOST_TIED:
        yield _constant(tied, held, clf)
    elif held.labelled and clf._has_evidence:
        yield _compared(held, clf)


def _largest_tie(held: HeldOut) -> float:
    """Largest share of the inputs that have one and the same score, to 12 digits."""
    width = spread(held)
    if width <= 1e-12 * max(1.0, abs(lowest(held))):
        return 1.0
    _, inverse = np.unique(np.round(held.scores / width, 12), return_inverse=True)
    return float(np.bincount(inverse, weights=held.counts).max() / held.total)


def _constant(tied: float, held: HeldOut, clf: Any) -> Finding:
    numbers: dict[str, float | int | str] = {"share_tied": tied, "spread": spread(held)}
    if not clf._has_evidence:
        return Finding(
            "score_constant",
            "warning",
            f"The uncertainty of {tied:.0%} of the held-out rows is one and the same: it cannot "
            "tell what is typical, and hardly an input can be flagged.",
            numbers,
            "Use a classifier or a method whose uncertainty takes more values.",
        )
    return Finding(
        "density_constant",
        "warning",
        f"The density gives {tied:.0%} of the held-out rows one and the same score: it cannot "
        "tell what is typical, and the evidence is the same everywhere.",
        numbers,
        f"Check the features that the density sees. {another_density(clf)}.",
    )


def _compared(held: HeldOut, clf: Any) -> Finding:
    # The classifier's own doubt: after a temperature it depends on the score.
    doubt = max_prob(uncalibrated(held, clf.evidence_))
    rank = float(stats.spearmanr(-held.scores, doubt).statistic) if np.ptp(doubt) > 0 else 0.0
    errors = int(held.wrong.sum())
    numbers: dict[str, float | int | str] = {"rank_correlation": rank, "errors": errors}
    if abs(rank) >= _SAME_RANKING:
        return _repeats(rank, numbers, clf)
    if errors < _FEW_ERRORS or errors > len(held.scores) - _FEW_ERRORS:
        return _unjudged(rank, errors, numbers)
    by_score = _auroc(held, -held.scores)
    numbers |= {
        "auroc_score": by_score,
        "auroc_max_prob": _auroc(held, max_prob(held.proba)),
        "auroc_predict_proba": _auroc(held, max_prob(posterior_mean(clf.evidence_))),
        "auroc_sd": _auroc_sd(by_score, errors, len(held.scores) - errors),
        "p_value_beyond": _beyond(held, doubt),
    }
    numbers["errors_ranked_by"] = _best_ranking(numbers, *_CALLS)
    # What an answer holds, without the classifier's own probabilities.
    numbers["answers_ranked_by"] = _best_ranking(numbers, "predict_proba", "score")
    return _judged(numbers, clf)


def _repeats(rank: float, numbers: dict[str, float | int | str], clf: Any) -> Finding:
    return Finding(
        "density_repeats_classifier",
        "warning",
        f"The score ranks inputs as the classifier's own confidence does (rank correlation "
        f"{rank:.2f}): what the classifier is wrongly sure about will not be flagged either.",
        numbers,
        f"{another_density(clf)}: it should see the input itself, not the classifier's outputs.",
    )


def _unjudged(rank: float, errors: int, numbers: dict[str, float | int | str]) -> Finding:
    return Finding(
        "density_distinct",
        "ok",
        f"The score and the classifier's doubt are different rankings (rank correlation "
        f"{rank:.2f}); with {errors} held-out errors no more can be said.",
        numbers,
    )


def _judged(numbers: dict[str, float | int | str], clf: Any) -> Finding:
    score = float(numbers["auroc_score"])
    margin = _SIGMAS * float(numbers["auroc_sd"])
    compared = (
        f"Held-out errors are spotted by the score with AUROC {score:.2f} ± "
        f"{float(numbers['auroc_sd']):.2f}, by the classifier's own confidence with "
        f"{float(numbers['auroc_max_prob']):.2f}, by the confidence with the evidence with "
        f"{float(numbers['auroc_predict_proba']):.2f}"
    )
    ranking = (
        f"Rank likely errors by {_CALLS[str(numbers['errors_ranked_by'])]}, OOD inputs by vacuity "
        "or p-value."
    )
    remedy = f"{another_density(clf)}. {ranking}"
    if score < 0.5 - margin:
        text = f"{compared}: errors lie where the density is higher, so it points the wrong way."
        return Finding("density_points_the_wrong_way", "warning", text, numbers, remedy)
    if score < 0.5 + margin and float(numbers["p_value_beyond"]) > _LEVEL:
        text = (
            f"{compared}: on known data the score says nothing beyond the classifier. Whether "
            "it sees inputs of another kind cannot be told without such inputs."
        )
        return Finding("density_adds_nothing_on_errors", "note", text, numbers, remedy)
    rank = float(numbers["rank_correlation"])
    text = f"{compared}; rank correlation of the first two {rank:.2f}."
    return Finding("density_informative", "ok", text, numbers, ranking)


def _best_ranking(numbers: Mapping[str, float | int | str], *among: str) -> str:
    """The uncertainty that ranks held-out errors best, by its name in `_CALLS`.

    The score only if it is better by more than the standard deviation of its AUROC.
    """
    found = {name: float(numbers[f"auroc_{name}"]) for name in among}
    found["score"] -= float(numbers["auroc_sd"])
    return max(found, key=lambda name: found[name])


def _auroc(held: HeldOut, uncertainty: np.ndarray) -> float:
    finite = np.clip(uncertainty, -1e300, 1e300)
    return float(roc_auc_score(held.wrong, finite, sample_weight=held.counts))


def _auroc_sd(auroc: float, n_out: int, n_in: int) -> float:
    """Standard deviation of an AUROC by Hanley and McNeil (1982)."""
    a, q1, q2 = auroc, auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)
    variance = a * (1 - a) + (n_out - 1) * (q1 - a * a) + (n_in - 1) * (q2 - a * a)
    return float(np.sqrt(max(variance, 0.0) / (n_out * n_in)))


def _beyond(held: HeldOut, doubt: np.ndarray) -> float:
    """p-value of the score in a logistic model of the errors that knows the confidence already."""
    confidence = special.logit(np.clip(doubt, 1e-12, 1 - 1e-12))
    typical = special.ndtri((stats.rankdata(held.scores) - 0.5) / len(held.scores))
    columns = np.column_stack([_standard(confidence), _standard(typical)])
    gain = _log_likelihood(held, columns) - _log_likelihood(held, columns[:, :1])
    return float(stats.chi2.sf(2 * max(gain, 0.0), df=1))


def _standard(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean()) / (values.std() or 1.0))


def _log_likelihood(held: HeldOut, columns: np.ndarray) -> float:
    model = LogisticRegression(C=_HUGE, max_iter=1000).fit(columns, held.wrong, held.counts)
    log_p = model.predict_log_proba(columns)
    taken = np.where(held.wrong, log_p[:, 1], log_p[:, 0])
    return float((held.counts * taken).sum())
