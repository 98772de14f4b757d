"""What the width of the credible intervals rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..calibration.held_out import HeldOut
from ..calibration.rehearsal import RARE, SURE, Rehearsal
from ..held_out import seen_before
from ..writing.finding import Finding

#: Of fewer rows the estimated error is off by a factor of two now and then.
_FEW = 200


def interval_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """The learned strength and its support; nothing without a `Rehearsal`."""
    spread = getattr(clf, "spread_", None)
    if not isinstance(spread, Rehearsal):
        return
    if not spread.shares_:
        yield Finding(
            "intervals_unsupported",
            "warning",
            f"{spread.n_:g} rows, or one class, cannot tell how wrong the probabilities are: "
            "intervals are wide, but not near 0 and 1.",
            {"rows": spread.n_},
            "Give more rows with labels of all classes, by fit or calibrate.",
        )
        return
    seen = seen_before(held, clf)
    yield _rehearsed(spread, seen=seen)
    yield from () if seen else _short(spread)
    if spread.n_ < _FEW:
        yield Finding(
            "intervals_of_few_rows",
            "note",
            f"The width of the intervals was estimated on {spread.n_:g} rows and may be off by a "
            "factor of two.",
            {"rows": spread.n_},
            f"Give at least {_FEW} rows if widths matter.",
        )
    if not spread.refits_:
        yield Finding(
            "intervals_of_frozen_classifier",
            "note",
            "The classifier was not fitted again, so the width of the intervals rests on how it "
            "does on these rows alone; it is too small if the classifier was fitted on them.",
            {},
            "Give rows that the classifier was not fitted on.",
        )


def _rehearsed(spread: Rehearsal, *, seen: bool) -> Finding:
    """The strength, and what it rests on; `seen` are rows that the classifier has learned."""
    largest_first = sorted(spread.shares_.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{name} {share:.0%}" for name, share in largest_first)
    numbers = {"strength": spread.strength_, "error": spread.error_, "rows": spread.n_}
    return Finding(
        "intervals_of_seen_rows" if seen else "intervals_rehearsed",
        "warning" if seen else "ok",
        f"Intervals are those of {spread.strength_:.3g} labels where evidence is typical: the "
        f"probabilities are off by {np.sqrt(spread.error_):.3f} (root of the mean squared "
        f"distance), estimated on {spread.n_:g} rows against a mixture of {shares}."
        + " The classifier has learned these rows: it errs more on new ones, and intervals are too "
        "narrow." * seen,
        {**numbers, "refits": spread.refits_},
        "Calibrate with rows that the classifier has not seen." * seen,
    )


def _short(spread: Rehearsal) -> Iterator[Finding]:
    """Where one strength for all classes of an input is known not to be enough."""
    least = f"A probability well below 1 / {spread.strength_:.3g}"
    if spread.rarest_ < RARE:
        yield Finding(
            "intervals_of_a_rare_class",
            "note",
            f"The rarest class has {spread.rarest_:.1%} of the rows of an average class. {least} "
            "may lie outside of its interval: one strength is told for all classes of an input.",
            {"share": spread.rarest_, "strength": spread.strength_},
            "Give more rows of it, weighted by sample_weight, or read its intervals with care.",
        )
    if spread.confidence_ > SURE:
        yield Finding(
            "intervals_without_noise",
            "note",
            f"Held-out rows get {spread.confidence_:.3f} for their most probable class: labels are "
            "nearly without noise. A true probability of 0 or 1 lies outside of nearly every "
            "interval, though it is missed by little.",
            {"confidence": spread.confidence_},
            "Read such an interval as near 0 or near 1.",
        )
