"""Findings about the density: beyond the classifier or not, its features and its choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline

from ..dirichlet import max_prob
from ..features.encoding import PARTS
from ..features.pipelines import names_after
from ..held_out import HeldOut
from ..writing.finding import Finding, Number
from .classifier_findings import uncalibrated
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
    """Scores that do not vary, that repeat the classifier, or that point the wrong way."""
    tied = _largest_tie(held_out)
    if tied > _MOST_TIED:
        yield _constant(tied, held_out, clf)
    elif held_out.labelled and clf.has_evidence:
        yield _compared(held_out, clf)


def _largest_tie(held_out: HeldOut) -> float:
    """Largest share of the inputs that have one and the same score, to 12 digits."""
    width = score_range(held_out)
    if width <= 1e-12 * max(1.0, abs(lowest(held_out))):
        return 1.0
    _, inverse = np.unique(np.round(held_out.scores / width, 12), return_inverse=True)
    return float(np.bincount(inverse, weights=held_out.counts).max() / held_out.total)


def _constant(tied: float, held_out: HeldOut, clf: Any) -> Finding:
    numbers: dict[str, Number] = {"share_tied": tied, "spread": score_range(held_out)}
    if not clf.has_evidence:
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
        f"Check the features that the density sees. {_another_density(clf)}.",
    )


def _another_density(clf: Any) -> str:
    """Remedy where the density says too little: replace it, or have it see something else."""
    if not hasattr(clf, "estimator"):
        return "Have the density see other layers of the network (features)"
    other = "Give features that hold more of the inputs"
    return other if clf.evidence_.density is None else f"{other}, or leave density=None"


def _compared(held_out: HeldOut, clf: Any) -> Finding:
    # The classifier's own doubt: after a temperature it depends on the score.
    doubt = max_prob(uncalibrated(held_out, clf.evidence_))
    rank = float(stats.spearmanr(-held_out.scores, doubt).statistic) if np.ptp(doubt) > 0 else 0.0
    errors = int(held_out.wrong.sum())
    numbers: dict[str, Number] = {"rank_correlation": rank, "errors": errors}
    if abs(rank) >= _SAME_RANKING:
        return Finding(
            "density_repeats_classifier",
            "warning",
            f"The score ranks inputs as the classifier's own confidence does (rank correlation "
            f"{rank:.2f}): what the classifier is wrongly sure about will not be flagged either.",
            numbers,
            f"{_another_density(clf)}: it should see the input itself, not the classifier's "
            "outputs.",
        )
    if errors < _FEW_ERRORS or errors > len(held_out.scores) - _FEW_ERRORS:
        return Finding(
            "density_distinct",
            "ok",
            f"The score and the classifier's doubt are different rankings (rank correlation "
            f"{rank:.2f}); with {errors} held-out errors no more can be said.",
            numbers,
        )
    by_score = _auroc(held_out, -held_out.scores)
    numbers |= {
        "auroc_score": by_score,
        "auroc_max_prob": _auroc(held_out, max_prob(held_out.proba)),
        "auroc_predict_proba": _auroc(held_out, max_prob(posterior_mean(clf.evidence_))),
        "auroc_sd": _auroc_sd(by_score, errors, len(held_out.scores) - errors),
        "p_value_beyond": _beyond(held_out, doubt),
    }
    numbers["errors_ranked_by"] = _best_ranking(numbers, *_CALLS)
    # What an answer holds, without the classifier's own probabilities.
    numbers["answers_ranked_by"] = _best_ranking(numbers, "predict_proba", "score")
    return _judged(numbers, clf)


def _judged(numbers: dict[str, Number], clf: Any) -> Finding:
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
    remedy = f"{_another_density(clf)}. {ranking}"
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


def _best_ranking(numbers: Mapping[str, Number], *among: str) -> str:
    """Return the name in `_CALLS` of the uncertainty that ranks held-out errors best.

    The score only if it is better by more than the standard deviation of its AUROC.
    """
    auroc = {name: float(numbers[f"auroc_{name}"]) for name in among}
    auroc["score"] -= float(numbers["auroc_sd"])
    return max(auroc, key=lambda name: auroc[name])


def _auroc(held_out: HeldOut, uncertainty: np.ndarray) -> float:
    finite = np.clip(uncertainty, -1e300, 1e300)
    return float(roc_auc_score(held_out.wrong, finite, sample_weight=held_out.counts))


def _auroc_sd(auroc: float, n_out: int, n_in: int) -> float:
    """Standard deviation of an AUROC by Hanley and McNeil (1982)."""
    a, q1, q2 = auroc, auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)
    variance = a * (1 - a) + (n_out - 1) * (q1 - a * a) + (n_in - 1) * (q2 - a * a)
    return float(np.sqrt(max(variance, 0.0) / (n_out * n_in)))


def _beyond(held_out: HeldOut, doubt: np.ndarray) -> float:
    """p-value of the score in a logistic model of the errors that knows the confidence already."""
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
    """The ranking of a density that chooses among candidates; nothing for others."""
    density = clf.evidence_.density_
    ranking: Sequence[Mapping[str, Any]] = getattr(density, "ranking_", [])
    failed: dict[str, str] = {row["name"]: row["failed"] for row in ranking if row.get("failed")}
    failed |= getattr(density, "failed_", {})
    working = [row for row in ranking if not row.get("failed")]
    if working:
        chosen, *others = working
        numbers = _numbers(chosen)
        text = (
            f"The density is {chosen['name']!r}, first of {len(working)} candidates{_marks(chosen)}"
        )
        if others:
            text += f"; the runner-up is {others[0]['name']!r}{_marks(others[0])}"
            numbers |= {f"runner-up {name}": value for name, value in _numbers(others[0]).items()}
        yield Finding("density_chosen", "ok", f"{text}.", numbers)
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
    """The two criteria of the choice, as far as they are known."""
    names = {"errors": "errors of the classifier", "pseudo_outliers": "pseudo-outliers"}
    numbers = _numbers(row)
    known = [f"{names[key]} {float(numbers[key]):.3f}" for key in names if key in numbers]
    return f" (AUROC: {', '.join(known)})" if known else ""


def _numbers(row: Mapping[str, Any]) -> dict[str, Number]:
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and np.isfinite(value)
    }


def feature_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """The default features of a pipeline or of a table with text or gaps."""
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
    yield Finding(
        "density_features",
        "note" if left_out else "ok",
        f"The density sees {p} standardised features: "
        f"{'; of it '.join(origins) or 'the columns of X'}{reduced}."
        + (
            f" It does not see {', '.join(map(str, left_out))}: hardly a value comes twice."
            if left_out
            else ""
        ),
        {"features": p, "left_out": len(left_out)},
        "Drop these columns, or make something of them that comes again." if left_out else "",
    )


def _encoded_columns(encoder: ColumnTransformer, names: list[str] | None) -> str:
    """Describe what the encoder does with which columns; `names` are those of an array."""
    columns = {
        part: ", ".join(str(c if names is None or isinstance(c, str) else names[c]) for c in of)
        for part, _, of in encoder.transformers_
    }
    return "; ".join(f"{text} ({columns[part]})" for part, text in PARTS.items() if part in columns)
