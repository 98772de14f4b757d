"""The half-point at a quantile of the held-out scores: caution without a classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..fitting.all_or_nothing import all_or_nothing
from ..inputs import check_positive_number
from ._base import SOURCE, require_finite, weighted_scores
from ._logistic import LogisticNormalizer, half_point_log_odds, lower_tail_unit
from .quantiles import weighted_quantile

__all__ = ["QuantileEvidence"]


class QuantileEvidence(LogisticNormalizer):
    """Vacuity 1/2 at the `quantile` of the held-out ID log-densities.

    ``z = log sigmoid(log_odds_ + slope * (score - location_) / scale_)``: evidence is bounded by
    ``n * gamma``, full evidence, and falls with the tempered density ``p^(slope / scale_)`` below.
    About a share `quantile` of ID inputs loses more than half of its confidence; what that costs
    in accuracy or Brier score is not looked at (see `CautionBudget`).

    Parameters
    ----------
    quantile : float, default=0.01
        Share of held-out ID scores, strictly between 0 and 1, at or below the half-point.
    slope : float, default=2.0
        Log-odds of being known, per lower-tail unit of the scores, > 0.

    Attributes
    ----------
    location_, scale_, log_odds_ : float
        Half-point and lower-tail unit of the scores (`(median - 1 % quantile) / 2.326`), in nats
        for a log-density, and log-odds of full evidence at the half-point.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.evidence import QuantileEvidence
    >>> scores = np.linspace(-4, 0, 101)
    >>> evidence = QuantileEvidence(0.05).fit(scores, n=1000, prior=[1.0, 1.0])
    >>> 1000 * np.exp(evidence.transform([evidence.location_, 0.0])).round(4)
    array([  2. , 943.1])
    """

    def __init__(self, quantile: float = 0.01, slope: float = 2.0) -> None:
        self.quantile = quantile
        self.slope = slope

    def fit(
        self,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        source: str = SOURCE,
        n: float | None = None,
        prior: Any = None,
        gamma: float = 1.0,
    ) -> Self:
        """Learn from ID scores (m,) that the density was not fitted on.

        Parameters
        ----------
        log_density, sample_weight, source, n, prior, gamma
            As of `CautionBudget.fit`, but the scores are finite and `prior` has a number for each
            class. Without `n` or `prior` the half-point is where half of the full evidence is left.
        """
        with all_or_nothing(self):
            if not 0 < self.quantile < 1:
                raise ValueError(
                    f"quantile must lie strictly between 0 and 1, got {self.quantile!r}"
                )
            check_positive_number("slope", self.slope)
            scores, weights = weighted_scores(log_density, sample_weight)
            require_finite(scores, type(self).__name__, source)
            self.log_odds_ = 0.0
            if n is not None and prior is not None:
                check_positive_number("n", n)
                check_positive_number("gamma", gamma)
                self.log_odds_ = half_point_log_odds(n * gamma, float(np.sum(prior)))
            self.scale_ = lower_tail_unit(scores, weights, type(self).__name__)
            self.location_ = weighted_quantile(scores, self.quantile, weights)
            return self._learned(weights, source)
