"""Bootstrap confidence interval of any metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..maths.arrays import check_integer
from .metric import check_share

__all__ = ["ConfidenceInterval", "bootstrap_ci"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ConfidenceInterval:
    """Value of a metric and the interval of its sampling error.

    Attributes
    ----------
    estimate : float
        The metric on the data as given.
    low, high : float
        Ends of the percentile interval.
    level : float
        Nominal coverage, such as 0.95.
    n_resamples : int
        Number of bootstrap resamples behind the interval.
    """

    estimate: float
    low: float
    high: float
    level: float
    n_resamples: int


def bootstrap_ci(
    metric: Callable[..., float],
    *arrays: npt.ArrayLike,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | np.random.Generator | None = None,
) -> ConfidenceInterval:
    r"""Percentile bootstrap interval of ``metric(*arrays)``.

    .. math:: [q_{(1-level)/2},\ q_{(1+level)/2}] \text{ of } m(D^{*}_1), \ldots, m(D^{*}_B)

    where each resample D* draws rows with replacement, as many as there are.

    Parameters
    ----------
    metric : callable
        Takes the arrays, returns a float. Fix options with ``functools.partial(fpr_at_tpr,
        tpr=0.9)``.
    *arrays : array-like
        Data, rows on the first axis. Those of a metric of kind "ood" are two samples, which are
        resampled separately; those of any other describe the same rows, which stay together. A
        function of your own of two samples says so by ``function.kind = "ood"``.
    level : float in (0, 1), default=0.95
        Nominal coverage.
    n_resamples : int, default=1000
        Number of resamples; at least 2 / (1 - level), so that each tail holds one of them.
    random_state : int, numpy Generator or None, default=None
        Source of the draws; pass an int for the same interval every time.

    Returns
    -------
    ConfidenceInterval
        ``estimate``, ``low``, ``high``, ``level``, ``n_resamples``.

    Raises
    ------
    ValueError, TypeError
        If there is no row, arrays of the same rows differ in length, ``level`` or ``n_resamples``
        are out of range, or the metric gives NaN on a resample.

    Notes
    -----
    It covers the sampling of the test set only: not the seeds of training, and not dependence
    between rows. The percentile interval is not corrected for bias, so it is off for metrics that
    are biased in small samples, such as ``ece``: the resamples tend to a higher ECE than the data.

    The ends are values of resamples, rounded outwards, never interpolated; so an infinite ``nll``
    gives an infinite end and no NaN.

    References
    ----------
    B. Efron, R. J. Tibshirani, *An Introduction to the Bootstrap*, Chapman & Hall, 1993, section
    13.3 (the interval) and 8.3 (two samples, resampled separately).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.metrics import bootstrap_ci, ood_auroc
    >>> rng = np.random.default_rng(0)
    >>> ci = bootstrap_ci(ood_auroc, rng.normal(0, 1, 200), rng.normal(1, 1, 300), random_state=0)
    >>> round(ci.estimate, 2), ci.low < ci.estimate < ci.high, ci.n_resamples
    (0.74, True, 1000)
    """
    check_share("level", level, one_allowed=False)
    needed = int(np.ceil(round(2 / (1 - level), 6)))
    if check_integer("n_resamples", n_resamples) < needed:
        raise ValueError(
            f"n_resamples must be at least {needed} for level {level}, got {n_resamples}; "
            "with fewer, no resample falls in a tail: pass more of them or a lower level"
        )
    data = [np.asarray(array) for array in arrays]
    separate = getattr(metric.func if isinstance(metric, partial) else metric, "kind", "") == "ood"
    _check_rows(data, separate)
    estimate = float(metric(*data))
    try:
        rng = np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be None, an int >= 0 or a Generator, got {random_state!r}"
        ) from error
    values = np.array([metric(*_resample(data, separate, rng)) for _ in range(n_resamples)])
    bad = int(np.isnan(values).sum())
    if bad:
        raise ValueError(
            f"metric must not give NaN, got NaN on {bad} of {len(values)} resamples; "
            "it is undefined on some of them: give it more data or a metric defined everywhere"
        )
    # Order statistics that leave at most (1-level)/2 on each side: between two infinities there is
    # no mean. Rounded first: 1 - 0.9 is a hair below 0.1, and would lose a whole resample.
    beyond = int(round((1 - level) / 2 * (n_resamples - 1), 9))
    ordered = np.sort(values)
    low, high = float(ordered[beyond]), float(ordered[-1 - beyond])
    return ConfidenceInterval(estimate, low, high, level, int(n_resamples))


def _check_rows(data: Sequence[Array], separate: bool) -> None:
    if not data:
        raise ValueError(
            "arrays must be given, got none; pass for example bootstrap_ci(ece, y, proba)"
        )
    for i, array in enumerate(data):
        if array.ndim == 0 or len(array) == 0:
            raise ValueError(
                f"arrays[{i}] must have at least one row, got shape {array.shape}; "
                "pass the arrays one by one after the metric: bootstrap_ci(metric, y, proba)"
            )
        if not separate and len(array) != len(data[0]):
            raise ValueError(
                f"arrays of the same rows must have the same length, got {len(data[0])} and "
                f"{len(array)}; set metric.kind = 'ood' if they are two samples"
            )


def _resample(data: Sequence[Array], separate: bool, rng: np.random.Generator) -> list[Array]:
    """Draw rows with replacement: for each array its own, or the same for all."""
    if separate:
        return [array[rng.integers(len(array), size=len(array))] for array in data]
    rows = rng.integers(len(data[0]), size=len(data[0]))
    return [array[rows] for array in data]
