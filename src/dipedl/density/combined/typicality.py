"""How typical the log-density of a row is, from both sides."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..._validation import known_rows, learned_rows
from ...calibration.crossfit import splits
from ...evidence import RankNormal
from ...fitting.all_or_nothing import all_or_nothing
from ...fitting.seeds import seed
from ...maths.masks import unmasked
from ...maths.special import LOG_2PI
from .._fitting import clone_with_selected, fitted_density, is_frozen, log_density
from .._mixin import LogDensityMixin
from ..gda import GDADensity
from ._composed import requires_labels

__all__ = ["TypicalityDensity"]


class TypicalityDensity(LogDensityMixin, BaseEstimator):
    """Two-sided reading of a density: too likely is as atypical as too unlikely.

    ``s(x) = log N(r(x); 0, 1)``, with r the normal score of log p(x) among held-out log-densities
    of the training rows: the log-density of the log-density, in the unit in which it is standard
    normal. It is highest where log p(x) is the median of what ID inputs get, and falls to either
    side; it is not increasing in log p(x), which is why it is a density and not a normaliser:
    everything that reads scores of densities reads this one unchanged. It does not integrate to
    one over x.

    Parameters
    ----------
    density : density estimator, optional
        Gives log p; None is `GDADensity`. A copy is fitted; one in `sklearn.frozen.FrozenEstimator`
        is used as it is, and the rows given to `fit` must then be others than it was fitted on.
    cv : int or cross-validation splitter, default=5
        Folds of held-out rows: the density is fitted once for each, and once on all rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the unseeded parts of the density.

    Attributes
    ----------
    density_ : density estimator
        Fitted on all rows.
    normal_score_ : RankNormal
        Normal score of a log-density among the held-out ones; tails are straight lines.
    n_features_in_ : int
        Number of features p.

    Notes
    -----
    Flows and other deep densities give simple inputs (flat images, faint spectra) a *higher*
    log-density than the data they were fitted on. Nalisnick et al. test whether the mean of a
    batch is typical; read on one row at a time, as here, the test is weak: an input of median
    log-density passes, however unusual, and of ID inputs the most likely are held suspect. It pays
    where the log-density is known to fail by being too high, and costs power where it fails by
    being too low: the ranking below the median is kept, but inputs above it now share the ranks.

    References
    ----------
    Nalisnick, Matsukawa, Teh, Lakshminarayanan, "Detecting out-of-distribution inputs to deep
    generative models using typicality", arXiv:1906.02994 (2019). Morningstar et al., "Density of
    states estimation for out-of-distribution detection", AISTATS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import GaussianDensity, TypicalityDensity
    >>> X = np.random.default_rng(0).normal(size=(200, 50))
    >>> density = TypicalityDensity(GaussianDensity()).fit(X)
    >>> center, typical, far = np.zeros(50), X[0], 3 * X[0]
    >>> score = density.score_samples([center, typical, far])
    >>> bool(score[1] > score[0] and score[1] > score[2])
    True
    """

    normalized = False

    def __init__(self, density: Any = None, cv: Any = 5, random_state: Any = None) -> None:
        self.density = density
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on features X (n, p), with labels y (n,) for densities and folds that use them."""
        with all_or_nothing(self):
            X = learned_rows(self, X)
            labels: Any = None if y is None else np.asarray(unmasked("y", y))
            self.density_ = fitted_density(self._template(), X, labels, None, self.random_state)
            self.normal_score_ = RankNormal().fit(self._held_out(X, labels))
            return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of the log-density of each row of X (n, p), shape (n,)."""
        check_is_fitted(self, "normal_score_")
        X = known_rows(self, X)
        with np.errstate(over="ignore"):
            r = self.normal_score_.transform(log_density(self.density_, X))
            return np.asarray(-(r**2 + LOG_2PI) / 2)

    def clone_with_selected(self) -> Self:
        """An unfitted copy with the settings that the density has selected on all rows."""
        selected = clone_with_selected(self.density_, self._template())
        copy: Self = clone(self).set_params(density=selected)
        return copy

    def _held_out(self, X: np.ndarray, y: Any) -> np.ndarray:
        """Log-densities of rows by densities that did not see them."""
        if is_frozen(self.density):
            return log_density(self.density_, X)
        template = clone_with_selected(self.density_, self._template())
        groups = np.zeros(len(X), dtype=int) if y is None else y
        pairs, _ = splits(self.cv, X, groups, None, seed(self.random_state))
        classes = len(np.unique(groups))
        scores = []
        for train, held in pairs:
            # Settings chosen class by class do not fit a fold that lacks one.
            whole = len(np.unique(groups[train])) == classes
            labels: Any = None if y is None else y[train]
            model = template if whole else self._template()
            part = fitted_density(model, X[train], labels, None, self.random_state)
            scores.append(log_density(part, X[held]))
        return np.concatenate(scores)

    def _template(self) -> Any:
        return GDADensity() if self.density is None else self.density

    def __sklearn_tags__(self) -> Tags:
        """Labels are required if the density requires them."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.density is None or requires_labels(self.density)
        return tags

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Arguments for the conformance checks."""
        from ..gaussian import GaussianDensity

        return {"density": GaussianDensity()}
