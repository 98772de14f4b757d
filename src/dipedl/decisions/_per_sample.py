"""Uncertainties of single inputs and decisions about them, as methods of a fitted classifier."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..calibration.crossfit import IN_SAMPLE
from ..calibration.held_out import HeldOut
from ..dirichlet import Dirichlet
from ..maths.kinds import most_probable, uncertainty_of
from .p_values import conformal_p_values
from .rejection import RejectCurve, Rejection, reject_curve
from .sets import conformal_quantile, prediction_sets

_REMEDY = "give it labelled in-distribution rows that fit has not seen: clf.calibrate(X, y)"


class PerSampleDecisions:
    """Uncertainties; OOD p-values, alarms, prediction sets and rejection from held-out rows.

    Every threshold is computed from ``evidence_.held_out_``, which is saved with the model. The
    guarantees are exact for held-out rows that the model has not used and that are exchangeable
    with new ones; cross-fitting follows them closely but carries no proof. No guarantee holds for
    OOD inputs or after a shift. See the page "Decisions" of the documentation.
    """

    evidence_: Any
    classes_: np.ndarray

    if TYPE_CHECKING:

        def score_samples(self, X: Any) -> np.ndarray: ...
        def predict_proba(self, X: Any) -> np.ndarray: ...
        def predict_dirichlet(self, X: Any) -> Dirichlet: ...
        def classifier_proba(self, X: Any) -> np.ndarray: ...
        def _proba_and_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]: ...
        def _dirichlet(self, P: np.ndarray, scores: np.ndarray) -> Dirichlet: ...

    def uncertainty(self, X: Any, kind: str = "vacuity") -> np.ndarray:
        """Uncertainty of each input, shape (n,); higher is less sure, always.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        kind : str, default="vacuity"
            Of the Dirichlet: "vacuity" (share of the prior, in (0, 1]), "total", "aleatoric",
            "epistemic" and "differential_entropy" (nats), "dissonance". Of the bare classifier:
            "max_prob" (one minus the largest probability), "entropy" (nats). Of the density:
            "log_density" (negated, nats), which ranks like vacuity but never ties.
        """
        return uncertainty_of(
            kind,
            lambda: self.predict_dirichlet(X),
            lambda: self.classifier_proba(X),
            lambda: self.score_samples(X),
        )

    def p_value(self, X: Any, random_state: np.random.Generator | int | None = None) -> np.ndarray:
        """Conformal p-value of "this input is like the training data", shape (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        random_state : Generator or int, optional
            Break ties at random, so that p is exactly uniform on ID inputs; by default ties count
            against an alarm and p is deterministic.

        Returns
        -------
        ndarray, shape (n,)
            Share of the N held-out inputs that are no more typical, ``(1 + #) / (N + 1)``: on ID
            inputs at most `alpha` with probability at most `alpha`.

        See Also
        --------
        dipedl.decisions.conformal_p_values : the formula.
        """
        held = self._held_out()
        return conformal_p_values(self.score_samples(X), held.scores, held.weights, random_state)

    def predict_ood(self, X: Any, alpha: float | None = None) -> np.ndarray:
        """+1 for inputs like the training data, -1 where ``p_value(X) <= alpha``, shape (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        alpha : float, optional
            Share of ID inputs that may be flagged, in (0, 1); default: `false_alarm_rate`.
        """
        check_is_fitted(self, "evidence_")
        threshold = self.evidence_.threshold(alpha)
        return np.where(self.score_samples(X) < threshold, -1, 1)

    def predict_set(self, X: Any, coverage: float = 0.9, method: str = "lac") -> np.ndarray:
        """Classes that may be the true one, shape (n, k), bool, in the order of ``classes_``.

        Split conformal prediction over the posterior mean: the set of a new ID input holds its true
        class with probability at least `coverage`.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        coverage : float, default=0.9
            In (0, 1).
        method : {"lac", "aps"}, default="lac"
            "lac": classes above a probability; smallest sets on average, and an empty one where no
            class is probable enough. "aps": the most probable classes up to a total probability;
            never empty. Far from all data classes are equally probable: "aps" holds all of them,
            "lac" all or none.

        Returns
        -------
        ndarray of bool, shape (n, k)
            All True, with a warning, if there are too few held-out rows for the coverage.

        See Also
        --------
        dipedl.decisions.prediction_sets : the formulas.
        """
        held, labels = self._held_out(), self._held_out_labels("predict_set")
        sets = prediction_sets(
            self.predict_proba(X),
            self.held_out_dirichlet().mean,
            labels,
            coverage=coverage,
            method=method,
            weights=held.weights,
        )
        needed = coverage / (1 - coverage) * (1 - 1e-9)
        if held.total < needed:
            warnings.warn(
                f"coverage={coverage:g} needs at least {np.ceil(needed):g} held-out inputs, got "
                f"{held.total:g}: every set holds all classes; {_REMEDY}",
                UserWarning,
                stacklevel=2,
            )
        return sets

    def predict_with_reject(
        self,
        X: Any,
        *,
        risk: float | None = None,
        coverage: float | None = None,
        confidence: float = 0.9,
        kind: str = "total",
    ) -> Rejection:
        """Labels, and which of them to trust, for a promised error rate or a promised share.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        risk : float, optional
            Largest error rate among accepted ID inputs. With probability `confidence` over the
            held-out rows it holds for new ones.
        coverage : float, optional
            Accept an ID input with at least this probability; needs no labels. Exactly one of
            `risk` and `coverage` is given.
        confidence : float, default=0.9
            Of the promise of `risk`.
        kind : str, default="total"
            Which uncertainty decides, see `uncertainty`.

        Returns
        -------
        Rejection
            ``labels``, ``accepted``, ``threshold``; ``filled(marker)`` puts a marker in place of
            what is rejected. A risk that cannot be promised rejects everything, with a warning that
            names the smallest one that can.

        See Also
        --------
        reject_curve : every risk that can be promised.
        """
        threshold = self._reject_threshold(risk, coverage, confidence, kind)
        P, scores = self._proba_and_scores(X)
        d = self._dirichlet(P, scores)
        u = uncertainty_of(kind, lambda: d, lambda: P, lambda: scores)
        labels = np.asarray(self.classes_[most_probable(d.concentration, P)])
        level = None if risk is None else confidence
        return Rejection(labels, u <= threshold, threshold, kind, risk, coverage, level)

    def reject_curve(self, kind: str = "total", confidence: float = 0.9) -> RejectCurve:
        """Error rates that can be promised at 5 %, 10 %, ..., 100 % coverage, all at once.

        Parameters
        ----------
        kind : str, default="total"
            Which uncertainty decides, see `uncertainty`.
        confidence : float, default=0.9
            Probability that all bounds hold.

        See Also
        --------
        dipedl.decisions.reject_curve : how.
        """
        labels = self._held_out_labels("reject_curve")
        concentration = self.held_out_dirichlet().concentration
        wrong = most_probable(concentration, self._held_out_proba()) != labels
        u, weights = self._held_out_uncertainty(kind), self._held_out().weights
        return reject_curve(u, wrong, confidence=confidence, weights=weights)

    def held_out_dirichlet(self) -> Dirichlet:
        """The Dirichlet of each of the N held-out inputs, in the order of ``held_out_``."""
        return self._dirichlet(self._held_out_proba(), self._held_out().scores)

    def _held_out(self) -> HeldOut:
        check_is_fitted(self, "evidence_")
        held: HeldOut = self.evidence_.held_out_
        return held

    def _held_out_proba(self) -> np.ndarray:
        held = self._held_out()
        if held.proba is None:
            raise ValueError(
                f"the held-out inputs of this model ({held.source}) have no class probabilities; "
                + _REMEDY
            )
        return np.asarray(held.proba)

    def _held_out_labels(self, method: str) -> np.ndarray:
        self._held_out_proba()
        held = self._held_out()
        fault = _fault(held)
        if held.labels is None or fault:
            raise ValueError(
                f"{method} needs held-out inputs with labels of two classes at least, and those of "
                f"this model ({held.source}) {fault}; {_REMEDY}"
            )
        return np.asarray(held.labels)

    def _held_out_uncertainty(self, kind: str) -> np.ndarray:
        scores = self._held_out().scores
        return uncertainty_of(kind, self.held_out_dirichlet, self._held_out_proba, lambda: scores)

    def _reject_threshold(
        self, risk: float | None, coverage: float | None, confidence: float, kind: str
    ) -> float:
        if coverage is not None and risk is None:
            weights = self._held_out().weights
            return conformal_quantile(self._held_out_uncertainty(kind), coverage, weights)
        if risk is None or coverage is not None:
            raise ValueError(
                f"give exactly one of risk and coverage, got risk={risk!r}, coverage={coverage!r}"
            )
        curve = self.reject_curve(kind, confidence)
        threshold = curve.threshold(risk)
        if threshold == -np.inf:
            warnings.warn(
                f"risk={risk:g} cannot be promised with confidence={confidence:g} from "
                f"{self._held_out().total:g} held-out inputs: everything is rejected; the "
                f"smallest risk that can be is {curve.upper.min():.3g}. Ask for that, or hold out "
                "more rows: clf.calibrate(X, y)",
                UserWarning,
                stacklevel=3,
            )
        return threshold


def _fault(held: HeldOut) -> str:
    """Why no promise about labels can come from these rows, or nothing."""
    if held.labels is None:
        return "have no labels"
    if IN_SAMPLE in held.source:
        return "are the ones that it was fitted on"
    return "are all of one class" if (held.labels == held.labels[0]).all() else ""
