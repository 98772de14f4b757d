"""Held-out rows of a baseline, and the decisions that rest on them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..answers import Decisions
from ..explanation import BaselineCard, explain
from ..held_out import HeldOut, calibration_rows
from ..inputs import check_weights


class HeldOutDecisions(Decisions):
    """`calibrate`, and the questions that `dipedl.DIPClassifier` answers, for a baseline.

    The score is the negated uncertainty of the method; probabilities are its own, uncalibrated.
    Nothing of the method is learned from the held-out rows: for these and new inputs exchangeable
    every guarantee is exact.
    """

    #: Share of ID inputs that `predict_ood` flags unless told otherwise.
    false_alarm_rate = 0.05
    has_evidence = False
    _rejects_by = "uncertainty"

    def calibrate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Keep predictions on ID inputs that ``fit`` has not seen, for all decisions.

        Parameters
        ----------
        X : array-like, shape (m, d)
            ID inputs; 100 or more.
        y : array-like, shape (m,), optional
            Their labels. Without them there are p-values and alarms, and no sets or risks.
        sample_weight : array-like, shape (m,), optional
            Counts each row that often.
        """
        check_is_fitted(self, "classes_")
        X, labels = calibration_rows(self, (X, y), self.classes_)
        P, scores = self.proba_and_scores(X)
        indices = None if labels is None else np.searchsorted(self.classes_, labels)
        source = f"{X.shape[0]} held-out inputs"
        weights = check_weights(sample_weight, X)
        self.held_out_ = HeldOut(scores, source, weights, P, indices, origin="given").sorted()
        return self

    def explain(self, X: Any, top: int = 5) -> list[BaselineCard]:
        """Explain the answer to each of the n inputs X (n, d), one card each.

        Reasons by column, or by neighbours, come from a density: only `DDU`, `Mahalanobis`,
        `KNNDistance` and `DAEDL` have one that can be read.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        top : int, default=5
            Features or neighbours named on a card.

        Returns
        -------
        list of BaselineCard, length n
            ``print(card)``, ``card.to_dict()``.
        """
        cards: Any = explain(self, X, top)
        return list(cards)

    def proba_and_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        # Each of the two asks the method itself: one class has no Dirichlet, another no samples.
        return self.predict_proba(X), -self.uncertainty(X)  # type: ignore[attr-defined]

    def readable_density(self, X: Any) -> tuple[Any, np.ndarray, Any] | None:
        """Density behind the score, what it sees of X (n, d), and its transformer; None without."""
        return None

    def held_out_rows(self) -> HeldOut:
        check_is_fitted(self, "classes_")
        if not hasattr(self, "held_out_"):
            raise NotFittedError(
                f"{type(self).__name__} has no held-out rows to take thresholds from; "
                + self.calibration_remedy()
            )
        return self.held_out_

    def _forget_held_out(self) -> None:
        """Forget rows that were held out from an earlier fit."""
        vars(self).pop("held_out_", None)
