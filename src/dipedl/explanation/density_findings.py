"""Findings about the density: beyond the classifier or not, its features and its choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from ..dirichlet import max_prob
from ..features.encoding import PARTS
from ..features.pipelines import names_after
from ..held_out import HeldOut
from ..maths.scores import auroc
from ..writing.finding import Finding, Number
from ..writing.wording import finding
from .evidence_findings import lowest, posterior_mean, score_range

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


def information_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield scores that do not vary, that repeat the classifier, or that point the wrong way."""
    tied = _largest_tie(held_out)
    if tied > _MOST_TIED:
        numbers: dict[str, Number] = {"share_tied": tied, "spread": score_range(held_out)}
        if clf.has_evidence:
            yield finding("density_constant", numbers, another_density=_another_density(clf))
        else:
            yield finding("score_constant", numbers)
    elif held_out.labelled and clf.has_evidence:
        yield _compared(held_out, clf)


def _largest_tie(held_out: HeldOut) -> float:
    """Return the largest share of inputs that have one and the same score, to 12 digits."""
    width = score_range(held_out)
    if width <= 1e-12 * max(1.0, abs(lowest(held_out))):
        return 1.0
    _, inverse = np.unique(np.round(held_out.scores / width, 12), return_inverse=True)
    return float(np.bincount(inverse, weights=held_out.counts).max() / held_out.total)


def _another_density(clf: Any) -> str:
    """Return the remedy for a density that says too little: replace it, or its features."""
    if not hasattr(clf, "estimator"):
        return "Have the density see other layers of the network (features)"
    other = "Give features that hold more of the inputs"
    return other if clf.evidence_.density is None else f"{other}, or leave density=None"


def _compared(held_out: HeldOut, clf: Any) -> Finding:
    # The classifier's own doubt: after a temperature it depends on the score.
    doubt = max_prob(held_out.proba if held_out.bare_proba is None else held_out.bare_proba)
    rank = float(stats.spearmanr(-held_out.scores, doubt).statistic) if np.ptp(doubt) > 0 else 0.0
    errors = int(held_out.wrong.sum())
    numbers: dict[str, Number] = {"rank_correlation": rank, "errors": errors}
    another = _another_density(clf)
    if abs(rank) >= _SAME_RANKING:
        return finding("density_repeats_classifier", numbers, another_density=another)
    if errors < _FEW_ERRORS or errors > len(held_out.scores) - _FEW_ERRORS:
        return finding("density_distinct", numbers)
    by_score = _auroc(held_out, -held_out.scores)
    sd = _auroc_sd(by_score, errors, len(held_out.scores) - errors)
    beyond = _beyond(held_out, doubt)
    numbers |= {
        "auroc_score": by_score,
        "auroc_max_prob": _auroc(held_out, max_prob(held_out.proba)),
        "auroc_predict_proba": _auroc(held_out, max_prob(posterior_mean(clf.evidence_))),
        "auroc_sd": sd,
        "p_value_beyond": beyond,
    }
    numbers["errors_ranked_by"] = _best_ranking(numbers, *_CALLS)
    # What an answer holds, without the classifier's own probabilities.
    numbers["answers_ranked_by"] = _best_ranking(numbers, "predict_proba", "score")
    compared = (
        "Held-out errors are spotted by the score with AUROC {auroc_score:.2f} ± {auroc_sd:.2f}, "
        "by the classifier's own confidence with {auroc_max_prob:.2f}, by the confidence with the "
        "evidence with {auroc_predict_proba:.2f}"
    ).format_map(numbers)
    code = "density_informative"
    if by_score < 0.5 - _SIGMAS * sd:
        code = "density_points_the_wrong_way"
    elif by_score < 0.5 + _SIGMAS * sd and beyond > _LEVEL:
        code = "density_adds_nothing_on_errors"
    ranking = (
        f"Rank likely errors by {_CALLS[str(numbers['errors_ranked_by'])]}, OOD inputs by vacuity "
        "or p-value."
    )
    return finding(code, numbers, compared=compared, another_density=another, ranking=ranking)


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
    columns = np.column_stack([_standard(confidence), _standard(typical)])
    gain = _log_likelihood(held_out, columns) - _log_likelihood(held_out, columns[:, :1])
    return float(stats.chi2.sf(2 * max(gain, 0.0), df=1))


def _standard(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean()) / (values.std() or 1.0))


def _log_likelihood(held_out: HeldOut, columns: np.ndarray) -> float:
    model = LogisticRegression(C=_HUGE, max_iter=1000).fit(columns, held_out.wrong, held_out.counts)
    log_p = model.predict_log_proba(columns)
    log_own = np.where(held_out.wrong, log_p[:, 1], log_p[:, 0])
    return float((held_out.counts * log_own).sum())


def selection_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield the ranking of a density that chooses among candidates; nothing for others."""
    density = clf.evidence_.density_
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
        yield finding("density_chosen", numbers, choice=choice)
    if failed:
        candidates = len(failed) + (len(working) or len(getattr(density, "estimators_", {})))
        yield finding(
            "candidates_failed",
            {"failed": len(failed), "candidates": candidates},
            "warning" if 2 * len(failed) > candidates else "note",
            reasons="; ".join(f"{name!r}: {why.rstrip('.')}" for name, why in failed.items()),
        )


def _marks(row: Mapping[str, Any]) -> str:
    """Return the two criteria of the choice in words, as far as they are known."""
    names = {"errors": "errors of the classifier", "pseudo_outliers": "pseudo-outliers"}
    numbers = _numbers(row)
    known = [f"{names[key]} {numbers[key]:.3f}" for key in names if key in numbers]
    return f" (AUROC: {', '.join(known)})" if known else ""


def _numbers(row: Mapping[str, Any]) -> dict[str, Number]:
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if np.isfinite(value)}


def feature_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield the default features of a pipeline or of a table with text or gaps."""
    features = getattr(clf.evidence_, "features_", None)
    if clf.evidence_.features is not None or not isinstance(features, Pipeline):
        return
    parts = features.named_steps
    prepare, dense, encoder = (parts.get(name) for name in ("prepare", "reduce", "encode"))
    p = int(features[-1].n_features_in_)
    origins, left_out = [], []
    if prepare is not None:
        steps = prepare.estimator if isinstance(prepare, FrozenEstimator) else prepare
        names = ", ".join(type(step).__name__ for _, step in steps.steps)
        origins.append(f"what the classifier's own steps make of X ({names})")
    if encoder is not None:
        origins.append(_encoded_columns(encoder, names_after(prepare, None)))
        left_out = [c for name, _, of in encoder.transformers_ if name == "remainder" for c in of]
    reduced = "" if dense is None else f", of {dense.n_features_in_} features {p} components"
    unseen = f" It does not see {', '.join(map(str, left_out))}: hardly a value comes twice."
    again = "Drop these columns, or make something of them that comes again."
    yield finding(
        "density_features",
        {"features": p, "left_out": len(left_out)},
        "note" if left_out else "ok",
        origins=f"{'; of it '.join(origins) or 'the columns of X'}{reduced}",
        unseen=unseen * bool(left_out),
        drop=again * bool(left_out),
    )


def _encoded_columns(encoder: ColumnTransformer, names: list[str] | None) -> str:
    """Describe what the encoder does with which columns; `names` are those of an array."""
    columns = {
        part: ", ".join(str(c if names is None or isinstance(c, str) else names[c]) for c in of)
        for part, _, of in encoder.transformers_
    }
    return "; ".join(f"{text} ({columns[part]})" for part, text in PARTS.items() if part in columns)
