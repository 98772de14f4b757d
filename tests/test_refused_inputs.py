"""What no model is fitted to, calibrated with or asked: the error and the named argument."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dipedl import DIPClassifier, Dirichlet, OODDetector, baselines, density
from dipedl.calibration import Temperature, make_pseudo_outliers
from dipedl.density import DensitySelector, GaussianDensity, GDADensity
from dipedl.evidence import (
    QuantileEvidence,
    ZScore,
    alarm_threshold,
    log_evidence,
    weighted_quantile,
)
from dipedl.inputs import NotComputableError

X, Y = load_iris(return_X_y=True)
P, SCORES, ONES = np.full((150, 3), 1 / 3), X[:, 0] / 8, np.ones(150)


def at(row, column, value):
    rows = X.copy()
    rows[row, column] = value
    return rows


class Fixed(ClassifierMixin, BaseEstimator):
    """Gives the same rows of probabilities for any inputs."""

    def __init__(self, value=0.5, columns=3, rows=None):
        self.value = value
        self.columns = columns
        self.rows = rows

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X) if self.rows is None else self.rows, self.columns), self.value)


class Renames(Fixed):
    """Forgets the labels that it was given."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1, 9])
        return self


class Score(BaseEstimator):
    """A density of one value."""

    def __init__(self, value=np.nan, shape=1):
        self.value = value
        self.shape = shape

    def fit(self, X):
        return self

    def score_samples(self, X):
        return np.full((len(X),) * self.shape, self.value)


class Upside(ZScore):
    """Falls as the score rises."""

    def transform(self, log_density):
        return -super().transform(log_density)


def fit(X=X, y=Y, weights=None, calibration=None, **parameters):
    """The call of a fit that changes these of its defaults."""
    given = {} if weights is None else {"sample_weight": weights}
    return lambda: DIPClassifier(**parameters).fit(X, y, calibration=calibration, **given)


def held(rows, labels):
    """The call of a fit with these rows for calibration."""
    return fit(estimator=GaussianNB(), density=GDADensity(), calibration=(rows, labels))


def labelled(values):
    return fit(y=np.array(values, dtype=object))


BARE, FREE = GDADensity(shrinkage=None), {"features": "passthrough"}
FROZEN = FrozenEstimator(LogisticRegression(max_iter=500).fit(X, Y))
NONE = [("one", GaussianDensity("no such")), ("two", GDADensity("neither"))]

GAP, FLOATS = np.where(np.arange(150) == 7, np.nan, Y), np.linspace(0, 1, 150)
FUSED = density.FusedDensity([("own", GDADensity()), ("tied", GDADensity("tied"))])
BLOCKS = density.BlockSumDensity()
FRAME = pd.DataFrame(X, columns=list("abcd"))
NAMED = ColumnTransformer([("two", StandardScaler(), ["a", "b"])])
TABLE = DIPClassifier(make_pipeline(NAMED, LogisticRegression()), GDADensity()).fit(FRAME, Y)
OF_FRAME, ARRAY = (DIPClassifier(density=GDADensity()).fit(rows, Y) for rows in (FRAME, X))
NESTED = pl.DataFrame({"a": X[:, 0], "n": [[1, 2]] * 150})
BOOSTED = HistGradientBoostingClassifier(max_iter=5)
WORDS = np.where(Y > 0, "u", "v")
DIRICHLET = Dirichlet(np.ones((2, 3)))


def fused_scores(proba):
    fused = clone(FUSED).fit(
        X, Y, proba=LogisticRegression(max_iter=500).fit(X, Y).predict_proba(X)
    )
    return fused.score_samples(X, proba)


#: Call, error, and a pattern with the named argument and what came.
REFUSED = [
    (lambda: BLOCKS.fit(X, Y[:9]), ValueError, r"samples.*\[150, 9\]"),
    (lambda: BLOCKS.fit(X, GAP), ValueError, "y must hold a label .* at row 7"),
    (lambda: BLOCKS.fit(X, FLOATS), ValueError, "Unknown label type"),
    (lambda: clone(FUSED).fit(X, GAP), ValueError, "y must hold a label .* at row 7"),
    (lambda: clone(FUSED).fit(X, Y[:9]), ValueError, r"samples.*\[150, 9\]"),
    (lambda: clone(FUSED).fit(X, FLOATS), ValueError, "Unknown label type"),
    (lambda: make_pseudo_outliers(X, GAP), ValueError, "y must hold a label .* at row 7"),
    (lambda: make_pseudo_outliers(X, Y[:9]), ValueError, r"samples.*\[150, 9\]"),
    (lambda: make_pseudo_outliers(X, FLOATS), ValueError, "Unknown label type"),
    (lambda: make_pseudo_outliers(X, Y, n=0), ValueError, "n must be an integer >= 1, got 0"),
    (lambda: make_pseudo_outliers(X, Y, sample_weight=-np.ones(150)), ValueError, "sample_weight"),
    (lambda: fused_scores(P[:1]), ValueError, r"proba must .*\(150, 3\), got \(1, 3\)"),
    (lambda: fused_scores(P[:, :2]), ValueError, r"proba must .*\(150, 3\), got \(150, 2\)"),
    (lambda: fused_scores(P[:, 0]), ValueError, r"proba must .*\(150, 3\), got \(150,\)"),
    (lambda: fused_scores(np.full((150, 3), "a")), ValueError, "proba must hold numbers"),
    (lambda: clone(FUSED).fit(X, Y, proba=[["a"] * 3] * 150), ValueError, "proba must hold num"),
    (lambda: fused_scores(5 * P), ValueError, "rows of proba must sum to 1, got 5"),
    (lambda: fused_scores(np.nan * P), ValueError, "proba must hold finite probabilities"),
    (lambda: OODDetector().fit(X, FLOATS), ValueError, "Unknown label type"),
    (
        lambda: OODDetector(clone(DIPClassifier(density=GDADensity())).fit(X, Y), 2).predict(X),
        ValueError,
        "false_alarm_rate must be strictly between 0 and 1, got 2",
    ),
    (lambda: TABLE.predict(X), ValueError, r"X must be a table with the columns \['a', 'b'"),
    (lambda: TABLE.score_samples(X), ValueError, r"X must be a table with the columns \['a', 'b'"),
    (lambda: ARRAY.predict(X.astype(complex)), ValueError, "X must hold real .*complex128"),
    (lambda: ARRAY.predict(X.astype(str)), ValueError, r"such as X\.astype\(float\)"),
    (
        lambda: ARRAY.predict(X.astype(str).astype(object)),
        ValueError,
        r"X\[:, 0\] = X\[:, 0\]\.astype\(float\)",
    ),
    (
        lambda: OF_FRAME.predict(pl.DataFrame(FRAME.astype(str)).to_arrow()),
        ValueError,
        r"X\.set_column\(0, 'a', X\['a'\]\.cast\('float64'\)\)",
    ),
    (lambda: DIPClassifier(BOOSTED).fit(NESTED, Y), ValueError, "X has lists, .* in column 'n'"),
    (lambda: DIPClassifier(BOOSTED).fit(NESTED.to_arrow(), Y), ValueError, "lists, .*'n'"),
    (
        lambda: DIPClassifier(BOOSTED).fit(NESTED.with_columns(n=pl.struct("a")), Y),
        ValueError,
        "X has lists, .* in column 'n'",
    ),
    (
        lambda: DIPClassifier().fit(FRAME.assign(b=X[:, 1] > 3, c=pd.Categorical(WORDS)), Y),
        ValueError,
        r"X holds text or categories in the columns \['c'\]",
    ),
    (
        lambda: DIPClassifier().fit(FRAME.assign(c=WORDS).convert_dtypes(), Y),
        ValueError,
        r"X holds text or categories in the columns \['c'\]",
    ),
    (lambda: DIPClassifier(normalizer=ZScore).fit(X, Y), TypeError, "normalizer must"),
    (lambda: DIPClassifier(calibrator=Temperature).fit(X, Y), TypeError, "calibrator must"),
    (lambda: density.CustomDensity(GDADensity).fit(X), TypeError, "model must .*class GDA"),
    (lambda: GDADensity().fit(X, Y, ["a"] * 150), ValueError, "sample_weight must hold numbers"),
    (lambda: GDADensity().fit(X, Y, np.full(150, 1j)), ValueError, "sample_weight must hold real"),
    (lambda: GDADensity().fit(X, Y, {"a": 1}), TypeError, "sample_weight must hold .*got dict"),
    (lambda: GDADensity().fit(X, Y, X), ValueError, r"sample_weight must have .*\(150, 4\)"),
    (lambda: DIPClassifier(random_state=-1).fit(X, Y), ValueError, "random_state must be >= 0"),
    (lambda: ARRAY.p_value(X, random_state="a"), TypeError, "random_state must be .*got 'a'"),
    (lambda: ARRAY.p_value(X, random_state=-1), ValueError, "random_state must be >= 0, got -1"),
    (lambda: DIPClassifier(LogisticRegression).fit(X, Y), TypeError, "estimator must be a class"),
    (lambda: OODDetector(DIPClassifier).fit(X, Y), TypeError, "estimator must be a DIPClassifier"),
    (lambda: DIPClassifier(features=StandardScaler).fit(X, Y), TypeError, "features must be"),
    (lambda: density.GaussianMixtureDensity("a").fit(X), TypeError, "n_components must .*'a'"),
    (lambda: baselines.KNNDistance(n_neighbors="a").fit(X, Y), TypeError, "n_neighbors must"),
    (lambda: density.KNNDensity(True).fit(X), TypeError, "n_neighbors must .*got True"),
    (lambda: density.KNNDensity("a").fit(X), TypeError, "n_neighbors must .*got 'a'"),
    (lambda: density.KNNDensity(2.5).fit(X), TypeError, "n_neighbors must .*got 2.5"),
    (lambda: density.KNNDensity(max_rows="a").fit(X), TypeError, "max_rows must .*got 'a'"),
    (lambda: density.KernelDensity(None).fit(X), TypeError, "bandwidth must .*got None"),
    (lambda: density.KernelDensity(np.inf).fit(X), ValueError, "bandwidth must be finite"),
    (lambda: clone(FUSED).set_params(margin="a").fit(X, Y), TypeError, "margin must .*'a'"),
    (lambda: DIRICHLET.credible_interval("a"), TypeError, "level must be a number"),
    (lambda: DIRICHLET.sample("a", 0), TypeError, "size must be an integer"),
    (lambda: DIRICHLET.sample(2, -1), ValueError, "rng must be an integer >= 0, got -1"),
    (lambda: DIRICHLET.update([1, 0, 0], nu="a"), TypeError, "nu must be a number"),
    (lambda: alarm_threshold(SCORES, 2.0), ValueError, "rate must be strictly .*got 2.0"),
    (lambda: alarm_threshold([], 0.1), ValueError, "log_density must be a non-empty"),
    (lambda: QuantileEvidence().fit(SCORES, n=150, prior=[-1.0, 1.0]), ValueError, "prior .*> 0"),
    (lambda: weighted_quantile(SCORES, 2.0), ValueError, r"q must lie in \(0, 1\], got 2.0"),
    (lambda: weighted_quantile(SCORES, 0.5, [1, 2]), ValueError, r"weights must .*\(150,\), got"),
    (lambda: alarm_threshold(SCORES, 0.1, ["a"] * 150), ValueError, "weights must hold numbers"),
    (lambda: alarm_threshold(SCORES, 0.1, [1, 2]), ValueError, r"weights must .*\(150,\), got"),
    (lambda: weighted_quantile([], 0.5), ValueError, "values must not be empty"),
    (lambda: log_evidence([0.0], 10, max_evidence=-1), ValueError, "max_evidence must .*got -1"),
    (lambda: QuantileEvidence().fit(SCORES, n=150, prior=1.0), ValueError, "prior .*each class"),
]


#: Call, error, and a pattern with the named argument and what came.
FITS = [
    (fit(at(3, 2, 1e100)), ValueError, r"got 1e\+100 at row 3, column 2.*rescale"),
    (fit(at(3, 2, 1e39), density=GDADensity(), **FREE), ValueError, r"got 1e\+39 at row 3"),
    (fit(at(3, 2, np.nan)), NotComputableError, "row 3, column 2; .*SimpleImp"),
    (fit(at(3, 2, np.inf)), NotComputableError, "got inf at row 3, column 2; correct"),
    (fit(at(3, 2, -np.inf), **FREE), NotComputableError, "got -inf.*row 3, column 2"),
    (fit(X + 1j, **FREE), ValueError, "Complex data not supported"),
    (fit(X[:, 0]), ValueError, r"X must have shape \(n, d\).*Reshape"),
    (lambda: ARRAY.predict_proba(X[:4, :, None]), ValueError, r"as in fit, got shape \(4, 4, 1\)"),
    (fit(X[:0], Y[:0]), ValueError, "X is empty"),
    (fit(X[:, :0]), ValueError, "0 feature"),
    (fit("a b", [0]), ValueError, r"X must be a list of texts, got one text: give \['a b'\]"),
    (fit(["a b", None, "c"], [0, 1, 0]), ValueError, r"got None at position 1 \(no text in 1 of 3"),
    (fit(np.array(["a b", 3.0], object), [0, 1]), ValueError, "got 3.0 at position 1"),
    (fit(y=0 * Y), ValueError, r"at least 2 classes, got 1 class: \[0\]"),
    (fit(y=np.r_[9, Y[1:]]), ValueError, r"at least 2 samples of each class.*class \[9\]; merge"),
    (fit(y=Y[:-1]), ValueError, "inconsistent numbers of samples"),
    (fit(y=None), ValueError, "requires y to be passed"),
    (labelled([0, "a"] * 75), ValueError, r"y must hold .*got int 0 at row 0, .*y.astype\(str\)"),
    (labelled(Y), ValueError, r"y must hold .*got int 0 at row 0, .*y.astype\(str\)"),
    (labelled([date(2026, 1, 1 + i) for i in Y]), ValueError, "y must hold .*got date .*at row 0"),
    (fit(y=np.r_[np.nan, Y[1:]]), ValueError, "y.*NaN.*row 0; drop"),
    (fit(y=Y + 0.3), ValueError, "Unknown label type"),
    (fit(np.arange(4.0)[:, None], [0, 0, 1, 1]), ValueError, "cv=5 needs a class with at least 3"),
    (fit(weights="balanced"), ValueError, "sample_weight.*got 'balanced'; weights by class are"),
    (fit(weights=-ONES), ValueError, r"sample_weight must be >= 0 and at most .*got -1.0 at row 0"),
    (fit(weights=np.r_[ONES[:3], np.nan, ONES[4:]]), ValueError, "sample_weight.*got nan at row 3"),
    (fit(weights=0 * ONES), ValueError, "positive sum|at least one non-zero"),
    *(
        (lambda m=m: m.fit(X, Y, sample_weight=np.r_[1e100, ONES[1:]]), ValueError, message)
        for m in (DIPClassifier(), GDADensity(), density.KernelDensity())
        for message in [r"sample_weight .*at most 2\*\*53, got 1e\+100 at row 0"]
    ),
    (fit(weights=ONES, estimator=KNeighborsClassifier()), ValueError, r"KNeighborsClassifier\.fit"),
    (fit(weights=ONES, density=density.KNNDensity()), ValueError, r"KNNDensity\.fit does not"),
    # parameters
    (fit(gamma=0.0), ValueError, "gamma must be finite and > 0, got 0.0"),
    (fit(gamma=-1), ValueError, "gamma must be finite and > 0, got -1"),
    (fit(gamma="1"), TypeError, "gamma must be a number .*> 0, got '1'"),
    (fit(gamma=True), TypeError, "gamma must be a number"),
    (fit(max_evidence=-2.0), ValueError, "max_evidence must be finite and > 0"),
    (fit(prior=-1.0), ValueError, "prior must be finite and > 0, got -1.0"),
    (fit(prior=[1.0, 0.0, 1.0]), ValueError, "prior must be finite and > 0"),
    (fit(prior=[1.0, 1.0]), ValueError, r"prior.*shape \(3,\), got \(2,\)"),
    (fit(prior="uniform"), TypeError, "prior must be a number or one number per class"),
    (fit(false_alarm_rate=1.0), ValueError, "false_alarm_rate must be strictly between"),
    (lambda: OODDetector(false_alarm_rate=3).fit(X), ValueError, "false_alarm_rate must .*got 3"),
    (lambda: OODDetector(false_alarm_rate=0.0).fit(X), ValueError, "false_alarm_rate .*got 0.0"),
    (fit(cv=1), ValueError, "cv must be >= 2, a splitter or 'in-sample', got 1"),
    (fit(cv="insample"), ValueError, "cv must be 'auto', an int >= 2.*got 'insample'"),
    (fit(cv=[]), ValueError, "none of them empty, got 0 pairs; use cv=5"),
    (fit(cv=[(np.arange(9), [])]), ValueError, "none of them empty, got 1 pairs"),
    (fit(cv=[(np.arange(9), [150])]), ValueError, "rows 0 to 149: index 150 is out of"),
    (fit(cv=[np.arange(9)]), ValueError, "rows 0 to 149: too many values to unpack"),
    (fit(random_state="a"), TypeError, "random_state must be None, an int, a RandomState.*got 'a'"),
    (fit(features=lambda X: X), TypeError, "features must be None, 'passthrough' or a transformer"),
    (fit(normalizer="zscore"), TypeError, "normalizer must have methods .*'zscore'"),
    (fit(normalizer=Upside()), ValueError, "normalizer Upside must be increasing, but z falls"),
    # classifiers
    (fit(estimator="rf"), TypeError, "estimator must be a classifier object, got 'rf'"),
    (fit(estimator=LinearSVC()), TypeError, "estimator must have a method predict_proba.*Calibrat"),
    (fit(estimator=FrozenEstimator(GaussianNB())), ValueError, "has no classes_; fit it before"),
    (fit(y=Y.astype(str), estimator=FROZEN), ValueError, "give both the same labels"),
    (fit(estimator=Renames(1 / 3)), ValueError, r"classes_ .* are \[0, 1, 9\]"),
    (fit(estimator=Fixed(0.5)), ValueError, "rows of predict_proba of the estimator must sum to 1"),
    (fit(estimator=Fixed(np.nan)), ValueError, "must hold finite probabilities"),
    (fit(estimator=Fixed(-1 / 3)), ValueError, "must hold finite probabilities >= 0"),
    (fit(estimator=Fixed(1 / 3, rows=1)), ValueError, r"shape \(\d+, 3\), got \(1, 3\)"),
    (fit(estimator=Fixed(0.5, 2)), ValueError, r"must have shape \(\d+, 3\), got \(\d+, 2\)"),
    # densities
    (fit(density=object()), TypeError, "density must .*score_samples.*got <obj"),
    (fit(density=Score()), NotComputableError, r"Score gave nan for row 0 \(\d+ of"),
    (fit(density=Score(np.inf)), NotComputableError, "gave inf for row 0"),
    (fit(density=Score(0.0, 2)), ValueError, "one log-density per row"),
    (fit(density=Score(0.0)), ValueError, "log_density must vary"),
    (fit(np.insert(X, 1, 5.0, 1), density=BARE), ValueError, r"class 0: features \[1\]"),
    (fit(np.c_[X, X[:, :1]], density=BARE), ValueError, "5 features is singular .*shrinkage='oas'"),
    (fit(np.eye(150)[:, :60], density=BARE), ValueError, "class 0.*constant|singular"),
    (fit(density=DensitySelector(NONE)), ValueError, "one: .*no such.*two: .*neith"),
    # calibration rows
    (fit(calibration=X), TypeError, r"calibration must be a pair \(X, y\).*got ndarray"),
    (fit(calibration=(X,)), TypeError, r"calibration must be a pair \(X, y\)"),
    (held(X[:0], Y[:0]), ValueError, "calibration rows: X is empty"),
    (held(X, Y[:-1]), ValueError, "inconsistent numbers of samples"),
    (held(X[:, :2], Y), ValueError, "X has 2 features, but DIPClassifier is expecting 4"),
    (held(X, Y + 1), ValueError, r"holds labels \[3\] that fit does not know.*drop those rows"),
    (held(X, Y.astype(str)), ValueError, "dtype <U.*dtype int64: give both"),
    (held(X, None), ValueError, r"y is needed: normalizer CautionBudget.*QuantileEvidence\(\)"),
    (held(X * np.nan, Y), NotComputableError, "must be finite, got NaN .*row 0, column 0"),
    (held(X[:1], Y[:1]), ValueError, "calibration rows: 1 row cannot show how scores vary"),
    # questions
    (lambda: ARRAY.predict(X[:, :3]), ValueError, "X has 3 features, but DIPClassifier is expect"),
    (lambda: ARRAY.uncertainty(at(3, 2, np.nan)), NotComputableError, "NaN.*row 3, column 2"),
    (lambda: ARRAY.predict_ood(X, alpha=0.0), ValueError, "alpha must be strictly .*got 0"),
    *(
        (lambda m=m: getattr(DIPClassifier(), m)(X), NotFittedError, "not fitted")
        for m in ("predict", "predict_proba", "score_samples", "predict_ood", "uncertainty")
    ),
    (lambda: OODDetector(GaussianNB()).fit(X, Y), TypeError, "estimator must be a DIPClass"),
]


@pytest.mark.parametrize(("call", "error", "message"), [*FITS, *REFUSED])
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=f"(?is){message}") as caught:
        call()
    assert type(caught.value) is error
