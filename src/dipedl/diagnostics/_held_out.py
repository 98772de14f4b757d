"""The held-out answers of a model as its diagnosis reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..calibration.held_out import Calibration
from ..evidence import alarm_threshold, log_evidence, weighted_quantile

__all__ = ["HeldOut"]

_MOST_DOUBLINGS = 200


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores, probabilities and labels of held-out ID rows, and the evidence they are given.

    Attributes
    ----------
    calibration : Calibration
        The rows.
    normalizer : normaliser
        From scores to z.
    n, gamma : float
        Training samples, and the scale of the evidence.
    max_evidence : float or None
        Cap of the evidence.
    prior : ndarray, shape (k,)
        Concentration of the prior.
    class_names : tuple of str, length k
        The classes, as readers know them.
    rate : float
        False-alarm rate asked for.
    """

    calibration: Calibration
    normalizer: Any
    n: float
    gamma: float
    max_evidence: float | None
    prior: np.ndarray
    class_names: tuple[str, ...]
    rate: float

    @classmethod
    def of(cls, clf: Any) -> HeldOut:
        """The held-out rows of a fitted classifier."""
        evidence = clf.evidence_
        return cls(
            calibration=evidence.calibration_,
            normalizer=evidence.normalizer_,
            n=float(evidence.n_),
            gamma=clf.gamma,
            max_evidence=clf.max_evidence,
            prior=np.asarray(clf.prior_),
            class_names=tuple(str(name) for name in np.asarray(clf.classes_).tolist()),
            rate=clf.false_alarm_rate,
        )

    @property
    def source(self) -> str:
        """Where the rows came from."""
        return self.calibration.source

    @property
    def scores(self) -> np.ndarray:
        """Score of each row, (m,)."""
        return self.calibration.scores

    @cached_property
    def lowest(self) -> float:
        """Lowest score but for those of zero density."""
        finite = self.scores[np.isfinite(self.scores)]
        return float(finite.min()) if len(finite) else 0.0

    @cached_property
    def spread(self) -> float:
        """From the lowest score to the highest, but for those of zero density."""
        return max(float(self.scores.max()) - self.lowest, 0.0)

    @property
    def total(self) -> float:
        """How many inputs the rows stand for."""
        return self.calibration.total

    @cached_property
    def weights(self) -> np.ndarray:
        """How many inputs each row stands for, (m,)."""
        given = self.calibration.weights
        return np.ones(len(self.scores)) if given is None else np.asarray(given, dtype=float)

    @property
    def labelled(self) -> bool:
        """Whether the classifier's answers and the true classes are known."""
        return self.calibration.proba is not None and self.calibration.labels is not None

    @property
    def proba(self) -> np.ndarray:
        """Probabilities of the classifier alone, (m, k); only where `labelled`."""
        return np.asarray(self.calibration.proba)

    @property
    def labels(self) -> np.ndarray:
        """Class index of each row, (m,); only where `labelled`."""
        return np.asarray(self.calibration.labels)

    @cached_property
    def wrong(self) -> np.ndarray:
        """Whether the classifier errs, (m,)."""
        return np.asarray(self.proba.argmax(axis=1) != self.labels)

    @cached_property
    def vacuity(self) -> np.ndarray:
        """Share of the prior in each row's answer, (m,)."""
        return self.vacuity_at(self.scores)

    @cached_property
    def mean(self) -> np.ndarray:
        """Posterior mean of each row, (m, k)."""
        u = self.vacuity[:, None]
        return np.asarray((1 - u) * self.proba + u * self.prior / self.prior.sum())

    @cached_property
    def threshold(self) -> float:
        """Score below which an input is flagged at the false-alarm rate asked for."""
        return float(alarm_threshold(self.scores, self.rate, self.calibration.weights))

    def vacuity_at(self, scores: np.ndarray) -> np.ndarray:
        """Share of the prior in the answer at these scores, (m,)."""
        z = np.asarray(self.normalizer.transform(np.asarray(scores, dtype=float)), dtype=float)
        log_e = log_evidence(z, self.n, self.gamma, self.max_evidence)
        alpha0 = float(self.prior.sum())
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(log_e - np.log(alpha0), 700.0))))

    def average(self, values: np.ndarray) -> float:
        """Mean over the inputs that the rows stand for."""
        return float(np.average(values, weights=self.weights))

    def quantile(self, q: float) -> float:
        """Score with a share `q` of the inputs at or below it; never that of zero density."""
        return max(weighted_quantile(self.scores, q, self.calibration.weights), self.lowest)

    def half_point(self) -> float:
        """Score at which half of the confidence is lost: vacuity 1/2; -inf if there is none."""
        top = float(self.scores.max())
        step = max(self.spread, 1e-12 * max(1.0, abs(top)))
        if self.vacuity_at(np.array([top]))[0] >= 0.5:
            return top
        for i in range(_MOST_DOUBLINGS):
            low = top - step * 2.0**i
            if self.vacuity_at(np.array([low]))[0] >= 0.5:
                return self._bisected(low, top)
        return -np.inf

    def _bisected(self, low: float, high: float) -> float:
        for _ in range(100):
            middle = 0.5 * (low + high)
            if self.vacuity_at(np.array([middle]))[0] >= 0.5:
                low = middle
            else:
                high = middle
        return low
