"""Any classifier x any density -> a Dirichlet over the class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ._parts import class_probabilities, fitted_classifier, unfitted_classifier
from ._scores import entropy, max_prob
from ._validation import (
    check_class_counts,
    check_positive_number,
    check_weights,
    known_classes,
    known_inputs,
    labelled_inputs,
    prior_vector,
    weight_argument,
)
from .crossfit import IN_SAMPLE
from .dirichlet import Dirichlet
from .evidence import ZScore, log_evidence
from .evidence_model import EvidenceModel

__all__ = ["DIPClassifier"]

_FROM_DIRICHLET = (
    "vacuity",
    "total",
    "aleatoric",
    "epistemic",
    "dissonance",
    "differential_entropy",
)
_FROM_PROBA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "max_prob": max_prob,
    "entropy": entropy,
}


class DIPClassifier(ClassifierMixin, BaseEstimator):
    r"""A classifier that knows where it has seen data: density-informed pseudo-counts (DIP-EDL).

    A classifier gives p(x), a density gives log p(x) of the features, and together they give a
    Dirichlet over the class probabilities,

    .. math:: \alpha(x) = \text{prior} + n \gamma \exp(z(x)) \, p(x),

    with z the normalised log-density: confident where data was seen, back to the prior where it was
    not.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        Any scikit-learn compatible classifier; a copy is fitted. Wrap one that is fitted already in
        `sklearn.frozen.FrozenEstimator`.
    density : density estimator, default=GDADensity()
        One of `dipedl.density`, any estimator with ``score_samples``, or any object with
        ``log_prob``.
    prior : float or array-like, shape (k,), default=1.0
        Concentration of the prior, > 0: what the prediction returns to. A number stands for every
        class.
    gamma : float, default=1.0
        Scale of the evidence, > 0. The prediction has lost half of its confidence where
        ``z = log(alpha0 / (n * gamma))``.
    max_evidence : float, optional
        Largest pseudo-count of an input. None leaves it to the density.
    normalizer : normaliser, default=ZScore()
        One of `dipedl.evidence`: how a log-density in nats becomes z.
    features : transformer, "passthrough" or None, default=None
        What the density sees of X. None standardises the inputs; a transformer (PCA, a frozen
        network's features) is fitted on X; "passthrough" takes X as it is.
    cv : int, splitter, iterable of index pairs or "in-sample", default=5
        Where the statistics of the normaliser and of the alarm threshold come from. An int:
        log-densities of rows held out in that many folds (the density is fitted again for each,
        then on everything). A splitter such as ``ShuffleSplit(1, test_size=0.2)``: those of its
        held-out parts. "in-sample": those of the training rows, as the paper does; they are too
        high, and new inputs then look far too rare.
    false_alarm_rate : float, default=0.05
        Share of held-out ID inputs that `predict_ood` may flag.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, and of every part of estimator, density and features whose own
        ``random_state`` is None. Folds depend on the content of the rows, not on their order; None
        means fold seed 0 and unseeded parts.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        Class labels; the columns of every answer.
    estimator_ : classifier
        The fitted classifier.
    evidence_ : EvidenceModel
        The fitted features, density, normaliser and threshold.
    prior_ : ndarray, shape (k,)
        Concentration of the prior.
    n_features_in_ : int
        Number of inputs d.
    feature_names_in_ : ndarray, shape (d,)
        Names of the inputs, if X was a DataFrame.

    Raises
    ------
    ValueError
        From ``fit``: a parameter out of range; NaN or inf in the features; fewer than two classes;
        a class with one sample; a density that gives NaN.
    TypeError
        From ``fit``: an estimator without ``predict_proba``; sparse X without a transformer that
        makes it dense.

    See Also
    --------
    OODDetector : the same model as a scikit-learn outlier detector.

    Notes
    -----
    The ranking of inputs by vacuity is that of the log-density, whatever n, gamma, the normaliser
    or the classifier; `max_evidence` and the last bit of a float only add ties.

    References
    ----------
    Carlotti, Gligić, Farahi, "Density-Informed Pseudo-Counts for Calibrated Evidential Deep
    Learning", Definition 3.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from dipedl import DIPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DIPClassifier(RandomForestClassifier(random_state=0)).fit(X, y)
    >>> clf.predict_ood([[5.0, 3.4, 1.5, 0.2], [50.0, 34.0, 15.0, 2.0]])
    array([ 1, -1])
    >>> clf.predict_proba([[50.0, 34.0, 15.0, 2.0]]).round(2)
    array([[0.33, 0.33, 0.33]])
    """

    def __init__(
        self,
        estimator: Any = None,
        density: Any = None,
        *,
        prior: Any = 1.0,
        gamma: float = 1.0,
        max_evidence: float | None = None,
        normalizer: Any = None,
        features: Any = None,
        cv: Any = 5,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.density = density
        self.prior = prior
        self.gamma = gamma
        self.max_evidence = max_evidence
        self.normalizer = normalizer
        self.features = features
        self.cv = cv
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    @classmethod
    def paper(
        cls,
        estimator: Any = None,
        density: Any = None,
        *,
        features: Any = "passthrough",
        gamma: float = 1.0,
    ) -> DIPClassifier:
        """The released behaviour: ``alpha = 1 + n gamma exp(z) p``, z-scored on the training rows.

        `density` defaults to class-conditional Gaussians with full, unshrunk covariances and equal
        weights. Three departures: covariances are divided by n_c, not n_c - 1; so is the variance
        of the scores, where the released code has n - 1 for Gaussians; and a singular covariance
        is refused, where it adds jitter.
        """
        from .density.gda import GDADensity

        return cls(
            estimator,
            GDADensity(shrinkage=None) if density is None else density,
            prior=1.0,
            gamma=gamma,
            normalizer=ZScore(),
            features=features,
            cv=IN_SAMPLE,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit classifier, density, normaliser and threshold.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n, d)
            In-distribution inputs.
        y : array-like, shape (n,)
            Labels.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often, in the classifier, in the density and in n; >= 0.
        """
        check_positive_number("gamma", self.gamma)
        if self.max_evidence is not None:
            check_positive_number("max_evidence", self.max_evidence)
        X, y = labelled_inputs(self, X, y)
        weights = check_weights(sample_weight, X)
        present = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
        check_class_counts(y[present])
        estimator = unfitted_classifier(self.estimator, self.random_state)
        classes = known_classes(estimator, y[present])
        prior = prior_vector(self.prior, len(classes))
        evidence = self.evidence_model().fit(X, y, weights)
        if len(present) < len(y):
            X, y = _safe_indexing(X, present), y[present]
        keyword = weight_argument(estimator, None if weights is None else weights[present])
        fitted = fitted_classifier(estimator, X, y, keyword)
        # Only now: a fit that fails leaves the model as it was.
        self.prior_, self.evidence_, self.estimator_ = prior, evidence, fitted
        self.classes_ = np.asarray(getattr(fitted, "classes_", classes))
        return self

    def calibrate(self, X: Any, sample_weight: Any = None) -> Self:
        """Take the normaliser's statistics and the threshold from held-out ID inputs X (m, d).

        Worth doing when `features` comes from a network that was trained on the very rows given to
        `fit`: cross-fitting the density cannot undo what the network has memorised.
        """
        check_is_fitted(self, "evidence_")
        X = self._known(X)
        self.evidence_.calibrate(X, check_weights(sample_weight, X))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label under the posterior mean, shape (n,).

        Far from the data the mean is the prior to the last bit; the classifier breaks such ties.
        """
        P, scores = self._parts(X)
        alpha = self._dirichlet(P, scores).concentration
        best = np.where(alpha == alpha.max(axis=1, keepdims=True), P, -1.0).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, k): the posterior mean ``(1 - u) p + u prior / alpha0``."""
        return np.asarray(self.predict_dirichlet(X).mean)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the class probabilities, shape (n, k)."""
        return np.asarray(np.log(self.predict_proba(X)))

    def predict_dirichlet(self, X: Any) -> Dirichlet:
        """The Dirichlet over the class probabilities of each of the n inputs X (n, d)."""
        return self._dirichlet(*self._parts(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of the features of each input, shape (n,); higher is more typical."""
        check_is_fitted(self, "evidence_")
        return self.evidence_.score_samples(self._known(X))

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
        if kind in _FROM_DIRICHLET:
            return np.asarray(getattr(self.predict_dirichlet(X), kind))
        if kind in _FROM_PROBA:
            check_is_fitted(self, "estimator_")
            return _FROM_PROBA[kind](self._proba(self._known(X)))
        if kind == "log_density":
            return -self.score_samples(X)
        allowed = [*_FROM_DIRICHLET, *_FROM_PROBA, "log_density"]
        raise ValueError(f"kind must be one of {allowed}, got {kind!r}")

    def predict_ood(self, X: Any, false_alarm_rate: float | None = None) -> np.ndarray:
        """+1 for inputs like the training data, -1 for others, shape (n,); needs no OOD data.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        false_alarm_rate : float, optional
            Share of ID inputs that may be flagged; default: the one given at construction.
        """
        check_is_fitted(self, "evidence_")
        threshold = self.evidence_.threshold(false_alarm_rate)
        return np.where(self.score_samples(X) < threshold, -1, 1)

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to one file without pickle; see `dipedl.save`."""
        from .persistence import save

        save(self, path)

    @property
    def density_(self) -> Any:
        """The fitted density."""
        check_is_fitted(self, "evidence_")
        return self.evidence_.density_

    @property
    def normalizer_(self) -> Any:
        """The fitted normaliser; its ``source_`` says which data its statistics came from."""
        check_is_fitted(self, "evidence_")
        return self.evidence_.normalizer_

    @property
    def offset_(self) -> float:
        """Log-density in nats below which `predict_ood` flags an input."""
        check_is_fitted(self, "evidence_")
        return float(self.evidence_.offset_)

    def _parts(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "estimator_")
        X = self._known(X)
        scores = self.evidence_.score_samples(X)
        return self._proba(X), scores

    def _dirichlet(self, P: np.ndarray, scores: np.ndarray) -> Dirichlet:
        z = self.evidence_.normalize(scores)
        evidence = log_evidence(z, self.evidence_.n_, self.gamma, self.max_evidence)
        return Dirichlet.from_evidence(evidence, P, self.prior_)

    def _proba(self, X: Any) -> np.ndarray:
        return class_probabilities(self.estimator_, X, len(self.classes_))

    def _known(self, X: Any) -> Any:
        return known_inputs(self, X)

    def evidence_model(self) -> EvidenceModel:
        """The unfitted evidence side with this classifier's parameters."""
        return EvidenceModel(
            density=self.density,
            features=self.features,
            normalizer=self.normalizer,
            cv=self.cv,
            false_alarm_rate=self.false_alarm_rate,
            random_state=self.random_state,
        )
