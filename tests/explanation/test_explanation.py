"""Cards say what the parts of the model say, by name, in the columns and units of the user."""

import json
from copy import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
)

import dipedl
from dipedl import DIPClassifier
from dipedl.columns import Inputs
from dipedl.density import (
    BlockSumDensity,
    FusedDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    RelativeDensity,
)
from dipedl.explanation import Card, explain, reasons
from dipedl.features.pipelines import input_sources, known_levels, sources_after
from dipedl.writing.text import percent
from weekly import sample_of

COLUMNS = ["mass", "length", "width", "age", "dose"]


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(300, n_features=5, centers=3, cluster_std=1.5, random_state=0)
    return pd.DataFrame(X, columns=COLUMNS), np.array(["ant", "bee", "cat"])[y]


def fitted(data, density, **parameters):
    return DIPClassifier(LogisticRegression(), density, **parameters).fit(*data)


@pytest.fixture(scope="module")
def gaussian(data):
    return fitted(data, GDADensity())


def with_odd_dose(data, by=15.0):
    X = data[0].iloc[:4].copy()
    X["dose"] += by
    return X


def test_a_class_whose_name_has_two_lines_changes_no_reason(data):
    X, y = data
    plain, broken = (
        DIPClassifier(LogisticRegression(), GDADensity()).fit(
            X, names[np.searchsorted(np.unique(y), y)]
        )
        for names in (np.array(["a", "b", "c"]), np.array(["a\nx", "b\u2028", "c"]))
    )
    assert reasons(plain, X[:20]) == reasons(broken, X[:20])
    assert all(len(card.summary().splitlines()) == 3 for card in explain(broken, X[:20]))


def test_a_card_says_what_the_methods_say(data, gaussian):
    X = data[0].iloc[:10]
    d, cards = gaussian.predict_dirichlet(X), explain(gaussian, X)
    held = gaussian.evidence_.held_out_
    for i, card in enumerate(cards):
        assert card.label == gaussian.predict(X)[i]
        np.testing.assert_allclose(card.mean, gaussian.predict_proba(X)[i])
        np.testing.assert_allclose(card.classifier_proba, gaussian.classifier_proba(X)[i])
        assert card.vacuity == pytest.approx(d.vacuity[i])
        assert card.evidence == pytest.approx(np.exp(d.log_evidence[i]))
        assert card.p_value == pytest.approx(gaussian.p_value(X)[i])
        assert card.flagged == (gaussian.predict_ood(X)[i] == -1)
        assert card.typical_score == pytest.approx(np.median(held.scores), rel=0.02)


def test_neighbours_are_those_of_a_plain_search(data):
    clf = fitted(data, KNNDensity(4))
    X = with_odd_dose(data)
    Z, trained = clf.evidence_.transform(X), clf.evidence_.transform(data[0])
    for card, z in zip(explain(clf, X, top=3), Z, strict=True):
        distances = np.linalg.norm(trained - z, axis=1)
        nearest = np.argsort(distances)
        part = card.parts[0]
        assert [e["row"] for e in part["neighbours"]] == nearest[:3].tolist()
        np.testing.assert_allclose(
            [e["distance"] for e in part["neighbours"]], distances[nearest[:3]]
        )
        assert part["kth_distance"] == pytest.approx(distances[nearest[3]])
    between = np.sort(np.linalg.norm(trained[:, None] - trained, axis=2), axis=1)
    assert part["typical_kth_distance"] == pytest.approx(np.median(between[:, 4]), rel=0.1)


class Halved(BaseEstimator):
    """A transformer that names nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) / 2


@pytest.mark.parametrize(
    ("features", "density", "names"),
    [
        (None, make_pipeline(Normalizer(), GDADensity()), COLUMNS),
        (PCA(3, random_state=0), GDADensity(), ["pca0", "pca1", "pca2"]),
        (Halved(), GDADensity(), [f"feature {j}" for j in range(5)]),
        ("array", GDADensity(), [f"x{j}" for j in range(5)]),
    ],
    ids=["pipeline", "components", "no names", "array"],
)
def test_features_are_named(data, features, density, names):
    X, y = data
    if features == "array":
        X, features = X.to_numpy(), None
    (card,) = explain(fitted((X, y), density, features=features), X[:1])
    assert {entry["name"] for entry in card.parts[0]["features"]} == set(names)


def test_a_ratio_shows_both_parts(data):
    (card,) = explain(fitted(data, RelativeDensity()), data[0].iloc[:1])
    part = card.parts[0]
    assert part["class"] in ("ant", "bee", "cat")
    assert part["background"]["class"] is None
    assert "squared distance to the background" in str(card)


def test_a_sum_of_blocks_begins_with_the_lowest(data):
    clf = fitted(data, BlockSumDensity([2, 3], GDADensity()))
    (card,) = explain(clf, with_odd_dose(data).iloc[:1])
    low, high = card.parts[0]["blocks"]
    assert (low["block"], high["block"]) == (1, 0)
    assert low["score"] + high["score"] == pytest.approx(card.score)
    assert low["features"][0]["name"] == "dose"
    assert {f["name"] for f in high["features"]} == {"mass", "length"}
    assert "block 1 adds" in str(card)


def test_any_other_density_has_its_score(data):
    (card,) = explain(fitted(data, KernelDensity()), data[0].iloc[:1])
    assert card.parts == ({"kind": "score"},)
    assert "score of the density" in str(card)


def test_parts_of_the_default_density(data):
    clf = DIPClassifier(LogisticRegression()).fit(*data)
    (card,) = explain(clf, with_odd_dose(data).iloc[:1])
    assert [part["part"] for part in card.parts] == list(clf.density_.component_names_)
    for part in card.parts:
        assert f"by {part['part']!r}" in str(card)
        assert np.isfinite(part["score"])
    assert min(part["normal_score"] for part in card.parts) < -2


def test_rows_that_weigh_two_are_two_rows(data):
    clf, twice = fitted(data, FusedDensity([("own", GDADensity())])), np.arange(60) % 3
    X, y = data[0].iloc[:60], data[1][:60]
    weighted, copied = copy(clf), copy(clf)
    weighted.calibrate(X, y, sample_weight=twice)
    copied.calibrate(X.iloc[np.arange(60).repeat(twice)], y.repeat(twice))
    for a, b in zip(*(explain(c, data[0].iloc[:20]) for c in (weighted, copied)), strict=True):
        assert a.held_out == b.held_out == 60
        assert a.p_value == pytest.approx(b.p_value)
        assert a.typical_score == pytest.approx(b.typical_score)
        for one, other in zip(a.parts, b.parts, strict=True):
            assert one["normal_score"] == pytest.approx(other["normal_score"])


def test_the_network_is_asked_once(data):
    class Counting(LogisticRegression):
        asked = 0

        def predict_proba(self, X):
            Counting.asked += 1
            return super().predict_proba(X)

    clf = DIPClassifier(Counting(), GDADensity(), cv="in-sample").fit(*data)
    Counting.asked = 0
    explain(clf, data[0].iloc[:5])
    assert Counting.asked == 1


def test_evidence_beyond_all_numbers_is_infinite(data):
    clf = fitted(data, GDADensity(), normalizer=MuchEvidence())
    (card,) = explain(clf, data[0].iloc[:1])
    assert card.to_dict()["evidence"] == "inf" and "inf of 300" in str(card)


class MuchEvidence:
    """Evidence of e^1000."""

    def fit(self, log_density, sample_weight=None, *, source=""):
        return self

    def transform(self, log_density):
        return np.asarray(log_density) + 1000.0


DENSITIES = [GDADensity(), KNNDensity(4), RelativeDensity(), KernelDensity(), None]


@pytest.mark.parametrize("density", DENSITIES, ids=str)
def test_values_and_text(data, density):
    for card in explain(fitted(data, density), with_odd_dose(data)):
        again = json.loads(json.dumps(card.to_dict(), allow_nan=False))
        assert again["label"] == card.label
        assert sum(again["proba"].values()) == pytest.approx(1)
        text = str(card)
        assert text.startswith(f"Answer {card.label!r}: ")
        assert max(map(len, text.splitlines())) <= 100
        assert "np." not in text and "nan" not in text


@pytest.mark.filterwarnings("error")
def test_an_input_beyond_all_numbers(data, gaussian):
    X = data[0].iloc[:1].assign(dose=1e200)
    (card,) = explain(gaussian, X)
    assert card.evidence == 0 and card.vacuity == 1
    assert json.loads(json.dumps(card.to_dict(), allow_nan=False))["score"] == "-inf"
    assert "dose = " in str(card)
    assert str(card).startswith(f"Answer {card.label!r}: {card.label} 33.3%")


def test_bad_input(data, gaussian):
    with pytest.raises(TypeError, match="top must be an integer >= 1, got 'a'"):
        explain(gaussian, data[0], top="a")
    with pytest.raises(ValueError, match="top must be an integer >= 1"):
        explain(gaussian, data[0], top=0)
    with pytest.raises(NotFittedError):
        explain(DIPClassifier(), data[0])
    assert isinstance(explain(gaussian, data[0].iloc[:1])[0], Card)


N = 240


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 8, N).round(1),
            "job": pd.Categorical(rng.choice(["nurse", "clerk"], N, p=[0.75, 0.25])),
            "dose": rng.normal(5, 1, N),
            "owner": rng.random(N) < 0.5,
        }
    )
    y = np.where(frame.age + 5 * frame.owner + rng.normal(0, 4, N) > 42, "ill", "well")
    frame.loc[::6, "dose"] = np.nan
    return frame, y


def test_what_is_usual_is_learned_from_rows_spread_over_a_frame_as_over_an_array():
    X = np.column_stack([np.arange(25_000.0), np.sin(np.arange(25_000))])
    X[:15_000, 1] = np.nan
    of_array, of_frame = Inputs.learn(X), Inputs.learn(pd.DataFrame(X).assign(text="a"))
    for name in ("low", "high", "cuts", "ranges"):
        np.testing.assert_array_equal(getattr(of_frame, name)[:2], getattr(of_array, name))


def odd(people):
    return people[0].iloc[1:2].assign(age=90.0)


def preparation(**kwargs):
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [
            ("n", numbers, ["age", "dose"]),
            ("l", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["job"]),
            ("r", "passthrough", ["owner"]),
        ],
        **kwargs,
    )


LAST = LogisticRegression(max_iter=500)
MODELS = {
    "table": lambda: DIPClassifier(HistGradientBoostingClassifier(max_iter=10), GDADensity()),
    "own steps": lambda: DIPClassifier(make_pipeline(preparation(), LAST), GDADensity()),
    "features": lambda: DIPClassifier(
        make_pipeline(preparation(), LAST), GDADensity(), features=preparation()
    ),
    "pipeline": lambda: Pipeline(
        [("prepare", preparation()), ("dip", DIPClassifier(LAST, GDADensity()))]
    ),
    "pandas out": lambda: make_pipeline(
        preparation(verbose_feature_names_out=False).set_output(transform="pandas"),
        DIPClassifier(LAST, GDADensity()),
    ),
    "search": lambda: GridSearchCV(
        make_pipeline(preparation(), DIPClassifier(LAST, GDADensity(), cv=2)), {}, cv=2
    ),
}


@pytest.fixture(scope="module")
def model_of(people):
    return cache(lambda name: MODELS[name]().fit(*people))


@pytest.mark.parametrize("name", sample_of(MODELS, 0, 1, 3))
def test_the_odd_column_is_named_first_with_its_value_and_what_is_usual(people, model_of, name):
    model = model_of(name)
    (card,) = dipedl.explain(model, odd(people))
    part = card.parts[0]
    first = part["features"][0]
    assert (first["name"], first["value"]) == ("age", 90.0)
    low, high = map(float, first["usual"].split(" to "))
    assert (low, high) == pytest.approx(np.quantile(people[0].age, [0.05, 0.95]), abs=0.05)
    assert f"age = 90 (typical {first['usual']})" in card.summary() and card.flagged
    assert str(card).startswith(card.summary()) and len(card.summary().splitlines()) == 3
    assert len({entry["name"] for entry in part["features"]}) == 4
    total = sum(entry["contribution"] for entry in part["features"]) + part["rest"]
    assert total == pytest.approx(part["squared_distance"])
    json.dumps(card.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", sample_of(["table", "own steps"], 0))
def test_levels_are_told_with_their_shares(people, name):
    (card,) = MODELS[name]().fit(*people).explain(people[0].iloc[:1])
    (job,) = [entry for entry in card.parts[0]["features"] if entry["name"] == "job"]
    share = (people[0].job == "nurse").mean()
    assert job["usual"].startswith(f"'nurse' {share:.0%}, 'clerk'")
    assert job["value"] == people[0].job[0]
    owner = [entry for entry in card.parts[0]["features"] if entry["name"] == "owner"]
    assert f"owner = {owner[0]['value']!r}" in str(card)


@pytest.mark.parametrize("form", [lambda rows: np.array(rows, dtype=object), list])
def test_texts_of_numpy_among_objects_are_told_as_texts(rng, form):
    rows = [[np.str_(rng.choice(["a", "b"])), float(i)] for i in range(60)]
    encoded = ColumnTransformer([("level", OneHotEncoder(handle_unknown="ignore"), [0])])
    model = DIPClassifier(make_pipeline(encoded, LogisticRegression()), GDADensity())
    (card,) = model.fit(form(rows), np.arange(60) % 2).explain(form([[np.str_("c"), 1.0]]))
    assert card.news == ("x0 = 'c'",) and "np." not in str(card)


def many_levels(n, seed, month=(1, 4)):
    """Rows of a column of 15 levels, of which four are five times as frequent as others."""
    rng = np.random.default_rng(seed)
    share = np.r_[np.full(4, 5.0), np.linspace(1.5, 0.3, 11)]
    places = np.array([f"P{i:02d}" for i in range(15)])
    X = pd.DataFrame(
        {
            "place": pd.Categorical(rng.choice(places, n, p=share / share.sum())),
            "month": rng.integers(*month, n).astype(float),
            "temp": rng.normal(20, 5, n),
        }
    )
    return X, np.where(X["temp"] + rng.normal(0, 5, n) > 20, "yes", "no")


@pytest.fixture(scope="module")
def travel():
    X, y = many_levels(1500, 0)
    return DIPClassifier(HistGradientBoostingClassifier(max_iter=10)).fit(X, y), X


def test_a_common_level_is_no_reason_and_a_rare_one_is_told_with_its_share(travel):
    clf, X = travel
    share = X["place"].value_counts(normalize=True)
    common = share.index[:4]
    for reason in reasons(clf, many_levels(300, 1)[0]):
        assert not any(f"place = {level!r}" in reason for level in common)
    (level,) = share.index[-1:]
    place = pd.Categorical([level], categories=X["place"].cat.categories)
    (card,) = clf.explain(X[:1].assign(place=place))
    assert f"place = {level!r} ({percent(share.iloc[-1])} of the training rows" in card.reason


def test_a_new_month_is_the_reason_beside_any_common_level(travel):
    clf, X = travel
    new = many_levels(40, 2, month=(7, 9))[0]
    new = new[new["place"].isin(["P00", "P01", "P02", "P03"])].reset_index(drop=True)
    new["place"] = new["place"].cat.set_categories(X["place"].cat.categories)
    cards = clf.explain(new)
    assert len(cards) > 5
    assert all(card.reason.startswith("month = ") and "place" not in card.reason for card in cards)


def test_what_a_column_adds_on_average_sums_to_the_expected_distance(travel):
    clf, X = travel
    (card,) = clf.explain(X[:1])
    for part in card.parts:
        if part["kind"] == "gaussian":
            entries = part["features"]
            assert sum(entry["expected"] for entry in entries) == part["expected"]
            beyond = [entry["contribution"] - entry["expected"] for entry in entries]
            assert beyond == sorted(beyond, reverse=True)


@pytest.mark.parametrize(
    ("counts", "unusual"),
    [
        ([60, 40], set()),
        ([97, 3], {1}),
        ([2] * 100, set()),
        ([5] * 19 + [2], {19}),
        ([45] * 5 + [31] * 25, set()),
        ([45] * 5 + [31] * 24 + [17, 14], {30}),
        ([0, 100], {0}),
    ],
)
def test_a_level_is_unusual_by_its_share_and_by_that_of_the_others(counts, unusual):
    values = np.repeat(range(len(counts)), counts).astype(str)
    known = Inputs.learn(pd.DataFrame({"c": values}))
    assert {i for i in range(len(counts)) if known[0].is_unusual(str(i))} == unusual
    assert known[0].is_unusual(None)


@pytest.mark.parametrize("form", [pd.DataFrame, np.asarray])
def test_usual_numbers_of_many_rows_are_those_of_all(form):
    values = np.arange(50_000.0)
    values[[7, 9, 10_000]] = -5, np.nan, 60_000
    known = Inputs.learn(form(np.stack([values, values - 5, np.full(50_000, np.nan)], axis=1)))
    assert np.allclose([known.low[:2], known.high[:2]], [[2500, 2495], [47_500, 47_495]], atol=10)
    assert known[0].cuts[[0, -1]].tolist() == [-5, 60_000]
    assert np.isnan(known.low[2]) and not len(known[2].cuts)


def news(model, row):
    return dipedl.explain(model, row)[0].news


@pytest.mark.parametrize("name", sample_of(MODELS, 0, 2, 4))
def test_what_the_fit_never_saw_is_said(people, model_of, name):
    model = model_of(name)
    known = people[0].iloc[:1]
    assert news(model, known) == ()
    unseen = known.assign(job=pd.Categorical(["pilot"]))
    assert "job = 'pilot'" in news(model, unseen)
    assert "never in the training data: job = 'pilot'" in str(dipedl.explain(model, unseen)[0])
    # that a dose may be missing is known, that age may be is not
    assert news(model, known.assign(dose=np.nan, age=np.nan)) == ("age is missing",)
    if name != "own steps":
        gap = known.assign(job=pd.Categorical([None], categories=["nurse"]))
        assert news(model, gap) == ("job is missing",)


def test_an_imputer_without_an_indicator_knows_of_no_first_gap(people):
    X, y = people[0][["age", "dose"]], people[1]
    model = make_pipeline(SimpleImputer(), DIPClassifier(LAST, GDADensity())).fit(X, y)
    assert news(model, X[:1].assign(age=np.nan)) == ()
    arriving = make_pipeline(
        StandardScaler(), DIPClassifier(HistGradientBoostingClassifier(max_iter=5), GDADensity())
    ).fit(X, y)
    assert news(arriving, X[:1].assign(age=np.nan, dose=np.nan)) == ("age is missing",)


def test_values_are_told_by_their_kind(people):
    """Levels that are numbers, booleans, names that hardly come twice, first values."""
    X = people[0][["age"]].copy()
    X["code"] = pd.Categorical(np.arange(N) % 4)
    X["member"] = np.arange(N) % 3 == 0
    X["always"] = True
    X["empty"] = np.nan
    X["name"] = [f"person {i}" for i in range(N)]
    known = Inputs.learn(X)
    assert (
        known[1].describe_usual().startswith("0 25%, 1 25%")
        and known[2].describe_usual() == "False 67%, True 33%"
    )
    assert known[5].describe_usual() == ""
    new = X[:1].assign(code=pd.Categorical([9]), always=False, empty=2.0, name="nobody")
    assert known.describe_new(new) == [["code = 9", "always = False", "empty = 2.0"]]
    assert known.text_columns() == ["code", "name"]


def test_dates_and_words_on_cards(people):
    y = people[1]
    X = pd.DataFrame({"when": pd.date_range("2020", periods=N), "note": ["cat purrs", "tax"] * 120})
    month = FunctionTransformer(
        lambda d: d.apply(lambda c: c.dt.month), feature_names_out="one-to-one"
    )
    prepare = ColumnTransformer([("m", month, ["when"]), ("t", TfidfVectorizer(), "note")])
    clf = DIPClassifier(make_pipeline(prepare, LAST), GDADensity()).fit(X, y)
    (card,) = clf.explain(X[:1])
    entries = {e["name"]: e for e in card.parts[0]["features"]}
    assert {"t__cat", "t__purrs", "t__tax"} <= entries.keys() and "note" not in entries
    assert entries["when"]["value"] == "2020-01-01" and entries["when"]["usual"] == ""
    json.dumps(card.to_dict(), allow_nan=False)


def test_a_gap_is_called_one(people):
    clf = MODELS["table"]().fit(*people)
    (card,) = clf.explain(people[0].iloc[1:2].assign(age=np.nan))
    assert card.parts[0]["features"][0]["value"] is None
    assert "age is missing (0% of the training rows" in str(card) and card.flagged


@pytest.mark.parametrize("add_indicator", [False, True])
def test_gaps_that_were_filled_before_have_no_share(people, add_indicator):
    X, y = people[0][["age", "dose"]].to_numpy(), people[1]
    prepare = make_pipeline(SimpleImputer(add_indicator=add_indicator), StandardScaler())
    inside = DIPClassifier(make_pipeline(prepare, LAST), GDADensity()).fit(X, y)
    before = make_pipeline(prepare, DIPClassifier(LAST, GDADensity())).fit(X, y)
    for model, share in ((inside, np.isnan(X[:, 1]).mean()), (before, None)):
        (card,) = dipedl.explain(model, X[:1])
        (entry,) = (e for e in card.parts[0]["features"] if e["column"] == 1)
        assert entry["value"] is None and entry["share"] == share and not entry["unusual"]
        assert "x1 is missing" in str(card) and "missing" not in card.reason
        (far,) = dipedl.explain(model, np.array([[X[0, 0], 50.0]]))
        assert far.reason.startswith("x1 = 50 (typical ")


def test_mixtures_of_columns_keep_their_name_in_their_own_unit(people):
    X, y = people[0][["age", "dose"]].fillna(5.0), people[1]
    clf = DIPClassifier(make_pipeline(PCA(2), LAST), GDADensity()).fit(X, y)
    Z = PCA(2).fit(X).transform(X[:1])[0]
    (card,) = clf.explain(X[:1])
    entries = {e["name"]: e for e in card.parts[0]["features"]}
    assert str(card).count("(mean 0)") == 2
    for j in range(2):
        assert entries[f"pca{j}"]["value"] == pytest.approx(Z[j])
        assert entries[f"pca{j}"]["mean"] == pytest.approx(0, abs=1e-9)


def test_the_most_columns_are_kept_to_when_several_features_make_one(people):
    clf = MODELS["table"]().fit(*people)
    (card,) = clf.explain(odd(people), top=2)
    assert card.parts[0]["features"][0]["name"] == "age"
    assert len(card.parts[0]["features"]) == 2


TABLE = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "b": [3.0, 1.0, 2.0, 9.0], "c": list("xyxz")})
NUMBERS = TABLE[["a", "b"]].fillna(0.0)


@pytest.mark.parametrize(
    ("transformer", "columns"),
    [
        (None, [(0,), (1,)]),
        ("passthrough", [(0,), (1,)]),
        (StandardScaler(), [(0,), (1,)]),
        (PCA(2), [(0, 1), (0, 1)]),
        (SelectKBest(k=1), [(1,)]),
        (make_union(StandardScaler(), MinMaxScaler()), [(0,), (1,), (0,), (1,)]),
        (make_union(PCA(1), "passthrough"), [(0, 1), (0,), (1,)]),
        (make_pipeline(MinMaxScaler(), PCA(1)), [(0, 1)]),
        (FunctionTransformer(np.log1p, feature_names_out="one-to-one"), [(0,), (1,)]),
        (FrozenEstimator(StandardScaler().fit(NUMBERS)), [(0,), (1,)]),
        (OneHotEncoder(max_categories=2), [(0,), (0,), (1,), (1,)]),
        (ColumnTransformer([("p", PCA(1), [0, 1])], remainder="drop"), [(0, 1)]),
        (ColumnTransformer([("s", StandardScaler(), [1])], remainder="passthrough"), [(1,), (0,)]),
    ],
    ids=lambda v: str(v)[:40],
)
def test_sources(transformer, columns):
    y = np.array([0, 0, 0, 1])
    fitted = transformer if not hasattr(transformer, "fit") else transformer.fit(NUMBERS, y)
    assert [s.columns for s in sources_after(fitted, input_sources(2))] == columns


def test_sources_of_gaps():
    X = TABLE[["a", "b"]].assign(empty=np.nan)
    imputer = SimpleImputer(add_indicator=True).fit(X)
    found = sources_after(imputer, input_sources(3))
    assert [s.columns for s in found] == [(0,), (1,), (0,), (2,)]
    assert [s.back is None for s in found] == [False, False, True, True]
    assert [s.columns for s in sources_after(MissingIndicator().fit(X), input_sources(3))] == [
        (0,),
        (2,),
    ]


def test_the_way_back_is_the_inverse():
    chain = make_pipeline(MinMaxScaler((2, 5)), PowerTransformer(), StandardScaler()).fit(NUMBERS)
    Z = chain.transform(NUMBERS)
    for j, source in enumerate(sources_after(chain, input_sources(2))):
        back = [source.back(value) for value in Z[:, j]]
        np.testing.assert_allclose(back, NUMBERS.iloc[:, j], atol=1e-8)
    assert sources_after(Normalizer().fit(NUMBERS), input_sources(2))[0].back is None
    assert sources_after(OrdinalEncoder().fit(TABLE[["c"]]), input_sources(1))[0].back is None


def test_a_transformer_that_names_nothing_has_no_sources():
    class Doubles:
        def transform(self, X):
            return np.hstack([X, X])

    assert sources_after(Doubles(), input_sources(2)) is None
    assert sources_after(make_pipeline(Doubles(), StandardScaler()), input_sources(2)) is None
    assert sources_after(FunctionTransformer(np.log1p).fit(NUMBERS), input_sources(2)) is None
    assert list(known_levels(Doubles(), input_sources(2))) == []


def test_sparse_inputs_have_no_columns_to_speak_of():
    X, y = sparse.random(60, 5, 0.5, format="csr", random_state=0), np.arange(60) % 2
    clf = DIPClassifier(make_pipeline(MaxAbsScaler(), LAST), GDADensity()).fit(X, y)
    (card,) = clf.explain(X[:1])
    assert card.news == () and len(card.parts[0]["features"]) == 5
