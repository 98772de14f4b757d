"""Answers of a fitted model: p-values, alarms, sets of classes, rejection, uncertainties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .decisions.costs import (
    HALF,
    Decision,
    check_cost,
    cost_matrix,
    expected_costs,
    unknown_probability,
)
from .decisions.p_values import conformal_p_values
from .decisions.rejection import RejectCurve, Rejection, reject_curve
from .decisions.sets import conformal_quantile, prediction_sets
from .dirichlet import DIRICHLET_KINDS, Dirichlet, entropy, max_prob, most_probable
from .held_out import HeldOut, warn_of_held_out_rows
from .inputs import FittedClassifier, select_weighted_rows, validate_calibration_rows
from .maths.arrays import check_choice, check_flag, check_rate
from .maths.scores import round_up
from .writing.finding import warn_caller
from .writing.text import plain_labels

__all__ = ["Answers", "Decisions"]

_OF_PROBA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "max_prob": max_prob,
    "entropy": entropy,
}
#: Classes of too few held-out rows that a warning names.
_NAMED = 5
#: In place of inputs: the held-out ones.
_HELD_OUT: Any = object()
_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a model to n inputs, out of one pass over them.

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
        Largest class probability of ``classifier_proba``: calibrated, without the density.
    sets : ndarray of bool, shape (n, k), or None
        As ``predict_set`` gives them, if a `coverage` was asked for.
    reasons : ndarray of str, shape (n,), or None
        Why an input is rare, in words; empty for an input that was not asked about.
    """

    labels: np.ndarray
    dirichlet: Dirichlet
    p_values: np.ndarray
    flagged: np.ndarray
    confidence: np.ndarray
    sets: np.ndarray | None = None
    reasons: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.p_values)

    def __getitem__(self, rows: Any) -> Answers:
        """Return the answers to some of the inputs: a slice, a mask or an index array."""
        parts: Any = {name: None if v is None else v[rows] for name, v in vars(self).items()}
        return Answers(**parts)

    @classmethod
    def concatenate(cls, several: Sequence[Answers]) -> Answers:
        """Return answers of one model, one below the other."""
        if len(several) == 1:
            return several[0]
        first = several[0]
        columns: dict[str, Any] = {}
        for name in vars(first).keys() - {"dirichlet"}:
            parts = [getattr(one, name) for one in several]
            columns[name] = None if parts[0] is None else np.concatenate(parts)
        dirichlet = Dirichlet(
            np.concatenate([one.dirichlet.concentration for one in several]),
            np.concatenate([one.log_evidence for one in several]),
            first.dirichlet.prior,
            first.dirichlet.caveat,
        )
        return cls(dirichlet=dirichlet, **columns)

    @property
    def proba(self) -> np.ndarray:
        """Class probabilities, the means of the Dirichlets, shape (n, k)."""
        return np.asarray(self.dirichlet.mean)

    @property
    def vacuity(self) -> np.ndarray:
        """Share of the prior in each answer, shape (n,)."""
        return np.asarray(self.dirichlet.vacuity)

    @property
    def log_evidence(self) -> np.ndarray:
        """Logarithm of the evidence in equivalent training samples, in nats, shape (n,)."""
        return np.asarray(self.dirichlet.log_evidence)


def on_snapshot(method: _Method) -> _Method:
    """Run the method on a snapshot of the model, which another thread may calibrate meanwhile."""

    @wraps(method)
    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self.snapshot(), *args, **kwargs)

    return cast(_Method, answer)


def snapshot_of(model: Any) -> Any:
    """Return a shallow copy of the model, whose attributes nobody else replaces."""
    snapshot = object.__new__(type(model))
    vars(snapshot).update(vars(model))
    return snapshot


class Decisions:
    """OOD p-values, alarms, prediction sets and rejection, with thresholds from held-out rows.

    The one mixin of `dipedl.DIPClassifier`, `dipedl.DIPModule` and the baselines. The guarantees
    are exact for held-out rows that the model has not used and that are exchangeable with new ones;
    cross-fitting follows them closely but carries no proof. No guarantee holds for OOD inputs or
    after a shift. See the page "Decisions" of the documentation.

    A model with evidence gives class probabilities and scores by `predict_parts`, and Dirichlets
    by `evidence_`. A baseline has neither: its probabilities are those of `predict_proba`,
    uncalibrated, its score is the negated `uncertainty`, and its held-out rows are those of
    `calibrate`. As nothing is learned from them, every guarantee is exact.
    """

    classes_: np.ndarray
    evidence_: Any
    predict_proba: Any
    #: Features (n, p), class probabilities (n, k) and scores (n,) of X, where there is evidence.
    predict_parts: Callable[[Any], tuple[np.ndarray, np.ndarray, np.ndarray]]
    #: Share of ID inputs that `predict_ood` may flag.
    false_alarm_rate: float = 0.05
    #: How the model gets held-out rows, for error messages.
    calibrated_by: ClassVar[str] = "clf.calibrate(X, y)"

    @property
    def has_evidence(self) -> bool:
        """True if a density gives evidence; False for a baseline."""
        return hasattr(type(self), "evidence_")

    def calibrate(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Keep predictions on ID inputs that ``fit`` has not seen, for all decisions.

        Parameters
        ----------
        X : array-like, shape (m, d)
            ID inputs; 100 or more.
        y : array-like, shape (m,), optional
            Their labels. Without them there are p-values and alarms, and no sets or risks.
        sample_weight : array-like, shape (m,), optional
            Counts each row that often.
        groups : array-like, shape (m,), optional
            Person, device or site of each row: `diagnose` then counts groups, not rows.
        """
        check_is_fitted(self, "classes_")
        X, labels = validate_calibration_rows(self, (X, y), self.classes_)
        X, labels, weights, groups, _ = select_weighted_rows(X, labels, sample_weight, groups)
        P, scores = self.proba_and_scores(X)
        indices = None if labels is None else FittedClassifier(None, self.classes_).indices(labels)
        source = f"{X.shape[0]} held-out inputs"
        held_out = HeldOut(scores, source, weights, P, indices, origin="given")
        if groups is not None:
            held_out = held_out.in_groups(groups, self.false_alarm_rate)
        self.held_out_ = held_out.sort()
        warn_of_held_out_rows(self.held_out_, self)
        return self

    @on_snapshot
    def p_value(
        self,
        X: Any,
        random_state: np.random.Generator | int | None = None,
        *,
        by_class: bool = False,
    ) -> np.ndarray:
        """Conformal p-value of "this input is like the training data", shape (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        random_state : Generator or int, optional
            Break ties at random, so that p is exactly uniform on ID inputs; by default ties count
            against an alarm and p is deterministic.
        by_class : bool, default=False
            Compare with the held-out inputs of each class apart, and give the largest p-value. If a
            class has none, every p-value is 1, with a warning that names it.

        Returns
        -------
        ndarray, shape (n,)
            Share of the N held-out inputs that are no more typical, ``(1 + #) / (N + 1)``: on ID
            inputs at most `alpha` with probability at most `alpha`; by class, on those of each
            class.

        See Also
        --------
        dipedl.decisions.conformal_p_values : the formula.
        """
        check_flag("by_class", by_class)
        held_out, scores = self.held_out_rows(), self.proba_and_scores(X)[1]
        labels = self._held_out_labels("p_value by class") if by_class else None
        if labels is not None and len(self._classes_below(1)):
            self._warn_of_classes(1, "a p-value by class", "every p-value is 1")
            return self._as_answer(np.ones(len(scores)))
        p = conformal_p_values(scores, held_out.scores, held_out.weights, random_state, labels)
        return self._as_answer(p)

    @on_snapshot
    def predict_ood(
        self, X: Any, alpha: float | None = None, *, by_class: bool = False
    ) -> np.ndarray:
        """+1 for inputs like the training data, -1 where ``p_value(X) <= alpha``, shape (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        alpha : float, optional
            Share of ID inputs that may be flagged, in (0, 1); default: `false_alarm_rate`.
        by_class : bool, default=False
            Flag at most that share of each class: the lowest of the thresholds of the classes. With
            too few held-out rows of a class nothing is flagged, with a warning that names it.
        """
        threshold = self.alarm_threshold(alpha, by_class)
        return self._as_answer(np.where(self.proba_and_scores(X)[1] < threshold, -1, 1))

    @on_snapshot
    def predict_set(
        self, X: Any, coverage: float = 0.9, method: str = "lac", *, by_class: bool = False
    ) -> np.ndarray:
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
        by_class : bool, default=False
            Hold the coverage within each class, by the held-out rows of that class alone: for rare
            classes, which sets may otherwise never hold. Sets are larger.

        Returns
        -------
        ndarray of bool, shape (n, k)
            All True, with a warning, if there are too few held-out rows for the coverage; by class,
            True for each class that has too few, with a warning that names it.

        See Also
        --------
        dipedl.decisions.prediction_sets : the formulas.
        """
        return self._as_answer(
            self.prediction_sets(
                self.answer_proba(*self.proba_and_scores(X)), coverage, method, by_class=by_class
            )
        )

    def prediction_sets(
        self, proba: np.ndarray, coverage: float, method: str = "lac", *, by_class: bool = False
    ) -> np.ndarray:
        """Return the sets of classes, shape (n, k), of answers by their probabilities (n, k)."""
        held_out, labels = self.held_out_rows(), self._held_out_labels("predict_set")
        sets = prediction_sets(
            proba,
            self.answer_proba(held_out.proba, held_out.scores),
            labels,
            coverage=coverage,
            method=method,
            weights=held_out.weights,
            by_class=by_class,
        )
        needed = coverage / (1 - coverage) * (1 - 1e-9)
        if by_class:
            self._warn_of_classes(needed, f"coverage={coverage:g}", "every set holds these classes")
        elif held_out.total < needed:
            warn_caller(
                f"coverage={coverage:g} needs at least {np.ceil(needed):g} held-out inputs, got "
                f"{held_out.total:g}: every set holds all classes; {self.calibration_remedy()}"
            )
        return sets

    @on_snapshot
    def predict_with_reject(
        self,
        X: Any,
        *,
        risk: float | None = None,
        coverage: float | None = None,
        confidence: float = 0.9,
        kind: str | None = None,
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
        kind : str, optional
            Which uncertainty decides, see `uncertainty`. Default: "total" where the answer is a
            Dirichlet. A baseline has "uncertainty" (its own, the default), "max_prob" and
            "entropy".

        Returns
        -------
        Rejection
            ``labels``, ``accepted``, ``threshold``; ``fill(marker)`` puts a marker in place of
            what is rejected. A risk that cannot be promised rejects everything, with a warning that
            names the smallest one that can.

        See Also
        --------
        reject_curve : every risk that can be promised.
        """
        kind = self._kinds[0] if kind is None else kind
        if coverage is not None and risk is None:
            u, weights = self._held_out_uncertainty(kind), self.held_out_rows().weights
            threshold = float(round_up(conformal_quantile(u, coverage, weights)))
        elif risk is None or coverage is not None:
            raise ValueError(
                f"give exactly one of risk and coverage, got risk={risk!r}, coverage={coverage!r}"
            )
        else:
            curve = self.reject_curve(kind, confidence)
            threshold = curve.threshold(risk)
            if threshold == -np.inf:
                warn_caller(
                    f"risk={risk:g} cannot be promised with confidence={confidence:g} from "
                    f"{self.held_out_rows().total:g} held-out inputs: everything is rejected; the "
                    f"smallest risk that can be is {curve.upper.min():.3g}. Ask for that, or hold "
                    f"out more rows: {self.calibrated_by}"
                )
        P, scores = self.proba_and_scores(X)
        u = self._uncertainty_by(kind, lambda: P, scores)
        labels = np.asarray(self.classes_[self.label_indices(P, scores)])
        level = None if risk is None else confidence
        return Rejection(labels, u <= threshold, threshold, kind, risk, coverage, level)

    @on_snapshot
    def decide(
        self,
        X: Any,
        *,
        cost_error: float | None = None,
        cost_reject: float,
        cost_unknown: float | None = None,
        costs: Any = None,
        unknown: float = 0.0,
        caught: float | None = None,
        alpha: float | None = None,
    ) -> Decision:
        """Answers of the least expected cost, and none where that costs less (Chow's rule).

        By the calibrated probabilities of the classifier. Flagged inputs get no answer: the
        probabilities say nothing about them. With a share of unknown inputs, others may get none
        either: the lower the p-value, the more probable it is that an input is unknown.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        cost_error : float, optional
            Of a wrong answer, >= 0, in any unit.
        cost_reject : float
            Of no answer, such as a look by a person, >= 0.
        cost_unknown : float, optional
            Of an answer to an input of no known class, >= 0; default: the largest cost of a
            mistake. If it isn't above `cost_reject`, flagged inputs are answered too.
        costs : array-like, shape (k, k), optional
            In place of `cost_error`: true classes in rows, answers in columns, in the order of
            ``classes_``.
        unknown : float, default=0.0
            Share of unknown inputs that is expected, in [0, 1).
        caught : float, optional
            Share of these that is flagged at `alpha`; default: the mean of `rehearse_unknown` where
            it has run, else one half.
        alpha : float, optional
            Share of ID inputs that may be flagged; default: `false_alarm_rate`.

        Returns
        -------
        Decision
            ``labels``, ``accepted``, ``flagged``, expected ``costs``, and the mean cost of the same
            rule on the held-out rows; ``fill(marker)`` puts a marker where no answer is given.

        Raises
        ------
        ValueError, TypeError
            If a cost is negative, NaN, no number or of another shape; if a share is none; without
            held-out labels.

        See Also
        --------
        predict_with_reject : by a bound on the error rate.
        held_out_decision : the same of the held-out rows.
        dipedl.decisions.unknown_probability : how probable it is that an input is unknown.
        """
        matrix = cost_matrix(len(self.classes_), cost_error, costs)
        reject = check_cost("cost_reject", cost_reject)
        cost = float(matrix.max())
        if cost_unknown is not None:
            cost = check_cost("cost_unknown", cost_unknown)
        alarm, rate = self.alarm_threshold(alpha), self.alarm_rate if alpha is None else alpha
        threshold = alarm if cost > reject else -np.inf
        if caught is None:
            caught, rehearsed = HALF, getattr(self, "unknown_rehearsal_", None)
            if rehearsed is not None:
                caught, rate = float(rehearsed.mean[0]), rehearsed.false_alarm_rate
        held_out, labels = self.held_out_rows(), self._held_out_labels("decide")
        known = held_out.before_calibration().proba
        if X is _HELD_OUT:
            P, scores = known, held_out.scores
        elif self.has_evidence:
            _, P, scores = self.predict_parts(X)
        else:
            P, scores = self.proba_and_scores(X)
        if self.has_evidence:
            P, known = map(self.evidence_.calibrate_in_full, (P, known))
        shares = {"unknown": unknown, "caught": caught, "rate": rate}
        held = held_out.scores, held_out.weights

        def answer(P: Any, scores: Any) -> tuple[np.ndarray, ...]:
            """Answers, their expected costs, whether they are given; P(unknown)."""
            q = unknown_probability(conformal_p_values(scores, *held), **shares)
            risks = expected_costs(P, matrix)
            answers, least = risks.argmin(axis=1), risks.min(axis=1)
            risk = (1 - q) * least + q * cost
            return answers, risk, (risk <= reject) & (np.asarray(scores) >= threshold), q

        answers, risks, accepted, q = answer(P, scores)
        own, _, answered, _ = answer(known, held_out.scores)
        paid = np.where(answered, matrix[labels, own], reject)
        return Decision(
            np.asarray(self.classes_[answers]),
            accepted,
            scores < alarm,
            np.where(accepted, risks, reject),
            held_out.average(paid),
            held_out.average(answered),
            reject,
            cost,
            q,
        )

    @on_snapshot
    def held_out_decision(self, **costs: Any) -> Decision:
        """Return the decisions about the N held-out inputs, in the order of ``held_out_``.

        Arguments as of `decide`, but for X.
        """
        return Decisions.decide(self, _HELD_OUT, **costs)  # a module makes a call of its inputs

    @on_snapshot
    def reject_curve(self, kind: str | None = None, confidence: float = 0.9) -> RejectCurve:
        """Error rates that can be promised at 5 %, 10 %, ..., 100 % coverage, all at once.

        Parameters
        ----------
        kind : str, optional
            Which uncertainty decides, as for `predict_with_reject`.
        confidence : float, default=0.9
            Probability that all bounds hold.

        See Also
        --------
        dipedl.decisions.reject_curve : how.
        """
        labels, held_out = self._held_out_labels("reject_curve"), self.held_out_rows()
        wrong = self.label_indices(held_out.proba, held_out.scores) != labels
        u = self._held_out_uncertainty(self._kinds[0] if kind is None else kind)
        return reject_curve(u, wrong, confidence=confidence, weights=held_out.weights)

    @available_if(attrgetter("has_evidence"))  # type: ignore[untyped-decorator]
    @on_snapshot
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
        P, scores = self.proba_and_scores(X)
        return self._as_answer(self._uncertainty_by(kind, lambda: P, scores))

    @available_if(attrgetter("has_evidence"))  # type: ignore[untyped-decorator]
    @on_snapshot
    def answers(
        self,
        X: Any,
        *,
        coverage: float | None = None,
        by_class: bool = False,
        reasons: str | None = None,
    ) -> Answers:
        """Return labels, Dirichlets, p-values and alarms of inputs X (n, d), out of one pass.

        The same as `predict`, `predict_dirichlet`, `p_value` and `predict_ood` give, at the cost of
        one of them.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        coverage : float, optional
            Give prediction sets of this coverage too, as `predict_set` does.
        by_class : bool, default=False
            Of the sets, as in `predict_set`.
        reasons : {"flagged", "all", "none"}, optional
            Say in words why inputs are rare: of the flagged ones, or of all. Each costs a second
            pass.
        """
        _, bare, scores = self.predict_parts(X)
        P = self.evidence_.calibrate_proba(bare, scores)
        held_out, dirichlet = self.held_out_rows(), self.dirichlet_of(P, scores)
        flagged = scores < self.alarm_threshold(None)
        return Answers(
            np.asarray(self.classes_[most_probable(dirichlet.concentration, P)]),
            dirichlet,
            conformal_p_values(scores, held_out.scores, held_out.weights),
            flagged,
            self.evidence_.calibrate_in_full(bare).max(axis=1),
            None
            if coverage is None
            else self.prediction_sets(dirichlet.mean, coverage, by_class=by_class),
            None if reasons is None else _reasons(self, X, flagged, reasons),
        )

    @available_if(attrgetter("has_evidence"))  # type: ignore[untyped-decorator]
    @on_snapshot
    def held_out_dirichlet(self) -> Dirichlet:
        """Return the Dirichlet of each of the N held-out inputs, in the order of ``held_out_``."""
        answers = self.held_out_proba(), self.held_out_rows().scores
        return cast(Dirichlet, self.dirichlet_of(*answers))

    def explain(self, X: Any, top: int = 5) -> list[Any]:
        """Explain the answer to each of the n inputs X (n, d): one `dipedl.explanation.Card` each.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs; for a `DIPModule` a batch of its network, as one argument.
        top : int, default=5
            Features or neighbours named on a card.

        Returns
        -------
        list of Card, or of BaselineCard for a baseline, length n
            ``print(card)``, ``card.to_dict()``; a notebook shows the first ten.

        See Also
        --------
        dipedl.explain : how to read a card.
        """
        from .explanation import explain

        return explain(self.snapshot(), X, top)

    def diagnose(self) -> Any:
        """Judge this model by its held-out rows, in plain words with numbers and remedies.

        Returns
        -------
        dipedl.explanation.Diagnosis
            ``print`` and a notebook show a page; ``warnings`` are what should change something;
            ``to_dict()``.

        See Also
        --------
        dipedl.diagnose : the checks.
        """
        from .explanation import diagnose

        return diagnose(self.snapshot())

    def snapshot(self) -> Self:
        """Return the model with the attributes that it has now."""
        # What `partial_fit` leaves to the first question is learned once, and kept.
        hasattr(self, "evidence_")
        model: Self = snapshot_of(self)
        return model

    def held_out_rows(self) -> HeldOut:
        """Return the held-out rows that every threshold rests on."""
        if self.has_evidence:
            held_out: HeldOut = self.evidence_.held_out_
            return held_out
        check_is_fitted(self, "classes_")
        if not hasattr(self, "held_out_"):
            raise NotFittedError(
                f"{type(self).__name__} has no held-out rows to take thresholds from; "
                + self.calibration_remedy()
            )
        return self.held_out_

    def proba_and_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return class probabilities (n, k) that the evidence weighs, and scores (n,), of X."""
        if not self.has_evidence:
            return self.predict_proba(X), -self.uncertainty(X)
        _, P, scores = self.predict_parts(X)
        return self.evidence_.calibrate_proba(P, scores), scores

    def some_inputs(self, X: Any, rows: np.ndarray) -> Any:
        """Return the inputs of X (n, d) with these numbers (m,)."""
        return _safe_indexing(X, rows)

    def dirichlet_of(self, P: np.ndarray, scores: np.ndarray) -> Any:
        """Return the Dirichlets of inputs by their probabilities (n, k) and scores (n,).

        None for a baseline, which weighs no evidence.
        """
        return self.evidence_.dirichlet(P, scores) if self.has_evidence else None

    @property
    def alarm_rate(self) -> float:
        """Share of ID inputs that `predict_ood` may flag unless another is asked for."""
        # That of the fit, whatever was given to set_params since.
        return float(
            self.evidence_.false_alarm_rate if self.has_evidence else self.false_alarm_rate
        )

    def answer_proba(self, P: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the class probabilities (n, k) of the answers."""
        dirichlet = self.dirichlet_of(P, scores)
        return P if dirichlet is None else np.asarray(dirichlet.mean)

    def label_indices(self, P: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the indices of the labels, shape (n,)."""
        dirichlet = self.dirichlet_of(P, scores)
        return most_probable(P if dirichlet is None else dirichlet.concentration, P)

    @property
    def _kinds(self) -> tuple[str, ...]:
        """Names of the uncertainties; rejection goes by the first."""
        own = ("total", *DIRICHLET_KINDS, "log_density") if self.has_evidence else ("uncertainty",)
        return *own, *_OF_PROBA

    def _uncertainty_by(
        self, kind: str, proba: Callable[[], np.ndarray], scores: np.ndarray
    ) -> np.ndarray:
        """Return an uncertainty (n,) by its name; asks for probabilities where it needs them."""
        check_choice("kind", kind, {*self._kinds})
        if kind in DIRICHLET_KINDS:
            return np.asarray(getattr(self.dirichlet_of(proba(), scores), kind))
        return _OF_PROBA[kind](proba()) if kind in _OF_PROBA else -scores

    def alarm_threshold(self, alpha: float | None, by_class: bool = False) -> float:
        """Return the score below which at most a share `alpha` of ID inputs lies, or of a class."""
        check_flag("by_class", by_class)
        if by_class:
            self._held_out_labels("predict_ood by class")
            rate = self.alarm_rate if alpha is None else check_rate(alpha, "alpha")
            needed = (1 / rate - 1) * (1 - 1e-9)
            self._warn_of_classes(needed, f"a rate of {rate:g} by class", "nothing is flagged")
            return float(self.held_out_rows().thresholds_by_class(rate, len(self.classes_)).min())
        if alpha is not None:
            return self.held_out_rows().threshold(check_rate(alpha, "alpha"), "alpha")
        if self.has_evidence:
            return float(self.evidence_.offset_)
        return self.held_out_rows().threshold(check_rate(self.false_alarm_rate))

    def _as_answer(self, values: np.ndarray) -> np.ndarray:
        """Return numbers per input in the kind of array that the model answers with."""
        return values

    def calibration_remedy(self) -> str:
        """Return how the model gets held-out rows, for errors about those that it has."""
        return f"give it labelled in-distribution rows that fit has not seen: {self.calibrated_by}"

    def held_out_proba(self) -> np.ndarray:
        """Return the class probabilities (m, k) of the held-out rows; ValueError without any."""
        held_out = self.held_out_rows()
        if held_out.proba is None:
            raise ValueError(
                f"the held-out inputs of this model ({held_out.source}) have no class "
                "probabilities; " + self.calibration_remedy()
            )
        return np.asarray(held_out.proba)

    def _held_out_labels(self, method: str) -> np.ndarray:
        """Return the held-out labels (m,); ValueError where no promise can come from them."""
        self.held_out_proba()
        held_out, problem = self.held_out_rows(), ""
        if held_out.labels is None:
            problem = "have no labels"
        elif held_out.origin == "in-sample":
            problem = "are the ones that it was fitted on"
        elif (held_out.labels == held_out.labels[0]).all():
            problem = "are all of one class"
        if problem:
            raise ValueError(
                f"{method} needs held-out inputs with labels of two classes at least, and those of "
                f"this model ({held_out.source}) {problem}; {self.calibration_remedy()}"
            )
        return np.asarray(held_out.labels)

    def _classes_below(self, needed: float) -> np.ndarray:
        """Return the indices of classes with fewer held-out rows than `needed`."""
        return np.flatnonzero(self.held_out_rows().count_classes(len(self.classes_)) < needed)

    def _warn_of_classes(self, needed: float, what: str, effect: str) -> None:
        """Warn of classes with fewer held-out rows than `what` needs, and of the effect."""
        few = self._classes_below(needed)
        if not len(few):
            return
        counts = self.held_out_rows().count_classes(len(self.classes_))
        names = plain_labels(np.asarray(self.classes_))
        listed = ", ".join(f"{names[c]!r} has {counts[c]:g}" for c in few[:_NAMED])
        more = f" and {len(few) - _NAMED} more classes too few" * (len(few) > _NAMED)
        warn_caller(
            f"{what} needs at least {np.ceil(needed):g} held-out inputs of each class, and "
            f"{listed}{more}: {effect}; {self.calibration_remedy()}"
        )

    def _held_out_uncertainty(self, kind: str) -> np.ndarray:
        return self._uncertainty_by(kind, self.held_out_proba, self.held_out_rows().scores)


def _reasons(model: Any, X: Any, flagged: np.ndarray, which: str) -> np.ndarray:
    """Return why inputs X (n, d) are rare; empty texts for those that are not asked about."""
    masks = {"flagged": flagged, "all": np.ones_like(flagged), "none": np.zeros_like(flagged)}
    check_choice("reasons", which, masks)
    rows, texts = np.flatnonzero(masks[which]), np.full(len(flagged), "", dtype=object)
    if len(rows):
        from .explanation import reasons

        texts[rows] = reasons(model, model.some_inputs(X, rows))
    return texts
