"""What is worth showing of many answers and classes: the leading ones, and all others as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._writing.notebook import dirichlet_table, frame
from .array_namespace import Array, exclusive_sum, namespace, to_numpy
from .marginals import credible_interval

__all__ = ["leading_classes", "rest_summed", "shown_in_notebook"]

_MOST = 10


def leading_classes(P: np.ndarray, most: int) -> np.ndarray:
    """Ascending classes of P (n, k), at most `most` with others left over: shape (m,).

    The first class of each row before any other, then those that are largest in some row. A
    single class is never left over.
    """
    k = P.shape[1]
    if k <= most + 1:
        return np.arange(k)
    largest = P.max(axis=0, initial=0.0)
    largest[P.argmax(axis=1)] += 1
    return np.sort(np.argsort(-largest, kind="stable")[:most])


def rest_summed(alpha: Array, shown: np.ndarray) -> Array:
    """The ascending columns `shown` (m,) of alpha (n, k), then the sum of any others: (n, m + 1).

    Sums of components of a Dirichlet are again Dirichlet.
    """
    rest = np.setdiff1d(np.arange(alpha.shape[1]), shown).tolist()
    if not rest:
        return alpha
    xp = namespace(alpha)
    summed = xp.sum(alpha[:, rest], axis=1)
    return xp.concat((alpha[:, shown.tolist()], summed[:, None]), axis=1)


def shown_in_notebook(dirichlet: Any) -> str:
    """HTML of the first inputs of a `Dirichlet`: mean and interval of their leading classes."""
    n, k = dirichlet.concentration.shape
    first = dirichlet[:_MOST]
    classes = leading_classes(to_numpy(first.mean), _MOST)
    names = [f"class {i}" for i in classes] + [f"{k - len(classes)} others"] * (k > len(classes))
    alpha = rest_summed(to_numpy(first.concentration), classes)
    ends = credible_interval(alpha, exclusive_sum(alpha), 0.95)
    bars = np.stack([alpha / alpha.sum(axis=1, keepdims=True), *ends], axis=-1).tolist()
    rows = f", the first {len(first)}" * (n > len(first))
    caption = f"{dirichlet!r}{rows}: vacuity, means and 95 % intervals"
    return frame(dirichlet_table(caption, names, bars, to_numpy(first.vacuity).tolist()))
