"""Conformal p-values: how rare is a score this low among in-distribution inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..columns import missing_entries
from ..inputs import check_weights
from ..maths.arrays import float_array
from ..maths.scores import round_down, round_up
from ..maths.seeds import check_seed

__all__ = ["conformal_p_values"]


def conformal_p_values(
    scores: npt.ArrayLike,
    held_out: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    random_state: np.random.Generator | int | None = None,
    labels: npt.ArrayLike | None = None,
) -> np.ndarray:
    r"""p-value of the hypothesis that an input is like the held-out ones, shape (n,).

    .. math:: p(s) = \frac{1 + \#\{i : c_i \le s\}}{N + 1}

    for N held-out scores c, higher = more typical. If those and the new score are exchangeable,
    ``P(p <= alpha) <= alpha`` for every alpha; with `labels` within each class.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of new inputs, higher = more typical, such as log-densities; infinities are allowed.
    held_out : array-like, shape (N,)
        Of ID inputs that the density was not fitted on.
    weights : array-like, shape (N,), optional
        How many inputs each held-out score stands for, >= 0.
    random_state : Generator or int, optional
        Break ties at random: p is then exactly uniform on ID inputs, and depends on the place of
        a row in `scores`. By default ties count against an alarm, and p is deterministic. Scores
        tie if they differ by no more than a billionth of themselves, which is rounding.
    labels : array-like, shape (N,), optional
        Classes of the held-out inputs. The p-value is then the largest of those by the held-out
        inputs of one class each.

    Returns
    -------
    ndarray, shape (n,)
        In [1 / (N + 1), 1]; with random ties in [0, 1].

    Raises
    ------
    ValueError
        If there is no held-out score, or a score is NaN.

    Notes
    -----
    The level holds on average over held-out sets and new inputs; of one held-out set of N, the
    share of ID inputs with ``p <= alpha`` varies around alpha with a standard deviation of about
    ``sqrt(alpha (1 - alpha) / N)``.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", 2005, Section 2.2;
    S. Bates, E. Candès, L. Lei, Y. Romano, M. Sesia, "Testing for outliers with conformal
    p-values", *Annals of Statistics* 51, 2023.

    Examples
    --------
    >>> from dipedl.decisions import conformal_p_values
    >>> conformal_p_values([-9.0, 0.5, 7.0], held_out=[-1.0, 0.0, 1.0, 2.0])
    array([0.2, 0.6, 1. ])
    """
    new, reference = score_array("scores", scores), held_out_array("held_out", held_out)
    w = weights_or_ones(weights, reference)
    if labels is not None:
        classes = np.asarray(labels)
        gaps = classes.shape == reference.shape and missing_entries(classes).any()
        if classes.shape != reference.shape or gaps:
            raise ValueError(
                f"labels must hold a class for each held-out score, shape {reference.shape}, got "
                f"shape {classes.shape}{' with gaps; leave such rows out' * bool(gaps)}"
            )
        parts = (classes == c for c in np.unique(classes[w > 0]))
        own = [conformal_p_values(new, reference[c], w[c], random_state) for c in parts]
        return np.asarray(np.max(own, axis=0))
    order = np.argsort(reference, kind="stable")
    reference, cumulative = reference[order], np.concatenate([[0.0], np.cumsum(w[order])])
    at_or_below = cumulative[np.searchsorted(round_down(reference), new, side="right")]
    if random_state is None:
        return np.asarray((1 + at_or_below) / (1 + cumulative[-1]))
    below = cumulative[np.searchsorted(round_up(reference), new, side="left")]
    check_seed(random_state)
    u = np.random.default_rng(random_state).random(len(new))
    return np.asarray((below + u * (1 + at_or_below - below)) / (1 + cumulative[-1]))


def score_array(name: str, values: Any) -> np.ndarray:
    """Return one number a row, shape (n,), float64; infinities are allowed."""
    array = float_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must hold one number a row, shape (n,), got shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not hold NaN, got it at row {int(np.isnan(array).argmax())}")
    return array


def held_out_array(name: str, values: Any) -> np.ndarray:
    """Return one number a row, as `score_array`, of one row at least."""
    array = score_array(name, values)
    if not len(array):
        raise ValueError(f"{name} is empty: a threshold needs in-distribution rows held out of fit")
    return array


def weights_or_ones(weights: Any, rows: np.ndarray) -> np.ndarray:
    """Return how many inputs each row stands for, shape (n,)."""
    checked = check_weights(weights, rows, "weights")
    return np.ones(len(rows)) if checked is None else checked
