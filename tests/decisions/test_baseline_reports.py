"""Every baseline reports on itself and explains its answers, as far as it can."""

import json
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

pytest.importorskip("torch")
from test_decision_conformance import HELD, MAKERS, draw

import dipedl
from dipedl import baselines
from dipedl.baselines import DDU, MaxSoftmax


@pytest.fixture(scope="module")
def fitted():
    """Each baseline, fitted once."""
    return cache(lambda name: MAKERS[name]().fit(*draw(0, 300)))


#: What a card of a baseline has to say beside the score.
REASONS = {
    **dict.fromkeys(baselines.__all__, None),
    "DDU": "gaussian",
    "Mahalanobis": "gaussian",
    "DAEDL": "gaussian",
    "KNNDistance": "neighbours",
}


@pytest.mark.parametrize("name", baselines.__all__)
def test_a_baseline_reports_on_itself_and_explains_inputs(name, fitted):
    model, X = fitted(name).calibrate(*draw(1, HELD)), draw(2, 8)[0]
    diagnosis = model.diagnose()
    assert diagnosis.source == f"{HELD} held-out inputs"
    assert {"calibration_source", "calibration_size", "labels"} <= set(diagnosis.codes)
    assert {"classes", "class_nearly_lost", "class_never_predicted"} & set(diagnosis.codes)
    cards, p = model.explain(X, top=1), model.p_value(X)
    np.testing.assert_array_equal([card.p_value for card in cards], p)
    np.testing.assert_array_equal([card.uncertainty for card in cards], model.uncertainty(X))
    np.testing.assert_array_equal([card.proba for card in cards], model.predict_proba(X))
    assert [card.label for card in cards] == model.predict(X).tolist()
    assert all(
        (card.dirichlet is not None) == hasattr(model, "predict_dirichlet") for card in cards
    )
    card = cards[int(p.argmin())]
    kinds, said = [part["kind"] for part in card.parts], str(card)
    assert kinds == ([] if REASONS[name] is None else [REASONS[name]])
    assert ("no density: reasons by column are not available" in said) == (not kinds)
    assert name in said and json.loads(json.dumps(card.to_dict()))["method"] == name
    with pytest.raises(ValueError, match="top must be an int >= 1"):
        model.explain(X, top=0)


@pytest.mark.parametrize("name", ["DDU", "KNNDistance"])
def test_reasons_of_a_baseline_are_told_by_column(name, fitted):
    model = fitted(name).calibrate(*draw(1, HELD))
    far = np.array([[0.0, 12.0]])
    (part,) = model.explain(far, top=2)[0].parts
    if name == "DDU":
        assert (part["class"], part["features"][0]["column"]) == ("cedar", 1)
        assert part["squared_distance"] == pytest.approx(
            sum(entry["contribution"] for entry in part["features"]), rel=1e-9
        )
    else:
        assert part["kth_distance"] == model.uncertainty(far)[0]
        unit = lambda Z: Z / np.linalg.norm(Z, axis=1, keepdims=True)  # noqa: E731
        distances = np.linalg.norm(unit(draw(0, 300)[0]) - unit(far), axis=1)
        assert part["neighbours"][0]["row"] == distances.argmin()


def test_a_pipeline_is_looked_through_to_a_baseline():
    X, y = draw(0, 300)
    model = make_pipeline(StandardScaler(), DDU()).fit(X, y)
    model[-1].calibrate(model[:-1].transform(draw(1, 60)[0]), draw(1, 60)[1])
    card = dipedl.explain(model, [[0.0, 12.0]])[0]
    entry = card.parts[0]["features"][0]
    assert (entry["column"], entry["value"]) == (1, 12.0)
    assert dipedl.diagnose(model).source == "60 held-out inputs"
    for ask in (dipedl.explain, lambda *given: dipedl.diagnose(given[0])):
        with pytest.raises(
            TypeError, match=r"model must be .* a baseline.* got LogisticRegression"
        ):
            ask(LogisticRegression().fit(X, y), X)


def test_a_score_of_one_value_is_found():
    X, y = draw(0, 300)
    certain = MaxSoftmax(DecisionTreeClassifier(random_state=0)).fit(X, y).calibrate(*draw(1, 300))
    finding = {f.code: f for f in certain.diagnose().findings}["score_constant"]
    assert finding.numbers["share_tied"] == 1
    over = {f.code: f for f in certain.diagnose().findings}["classifier_overconfident"]
    assert "DIPClassifier(FrozenEstimator(MaxSoftmax(...)))" in over.remedy
