"""Decisions and uncertainties of models that answer with a Dirichlet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..calibration.held_out import HeldOut
from ..dirichlet import Dirichlet
from ..maths.scores import most_probable, uncertainty_of
from ._narrow import EvidenceDirichlet, ShortDirichlet
from ._per_sample import PerSampleDecisions, of_one_state
from .p_values import conformal_p_values


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of n inputs, out of one pass over them.

    Attributes
    ----------
    labels : ndarray, shape (n,)
        As ``predict`` gives them.
    dirichlet : Dirichlet
        As ``predict_dirichlet``.
    p_values : ndarray, shape (n,)
        As ``p_value``.
    flagged : ndarray of bool, shape (n,)
        Where ``predict_ood`` says -1.
    confidence : ndarray, shape (n,)
        Largest class probability of the calibrated classifier, without the density.
    """

    labels: np.ndarray
    dirichlet: Dirichlet
    p_values: np.ndarray
    flagged: np.ndarray
    confidence: np.ndarray


class DirichletDecisions(PerSampleDecisions):
    """Decisions from ``evidence_.held_out_``, which is saved with the model; all uncertainties."""

    evidence_: Any
    _rejects_by: ClassVar[str] = "total"
    _has_evidence: ClassVar[bool] = True

    if TYPE_CHECKING:

        def _seen(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

    @of_one_state
    def uncertainty(self, X: Any, kind: str = "vacuity") -> np.ndarray:
        """Uncertainty of each input, shape (n,); higher is less sure, always.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        kind : str, default="vacuity"
            Of the Dirichlet: "vacuity" (share of the prior, in (0, 1]), "total", "aleatoric",
            "epistemic" and "differential_entropy" (nats). Of the calibrated classifier: "max_prob"
            (one minus the largest probability), "entropy" (nats). Of the density: "log_density"
            (negated, nats), which ranks like vacuity but never ties.
        """
        P, scores = self._proba_and_scores(X)
        return self._as_answer(self._uncertainty_by(kind, lambda: P, scores))

    @of_one_state
    def answers(self, X: Any) -> Answers:
        """Labels, Dirichlets, p-values and alarms of inputs X (n, d), out of one pass over them.

        The same as `predict`, `predict_dirichlet`, `p_value` and `predict_ood` give, at the cost of
        one of them.
        """
        P, scores = self._proba_and_scores(X)
        held, found = self._held_out_rows(), self._dirichlet(P, scores)
        return Answers(
            np.asarray(self.classes_[most_probable(found.concentration, P)]),
            found,
            conformal_p_values(scores, held.scores, held.weights),
            scores < self._alarm_threshold(None),
            self._evidence().sharpened(P, scores).max(axis=1),
        )

    @of_one_state
    def held_out_dirichlet(self) -> Dirichlet:
        """The Dirichlet of each of the N held-out inputs, in the order of ``held_out_``."""
        return self._dirichlet(self._held_out_proba(), self._held_out_rows().scores)

    def _evidence(self) -> Any:
        """The fitted evidence side."""
        check_is_fitted(self, "evidence_")
        return self.evidence_

    def _snapshot(self) -> Self:
        # What `partial_fit` leaves to the first question is learned once, and kept.
        hasattr(self, "evidence_")
        return super()._snapshot()

    def _held_out_rows(self) -> HeldOut:
        held: HeldOut = self._evidence().held_out_
        return held

    def _proba_and_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities (n, k) that the evidence weighs, and scores (n,), of inputs."""
        _, P, scores = self._seen(X)
        return self._evidence().calibrated(P, scores), scores

    def _dirichlet(self, P: np.ndarray, scores: np.ndarray) -> Dirichlet:
        evidence, spread = self._evidence(), getattr(self, "spread_", None)
        # The paper's preset is as published, and so are its intervals.
        told = hasattr(self, "spread") and evidence.held_out_.origin != "in-sample"
        kind = EvidenceDirichlet if told else Dirichlet
        found = kind.from_evidence(evidence.log_evidence(scores), P, evidence.prior)
        if spread is None:
            return found
        found = found.with_strength(spread.strength(found.log_evidence))
        short = getattr(spread, "falls_short", False)
        return ShortDirichlet.like(found) if short else found

    @property
    def _alarm_rate(self) -> float:
        # That of the fit, whatever was given to set_params since.
        return float(self._evidence().false_alarm_rate)

    def _answer_proba(self, P: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return np.asarray(self._dirichlet(P, scores).mean)

    def _most_probable(self, P: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return most_probable(self._dirichlet(P, scores).concentration, P)

    def _uncertainty_by(
        self, kind: str, proba: Callable[[], np.ndarray], scores: np.ndarray
    ) -> np.ndarray:
        return uncertainty_of(kind, lambda: self._dirichlet(proba(), scores), proba, lambda: scores)

    def _alarm_threshold(self, alpha: float | None) -> float:
        return float(self._evidence().threshold(alpha))
