"""Temperature scaling of class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import optimize, special, stats
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..inputs import check_weights
from ..maths.arrays import (
    Array,
    check_number,
    check_positive_number,
    check_proba,
    class_indices,
    namespace,
)
from ..protocols import atomic

__all__ = ["Temperature"]

#: Lowest and highest temperature.
BOUNDS = 0.05, 20.0
_STARTS = 25


class Temperature(BaseEstimator):
    """``softmax(log p / T)`` with the T that held-out rows support; T > 1 is less sure.

    T minimises the held-out negative log-likelihood of ``(1 - u) p_T + u / k`` with
    ``u = k / (k + n)``, the posterior mean of n rows under a uniform prior (Laplace's rule of
    succession): a probability of exactly zero, as random forests give, then costs ``-log(u / k)``
    and not infinity. A zero stays zero and a one stays one at any T.

    Few rows must not make a classifier surer than it is. T is 1 exactly, and probabilities are
    given back unchanged, unless the likelihood-ratio test rejects T = 1; and of the T below 1 that
    the test admits (the confidence interval) T is the largest.

    Parameters
    ----------
    confidence : float, default=0.95
        Confidence of the likelihood-ratio test, from 0 to below 1. With 0 T is the minimiser alone,
        as Guo et al. have it.

    Attributes
    ----------
    temperature_ : float
        T.
    minimiser_ : float
        Where the held-out negative log-likelihood is lowest.
    n_ : float
        Number of held-out rows (sum of their weights).
    nll_, bare_nll_ : float
        Mean held-out negative log-likelihood at T and at 1, in nats.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017.
    Wilks, "The large-sample distribution of the likelihood ratio for testing composite hypotheses",
    Annals of Mathematical Statistics 9 (1938).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.calibration import Temperature
    >>> proba = np.tile([0.99, 0.01], (100, 1))
    >>> y = np.repeat([0, 1], [80, 20])
    >>> model = Temperature().fit(proba, y)
    >>> round(model.temperature_, 2), model.transform(proba)[0].round(2)
    (3.23, array([0.81, 0.19]))
    """

    def __init__(self, confidence: float = 0.95) -> None:
        self.confidence = confidence

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_number("confidence", self.confidence, "in [0, 1)", lambda x: 0 <= x < 1)

    @atomic
    def fit(
        self,
        proba: np.ndarray,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        n: float | None = None,
    ) -> Self:
        """Learn T from rows that the classifier was not fitted on.

        Parameters
        ----------
        proba : ndarray, shape (m, k)
            Class probabilities; of logits their softmax.
        y : ndarray of int, shape (m,)
            Labels, as indices of the columns.
        sample_weight : ndarray, shape (m,), optional
            How many inputs each row stands for.
        n : float, optional
            Rows behind a probability, for ``u = k / (k + n)``. Default: those given here.
        """
        self.check_parameters()
        log_p = log_probabilities(proba)
        if not len(log_p):
            raise ValueError(f"proba must have shape (m, k) with m >= 1, got {log_p.shape}")
        labels = class_indices(y, *log_p.shape)
        weights = check_weights(sample_weight, log_p)
        total = float(len(labels) if weights is None else weights.sum())
        rows = total if n is None else n
        check_positive_number("n", rows)
        u = log_p.shape[1] / (log_p.shape[1] + rows)
        fit = fit_temperature(
            log_p, labels, weights, u, np.full(log_p.shape[1], 1 / log_p.shape[1]), self.confidence
        )
        self.minimiser_, self.temperature_ = fit.minimiser, fit.temperature
        self.nll_, self.bare_nll_ = fit.nll, fit.bare_nll
        self.n_ = total
        return self

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Class probabilities (n, k) at `temperature_`, of probabilities (n, k)."""
        check_is_fitted(self, "temperature_")
        log_p = log_probabilities(proba)
        if self.temperature_ == 1:
            return np.asarray(proba)
        return np.asarray(special.softmax(log_p / self.temperature_, axis=1))


class TemperatureFit(NamedTuple):
    """Temperature that rows support, the one of lowest NLL, and mean NLL at the first and at 1."""

    temperature: float
    minimiser: float
    nll: float
    bare_nll: float


def fit_temperature(
    log_p: np.ndarray,
    y: np.ndarray,
    w: np.ndarray | None,
    u: np.ndarray | float,
    base: np.ndarray,
    confidence: float,
    share: np.ndarray | float = 1.0,
) -> TemperatureFit:
    """Fit T to the held-out NLL of ``(1 - u) p_T + u base``; see `Temperature`.

    Parameters
    ----------
    log_p, y, w : ndarray (m, k), ndarray of int (m,), ndarray (m,) or None
        Logarithms of probabilities, labels and weights of held-out rows.
    u, base : ndarray (m,) or float, ndarray (k,)
        Share of the prior in each prediction, and the prior's mean.
    confidence : float
        Of the likelihood-ratio test that T = 1 has to fail.
    share : ndarray (m,) or float, default=1.0
        Share of a sharpening that applies to each row, see `inverse_temperature`.
    """
    rows, total = np.arange(len(y)), float(len(y) if w is None else w.sum())
    shares, of_prior = np.broadcast_to(share, len(y)), u * base[y]
    # Below the largest of each row, a class after the other: sums over classes are quick so.
    below = np.ascontiguousarray((log_p - log_p.max(axis=1, keepdims=True)).T)

    def nll(log_t: float) -> float:
        p = np.exp(below * inverse_temperature(np.exp(log_t), shares))
        own = p[y, rows] / p.sum(axis=0)
        with np.errstate(divide="ignore"):
            logs = np.log((1 - u) * own + of_prior)
        return float(-(logs if w is None else logs * w).sum() / total)

    best, lowest = _minimum(nll, *np.log(BOUNDS))
    # What the likelihood-ratio test of one parameter admits, in nats of a row.
    allowed = lowest + float(stats.chi2.ppf(confidence, 1) / 2) / total
    chosen = best
    if nll(0.0) <= allowed:
        chosen = 0.0
    elif best < 0 and nll(best) < allowed:
        chosen = optimize.brentq(lambda log_t: nll(log_t) - allowed, best, 0.0, xtol=1e-10)
    return TemperatureFit(float(np.exp(chosen)), float(np.exp(best)), nll(chosen), nll(0.0))


def inverse_temperature(temperature: Any, share: Array) -> Array:
    """``1 + share (1 / T - 1)`` where ``T < 1``, for a share of sharpening (n,); else ``1 / T``."""
    xp = namespace(share)
    return 1 + xp.where(temperature < 1, share, 1.0) * (1 / temperature - 1)


def _minimum(f: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Best point of a grid, refined between its neighbours: f may have more than one valley."""
    grid = np.linspace(low, high, _STARTS)
    values = [f(t) for t in grid]
    i = int(np.argmin(values))
    bracket = grid[max(i - 1, 0)], grid[min(i + 1, _STARTS - 1)]
    refined = optimize.minimize_scalar(f, bounds=bracket, method="bounded", options={"xatol": 1e-8})
    if refined.fun < values[i]:
        return float(refined.x), float(refined.fun)
    return float(grid[i]), float(values[i])


def log_probabilities(proba: np.ndarray) -> np.ndarray:
    """Return logarithms of class probabilities (m, k), -inf where one is zero."""
    P = check_proba("proba", proba)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(P / P.sum(axis=1, keepdims=True)))
