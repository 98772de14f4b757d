"""Counts of positives and negatives at every threshold, for AUPR and FPR."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from .._validation import Floats, Ints, check_positive_class, check_scores

PositiveClass = Literal["out", "in"]


def positive_and_negative(
    uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike, positive: PositiveClass
) -> tuple[Floats, Floats]:
    """Return the scores of the positive and of the negative class, higher = more positive."""
    check_positive_class(positive)
    u_in = check_scores("uncertainty_in", uncertainty_in)
    u_out = check_scores("uncertainty_out", uncertainty_out)
    return (u_out, u_in) if positive == "out" else (-u_in, -u_out)


def counts_at_thresholds(positive: Floats, negative: Floats) -> tuple[Ints, Ints]:
    """Count positives and negatives with a score >= t, for each distinct score t, highest first.

    Equal scores share one threshold, so no order among tied inputs can matter. Only comparisons are
    used, so infinities are scores like any other.
    """
    thresholds = np.unique(np.concatenate([positive, negative]))[::-1]
    return _count_at_least(positive, thresholds), _count_at_least(negative, thresholds)


def _count_at_least(scores: Floats, thresholds: Floats) -> Ints:
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")
