"""Whether a normaliser keeps the order of the scores."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_increasing"]

_PROBES = 1000


def check_increasing(normalizer: Any, scores: np.ndarray) -> None:
    """Raise ValueError if a fitted normaliser turns the order of scores round, or forgets it.

    Asked at the finite scores (at most 1000 of them, evenly by rank), halfway between neighbours,
    and up to 100 times their range outside. Ties are let pass, as those of a map that saturates,
    but not a tie of all. What is not seen at these points is not found.

    Parameters
    ----------
    normalizer : object
        Fitted; has ``transform(scores) -> z``, both of shape (n,).
    scores : ndarray, shape (m,)
        The ID scores that it was fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.evidence import ZScore, check_increasing
    >>> scores = np.array([-3.0, -1.0, 0.5])
    >>> check_increasing(ZScore().fit(scores), scores)
    """
    points = _probes(np.asarray(scores, dtype=np.float64))
    z = _answers(normalizer, points)
    name = type(normalizer).__name__
    # Steps of rounding size are no turn; inf - inf, both at -inf, is a tie.
    with np.errstate(invalid="ignore"):
        step = np.nan_to_num(np.diff(z), nan=0.0)
    rounding = 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(z[:-1]), z[:-1], 0.0)))
    down = np.flatnonzero(step < -rounding)
    if len(down):
        i = down[0]
        raise ValueError(
            f"normalizer {name} must be increasing, but z falls from {z[i]:.6g} to {z[i + 1]:.6g} "
            f"as the score rises from {points[i]:.6g} to {points[i + 1]:.6g}"
        )
    if len(points) > 1 and not (step > 0).any():
        raise ValueError(
            f"normalizer {name} must be increasing, but gives z = {z[0]:.6g} for every score: "
            "it tells no input from another"
        )


def _probes(scores: np.ndarray) -> np.ndarray:
    finite = np.unique(scores[np.isfinite(scores)])
    if len(finite) > _PROBES:
        finite = finite[np.linspace(0, len(finite) - 1, _PROBES).round().astype(int)]
    if not len(finite):
        raise ValueError(f"scores must hold a finite number, got {scores[:3]}")
    span = np.ptp(finite) or 1.0
    outside = span * np.array([1.0, 10.0, 100.0])
    between = (finite[1:] + finite[:-1]) / 2
    return np.unique(np.concatenate([finite, between, finite[0] - outside, finite[-1] + outside]))


def _answers(normalizer: Any, points: np.ndarray) -> np.ndarray:
    z = np.asarray(normalizer.transform(points), dtype=np.float64)
    name = type(normalizer).__name__
    if z.shape != points.shape:
        raise ValueError(
            f"normalizer {name} must give one z per score, shape {points.shape}, got {z.shape}"
        )
    bad = np.isnan(z) | (z == np.inf)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"normalizer {name} gives z = {z[i]} for the score {points[i]:.6g}; "
            "z must be finite, or -inf for no evidence"
        )
    return z
