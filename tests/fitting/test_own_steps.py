"""Without `features` the density sees what a pipeline's own steps make of the inputs."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomTreesEmbedding
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from tables import customers

import dipedl
from dipedl import DIPClassifier, OODDetector
from dipedl.density import GDADensity
from dipedl.evidence_model import EvidenceModel
from dipedl.features.pipelines import DenseRows, steps_before_classifier
from dipedl.features.scaling import FarRowsWarning
from dipedl.features.transformer import fit_feature_transformer, refit_feature_transformer

X, Y = load_iris(return_X_y=True)
X -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
LAST = LogisticRegression(max_iter=500)


def preparation():
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
            ("levels", OneHotEncoder(handle_unknown="ignore"), ["job", "region"]),
            ("rest", "passthrough", ["owner"]),
        ]
    )


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (LAST, None),
        (make_pipeline(StandardScaler(), LAST), None),
        (make_pipeline(PCA(2), StandardScaler(), LAST), ["pca"]),
        (make_pipeline(PCA(2), "passthrough", LAST), ["pca"]),
        (make_pipeline(MinMaxScaler(), make_pipeline(PCA(2), LAST)), ["minmaxscaler", "pipeline"]),
        (CalibratedClassifierCV(make_pipeline(PCA(2), LAST)), ["pca"]),
        (GridSearchCV(make_pipeline(PCA(2), LAST), {}), ["pca"]),
    ],
    ids=lambda v: None if v is None else str(v)[:40],
)
def test_own_steps_are_those_before_the_classifier(estimator, names):
    steps = steps_before_classifier(estimator)
    assert (None if steps is None else [name for name, _ in steps.steps]) == names


def test_a_scaler_of_its_own_changes_nothing():
    """Standardising the standardised would only change last bits."""
    plain = DIPClassifier(density=GDADensity()).fit(X, Y)
    clf = DIPClassifier(make_pipeline(StandardScaler(), LAST), GDADensity(), cv=2).fit(X, Y)
    assert type(clf.evidence_.features_) is StandardScaler
    np.testing.assert_array_equal(clf.score_samples(X), plain.score_samples(X))


def test_the_density_sees_the_steps_standardised_and_each_fold_fits_them_again():
    clf = DIPClassifier(make_pipeline(PCA(2), LAST), GDADensity(), cv=2).fit(X, Y)
    Z = PCA(2).fit_transform(X)
    np.testing.assert_allclose(clf.evidence_.transform(X), Z / Z.std(axis=0), atol=1e-9)
    same = make_pipeline(PCA(2), StandardScaler())
    given = DIPClassifier(make_pipeline(PCA(2), LAST), GDADensity(), features=same, cv=2).fit(X, Y)
    np.testing.assert_allclose(clf.evidence_.held_out_.scores, given.evidence_.held_out_.scores)


def test_a_frozen_pipeline_is_used_as_it_is():
    fitted = make_pipeline(PCA(2), LAST).fit(X[::2], Y[::2])
    clf = DIPClassifier(FrozenEstimator(fitted), GDADensity(), cv=2).fit(X[1::2], Y[1::2])
    inner = clf.evidence_.features_[0].estimator
    assert inner[0] is fitted[0]
    search = GridSearchCV(make_pipeline(PCA(2), LAST), {}, cv=2).fit(X, Y)
    assert (
        steps_before_classifier(FrozenEstimator(search)).estimator[0] is search.best_estimator_[0]
    )


def test_weights_count_rows_in_the_standardiser_too():
    w = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    scaler = DIPClassifier(make_pipeline(MinMaxScaler(), LAST), GDADensity(), cv=2)
    weighted = scaler.fit(X, Y, w).evidence_.features_[-1]
    Z = MinMaxScaler().fit_transform(X).repeat(w.astype(int), axis=0)
    np.testing.assert_allclose(weighted.mean_, Z.mean(axis=0))


def test_a_mixed_table_through_a_pipeline_just_works():
    frame, y = customers()
    new, labels = customers(seed=1)
    clf = DIPClassifier(Pipeline([("prepare", preparation()), ("model", LAST)])).fit(frame, y)
    assert clf.score(new, labels) > 0.7
    assert (clf.predict_ood(new) == -1).mean() < 0.12
    unseen = new.assign(job="astronaut")
    assert np.median(clf.p_value(unseen)) < 0.05 < 0.3 < np.median(clf.p_value(new))
    assert np.median(clf.uncertainty(unseen)) > 2 * np.median(clf.uncertainty(new))
    detector = OODDetector(DIPClassifier(make_pipeline(preparation(), LAST))).fit(frame)
    assert (detector.predict(new) == -1).mean() < 0.12


def coded(sparse=False):
    """Codes or columns for text, and all other columns as they are, gaps too."""
    to_codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encoder = OneHotEncoder(handle_unknown="ignore") if sparse else to_codes
    return ColumnTransformer(
        [("levels", encoder, ["job", "region"])], remainder="passthrough", sparse_threshold=sparse
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_gaps_that_the_steps_leave_to_the_classifier_are_encoded(sparse):
    frame, y = customers()
    new, labels = customers(seed=1)
    boosting = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    steps = [coded(sparse), *([DenseRows()] if sparse else [])]
    whole = DIPClassifier(make_pipeline(*steps, boosting), GDADensity(), cv=2)
    for model in (whole, make_pipeline(*steps, DIPClassifier(boosting, GDADensity(), cv=2))):
        model.fit(frame, y)
        assert model.score(new, labels) > 0.7
        assert (dipedl.predict_ood(model, new) == -1).mean() < 0.12
        gap = dipedl.explain(model, frame[frame.income.isna()][:1])[0].parts[0]["features"]
        assert "income" in [entry["name"] for entry in gap if entry["value"] is None]
    (finding,) = [f for f in whole.diagnose().findings if f.code == "density_features"]
    assert "(ColumnTransformer" in finding.text and "where these have gaps (rem" in finding.text


@pytest.mark.parametrize("levels", [30, 130])
def test_sparse_rows_from_the_steps_before_are_taken(levels):
    frame, y = customers()
    frame["town"] = [f"town {i % levels}" for i in range(300)]
    encoder = OneHotEncoder(handle_unknown="ignore")
    prepare = make_column_transformer((encoder, ["job", "town"]), (StandardScaler(), ["age"]))
    model = make_pipeline(prepare, DIPClassifier(LAST, GDADensity(), cv=2)).fit(frame, y)
    assert model[-1].evidence_.features_.steps[0][0] == ("dense" if levels == 30 else "reduce")
    unseen = frame[:3].assign(job="astronaut", town="nowhere", age=400.0)
    assert (dipedl.predict_ood(model, unseen) == -1).all()
    assert dipedl.explain(model, unseen)[0].news == ("job = 'astronaut'", "town = 'nowhere'")


def test_identifiers_that_the_steps_encode_are_warned_of_where_fit_is_called():
    frame, y = customers()
    frame["customer"] = [f"c{i}" for i in range(300)]
    columns = ["job", "customer"]
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), columns)), LAST
    )
    with pytest.warns(UserWarning, match=r"\['customer'\] of levels that hardly come tw") as said:
        DIPClassifier(model, GDADensity(), cv=2).fit(frame, y)
    assert [w.filename for w in said if "hardly" in str(w.message)] == [__file__]


TOPICS = [["cat", "dog", "purr", "fur", "paw"], ["tax", "bank", "loan", "rate", "fee"]]


def texts(n, common, rng):
    common = [f"word{i}" for i in range(common)]
    return [" ".join([*rng.choice(TOPICS[i % 2], 4), *rng.choice(common, 5)]) for i in range(n)]


@pytest.mark.parametrize(("common", "step"), [(40, "dense"), (400, "reduce")])
def test_lists_of_texts(common, step):
    rng = np.random.default_rng(0)
    seen, new, y = texts(160, common, rng), texts(160, common, rng), np.arange(160) % 2
    clf = DIPClassifier(make_pipeline(TfidfVectorizer(), LAST), random_state=0).fit(seen, y)
    assert clf.evidence_.features_.steps[1][0] == step and clf.score(new, y) == 1
    assert (clf.predict_ood(new) == -1).mean() < 0.15
    unknown = ["quark gluon lepton boson hadron meson"] * 3
    assert (clf.predict_ood(unknown) == -1).all()
    np.testing.assert_array_equal(clf.predict_proba(new), clf.predict_proba(np.array(new)))
    if step == "dense":
        (card,) = (
            DIPClassifier(clf.estimator, GDADensity(), cv=2).fit(seen, y).explain(["cat cat word3"])
        )
        assert {"cat", "word3"} <= {entry["name"] for entry in card.parts[0]["features"]}
        words = TfidfVectorizer().fit(seen)
        (cat,) = [entry for entry in card.parts[0]["features"] if entry["name"] == "cat"]
        found = words.transform(["cat cat word3"])[0, words.vocabulary_["cat"]]
        assert cat["value"] == pytest.approx(found)
    else:
        assert isinstance(clf.evidence_.features_["reduce"], TruncatedSVD)
        (finding,) = [f for f in clf.diagnose().findings if f.code == "density_features"]
        assert "TfidfVectorizer" in finding.text and "16 components" in finding.text


def test_texts_without_a_pipeline_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"must be numbers.*encode text, in a pipeline"):
        DIPClassifier().fit(["a b", "c d", "a b", "c d"], [0, 1, 0, 1])


class Refuses(BaseEstimator):
    """Takes the rows of the fit only."""

    def fit(self, X, y=None):
        self.rows_ = len(X)
        return self

    def transform(self, X):
        if len(X) != self.rows_:
            raise RuntimeError("these are other rows")
        return X


def test_steps_that_refuse_new_rows():
    frame, y = customers()
    frame.loc[7, "job"] = "astronaut"
    levels = ColumnTransformer([("levels", OneHotEncoder(), ["job", "region"])])
    with pytest.raises(ValueError, match="unknown categories") as caught:
        DIPClassifier(make_pipeline(levels, LAST)).fit(frame, y)
    assert "handle_unknown='ignore'" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="these are other rows") as caught:
        DIPClassifier(make_pipeline(Refuses(), LAST)).fit(X, Y)
    assert "it must take any rows" in caught.value.__notes__[0]


def test_folds_have_the_levels_and_the_words_of_the_fit():
    frame, y = customers(60)
    union = make_union(OneHotEncoder(handle_unknown="ignore"), make_pipeline(OneHotEncoder()))
    columns = ColumnTransformer([("l", union, ["job", "region"]), ("w", CountVectorizer(), "job")])
    model = make_pipeline(columns, LAST)
    features = fit_feature_transformer(None, frame, y, None, 0, model)
    few = frame[frame.job == "clerk"]
    again = refit_feature_transformer(features, None, few, y[: len(few)], None, 0)
    assert again.transform(few).shape[1] == features.transform(frame).shape[1] == 20
    assert again[0].steps[0][1] is not features[0].steps[0][1]


def rare_levels(n=1100, d=6):
    """Levels 0 to 59 by number, most of them rare."""
    rng = np.random.default_rng(0)
    return np.column_stack([rng.zipf(1.3, n) % 60 for _ in range(d)])


def grouped(least=12):
    """A column for each level of so many rows, and one for all others."""
    return OneHotEncoder(handle_unknown="ignore", min_frequency=least)


@pytest.mark.parametrize(
    "steps",
    [
        lambda: [grouped()],
        pytest.param(lambda: [grouped(13)], marks=pytest.mark.slow),
        lambda: [make_column_transformer((grouped(), [*range(6)]))],
        lambda: [grouped(1), VarianceThreshold(0.0109)],
    ],
    ids=["126", "109", "columns", "selected"],
)
def test_a_fold_of_fewer_columns_than_all_rows_is_fitted(steps):
    X = rare_levels()
    y = (X[:, 0] < 3) ^ (np.arange(len(X)) % 5 == 0)
    thirds = [
        (np.flatnonzero(part), np.flatnonzero(~part))
        for part in np.arange(1100) % 3 != [[0], [1], [2]]
    ]
    model = DIPClassifier(make_pipeline(*steps(), LAST), GDADensity(), cv=thirds).fit(X, y)
    assert model.evidence_.features_[-1].n_features_in_ == 100
    assert (model.predict_ood(X) == -1).mean() < 0.1


def test_a_search_loses_no_fit_to_a_fold_of_fewer_columns():
    X = rare_levels()
    model = DIPClassifier(make_pipeline(grouped(10), LAST), GDADensity(), cv=2)
    search = GridSearchCV(model, {"gamma": [1, 2]}, cv=2, error_score="raise")
    assert np.isfinite(search.fit(X, X[:, 0] < 3).best_score_)


@pytest.mark.parametrize(
    ("d", "steps"),
    [
        (2, [OneHotEncoder()]),
        (6, [OneHotEncoder()]),
        (3, [RandomTreesEmbedding(5, random_state=0)]),
        (1, [OneHotEncoder(), TruncatedSVD(10, random_state=0)]),
        (1, [OneHotEncoder(sparse_output=False), PCA(10, random_state=0)]),
        (1, [make_column_transformer((OneHotEncoder(), [0])), TruncatedSVD(10, random_state=0)]),
    ],
    ids=lambda v: str(v)[:30],
)
def test_components_of_rare_levels_are_not_far_from_the_rest(d, steps):
    X = rare_levels(d=d)
    X = X + np.random.default_rng(1).normal(size=X.shape) if d == 3 else X
    with warnings.catch_warnings():
        warnings.simplefilter("error", FarRowsWarning)
        EvidenceModel().fit_features(X, X[:, 0] < 3, estimator=make_pipeline(*steps, LAST))


def test_components_of_numbers_are_far_where_their_rows_are():
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[7, 2] = 1e5
    with pytest.warns(FarRowsWarning, match=r"rows \[7\], columns \['pca0'\]"):
        EvidenceModel().fit_features(X, X[:, 0] > 0, estimator=make_pipeline(PCA(2), LAST))


GAPLESS = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())


@pytest.mark.parametrize(
    ("part", "none"),
    [(OneHotEncoder(), []), (GAPLESS, [False] * 5), (PCA(1), [])],
    ids=str,
)
def test_a_part_of_no_columns_changes_nothing(part, none):
    frame, y = customers(120)
    frame = frame.fillna({"income": 0.0})
    numbers = ("numbers", StandardScaler(), ["age", "income"])
    models = [
        DIPClassifier(make_pipeline(ColumnTransformer(parts), LAST), GDADensity(), cv=2).fit(
            frame, y
        )
        for parts in ([numbers], [numbers, ("none", part, none)])
    ]
    with_it, without = ([str(card) for card in model.explain(frame[:3])] for model in models)
    assert with_it == without and "age = " in with_it[0]


def nothing(Z):
    return np.empty((len(Z), 0))


EMPTY = [
    [("all", "drop", ["age", "job"])],
    [],
    [("none", OneHotEncoder(), [])],
    [("numbers", FunctionTransformer(nothing), ["age"])],
]


@pytest.mark.parametrize("parts", EMPTY, ids=["drop", "no parts", "no columns", "no features"])
def test_steps_that_keep_nothing_are_refused_by_name(parts):
    frame, y = customers(60)
    with pytest.raises(ValueError, match="pipeline given as estimator, keep no column"):
        DIPClassifier(make_pipeline(ColumnTransformer(parts), LAST)).fit(frame, y)


def test_text_that_passes_through_is_refused_with_the_remedy():
    frame, y = customers(60)
    parts = ColumnTransformer([("numbers", SimpleImputer(), ["income"])], remainder="passthrough")
    with pytest.raises(ValueError, match=r"must be numbers.*encode text, in a pipeline"):
        DIPClassifier(make_pipeline(parts, LAST)).fit(frame, y)


def test_text_and_numbers_in_one_column_are_named_where_an_encoder_meets_them():
    frame, y = customers(60)
    frame["code"] = [7 if i % 3 else "seven" for i in range(60)]
    levels = ColumnTransformer([("levels", OneHotEncoder(), ["job", "code"])])
    with pytest.raises(TypeError, match="uniformly strings or numbers") as caught:
        DIPClassifier(make_pipeline(levels, LAST)).fit(frame, y)
    assert "mixed types in the columns ['code']" in caught.value.__notes__[0]


def test_dates_of_polars_beside_numbers_go_through_a_pipeline_that_encodes_them():
    polars = pytest.importorskip("polars")
    frame, y = customers(60)
    days = polars.datetime_range(
        polars.datetime(2020, 1, 1), polars.datetime(2020, 2, 29), "1d", eager=True
    )
    table = polars.DataFrame({"age": frame.age.to_list(), "day": days})
    levels = OneHotEncoder(handle_unknown="ignore")
    parts = [("age", StandardScaler(), ["age"]), ("day", levels, ["day"])]
    with pytest.warns(UserWarning, match="hardly come twice"):
        clf = DIPClassifier(make_pipeline(ColumnTransformer(parts), LAST), GDADensity(), cv=2)
        clf.fit(table, y)
    assert clf.predict_proba(table).shape == (60, 2)
