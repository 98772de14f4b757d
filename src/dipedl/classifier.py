"""Any classifier x any density -> a Dirichlet over the class probabilities."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from .answers import Decisions, on_snapshot
from .calibration.crossfit import AUTO, IN_SAMPLE, splitter_pairs
from .calibration.spread import Spread
from .columns import Inputs
from .density.gaussian import GDADensity
from .dirichlet import Dirichlet
from .evidence import ZScore
from .evidence_model import EvidenceModel, check_caution
from .held_out import has_memorised, warn_of_held_out_rows
from .inputs import (
    PRIOR,
    FittedClassifier,
    class_totals,
    clone_classifier,
    input_tags,
    known_classes,
    prior_of_rows,
    select_weighted_rows,
    validate_calibration_rows,
    validate_inputs,
    validate_training_rows,
)
from .protocols import atomic
from .writing.progress import Stopwatch

__all__ = ["DIPClassifier"]


def _can_stream(model: Any) -> bool:
    """Return True, or raise an AttributeError that names the part without partial_fit."""
    frozen = isinstance(model.estimator, FrozenEstimator)
    density = GDADensity() if model.density is None else model.density
    for name, part, remedy in (
        ("estimator", model.estimator, "SGDClassifier(loss='log_loss') or GaussianNB()"),
        ("density", density, "GDADensity()"),
    ):
        if not hasattr(part, "partial_fit") and not (name == "estimator" and frozen):
            raise AttributeError(
                f"partial_fit of DIPClassifier needs it of the {name} too, and {part!r} has none; "
                f"give {name}={remedy}, or call fit with all rows"
            )
    return True


@dataclass(eq=False, repr=False)
class DIPClassifier(Decisions, ClassifierMixin, BaseEstimator):
    r"""A classifier that knows where it has seen data: density-informed pseudo-counts (DIP-EDL).

    A classifier gives p(x), a density log p(x), and together they give a Dirichlet,

    .. math:: \alpha(x) = \text{prior} + n \gamma \exp(z(x)) \, p(x),

    with z the normalised log-density (or score of several densities): confident where data was
    seen, back to the prior where it was not.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        Any of scikit-learn's kind; a copy is fitted. Wrap a fitted one in `FrozenEstimator`.
    density : density estimator, default=DensitySelector()
        One of `dipedl.density`, any estimator with ``score_samples``, or any object with
        ``log_prob``. None tries several, and all of them together with the classifier's own
        confidence, and takes what serves this classifier best by ID data alone.
    prior : float, array-like, shape (k,), or "empirical", default=0.5
        Concentration of the prior, > 0: what predictions return to. A number is that of each class:
        1/2 by Jeffreys, 1 in the paper. "empirical": the frequencies of the classes in the fit,
        times k / 2. Every class needs rows. An input far from all data is then answered with the
        frequencies, which may look sure: act on `predict_ood` too.
    gamma : float, default=1.0
        Scale of the evidence, > 0. The prediction has lost half of its confidence where
        ``z = log(alpha0 / (n * gamma))``.
    max_evidence : float, optional
        Largest pseudo-count of an input. None leaves it to the density.
    caution : float in [0, 1], default=0.02
        Price of doubt about unknown inputs: the share of the held-out Brier score of the calibrated
        classifier (or of its gain over the prior) that known inputs may pay, by confidence that is
        withdrawn and by sharpening that is withheld. That flagged inputs are never sharpened is not
        counted; with 0, which pays nothing, they are. `diagnose` shows the curve; see "Caution".
    normalizer : normaliser, optional
        One of `dipedl.evidence`: how a score becomes z. Default: a `CautionBudget` of what
        `caution` leaves. Give one of the two.
    calibrator : calibrator, "passthrough" or None, default=None
        Of the classifier's probabilities: an object with ``fit(P, y, sample_weight)`` and
        ``transform(P)``. None is `dipedl.calibration.Temperature()`; "passthrough" leaves them as
        they are. One that sharpens does so in full on typical inputs and, but for ``caution=0``,
        never on flagged ones.
    spread : "auto" or None, default="auto"
        "auto": the strength of the Dirichlet is what the error of its mean on held-out rows
        supports (`dipedl.calibration.Spread`), so that credible intervals cover; mean and vacuity
        stay. None, and "auto" without labelled held-out rows: that of the evidence, ``alpha0 + n
        gamma exp(z)``, by which intervals are too narrow, as the page "Intervals" shows.
    features : transformer, "passthrough" or None, default=None
        What the density sees of X. None: what a pipeline's own steps before its classifier give, or
        an encoding of a table with text or gaps, or the inputs; standardised. A transformer (PCA, a
        frozen network's features) is fitted on X; "passthrough" takes X as is.
    cv : "auto", int, splitter, iterable of index pairs or "in-sample", default="auto"
        Rows that calibrator, normaliser, thresholds and the choice of the density learn from. An
        int: rows held out in that many folds (density and classifier are fitted again for each,
        then on everything; a frozen classifier is not). "auto": as many of 5 folds as hold out
        5,000 rows. With either, Gaussians and neighbours of the default density score a held-out
        row by the fit to all others, in closed form, unless rows have copies or groups, or features
        learn more than scales and levels of single columns. A splitter such as
        ``ShuffleSplit(1, test_size=0.2)``: its held-out parts.
        "in-sample": the training rows, as the paper does; new inputs then look far too rare.
    false_alarm_rate : float, default=0.05
        Share of held-out ID inputs that `predict_ood` may flag; takes effect in `fit`. For another
        rate of a fitted model give `predict_ood` its `alpha`.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, which depend on what the rows hold and not on their order, and of every
        part whose own ``random_state`` is None. None means fold seed 0 and unseeded parts.
    n_jobs : int or None, default=None
        Processes that fit folds, as in joblib; results do not depend on it.
    verbose : int, default=0
        1 prints a line, with seconds, for the classifier, each candidate density and each fold.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        Class labels; the columns of every prediction.
    estimator_, spread_, evidence_ : classifier, Spread or None, EvidenceModel
        The fitted classifier; the strength; fitted features, density, normaliser, threshold.
    n_features_in_, feature_names_in_ : int and ndarray, shape (d,)
        Number of inputs d, and their names if X was a DataFrame.

    Raises
    ------
    ValueError, TypeError
        From ``fit``: a parameter out of range; a masked entry; a number of X beyond float32; NaN or
        inf in the features; fewer than two classes; a class with one sample; a density that gives
        NaN; an estimator without ``predict_proba``. From predictions: masked entries, NaN, inf.

    Notes
    -----
    The ranking of inputs by vacuity is that of ``score_samples``, whatever n, gamma or the
    normaliser; `max_evidence` and the last bit of a float only add ties. The score of a single
    density does not depend on the classifier; the fused default includes its confidence.
    A finite row that a part cannot compute with, or with a new level or a first gap among levels
    that a part refuses, is unknown: vacuity 1, score -inf.

    References
    ----------
    Carlotti et al., "Density-Informed Pseudo-Counts for Calibrated Evidential Deep Learning".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from dipedl import DIPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DIPClassifier(RandomForestClassifier(random_state=0)).fit(X, y)
    >>> clf.predict_ood([[5.0, 3.4, 1.5, 0.2], [50.0, 34.0, 15.0, 2.0]])
    array([ 1, -1])
    """

    estimator: Any = None
    density: Any = None
    _: KW_ONLY
    prior: Any = PRIOR
    gamma: float = 1.0
    max_evidence: float | None = None
    caution: float | None = None
    normalizer: Any = None
    calibrator: Any = None
    spread: Any = AUTO
    features: Any = None
    cv: Any = AUTO
    false_alarm_rate: float = 0.05
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    @classmethod
    def paper(
        cls,
        estimator: Any = None,
        density: Any = None,
        *,
        features: Any = "passthrough",
        gamma: float = 1.0,
    ) -> DIPClassifier:
        """Return the released behaviour: ``alpha = 1 + n gamma exp(z) p``, z-scored in-sample.

        `density` defaults to class-conditional Gaussians with full, unshrunk covariances and equal
        weights. research/docs/paper-and-code.md lists how it still differs from the released
        code.
        """
        return cls(
            estimator,
            GDADensity(shrinkage=None) if density is None else density,
            prior=1.0,
            gamma=gamma,
            normalizer=ZScore(),
            calibrator="passthrough",
            spread=None,
            features=features,
            cv=IN_SAMPLE,
        )

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a number or a choice that no fit can take.

        A prior for each class, and settings that depend on the rows, are checked by `fit`.
        """
        self.evidence_model().check_parameters()
        if np.ndim(self.prior) == 0:  # of one with a number for each class, fit knows the length
            prior_of_rows(self.prior, np.arange(2), np.ones(2))

    @atomic
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        calibration: tuple[Any, Any] | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit classifier and density, then what is learned from held-out rows.

        Parameters
        ----------
        X, y : array-like or DataFrame, shape (n, d), and array-like, shape (n,)
            In-distribution inputs and their labels.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often, in the classifier, in the density and in n; >= 0.
        calibration : tuple (X, y), optional
            Held-out ID inputs (m, d) and their labels, for all that is learned from held-out rows;
            nothing is cross-fitted then. Needed for networks that were trained on X.
        groups : array-like, shape (n,), optional
            Person, device or site of each row, where new rows will come from others: folds hold out
            whole groups, so that alarms, sets and probabilities are those of new groups.
        """
        # A model that `dipedl fit` made of a table forgets that table.
        for name in ("table_", "table_rows_", "encode_rows_", "unknown_rehearsal_"):
            self.__dict__.pop(name, None)
        if calibration is not None and groups is not None:
            raise ValueError(
                "groups say how rows of X are held out, and with calibration none are: give one of "
                "the two, calibration rows of other groups than those of X, and their groups to "
                "calibrate(X, y, groups=groups)"
            )
        X, y, weights, groups, rows = validate_training_rows(self, X, y, sample_weight, groups)
        template = clone_classifier(self.estimator, self.random_state)
        classes = known_classes(template, y)
        totals = class_totals(y, weights, classes)
        evidence = self.evidence_model(prior_of_rows(self.prior, classes, totals))
        evidence.check_parameters()
        evidence.columns_ = columns = Inputs.learn(X)
        pairs = None
        if calibration is None:
            pairs = splitter_pairs(self.cv, y, rows, groups)
        else:
            calibration = validate_calibration_rows(self, calibration, classes, columns)
        # Features first: where an entry is not finite, their error names its row and column.
        Z = evidence.fit_features(X, y, weights, estimator=template, rows=rows)
        watch = Stopwatch(self.verbose)
        classifier = FittedClassifier.fit(template, classes, X, y, weights)
        watch.say(f"classifier fitted on {len(y)} rows")
        evidence.fit_density(Z, y, weights, X=X, classifier=classifier)
        if calibration is None:
            evidence.cross_fit(
                Z, y, weights, X=X, classifier=classifier, pairs=pairs, groups=groups
            )
            evidence.memorised_ = has_memorised(classifier, X, classifier.indices(y), Z)
        else:
            evidence.calibrate(*calibration, classifier=classifier)
        self.estimator_, self.evidence_, self.classes_ = classifier.estimator, evidence, classes
        self.__dict__.pop("stream_", None)
        warn_of_held_out_rows(evidence.held_out_, self, after_fit=True)
        return self

    @atomic
    def calibrate(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Learn all that comes from held-out rows again, from ID inputs that nothing has seen.

        Worth doing when `estimator` or `features` is a network that was trained on the very rows
        given to `fit`: cross-fitting cannot undo what the network has memorised.

        Parameters
        ----------
        X, y : array-like, shape (m, d), and array-like, shape (m,)
            ID inputs and their labels. Without labels the score, its threshold and a normaliser
            that needs none can be learned, but no temperature, budget, width or prediction set.
        sample_weight : array-like, shape (m,), optional
            Counts each row that often.
        groups : array-like, shape (m,), optional
            Person, device or site of each row: `diagnose` and the width of intervals then count
            groups, not rows.
        """
        evidence, classifier = self._fitted_parts()
        X, labels = validate_calibration_rows(self, (X, y), self.classes_, evidence.columns_)
        evidence = copy(evidence)
        evidence.density_ = deepcopy(evidence.density_)
        X, labels, weights, groups, _ = select_weighted_rows(X, labels, sample_weight, groups)
        evidence.calibrate(X, labels, weights, classifier=classifier, groups=groups)
        self.evidence_ = evidence
        warn_of_held_out_rows(evidence.held_out_, self)
        return self

    @available_if(_can_stream)  # type: ignore[untyped-decorator]
    @atomic
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
    ) -> Self:
        """Add a batch of rows to what was fitted before.

        A tenth of the rows, 5,000 at most, is held out of everything. Which rows these are, a hash
        of their content decides, so chunks of any sizes and in any order give the same evidence;
        what a classifier makes of their order is its own. What is learned from held-out rows is
        learned at the first prediction after a batch.

        Parameters
        ----------
        X, y : array-like or DataFrame of numbers, shape (n, d), and array-like, shape (n,)
            In-distribution inputs without gaps, and their labels.
        classes : array-like, shape (k,), optional
            Every label that will ever come. Default: the labels of the first batch.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often.
        groups : array-like, shape (n,), optional
            Person, device or site of each row, with every batch: a tenth of the groups is held out
            in place of a tenth of the rows, by a hash of their names.

        Raises
        ------
        AttributeError
            If the classifier or the density has no ``partial_fit``; a frozen classifier stays.
        ValueError
            If `features` would have to learn, or if a label is not among the classes.
        TypeError
            If `random_state` is no int: every batch holds out by the same seed.

        Notes
        -----
        ``density=None`` stands for `GDADensity`, a Gaussian per class. ``features=None``
        standardises by the moments of all rows so far, those before included: it needs `GDADensity`
        or another Gaussian. Other features are "passthrough", or frozen. After `fit`
        all begins anew.
        """
        from .density.streaming import fit_batch

        return fit_batch(self, X, y, classes, sample_weight, groups)  # type: ignore[no-any-return]

    def __add__(self, other: Any) -> Self:
        """Return the model that has seen the rows of both, with the settings of the first.

        Both must have been fitted by `partial_fit` or by `dipedl.apps.large.fit`, on the same
        features and with the same classifier: frozen, or fitted on the same rows.
        """
        from .density.streaming import merge

        return merge(self, other) if isinstance(other, DIPClassifier) else NotImplemented

    @on_snapshot
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable label under the posterior mean, shape (n,).

        Far from the data the mean is the prior to the last bit; the classifier breaks such ties.
        """
        labels = self.label_indices(*self.proba_and_scores(X))
        return np.asarray(self.classes_[labels])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, k): the posterior mean ``(1 - u) p + u prior / alpha0``."""
        return np.asarray(self.predict_dirichlet(X).mean)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the class probabilities, shape (n, k)."""
        return np.asarray(np.log(self.predict_proba(X)))

    def predict_dirichlet(self, X: Any) -> Dirichlet:
        """Return the Dirichlet over the class probabilities of each of the n inputs X (n, d)."""
        evidence, classifier = self._fitted_parts()
        X = validate_inputs(self, X, evidence.columns_)
        _, P, scores = evidence.predict(X, classifier)
        return evidence.dirichlet(evidence.calibrate_proba(P, scores), scores)

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of each input, shape (n,); higher is more typical.

        The log-density of its features in nats, or what the density gives in its place.
        """
        return self.predict_parts(X)[2]

    def classifier_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, k) of the classifier and its calibrator, without the density.

        A calibrator that sharpens does so everywhere here; in predictions, only on typical inputs.
        """
        evidence, classifier = self._fitted_parts()
        P = evidence.predict_proba(validate_inputs(self, X, evidence.columns_), classifier)
        return evidence.calibrate_in_full(P)

    def rehearse_unknown(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        *,
        classes: Any = None,
        max_rows: int | None = None,
        n_jobs: int | None = None,
        select: bool = False,
    ) -> Any:
        """Estimate how much of an unknown class would be flagged: leave each class out in turn.

        It costs a fit for each class. If this model is fitted, `diagnose` says from then on what
        was found.

        Parameters
        ----------
        X, y, groups
            As for `fit`.
        classes : list of labels, or dict of str to list of labels, optional
            Classes to leave out, one at a time; or groups of classes by name. Default: every class.
        max_rows : int, optional
            Rows of a fit, and of a class that is asked about, at most.
        n_jobs : int, optional
            Fits that run at a time, as in joblib; default: that of this classifier.
        select : bool, default=False
            Compare densities too, and say which one to give this classifier.

        Returns
        -------
        dipedl.explanation.UnknownRehearsal
            Shares with intervals, beside max probability and nearest neighbours.

        See Also
        --------
        dipedl.explanation.rehearse_unknown : how, and what it does not say.
        """
        from .explanation import rehearse_unknown

        found = rehearse_unknown(
            self, X, y, groups, classes=classes, max_rows=max_rows, n_jobs=n_jobs, select=select
        )
        if hasattr(self, "classes_"):
            self.unknown_rehearsal_ = found
        return found

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to one file without pickle; see `dipedl.save`."""
        from .io import save

        save(self, path)

    def export_onnx(self, path: str | Path, **options: Any) -> None:
        """Write the fitted classifier as one ONNX graph; see `dipedl.export_onnx`."""
        from .io.onnx import export_onnx

        export_onnx(self, path, **options)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator and, as ``part__name``, of its parts."""
        for key in params:
            part, nested, _ = key.partition("__")
            if nested and params.get(part, getattr(self, part, part)) is None:
                parts = {
                    "density": "dipedl.density.GDADensity()",
                    "estimator": "LogisticRegression()",
                }
                raise ValueError(
                    f"{key} cannot be set: {part} is None, which stands for a default that is "
                    f"chosen at fit; name it first, such as {part}={parts.get(part, '...')}"
                )
        return super().set_params(**params)  # type: ignore[no-any-return]

    @cached_property
    def evidence_(self) -> EvidenceModel:
        """Fitted evidence side; after `partial_fit` it is learned when it is asked for."""
        if "stream_" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator"
            )
        from .density.streaming import learn_evidence

        return learn_evidence(self)  # type: ignore[no-any-return]

    @property
    def prior_(self) -> np.ndarray:
        """Concentration of the prior, shape (k,)."""
        return np.asarray(self.evidence_.prior)

    @property
    def spread_(self) -> Spread | None:
        """Strength that the error of the probabilities supports; None without one."""
        return self.evidence_.spread_

    @property
    def density_(self) -> Any:
        """Fitted density."""
        return self.evidence_.density_

    @property
    def normalizer_(self) -> Any:
        """Fitted normaliser; its ``source_`` says which data its statistics came from."""
        return self.evidence_.normalizer_

    @property
    def offset_(self) -> float:
        """Score below which `predict_ood` flags an input."""
        return float(self.evidence_.offset_)

    def _fitted_parts(self) -> tuple[EvidenceModel, FittedClassifier]:
        """Return evidence and classifier of one state: another thread may calibrate."""
        while "evidence_" not in (now := vars(self).copy()):
            _ = self.evidence_  # learned at the first question after `partial_fit`
        evidence, columns = now["evidence_"], now["evidence_"].columns_
        classifier = FittedClassifier(
            now["estimator_"],
            now["classes_"],
            categories={} if columns is None else columns.categories,
        )
        return evidence, classifier

    def predict_parts(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features (n, p), the classifier's probabilities (n, k) and scores (n,) of X."""
        evidence, classifier = self._fitted_parts()
        return evidence.predict(validate_inputs(self, X, evidence.columns_), classifier)

    def fitted_classifier(self) -> FittedClassifier:
        """Return the fitted classifier with a column of probabilities for each class."""
        return self._fitted_parts()[1]

    def evidence_model(self, prior: np.ndarray | None = None) -> EvidenceModel:
        """Return the unfitted evidence side with this classifier's parameters and a prior (k,)."""
        check_caution(self.caution, self.normalizer)
        names = set(EvidenceModel._get_param_names()) - {"prior"}
        return EvidenceModel(prior=prior, **{name: getattr(self, name) for name in names})

    def __sklearn_tags__(self) -> Any:
        """Return tags: sparse inputs are taken if the classifier takes them."""
        return sparse_by_default(super().__sklearn_tags__(), self.features, self.estimator)


def sparse_by_default(tags: Tags, features: Any, estimator: Any = None) -> Tags:
    """Return tags: sparse inputs are taken by default `features`, if the classifier takes them."""
    classifier = LogisticRegression() if estimator is None else estimator
    tags.input_tags.sparse = features is None and input_tags(classifier).sparse
    return tags
