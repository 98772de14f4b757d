"""Groups of rows, such as persons: folds hold out whole ones, so that alarms hold for new ones."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold

import dipedl
from dipedl import DIPClassifier, OODDetector
from dipedl.baselines import MaxSoftmax
from dipedl.calibration.crossfit import splitter_pairs
from dipedl.density import GDADensity, KNNDensity
from dipedl.held_out import design_effect

IRIS, KINDS = load_iris(return_X_y=True)
IRIS -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
PERSONS = np.arange(150) // 3 % 10


def draw_persons(rng, n_persons, n_rows=30):
    """Rows of three classes by persons, each of whom shifts all rows of a class by habit."""
    person = np.repeat(np.arange(n_persons), n_rows)
    y = rng.integers(3, size=len(person))
    habit = rng.normal(scale=1.0, size=(n_persons, 3, 6))
    means = 4 * np.eye(3, 6)
    return means[y] + habit[person, y] + 0.3 * rng.normal(size=(len(y), 6)), y, person


@pytest.mark.parametrize("cv", ["auto", 3, GroupKFold(4), StratifiedGroupKFold(5)], ids=str)
def test_every_row_is_held_out_once_with_all_of_its_group(cv):
    pairs = splitter_pairs(cv, KINDS, None, PERSONS)
    assert all(not np.isin(PERSONS[train], PERSONS[held]).any() for train, held in pairs)
    np.testing.assert_array_equal(np.sort(np.concatenate([b for _, b in pairs])), np.arange(150))


def test_false_alarms_of_new_persons_are_those_asked_for(rng):
    shares = {"groups": [], "rows": []}
    for _ in range(3):
        X, y, person = draw_persons(rng, 40)
        new, *_ = draw_persons(rng, 200, 5)
        clf = DIPClassifier(density=KNNDensity(5), random_state=0)
        for name, groups in (("groups", person), ("rows", None)):
            flagged = clf.fit(X, y, groups=groups).predict_ood(new) == -1
            shares[name].append(flagged.mean())
    assert np.mean(shares["groups"]) < 0.06 < 0.12 < np.mean(shares["rows"])


def test_names_of_groups_and_order_of_rows_change_nothing():
    names = np.array([f"person {i}" for i in PERSONS], dtype=object)
    order = np.random.default_rng(0).permutation(150)
    clf = DIPClassifier(density=GDADensity(), random_state=0)
    of_numbers = clf.fit(IRIS, KINDS, groups=PERSONS).score_samples(IRIS), clf.offset_
    of_names = clf.fit(IRIS[order], KINDS[order], groups=names[order])
    np.testing.assert_allclose(of_names.score_samples(IRIS), of_numbers[0], rtol=1e-9)
    assert of_names.offset_ == pytest.approx(of_numbers[1])


@pytest.mark.parametrize("labels", [KINDS, None], ids=["labels", "no labels"])
def test_a_detector_holds_out_the_groups_that_a_classifier_does(labels):
    density = GDADensity(shrinkage=None)
    detector = OODDetector(DIPClassifier(density=density, features="passthrough"))
    detector.fit(IRIS, labels, groups=PERSONS)
    held_out = detector.evidence_.held_out_
    y = np.zeros(150) if labels is None else labels
    # No row is more typical held out than among the rows of the fit.
    scores = clone(density).fit(IRIS, y).score_samples(IRIS)
    for train, held in StratifiedGroupKFold(5).split(IRIS, y, PERSONS):
        alone = clone(density).fit(IRIS[train], y[train])
        scores[held] = np.minimum(scores[held], alone.score_samples(IRIS[held]))
    np.testing.assert_allclose(held_out.scores, np.sort(scores), rtol=1e-9)
    assert held_out.design_effect >= 1 and "by groups" in held_out.source


def test_rows_without_weight_take_their_group_with_them():
    weights = np.where(PERSONS == 0, 0.0, 1.0)
    clf = DIPClassifier(density=GDADensity())
    clf.fit(IRIS, KINDS, weights, groups=PERSONS)
    kept = PERSONS > 0
    again = DIPClassifier(density=GDADensity())
    again.fit(IRIS[kept], KINDS[kept], groups=PERSONS[kept])
    assert clf.offset_ == pytest.approx(again.offset_)
    assert "by groups of 135 inputs" in clf.evidence_.held_out_.source


def test_the_design_effect_is_the_ratio_of_two_variances(rng):
    """Of groups of 20 rows that share a tenth of their variance it is 1 + 19 / 10 (Kish)."""
    groups = np.repeat(np.arange(400), 20)
    chance = np.where(rng.random(400) < 0.1, 1.0, 0.0)[groups]
    own = rng.random(8000) < 0.1
    hits = np.where(rng.random(8000) < np.sqrt(0.1), chance, own).astype(bool)
    assert design_effect(hits, groups) == pytest.approx(2.9, abs=0.5)
    shares = [design_effect(rng.random(8000) < 0.1, groups, np.full(8000, 3.0)) for _ in range(20)]
    assert np.mean(shares) == pytest.approx(1.0, abs=0.06)
    assert design_effect(np.zeros(8000, dtype=bool), groups) == 1.0


def test_rates_by_groups_that_are_alike_are_less_steady(rng, tmp_path):
    X, y, person = draw_persons(rng, 20)
    clf = DIPClassifier(density=KNNDensity(5), random_state=0)
    steady = {}
    for name, groups in (("rows", None), ("groups", person)):
        findings = clf.fit(X, y, groups=groups).diagnose().findings
        (size,) = [f for f in findings if f.code in ("calibration_size", "calibration_small")]
        steady[name] = size.numbers["false_alarm_sd"]
    effect = clf.evidence_.held_out_.design_effect
    assert effect > 1.5
    assert steady["groups"] == pytest.approx(steady["rows"] * np.sqrt(effect), rel=0.02)
    clf.save(tmp_path / "m.dipedl")
    assert dipedl.load(tmp_path / "m.dipedl").evidence_.held_out_.design_effect == effect


@pytest.mark.parametrize("model", [DIPClassifier(density=GDADensity()), MaxSoftmax()], ids=type)
def test_groups_of_calibration_rows_say_how_many_rows_they_are_worth(model, rng):
    """Persons whose rows are copies are worth one row each."""
    model.fit(IRIS, KINDS)
    X = IRIS + 0.1 * rng.normal(size=IRIS.shape)
    person = np.arange(150).repeat(4)
    model.calibrate(X[person], KINDS[person], groups=person)
    assert model.held_out_rows().design_effect == pytest.approx(4 * 150 / 149)
    plain = model.held_out_rows()
    model.calibrate(X[person], KINDS[person])
    assert model.held_out_rows().design_effect == 1
    np.testing.assert_array_equal(model.held_out_rows().scores, plain.scores)
    with pytest.raises(ValueError, match="the first is row 0"):
        model.calibrate(IRIS, KINDS, groups=[None, *PERSONS[1:]])


GAPS = np.where(PERSONS == 3, np.nan, PERSONS)
REFUSED = {
    "a row each": ({"groups": np.arange(150)}, {}, "groups must be shared"),
    "one group": ({"groups": np.ones(150)}, {}, "groups must be shared"),
    "a gap": ({"groups": GAPS}, {}, "the first is row 9"),
    "a gap among texts": ({"groups": np.where(PERSONS == 3, None, "a")}, {}, "row 9"),
    "too few": ({"groups": PERSONS[:100]}, {}, "groups must hold .*150 rows, got 100"),
    "two columns": ({"groups": np.ones((150, 2))}, {}, "1d array"),
    "the class": ({"groups": KINDS > 0}, {}, "groups must share classes"),
    "no folds": ({"groups": PERSONS}, {"cv": "in-sample"}, "cv='in-sample'"),
    "folds of rows": ({"groups": PERSONS}, {"cv": KFold(3)}, "cv parts groups"),
    "calibration": (
        {"groups": PERSONS, "calibration": (IRIS, KINDS)},
        {},
        "with calibration",
    ),
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_groups_that_cannot_be_held_out_are_named(given):
    arguments, parameters, message = given
    with pytest.raises(ValueError, match=message):
        DIPClassifier(density=GDADensity(), **parameters).fit(IRIS, KINDS, **arguments)
