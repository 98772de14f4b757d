"""Choice of a density by in-distribution data alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..maths.scores import auroc, auroc_variance
from .ensemble import Candidates, DensityEnsemble, Rows
from .fused import FusedDensity

__all__ = ["DensitySelector"]

#: Name of the candidate that is all others together.
FUSED = "fused"
_FEWEST_ERRORS = 5


class DensitySelector(DensityEnsemble):
    """The density that serves a classifier best, chosen without out-of-distribution data.

    Candidates are ranked on rows that neither they nor the classifier were fitted on, by the mean
    of two AUROCs: how well they spot the classifier's own errors (if at least five are there), and
    how well they tell the rows from pseudo-outliers (see
    `dipedl.calibration.make_pseudo_outliers`). Neither is enough alone: errors reward densities
    that repeat the classifier, pseudo-outliers reward densities that see only what is far. One of
    the candidates is the fusion of the others with the classifier's confidence, `FusedDensity`; it
    is chosen unless another one is better by more than one standard error, for a fusion cannot fail
    as one density can. A candidate that is blind to distance, such as any density of features of
    unit length or a ratio, ranks behind all others, and so does a fusion in which only such ones
    vote: what lies far from all data must lose its evidence. An input more than three ranges of a
    feature outside of the rows seen scores below all held-out rows, and more so the farther it is.
    Up to a twentieth of the rows, far from all others, are left out of the fits.

    Parameters
    ----------
    candidates : list of (str, density), optional
        See `FusedDensity`.
    fuse : bool, default=True
        Whether the fusion of all is a candidate too. It is the only one that looks at the
        classifier's probabilities.
    random_state : int or None, default=None
        Seed of the pseudo-outliers, and of candidates without a seed of their own.

    Attributes
    ----------
    choice_, runner_up_ : str
        Names of the best and the second best candidate; there is no second of one.
    ranking_ : list of dict
        By rank, the choice first: "name", "score" (the criterion), "standard_error", "blind" (to
        distance), "errors" (AUROC of the classifier's errors, NaN if unknown), "pseudo_outliers"
        (mean AUROC), and one entry per kind of pseudo-outlier. Then the candidates that failed:
        "name", "failed".
    estimators_, failed_
        As in `FusedDensity`.
    component_names_ : tuple of str
        The components that the choice needs.
    fusion_ : FusedDensity or None
        The fusion, if it was chosen.

    Notes
    -----
    Pseudo-outliers stand for unknown inputs. They say nothing about inputs that they do not
    resemble, such as a new class inside the range of the known classes. Of equal scores the
    candidate named first wins. Without errors and pseudo-outliers to judge by, scores are NaN, and
    the fusion is taken, or else the first candidate that is not blind to distance.

    References
    ----------
    Hendrycks, Gimpel, "A baseline for detecting misclassified and out-of-distribution examples in
    neural networks", ICLR (2017), on errors; `dipedl.calibration` on pseudo-outliers. Breiman,
    Friedman, Olshen, Stone, "Classification and regression trees" (1984), section 3.4, on the rule
    of one standard error; DeLong, DeLong, Clarke-Pearson, Biometrics 44 (1988), on that of an
    AUROC.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.density import DensitySelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DensitySelector(fuse=False).fit(X, y)
    >>> selector.choice_ in selector.estimators_, len(selector.ranking_)
    (True, 6)
    """

    def __init__(
        self, candidates: Candidates | None = None, fuse: bool = True, random_state: Any = None
    ) -> None:
        self.candidates = candidates
        self.fuse = fuse
        self.random_state = random_state

    def fit_combiner(
        self,
        scores: Mapping[str, Rows],
        y: Rows,
        *,
        proba: Rows | None = None,
        sample_weight: Rows | None = None,
        pseudo_outliers: Mapping[str, Mapping[str, Rows]],
    ) -> Self:
        """Rank the candidates and choose; see `DensityEnsemble`."""
        fusion = FusedDensity(self.candidates, random_state=self.random_state)
        fusion.estimators_, fusion.failed_ = self.estimators_, self.failed_
        fusion.reach_ = self.reach_
        # It also drops the candidates whose scores are of no use: both share `estimators_`.
        fusion.fit_combiner(scores, y, sample_weight=sample_weight, pseudo_outliers=pseudo_outliers)
        self.with_classifier_ = fusion.with_classifier_
        candidates = {name: scores[name] for name in self.estimators_}
        outlying = {
            k: {n: made[n] for n in self.estimators_} for k, made in pseudo_outliers.items()
        }
        if self.fuse:
            candidates[FUSED] = fusion.combine(scores)
            for kind, made in pseudo_outliers.items():
                outlying[kind][FUSED] = fusion.combine(made)
        wrong = None if proba is None else proba.argmax(axis=1) != y
        rows = [
            self._judge(name, s, wrong, sample_weight, outlying) for name, s in candidates.items()
        ]
        fused = {FUSED: fusion.voting_}
        for row in rows:
            row["blind"] = self.blind_.issuperset(fused.get(row["name"], [row["name"]]))
        rows.sort(key=lambda row: (row["blind"], -row["score"]))
        best, blind = rows[0]["score"] - rows[0]["standard_error"], rows[0]["blind"]
        # Where nothing can be judged all scores are NaN: no candidate is better than the fusion.
        rows.sort(
            key=lambda row: row["name"] != FUSED or row["score"] < best or row["blind"] > blind
        )
        failed = [{"name": name, "failed": why} for name, why in self.failed_.items()]
        self.ranking_: list[dict[str, Any]] = [*rows, *failed]
        self.choice_ = str(rows[0]["name"])
        self.runner_up_ = str(rows[1]["name"]) if len(rows) > 1 else None
        self.fusion_ = fusion if self.choice_ == FUSED else None
        self.component_names_ = fusion.component_names_ if self.fusion_ else (self.choice_,)
        self.reach_ = self.reach_.below(self.combine(scores), sample_weight)
        return self

    @property
    def voting_(self) -> tuple[str, ...]:
        """The choice, or the densities of positive weight in it."""
        return (self.choice_,) if self.fusion_ is None else self.fusion_.voting_

    def combine(self, scores: Mapping[str, Rows]) -> Rows:
        """Return the score of the choice, shape (n,)."""
        return scores[self.choice_] if self.fusion_ is None else self.fusion_.combine(scores)

    def combine_held_out(
        self, scores: Mapping[str, Rows], sample_weight: Rows | None = None
    ) -> Rows:
        """`combine` for the rows that the combiner was learned from, scored as new ones are."""
        if self.fusion_ is None:
            return self.combine(scores)
        return self.fusion_.combine_held_out(scores, sample_weight)

    def _judge(
        self,
        name: str,
        scores: Rows,
        wrong: Rows | None,
        weights: Rows | None,
        outlying: Mapping[str, Mapping[str, Rows]],
    ) -> dict[str, Any]:
        """Return one row of the ranking."""
        by_kind = {k: auroc(scores, made[name], weights) for k, made in outlying.items()}
        errors = np.nan if wrong is None else _error_auroc(scores, wrong, weights)
        outliers = float(np.mean(list(by_kind.values()))) if by_kind else np.nan
        criteria = [c for c in (errors, outliers) if not np.isnan(c)]
        pairs = []
        if wrong is not None and not np.isnan(errors):
            pairs.append((scores[~wrong], scores[wrong]))
        if outlying:
            pairs.append((scores, np.concatenate([made[name] for made in outlying.values()])))
        error = np.sqrt(sum(auroc_variance(*pair) for pair in pairs)) / max(len(pairs), 1)
        return {
            "name": name,
            "score": float(np.mean(criteria)) if criteria else np.nan,
            "standard_error": float(error) if pairs else np.nan,
            "errors": errors,
            "pseudo_outliers": outliers,
            **by_kind,
        }


def _error_auroc(scores: Rows, wrong: Rows, weights: Rows | None) -> float:
    """Return the AUROC of spotting errors of the classifier; NaN if there are too few of them."""
    w = np.ones(len(wrong)) if weights is None else weights
    if w[wrong].sum() < _FEWEST_ERRORS:
        return float("nan")
    return auroc(scores[~wrong], scores[wrong], w[~wrong], w[wrong])
