"""The certainty budget of natural posterior networks."""

from __future__ import annotations

from typing import Self

import numpy as np

from .._validation import check_positive_number
from ..fitting.all_or_nothing import all_or_nothing
from ._base import SOURCE, BaseNormalizer, require_finite, weighted_scores

__all__ = ["NatPNBudget"]

#: log N_H per latent dimension H.
_PER_DIMENSION = {
    "constant": 0.0,
    "exp-half": 0.5,
    "exp": 1.0,
    "normal": 0.5 * float(np.log(4 * np.pi)),
}


class NatPNBudget(BaseNormalizer):
    """Evidence ``N_H p(x)``, with a certainty budget N_H set by the latent dimension H alone.

    ``log evidence = clip(log p + log N_H, -limit, limit)``: the number of training samples and
    gamma do not enter, and z takes them out again. Log-densities must be normalised and in nats.
    Scores beyond the limits tie, as published: the map is increasing, strictly so only between.

    Parameters
    ----------
    dim : int, optional
        Dimension H of the features that the density sees; needed unless `budget` is "constant".
    budget : {"constant", "exp-half", "exp", "normal"}, default="constant"
        ``log N_H`` is 0, H / 2, H, or ``H log(4 pi) / 2``, at which a standard normal of any
        dimension gives its centre ``2^(H/2)``.
    limit : float, default=30.0
        Largest absolute log-evidence; ``inf`` switches the clipping off.

    Attributes
    ----------
    log_budget_ : float
        ``log N_H``.
    log_full_ : float
        ``log(n gamma)``, which z leaves to the log-evidence to add.

    References
    ----------
    Charpentier, Borchert, Zügner, Geisler, Günnemann, "Natural Posterior Network: Deep Bayesian
    Predictive Uncertainty for Exponential Family Distributions", ICLR 2022, section on the
    certainty budget; the options and the limit of 30 are those of its published code.

    Examples
    --------
    >>> from dipedl.evidence import NatPNBudget
    >>> budget = NatPNBudget(dim=16, budget="exp-half").fit([-8.0, -10.0], n=1.0)
    >>> budget.transform([-8.0, -10.0, -1e6])
    array([  0.,  -2., -30.])
    """

    def __init__(
        self, dim: int | None = None, budget: str = "constant", limit: float = 30.0
    ) -> None:
        self.dim = dim
        self.budget = budget
        self.limit = limit

    def fit(
        self,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        source: str = SOURCE,
        n: float | None = None,
        gamma: float = 1.0,
    ) -> Self:
        """Note n and gamma, > 0; of the ID log-densities (m,) only their being finite matters."""
        with all_or_nothing(self):
            scores, weights = weighted_scores(log_density, sample_weight)
            require_finite(scores, type(self).__name__, source)
            check_positive_number("n", n)
            check_positive_number("gamma", gamma)
            self.log_budget_ = self._log_budget()
            self.log_full_ = float(np.log(n) + np.log(gamma))  # type: ignore[arg-type]
            return self._learned(weights, source)

    def _log_budget(self) -> float:
        if self.budget not in _PER_DIMENSION:
            raise ValueError(f"budget must be one of {[*_PER_DIMENSION]}, got {self.budget!r}")
        if not self.limit > 0:
            raise ValueError(f"limit must be > 0, got {self.limit!r}")
        if self.budget == "constant":
            return 0.0
        check_positive_number("dim", self.dim)
        return _PER_DIMENSION[self.budget] * float(self.dim)  # type: ignore[arg-type]

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return np.clip(scores + self.log_budget_, -self.limit, self.limit) - self.log_full_
