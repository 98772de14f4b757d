"""Sets of classes that hold the true one with a stated probability: split conformal prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..evidence.normalizers import weighted_quantile
from ..maths.arrays import check_choice, check_flag, check_proba, check_rate, class_indices
from .p_values import held_out_array, weights_or_ones

__all__ = ["conformal_quantile", "prediction_sets"]

#: Probabilities that differ by less are equal: how a sum is rounded depends on the rows beside it.
_ROUNDING = 1e-12


def conformal_quantile(
    values: npt.ArrayLike, coverage: float, weights: npt.ArrayLike | None = None
) -> float:
    """Smallest threshold that a new value stays at or below with probability >= `coverage`.

    The ``ceil(coverage (N + 1))``-th smallest of N held-out values, and ``inf`` if N is too small
    for that: below ``coverage / (1 - coverage)``.

    Parameters
    ----------
    values : array-like, shape (N,)
        Of held-out ID inputs, exchangeable with those of new ones.
    coverage : float
        In (0, 1).
    weights : array-like, shape (N,), optional
        How many inputs each stands for, >= 0.

    Returns
    -------
    float
        One of `values`, or inf.

    Raises
    ------
    ValueError
        If there is no value, one is NaN, or `coverage` is out of range.

    References
    ----------
    A. N. Angelopoulos, S. Bates, "Conformal prediction: a gentle introduction", 2023, Theorem 1.

    Examples
    --------
    >>> from dipedl.decisions import conformal_quantile
    >>> conformal_quantile(range(1, 20), coverage=0.9)
    18.0
    >>> conformal_quantile(range(1, 20), coverage=0.99)
    inf
    """
    held_out = held_out_array("values", values)
    w = weights_or_ones(weights, held_out)
    # A hair less: 0.9 * 20 must not become 19 by the last bit.
    needed = check_rate(coverage, "coverage") * (w.sum() + 1) * (1 - 1e-12)
    if needed > w.sum():
        return np.inf
    return weighted_quantile(held_out[w > 0], needed / w.sum(), w[w > 0])


def prediction_sets(
    proba: npt.ArrayLike,
    held_out_proba: npt.ArrayLike,
    held_out_labels: npt.ArrayLike,
    *,
    coverage: float = 0.9,
    method: str = "lac",
    weights: npt.ArrayLike | None = None,
    by_class: bool = False,
) -> np.ndarray:
    """Return the classes in the prediction set of each input, shape (n, k), bool.

    If the N held-out rows and a new one are exchangeable, and the held-out probabilities come from
    the same model as the new ones, the true class is in the set with probability >= `coverage`,
    and, without ties, <= ``coverage + 1 / (N + 1)``. With `by_class` this holds within each class,
    with its own held-out rows for N.

    Parameters
    ----------
    proba : array-like, shape (n, k)
        Class probabilities of new inputs.
    held_out_proba : array-like, shape (N, k)
        Of ID inputs that the model was not fitted on.
    held_out_labels : array-like of int, shape (N,)
        Indices 0..k-1 of their true classes.
    coverage : float, default=0.9
        In (0, 1).
    method : {"lac", "aps"}, default="lac"
        How badly a label fits: "lac": one minus its probability; "aps": the total probability of
        the labels that are strictly more probable, zero for the most probable one. LAC has the
        smallest sets on average, and an empty one where no class is probable enough; a set by APS
        always holds the most probable class, and all classes where all are equally probable.
    weights : array-like, shape (N,), optional
        How many inputs each held-out row stands for, >= 0.
    by_class : bool, default=False
        Take a threshold for each class from the held-out rows of that class alone (Mondrian): a
        rare class is then covered as often as the others, and sets are larger.

    Returns
    -------
    ndarray of bool, shape (n, k)
        All True if N is too small for the coverage; by class, True for each class of too few rows.

    Raises
    ------
    ValueError
        If shapes do not fit, labels are out of range, or an argument is.

    Notes
    -----
    The coverage is that over all inputs or, by class, over those of a class; not over a region. A
    class whose score is above the threshold by no more than 1e-12, which is rounding, belongs to
    the set.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", 2005 (Section 4.5:
    Mondrian); M. Sadinle,
    J. Lei, L. Wasserman, "Least ambiguous set-valued classifiers with bounded error levels",
    *JASA* 114, 2019 (LAC); Y. Romano, M. Sesia, E. Candès, "Classification with valid and adaptive
    coverage", NeurIPS 2020 (APS, here without randomisation).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.decisions import prediction_sets
    >>> held_out = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    >>> new = [[0.95, 0.05], [0.55, 0.45]]
    >>> prediction_sets(new, held_out, [0, 0, 0, 1], coverage=0.8)
    array([[ True, False],
           [ True,  True]])
    >>> prediction_sets(new, held_out, [0, 0, 0, 1], coverage=0.7, by_class=True)
    array([[ True,  True],
           [ True,  True]])
    """
    check_flag("by_class", by_class)
    P = check_proba("proba", proba)
    held_out = check_proba("held_out_proba", held_out_proba)
    if P.shape[1] != held_out.shape[1]:
        raise ValueError(
            f"proba and held_out_proba must have the same classes, got {P.shape[1]} and "
            f"{held_out.shape[1]} columns"
        )
    check_choice("method", method, _SCORES)
    score, (n, k) = _SCORES[method], held_out.shape
    labels = class_indices(held_out_labels, n, k, "held_out_labels")
    of_label = score(held_out)[np.arange(len(held_out)), labels]
    threshold: Any
    if by_class:
        w, own = weights_or_ones(weights, of_label), labels == np.arange(P.shape[1])[:, None]
        threshold = np.array(
            [conformal_quantile(of_label[c], coverage, w[c]) if w[c].any() else np.inf for c in own]
        )
    else:
        threshold = conformal_quantile(of_label, coverage, weights)
    return np.asarray(score(P) <= threshold + _ROUNDING)


def _aps(P: np.ndarray) -> np.ndarray:
    order = np.argsort(-P, axis=1, kind="stable")
    ranked = np.take_along_axis(P, order, axis=1)
    before = np.zeros_like(ranked)
    np.cumsum(ranked[:, :-1], axis=1, out=before[:, 1:])
    # Equally probable labels share the score of the first of them.
    new_value = np.diff(ranked, axis=1, prepend=np.inf) < -_ROUNDING
    before = np.maximum.accumulate(np.where(new_value, before, 0.0), axis=1)
    scores = np.empty_like(before)
    np.put_along_axis(scores, order, before, axis=1)
    # The last bits of a sum would tell apart what is equal.
    return np.round(scores, 12)


_SCORES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"lac": lambda P: 1 - P, "aps": _aps}
