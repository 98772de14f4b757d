"""One small fitted estimator of every kind that a file holds by value."""

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn import calibration as cal
from sklearn import ensemble as ens
from sklearn import linear_model as lin
from sklearn import naive_bayes as nb
from sklearn import neighbors as near
from sklearn import preprocessing as pre
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from xgboost import XGBClassifier

X, Y = load_iris(return_X_y=True)
#: Two classes, for what has another shape then.
TWO = np.minimum(Y, 1)
TEXTS = ["a red apple", "a green pear", "the red rose", "green green grass"] * 5
TABLE = pd.DataFrame(
    {"a": X[:, 0], "b": pd.Categorical(np.array(["x", "y", "z"])[(X[:, 1] * 10).astype(int) % 3])}
)
NUMBERED = np.column_stack([X[:, 0], (X[:, 1] * 10).astype(int) % 5])
HOLES = np.where(X > 6, np.nan, X)
VOTERS = [("a", lin.LogisticRegression(max_iter=300)), ("b", nb.GaussianNB())]

_ON_NUMBERS = [
    lin.LogisticRegression(max_iter=300),
    lin.LogisticRegressionCV(cv=2, Cs=3, max_iter=300),
    lin.SGDClassifier(loss="log_loss", random_state=0),
    lin.SGDClassifier(average=True, random_state=0),
    lin.Perceptron(),
    lin.PassiveAggressiveClassifier(),
    lin.RidgeClassifier(),
    lin.RidgeClassifierCV(),
    LinearSVC(),
    ens.RandomForestClassifier(4, oob_score=True, max_samples=0.5, random_state=0),
    ens.ExtraTreesClassifier(3, random_state=0),
    DecisionTreeClassifier(random_state=0),
    ExtraTreeClassifier(random_state=0),
    ens.GradientBoostingClassifier(n_estimators=2, random_state=0),
    ens.GradientBoostingClassifier(n_estimators=2, init="zero", subsample=0.5, random_state=0),
    ens.HistGradientBoostingClassifier(max_iter=2),
    ens.HistGradientBoostingClassifier(max_iter=2, early_stopping=True),
    ens.AdaBoostClassifier(n_estimators=2),
    ens.BaggingClassifier(n_estimators=2, max_features=0.5, random_state=0),
    ens.IsolationForest(n_estimators=3, random_state=0),
    ens.IsolationForest(n_estimators=3, max_features=0.5, random_state=0),
    near.KNeighborsClassifier(),
    near.KNeighborsClassifier(algorithm="brute", metric="manhattan"),
    near.KNeighborsClassifier(algorithm="brute", metric="chebyshev", weights="distance"),
    near.KNeighborsClassifier(algorithm="ball_tree", p=3),
    near.RadiusNeighborsClassifier(radius=5.0),
    near.RadiusNeighborsClassifier(
        radius=5.0, algorithm="brute", metric="manhattan", outlier_label="most_frequent"
    ),
    near.NearestCentroid(),
    near.NearestNeighbors(),
    near.KernelDensity(),
    near.KernelDensity(algorithm="ball_tree", metric="manhattan"),
    SVC(),
    SVC(kernel="linear", decision_function_shape="ovo"),
    NuSVC(nu=0.3),
    nb.GaussianNB(),
    nb.MultinomialNB(),
    nb.BernoulliNB(),
    nb.ComplementNB(),
    nb.CategoricalNB(),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    QuadraticDiscriminantAnalysis(store_covariance=True),
    GaussianMixture(2, random_state=0),
    GaussianMixture(2, covariance_type="tied", random_state=0),
    BayesianGaussianMixture(n_components=2, random_state=0),
    MLPClassifier((5,), max_iter=5, random_state=0),
    MLPClassifier((5, 3), max_iter=5, solver="sgd", early_stopping=True, random_state=0),
    MLPClassifier((5,), max_iter=5, solver="lbfgs", random_state=0),
    DummyClassifier(),
    cal.CalibratedClassifierCV(LinearSVC(), cv=2),
    cal.CalibratedClassifierCV(nb.GaussianNB(), method="isotonic", cv=2),
    cal.CalibratedClassifierCV(LinearSVC(), cv=2, method="temperature"),
    OneVsRestClassifier(lin.LogisticRegression(max_iter=300)),
    OneVsOneClassifier(LinearSVC()),
    ens.VotingClassifier(VOTERS, voting="soft"),
    ens.StackingClassifier(VOTERS, cv=2),
    make_pipeline(pre.StandardScaler(), PCA(2), lin.LogisticRegression(max_iter=300)),
    FeatureUnion([("a", PCA(2)), ("b", pre.StandardScaler())]),
    ColumnTransformer(
        [("a", pre.StandardScaler(), [0, 1]), ("b", "passthrough", slice(2, 3))],
        remainder="passthrough",
    ),
    FrozenEstimator(nb.GaussianNB().fit(X, Y)),
    pre.StandardScaler(),
    pre.MinMaxScaler(),
    pre.MaxAbsScaler(),
    pre.RobustScaler(),
    pre.Normalizer(),
    pre.Binarizer(),
    pre.FunctionTransformer(np.log1p),
    pre.PowerTransformer(),
    pre.QuantileTransformer(n_quantiles=20),
    pre.PolynomialFeatures(),
    pre.PolynomialFeatures(3, interaction_only=True, include_bias=False),
    pre.OneHotEncoder(handle_unknown="ignore"),
    pre.OneHotEncoder(drop="first"),
    pre.OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist"),
    pre.OrdinalEncoder(),
    pre.KBinsDiscretizer(quantile_method="averaged_inverted_cdf"),
    PCA(),
    PCA(2, whiten=True),
    IncrementalPCA(n_components=2),
    TruncatedSVD(2),
    FastICA(2, random_state=0),
    FactorAnalysis(2),
    RBFSampler(n_components=20, random_state=0),
    VarianceThreshold(),
    SelectKBest(k=2),
    SelectPercentile(),
    TfidfTransformer(),
    LGBMClassifier(n_estimators=3, verbose=-1),
    XGBClassifier(n_estimators=3, max_depth=3),
]
_SPLITTERS = [
    *(KFold(2), StratifiedKFold(2), GroupKFold(2), StratifiedGroupKFold(2), LeaveOneOut()),
    TimeSeriesSplit(2),
    *(ShuffleSplit(2), StratifiedShuffleSplit(2), GroupShuffleSplit(2)),
]


def _texts(vectorizer):
    return make_pipeline(vectorizer, lin.LogisticRegression(max_iter=300))


def estimators():
    """Name -> estimator that is not fitted, inputs, labels."""
    found = {f"{i} {type(e).__name__}": (e, X, Y) for i, e in enumerate(_ON_NUMBERS)}
    twice = ("Logistic", "Boosting", "SVC", "MLP", "Ridge", "KNe", "Calib", "LGBM", "XGB")
    found |= {
        f"{name}, two classes": (e, X, TWO)
        for name, (e, _, _) in found.items()
        if any(word in name for word in twice)
    }
    for vectorizer in (CountVectorizer(), TfidfVectorizer(), HashingVectorizer(n_features=64)):
        found[type(vectorizer).__name__] = (_texts(vectorizer), TEXTS, [0, 1, 0, 1] * 5)
    exponential = ens.GradientBoostingClassifier(loss="exponential", n_estimators=2)
    found["exponential loss"] = (exponential, X, TWO)
    numbers = ("numbers", pre.StandardScaler(), make_column_selector(dtype_include=float))
    encoder = ("texts", pre.OneHotEncoder(handle_unknown="ignore"), ["b"])
    found["table"] = (
        make_pipeline(ColumnTransformer([numbers, encoder]), lin.LogisticRegression(max_iter=300)),
        TABLE,
        Y,
    )
    boosting = ens.HistGradientBoostingClassifier(max_iter=2)
    found["boosting of categories"] = (boosting, TABLE, Y)
    found["boosting of numbered categories"] = (
        ens.HistGradientBoostingClassifier(max_iter=2, categorical_features=[1]),
        NUMBERED,
        Y,
    )
    found["LightGBM of categories"] = (LGBMClassifier(n_estimators=3, verbose=-1), TABLE, Y)
    found["imputer"] = (
        make_pipeline(SimpleImputer(add_indicator=True), lin.LogisticRegression(max_iter=300)),
        HOLES,
        Y,
    )
    found["neighbours impute"] = (
        make_pipeline(KNNImputer(), lin.LogisticRegression(max_iter=300)),
        HOLES,
        Y,
    )
    for splitter in _SPLITTERS:
        name = type(splitter).__name__
        split = cal.CalibratedClassifierCV(nb.GaussianNB(), cv=2).fit(X, Y)
        found[name] = (FrozenEstimator(split.set_params(cv=splitter)), X, Y)
    return {name: (_seeded(e), inputs, labels) for name, (e, inputs, labels) in found.items()}


def _seeded(estimator):
    """The estimator with a seed in every part that has none: a fit gives the same bytes."""
    made = clone(estimator)
    seeds = [k for k, v in made.get_params().items() if k.endswith("random_state") and v is None]
    made.set_params(**dict.fromkeys(seeds, 0))
    return made


def fitted(estimator, inputs, labels):
    """A pipeline of the estimator, which can be saved as it is."""
    return Pipeline([("m", clone(estimator))]).fit(inputs, labels)


def answers(model, inputs):
    """What a model says, by method, in arrays; errors go through."""
    said = {}
    for name in (
        *("predict_proba", "decision_function", "predict", "transform", "score_samples"),
        *("apply", "kneighbors"),
    ):
        if hasattr(model, name):
            found = getattr(model, name)(inputs)
            found = found[0] if isinstance(found, tuple) else found
            said[name] = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    return said
