"""The second pass: moments of the features of all rows that are not held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...classifier import DIPClassifier
from ...density.ensemble import DensityEnsemble, Fence
from ...inputs import compute_features
from ..table.columns import ColumnSpec, as_inputs
from .parts import Part
from .reading import HeldRule, Reading, Refusals, as_classes
from .sums import Form, Sums, needed_forms


@dataclass(frozen=True, eq=False)
class Added:
    """Sums of the second pass; ``a + b`` are those of the rows of both."""

    rows: int
    sums: Sums | None
    low: Any
    high: Any
    refused: Refusals

    def __add__(self, other: Added) -> Added:
        if self.sums is None or other.sums is None:
            some = self if other.sums is None else other
            rows, refused = self.rows + other.rows, self.refused + other.refused
            return replace(some, rows=rows, refused=refused)
        return Added(
            self.rows + other.rows,
            self.sums + other.sums,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.refused + other.refused,
        )


@dataclass(frozen=True, eq=False)
class SecondPass:
    """The second pass over a part: moments of the features of all rows that are not held out."""

    reading: Reading
    columns: tuple[ColumnSpec, ...]
    rule: HeldRule
    features: Any
    fence: Fence
    forms: tuple[Form, ...]
    classes: np.ndarray
    unread: frozenset[str]

    @classmethod
    def of(
        cls, reading: Reading, columns: tuple[ColumnSpec, ...], rule: HeldRule, clf: DIPClassifier,
        X: Any, y: np.ndarray, classes: np.ndarray, unread: frozenset[str],
    ) -> SecondPass:  # fmt: skip
        """After a fit of `clf` on X of the reservoir with labels y; leaves out parts `unread`."""
        evidence = clf.evidence_
        fence = Fence.of(evidence.transform(X), y, None)
        if not isinstance(evidence.density_, DensityEnsemble):
            # Only densities made of several leave far rows out.
            fence = replace(fence, limit=fence.limit + np.inf)
        forms = needed_forms(evidence.density_)
        # Texts are sorted sooner than objects.
        classes = classes.astype(str) if classes.dtype.kind == "O" else classes
        return cls(reading, columns, rule, evidence.features_, fence, forms, classes, unread)

    def __call__(self, part: Part) -> Added:
        """The sums of a part."""
        found = Added(0, None, None, None, Refusals())
        for batch in () if part.name in self.unread else self.reading.batches(part):
            if not len(batch.labels):
                continue
            kept = ~self.rule(self.reading.keys(batch)[1])
            frame = batch.frame.loc[kept].reset_index(drop=True)
            X, fine, odd = as_inputs(self.columns, frame, batch.numbers[kept])
            refused = Refusals.of(part.name, odd)
            y = as_classes(batch.labels[kept][fine], self.classes)
            found = found + replace(self._of(X, y), refused=refused)
        return found

    def smaller(self) -> SecondPass | None:
        """As `Engine` asks for it."""
        reading = self.reading.smaller()
        return None if reading is None else replace(self, reading=reading)

    def _of(self, X: Any, y: np.ndarray) -> Added:
        n = len(y)
        Z = compute_features(self.features, X) if n else np.empty((0, len(self.fence.limit)))
        near = self.fence.near(Z)
        if not near.any():
            return Added(n, None, None, None, Refusals())
        Z, y = Z[near], y[near]
        sums = Sums.of(Z, y, self.classes, self.forms)
        return Added(n, sums, Z.min(axis=0), Z.max(axis=0), Refusals())
