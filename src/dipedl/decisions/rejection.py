"""Answer or refuse: thresholds on an uncertainty, and how many errors they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from ..maths.arrays import check_rate
from ..maths.scores import round_down
from .p_values import held_out_array, weights_or_ones

__all__ = ["RejectCurve", "Rejection", "reject_curve", "risk_upper_bound"]

_STEPS = 20


@dataclass(frozen=True, eq=False)
class RejectCurve:
    """Error rates that hold, all at once, for a ladder of thresholds on the uncertainty.

    Attributes
    ----------
    thresholds : ndarray, shape (g,)
        An input is answered if its uncertainty is at or below; ascending, the last one is inf.
    coverage : ndarray, shape (g,)
        Share of the held-out inputs answered.
    risk : ndarray, shape (g,)
        Error rate among those.
    upper : ndarray, shape (g,)
        Upper bounds of the error rate among new ID inputs answered. With probability `confidence`
        over the held-out rows all g hold together, so a threshold may be chosen after looking.
    confidence : float
        Of the bounds.
    """

    thresholds: np.ndarray
    coverage: np.ndarray
    risk: np.ndarray
    upper: np.ndarray
    confidence: float

    def threshold(self, risk: float) -> float:
        """Largest threshold whose bound is at most `risk`; ``-inf`` (answer nothing) if none is."""
        good = np.flatnonzero(self.upper <= check_rate(risk, "risk"))
        return float(self.thresholds[good[-1]]) if len(good) else -np.inf


@dataclass(frozen=True, eq=False)
class Rejection:
    """Labels, and which of them to trust.

    Attributes
    ----------
    labels : ndarray, shape (n,)
        Predicted labels of all inputs, also of those rejected.
    accepted : ndarray of bool, shape (n,)
        Where the uncertainty is at most the threshold.
    threshold : float
        Largest uncertainty that is answered; ``-inf``: none, ``inf``: all.
    kind : str
        Which uncertainty.
    risk : float or None
        Promised: the error rate among accepted ID inputs is at most this.
    coverage : float or None
        Promised: an ID input is accepted with at least this probability.
    confidence : float or None
        Probability, over the held-out rows, that the promise of the risk holds.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.decisions import Rejection
    >>> answer = Rejection(np.array(["a", "b"]), np.array([True, False]), 0.3, "total", risk=0.05)
    >>> answer.fill("?")
    array(['a', '?'], dtype='<U1')
    """

    labels: np.ndarray
    accepted: np.ndarray
    threshold: float
    kind: str
    risk: float | None = None
    coverage: float | None = None
    confidence: float | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def rejected(self) -> np.ndarray:
        """Inputs without an answer, shape (n,), bool."""
        return ~self.accepted

    def fill(self, marker: Any) -> np.ndarray:
        """The labels with `marker` in place of those rejected, shape (n,)."""
        return fill_labels(self.labels, self.accepted, marker)


def fill_labels(labels: np.ndarray, accepted: np.ndarray, marker: Any) -> np.ndarray:
    """Return labels (n,), and the marker where they are not accepted; objects if kinds differ."""
    # As an array it has a dtype of its own: labels of int8 would make 25 of -999.
    mark = np.asarray(marker)
    same = mark.dtype.kind == labels.dtype.kind
    return np.where(accepted, labels if same else labels.astype(object), mark)


def risk_upper_bound(errors: npt.ArrayLike, n: npt.ArrayLike, confidence: float) -> np.ndarray:
    """Upper confidence bound of an error rate after `errors` of `n` (Clopper and Pearson).

    Parameters
    ----------
    errors : array-like, shape (m,) or ()
        Numbers of errors, 0..n.
    n : array-like, shape (m,) or ()
        Numbers of independent inputs.
    confidence : float
        In (0, 1).

    Returns
    -------
    ndarray, shape (m,) or ()
        The rate at which so few errors have probability ``1 - confidence``; 1 if all are errors.

    References
    ----------
    C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of
    the binomial", *Biometrika* 26, 1934.

    Examples
    --------
    >>> from dipedl.decisions import risk_upper_bound
    >>> risk_upper_bound([0, 3], 59, confidence=0.95).round(3)
    array([0.05 , 0.126])
    """
    check_rate(confidence, "confidence")
    e, total = np.broadcast_arrays(np.asarray(errors, float), np.asarray(n, float))
    if (e < 0).any() or (e > total).any():
        raise ValueError(f"errors must lie in 0..n, got {errors!r} of {n!r}")
    right = np.where(e < total, total - e, 1.0)
    return np.where(e < total, special.betaincinv(e + 1, right, confidence), 1.0)


def reject_curve(
    uncertainty: npt.ArrayLike,
    wrong: npt.ArrayLike,
    *,
    confidence: float = 0.9,
    weights: npt.ArrayLike | None = None,
) -> RejectCurve:
    r"""Return the error rates that can be promised if only the most certain inputs are answered.

    Parameters
    ----------
    uncertainty : array-like, shape (N,)
        Of held-out ID inputs, higher = less sure; infinities are allowed.
    wrong : array-like of bool, shape (N,)
        Whether the prediction of each is wrong.
    confidence : float, default=0.9
        Probability that all bounds hold.
    weights : array-like, shape (N,), optional
        How many independent inputs each stands for, >= 0.

    Returns
    -------
    RejectCurve
        At 5 %, 10 %, ..., 100 % of the held-out inputs (fewer steps if N < 20).

    Raises
    ------
    ValueError
        If shapes do not fit, there is no row, or an uncertainty is NaN.

    Notes
    -----
    Step g of G has rank ``m = ceil(N g / G)`` and answers what lies strictly below the (m + 1)-th
    smallest held-out uncertainty t, less a billionth of it for rounding. Given t, the rows below
    are an independent sample of the ID inputs with uncertainty below t, so their errors are
    binomial with the very rate to be bounded: Clopper and Pearson's bound at level ``(1 -
    confidence) / G`` holds for this data-dependent threshold. The ranks are fixed beforehand; by
    Bonferroni's inequality all G bounds hold together, whatever the uncertainty, the ties and the
    distribution. It is an instance of Learn then Test. A fixed-sequence test from the strictest
    threshold on would spare the factor G, but it stops for good at the first error among the few
    most certain inputs; the factor costs little, as a bound depends on it through its logarithm.

    References
    ----------
    A. N. Angelopoulos, S. Bates, E. Candès, M. Jordan, L. Lei, "Learn then Test: calibrating
    predictive algorithms to achieve risk control", 2021; Y. Geifman, R. El-Yaniv, "Selective
    classification for deep neural networks", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.decisions import reject_curve
    >>> u = np.arange(400) / 400
    >>> curve = reject_curve(u, wrong=u > 0.8)
    >>> curve.threshold(risk=0.05) < 0.8 < curve.threshold(risk=0.15)
    True
    """
    u, bad = held_out_array("uncertainty", uncertainty), np.asarray(wrong)
    if bad.shape != u.shape or bad.dtype != bool:
        raise ValueError(
            f"wrong must be boolean of shape {u.shape}, got {bad.dtype} of shape {bad.shape}; "
            "pass labels != predicted"
        )
    w = weights_or_ones(weights, u)
    order = np.flatnonzero(w > 0)[np.argsort(u[w > 0], kind="stable")]
    u, bad, w = u[order], bad[order], w[order]
    # A hair less: 0.05 * 20 inputs must not become 2 by the last bit.
    shares = np.arange(1, _STEPS + 1) / _STEPS * (1 - 1e-12)
    ranks = np.unique(np.ceil(w.sum() * shares))
    first_out = round_down(u)[np.searchsorted(np.cumsum(w), ranks[:-1], side="right")]
    answered = np.append(np.searchsorted(u, first_out, side="left"), len(u))
    n = np.append(0.0, np.cumsum(w))[answered]
    errors = np.append(0.0, np.cumsum(w * bad))[answered]
    level = 1 - (1 - check_rate(confidence, "confidence")) / len(ranks)
    # Strictly below the first row left out is at or below the float before it.
    thresholds = np.append(np.nextafter(first_out, -np.inf), np.inf)
    distinct = np.diff(n, prepend=0.0) > 0
    thresholds, n, errors = thresholds[distinct], n[distinct], errors[distinct]
    upper = risk_upper_bound(errors, n, level)
    return RejectCurve(thresholds, n / n[-1], errors / n, upper, float(confidence))
