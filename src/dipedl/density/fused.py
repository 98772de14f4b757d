"""Several densities, and the classifier's own confidence, as one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy import special

from ..evidence import RankNormal
from ..evidence.normalizers import lower_tail_unit
from ..maths.array_namespace import Array, namespace, special_functions
from ..maths.scores import auroc
from .ensemble import CLASSIFIER, Candidates, DensityEnsemble, Rows

__all__ = ["FusedDensity"]

#: Weight of the mean normal score, which orders what no component objects to.
TIE_BREAK = 1e-3
#: Standard deviations below its median at which a density begins to object.
MARGIN = 1.0


class FusedDensity(DensityEnsemble):
    r"""A product of experts: every density, and the classifier, may object to an input.

    Scores of held-out in-distribution rows turn each component into normal scores, z_c, linear
    beyond the rows seen. Then

    .. math:: s(x) = -\sqrt{-2 \sum_c w_c \log \Phi(z_c(x) + t_c)} + \epsilon \bar z(x),

    with :math:`t_c` = 0 for the classifier and `margin` for a density. Each expert
    :math:`\Phi(z_c + t_c)^{w_c}` is flat where an input is typical for it and falls off like a
    normal below: it can veto and cannot vouch. With a margin of 1 a density lowers the score from
    one standard deviation below its median on; above that the classifier ranks. The square root
    puts s on the scale of standard deviations; the last term, :math:`\epsilon` = 1e-3, only breaks
    ties.

    With ``margin=0`` the sum is Fisher's combination of the one-sided p-values :math:`\Phi(z_c)`,
    weighted. The components are dependent, so it has no chi-square law; nothing here uses one:
    thresholds and p-values come from s on held-out rows, and are valid whatever the dependence.

    A component weighs :math:`w_c = \max(0, 2 A_c - 1)^2`, with A_c the mean AUROC at which it tells
    held-out rows from pseudo-outliers made of them: a component that cannot has weight 0. Without
    pseudo-outliers (features that are not numbers) all weigh the same.

    Parameters
    ----------
    candidates : list of (str, density), optional
        The densities by name; a density may be a scikit-learn pipeline of transformers that ends in
        one. None takes six: Gaussians per class, with their own covariances, with a shared one, and
        on features of unit length; relative to one Gaussian of all rows; nearest neighbours, on
        features as they are and on unit length.
    margin : float, default=1.0
        Standard deviations below its median from which on a density lowers the score, >= 0.
    random_state : int or None, default=None
        Seed of the pseudo-outliers, and of candidates without a seed of their own.

    Attributes
    ----------
    estimators_ : dict of str to density
        The fitted candidates.
    failed_ : dict of str to str
        Candidates that could not be used, and why.
    component_names_ : tuple of str
        The components in use: estimators, and "classifier" if probabilities were given.
    normal_scores_ : dict of str to normaliser
        Map of each component to its normal score.
    weights_ : dict of str to float
        Weight w_c of each component.
    pseudo_outlier_auroc_ : dict of str to dict
        By component and kind of pseudo-outlier: how well it tells held-out rows from them.

    References
    ----------
    Hinton, "Training products of experts by minimizing contrastive divergence", Neural Computation
    14 (2002). Fisher, "Statistical methods for research workers" (1925), section 21.1; Vovk, Wang,
    "Combining p-values via averaging", Biometrika 107 (2020), on dependence. Hendrycks, Mazeika,
    Dietterich, "Deep anomaly detection with outlier exposure", ICLR (2019).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.density import FusedDensity
    >>> X, y = load_iris(return_X_y=True)
    >>> density = FusedDensity().fit(X, y)
    >>> bool(density.score_samples(X).mean() > density.score_samples(X + 3).max())
    True
    """

    def __init__(
        self, candidates: Candidates | None = None, margin: float = MARGIN, random_state: Any = None
    ) -> None:
        self.candidates = candidates
        self.margin = margin
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
        """Learn the normal scores and the weights of the components; see `DensityEnsemble`."""
        if not (np.isfinite(self.margin) and self.margin >= 0):
            raise ValueError(f"margin must be a finite number >= 0, got {self.margin!r}")
        self.normal_scores_: dict[str, NormalScores] = {}
        for name, column in scores.items():
            try:
                self.normal_scores_[name] = NormalScores().fit(column, sample_weight)
            except ValueError as error:
                self.estimators_.pop(name, None)
                self.failed_[name] = str(error)
        if not set(self.normal_scores_) - {CLASSIFIER}:
            self._require_an_estimator()
            raise ValueError(f"no candidate density gives a usable score: {self.failed_}")
        self.with_classifier_ = CLASSIFIER in scores
        self.component_names_ = tuple(self.normal_scores_)
        self.pseudo_outlier_auroc_ = {
            name: {
                kind: auroc(scores[name], made[name], sample_weight)
                for kind, made in pseudo_outliers.items()
            }
            for name in self.component_names_
        }
        self.weights_ = _weights(self.pseudo_outlier_auroc_)
        self.reach_ = self.reach_.below(self.combine(scores), sample_weight)
        return self

    @property
    def voting_(self) -> tuple[str, ...]:
        """The densities of positive weight."""
        return tuple(name for name in self.estimators_ if self.weights_[name] > 0)

    def combine(self, scores: Mapping[str, Rows]) -> Rows:
        """Return the fused score s, shape (n,), in standard deviations."""
        tables = self.normal_scores_.items()
        return self._fuse([table.transform(scores[name]) for name, table in tables])

    def combine_held_out(
        self, scores: Mapping[str, Rows], sample_weight: Rows | None = None
    ) -> Rows:
        """`combine`, with normal scores of each row that were learned without it.

        A row that takes part in its own normal score is never beyond the rows seen, as new ones
        are: thresholds from such scores would be crossed too often.
        """
        tables = self.normal_scores_.items()
        return self._fuse([t.leave_one_out(scores[name], sample_weight) for name, t in tables])

    def _fuse(self, z: Sequence[Rows]) -> Rows:
        names = list(self.normal_scores_)
        margins = [0.0 if name == CLASSIFIER else self.margin for name in names]
        return np.asarray(fused_score(z, margins, [self.weights_[name] for name in names]))


def _weights(auroc: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return ``max(0, 2 A - 1)^2`` of the mean AUROC; 1 for all where there is nothing to go by."""
    found = {
        name: max(0.0, 2 * float(np.mean(list(by_kind.values()))) - 1) ** 2 if by_kind else 0.0
        for name, by_kind in auroc.items()
    }
    return found if any(found.values()) else dict.fromkeys(found, 1.0)


def fused_score(
    z: Sequence[Array] | Array, margins: Sequence[float], weights: Sequence[float]
) -> Array:
    """Return ``-sqrt(-2 sum_c w_c log Phi(z_c + t_c)) + 1e-3 mean_c z_c``, shape (n,).

    z: normal scores (c, n) of c components; t: margins (c,); w: weights (c,).
    """
    # Skip zero weights: 0 * inf is NaN.
    log_ndtr = special_functions(z[0]).log_ndtr
    objections = [
        weight * log_ndtr(scores + margin)
        for scores, margin, weight in zip(z, margins, weights, strict=True)
        if weight > 0
    ]
    return -namespace(z[0]).sqrt(-2 * sum(objections)) + TIE_BREAK * (sum(z) / len(z))


class NormalScores(RankNormal):
    """Normal scores of ranks, with the slope of the lower tail beyond the ranks."""

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        super()._learn(scores, weights)
        self.scale_ = lower_tail_unit(scores, weights, "the normal scores of a component")

    def leave_one_out(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return normal scores of the rows of the fit, shape (m,), each by the ranks of all others.

        A weight counts a row that often; all but one of its copies stay.
        """
        at = np.searchsorted((self.knots_[1:] + self.knots_[:-1]) / 2, scores)
        mass = np.bincount(at, weights, minlength=len(self.knots_))
        below, left_out = np.cumsum(mass) - mass, np.minimum(mass, 1.0)
        others = mass.sum() - left_out
        own = special.ndtri((below + (mass - left_out) / 2) / others)
        centre = below + mass / 2
        left = special.ndtri(centre[:-1] / others[1:])
        right = special.ndtri((centre[1:] - left_out[:-1]) / others[:-1])
        return np.asarray(np.where(mass > 1, own, self._between(left, right))[at])

    def _between(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Interpolate normal scores (m,) at the knots from those left and right of them, (m - 1,).

        At the ends, with the slope of the tail.
        """
        gap = np.diff(self.knots_)
        slope = (right[1:] - left[:-1]) / (gap[1:] + gap[:-1])
        first, last = right[0] - gap[0] / self.scale_, left[-1] + gap[-1] / self.scale_
        return np.concatenate([[first], left[:-1] + slope * gap[:-1], [last]])
