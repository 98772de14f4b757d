"""Cards: what they say is what the parts of the model say, by name, as values, text and picture."""

import json
from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl import DIPClassifier
from dipedl.density import (
    BlockSumDensity,
    FusedDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    RelativeDensity,
)
from dipedl.explanation import Card, explain

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
    with pytest.raises(ValueError, match="top must be an int >= 1, got 'a'"):
        explain(gaussian, data[0], top="a")
    with pytest.raises(ValueError, match="top must be an int >= 1"):
        explain(gaussian, data[0], top=0)
    with pytest.raises(NotFittedError):
        explain(DIPClassifier(), data[0])
    assert isinstance(explain(gaussian, data[0].iloc[:1])[0], Card)
