"""Price of caution on known inputs and its gain on unknown ones: a curve to choose by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..evidence_model import CAUTION, EvidenceModel

__all__ = ["CautionCurve"]

#: Values of `caution` on the curve, beside the present one.
_VALUES = (0.0, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True, eq=False)
class CautionCurve:
    """Price and gain of caution, at several values of `caution`, on held-out rows of a model.

    Attributes
    ----------
    caution : ndarray, shape (p,)
        Settings, ascending from 0.
    price : ndarray, shape (p,)
        Rise of the Brier score of held-out rows above that of the calibrated classifier, as the
        share that `caution` is. It is above `caution` where sharpening is withheld from flagged
        rows, and below it where the temperature of the mean mends more than doubt costs.
    outlier_brier : ndarray, shape (p,)
        Brier score of pseudo-outliers made of these rows, against equal probabilities: 0 where
        nothing is claimed about them.
    present : int or None
        Place of the present setting; None for a model with a normaliser of its own.
    """

    caution: np.ndarray
    price: np.ndarray
    outlier_brier: np.ndarray
    present: int | None

    @classmethod
    def of(cls, evidence: EvidenceModel) -> Self | None:
        """Return the curve of a fitted model; None without labels or pseudo-outliers."""
        outliers = evidence.held_out_.outliers
        if not evidence.held_out_.has_labels or outliers is None:
            return None
        now = None
        if evidence.normalizer is None:
            now = CAUTION if evidence.caution is None else float(evidence.caution)
        values = sorted({*_VALUES} if now is None else {*_VALUES, now})
        prices, briers = [], []
        for value in values:
            model = evidence.with_caution(value)
            price = model.price()
            prices.append((price.paid - price.full) / price.unit)
            proba = model.calibrate_proba(outliers.proba, outliers.scores)
            mean = np.asarray(model.dirichlet(proba, outliers.scores).mean)
            briers.append(float(((mean - 1 / mean.shape[1]) ** 2).sum(axis=1).mean()))
        present = None if now is None else values.index(now)
        return cls(np.array(values), np.array(prices), np.array(briers), present)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that ``json.dump`` takes."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    def __str__(self) -> str:
        """Return the points in two lines."""
        points = [
            f"{'*' * (i == self.present)}{c:g}: {p:.1%}, {b:.3f}"
            for i, (c, p, b) in enumerate(
                zip(self.caution, self.price, self.outlier_brier, strict=True)
            )
        ]
        return (
            "Caution (*: present): price in the Brier score of held-out rows, Brier score of "
            f"pseudo-outliers\n{'; '.join(points)}"
        )
