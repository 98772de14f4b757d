"""A class left out of a fit is asked about as an unknown one would be."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import stats
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

import dipedl
from dipedl import DIPClassifier
from dipedl.density import GDADensity, KNNDensity
from dipedl.explanation import UnknownRehearsal, rehearse_unknown
from dipedl.plots import UnknownRehearsalDisplay
from weekly import sample_of

IRIS, KINDS = load_iris(return_X_y=True)
IRIS -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
DIGITS, FIGURES = load_digits(return_X_y=True)
NAMES = np.array(["setosa", "lily", "rose"])[KINDS]


def fast(**options):
    return DIPClassifier(LogisticRegression(max_iter=200), GDADensity(), **options)


@pytest.fixture(scope="module")
def blobs():
    """Four classes: two far from all, and two that touch."""
    centers = [[-12, 0, 0], [12, 0, 0], [0, 8, 0], [0, 9.5, 0]]
    return make_blobs([90, 80, 70, 60], centers=centers, random_state=0)


@pytest.fixture(scope="module")
def found(blobs):
    return fast().rehearse_unknown(*blobs)


def test_each_share_is_that_of_a_fit_without_the_class(blobs, found):
    X, y = blobs
    assert found.classes == ("0", "1", "2", "3") and found.rows.tolist() == [90, 80, 70, 60]
    for c in range(4):
        alone, own = fast().fit(X[y != c], y[y != c]), X[y == c]
        assert found.flagged[c, 0] == (alone.predict_ood(own) == -1).sum()
        held, P = alone.held_out_rows(), alone.estimator_.predict_proba(own).max(axis=1)
        bare = held.proba if held.bare_proba is None else held.bare_proba
        rarer = [(np.sum(bare.max(axis=1) <= p) + 1) / (len(bare) + 1) <= 0.05 for p in P]
        assert found.flagged[c, 1] == sum(rarer)
        for j, scaler in ((2, StandardScaler().fit(X[y != c])), (3, None)):
            known, new = (X[y != c], own) if scaler is None else map(
                scaler.transform, (X[y != c], own)
            )  # fmt: skip
            index = NearestNeighbors(n_neighbors=5).fit(known)
            usual = index.kneighbors()[0][:, -1]
            far = [(np.sum(usual >= d) + 1) / (len(usual) + 1) <= 0.05
                   for d in index.kneighbors(new)[0][:, -1]]  # fmt: skip
            assert found.flagged[c, j] == sum(far)


def test_far_classes_are_caught_and_those_that_touch_are_not(found):
    assert (found.shares[:2, 0] == 1).all() and (found.shares[2:, 0] < 0.6).all()
    low, high = found.intervals()
    for c, j in np.ndindex(found.flagged.shape):
        k, n = int(found.flagged[c, j]), int(found.rows[c])
        z = stats.norm.ppf(0.975)
        # Wilson's ends are the shares from which k / n is z standard errors away.
        for share in (low[c, j], high[c, j]):
            apart = abs(k / n - share)
            assert apart == pytest.approx(z * np.sqrt(share * (1 - share) / n), abs=1e-9)
    frame = found.to_frame()
    assert frame.loc["1", "dipedl"] == 1 and frame.loc["1", "rows"] == 80
    assert frame.index.name == "class" and frame.shape == (4, 13)


def test_the_order_of_rows_changes_nothing(blobs, found):
    X, y = blobs
    order = np.random.default_rng(0).permutation(len(y))
    with parallel_config("threading"):
        again = fast(n_jobs=2).rehearse_unknown(X[order], y[order])
    np.testing.assert_array_equal(again.flagged, found.flagged)


@pytest.mark.parametrize("groups", sample_of([None, np.arange(200) % 40], 0))
def test_each_candidate_flags_what_a_model_with_it_flags(blobs, groups):
    """Far classes and one in the middle of a ring: its neighbours tell, Gaussians do not."""
    X, y = blobs[0][:200].copy(), np.arange(200) % 4
    angle = np.linspace(0, 40, 200)
    X[:, :2] = np.array([np.cos(angle), np.sin(angle)]).T * np.where(y == 3, 0.5, 6)[:, None]
    X[:, 2] = np.where(y < 3, 20 * y, 0)
    options = {"classes": [1, 3], "select": True}
    found = rehearse_unknown(fast(), X, y, groups, **options)
    settings = {
        "density=GDADensity()": {"density": GDADensity()},
        "density=GDADensity(covariance_type='tied')": {"density": GDADensity("tied")},
        "density=KNNDensity(max_rows=8000)": {"density": KNNDensity(max_rows=8000)},
        "density=KNNDensity(n_neighbors=5), features='passthrough'": {
            "density": KNNDensity(5),
            "features": "passthrough",
        },
    }
    assert found.candidates == tuple(settings)
    for i, c in enumerate([1, 3]):
        own = {} if groups is None else {"groups": groups[y != c]}
        for j, parameters in enumerate(settings.values()):
            alone = fast().set_params(**parameters).fit(X[y != c], y[y != c], **own)
            flagged = (alone.predict_ood(X[y == c]) == -1).sum()
            assert found.flagged_by_candidates[i, j] == flagged
    plain = rehearse_unknown(fast(), X, y, groups, classes=[1, 3])
    np.testing.assert_array_equal(plain.flagged, found.flagged)
    assert plain.choice is None and "candidates" not in plain.to_dict()


def compare(own, *candidates):
    """Shares of 100 rows of each class, by the model and by candidates named a, b, ..."""
    flagged = np.array([own, *candidates]).T
    names = tuple("abc"[: len(candidates)])
    ones = np.full(len(own), 100)
    return UnknownRehearsal(
        tuple(map(str, range(len(own)))), ones, flagged[:, [0, 0, 0]],
        ("dipedl", "max probability", "neighbours of features"), 0.05, {}, names, flagged[:, 1:],
    )  # fmt: skip


def test_what_is_chosen_is_judged_by_classes_that_did_not_choose_it():
    found = compare([50, 50, 50], [60, 65, 70], [90, 10, 40])
    assert (found.choice, found.mean_of_chosen) == ("a", pytest.approx(0.65))
    assert found.finding().remedy == "Give a."
    # One class alone makes b the best of all: without it the model as it is would be taken.
    lucky = compare([50, 50, 50], [49, 49, 49], [99, 45, 45])
    assert (lucky.choice, lucky.mean_of_chosen) == ("", pytest.approx((0.5 + 0.45 + 0.45) / 3))
    assert lucky.finding().remedy == ""
    told = found.to_dict()
    assert told["candidates"] == {"a": pytest.approx(0.65), "b": pytest.approx(140 / 300)}
    assert told["choice"] == "a" and found.finding().numbers["choice"] == "a"


def test_groups_of_classes_and_fewer_rows():
    steps = []
    families = {"round": [0, 6, 8, 9], "one": [1]}
    options = {"classes": families, "max_rows": 300, "progress": lambda *done: steps.append(done)}
    found = rehearse_unknown(fast(), DIGITS, FIGURES, **options)
    assert found.classes == ("round", "one") and found.rows.tolist() == [300, 182]
    assert steps == [(0, 2), (1, 2), (2, 2)]
    one = rehearse_unknown(fast(), DIGITS, FIGURES, classes=[1], max_rows=300)
    assert (one.flagged[0] == found.flagged[1]).all()


def test_a_prior_by_class_and_pairs_of_rows_are_those_of_the_classes_that_are_left():
    fold = np.arange(150) % 3
    pairs = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(3)]
    clf = fast(prior=[1.0, 2.0, 3.0], cv=pairs)
    found = clf.rehearse_unknown(IRIS, NAMES, classes=["lily"])
    kept = NAMES != "lily"
    place = np.cumsum(kept) - 1
    of_kept = [tuple(place[part[kept[part]]] for part in pair) for pair in pairs]
    alone = fast(prior=[2.0, 3.0], cv=of_kept).fit(IRIS[kept], NAMES[kept])
    assert found.flagged[0, 0] == (alone.predict_ood(IRIS[~kept]) == -1).sum()


def test_rows_of_groups_are_held_out_together():
    persons = np.arange(150) // 2 % 12
    found = fast().rehearse_unknown(IRIS, NAMES, persons, max_rows=100)
    assert found.rows.tolist() == [50, 50, 50]
    whole = fast().rehearse_unknown(IRIS, NAMES, persons, classes=["rose"])
    kept = NAMES != "rose"
    alone = fast().fit(IRIS[kept], NAMES[kept], groups=persons[kept])
    assert whole.flagged[0, 0] == (alone.predict_ood(IRIS[~kept]) == -1).sum()


def test_a_level_that_only_the_class_left_out_has_is_unknown():
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    levels = pd.Categorical(np.array(["a", "b", "c"])[np.where(kind == 2, 2, kind % 2)])
    table = pd.DataFrame({"x": rng.normal(size=300) + 2 * (kind == 1), "level": levels})
    clf = DIPClassifier(HistGradientBoostingClassifier(max_iter=5), GDADensity())
    found = clf.rehearse_unknown(table, kind, classes=[2])
    assert found.methods[-1] == "neighbours of features"
    assert found.shares[0, 0] == 1


def test_a_diagnosis_and_a_file_keep_what_was_found_until_the_next_fit(tmp_path):
    clf = fast().fit(IRIS, NAMES)
    assert "unknown_classes" not in clf.diagnose().codes
    found = clf.rehearse_unknown(IRIS, NAMES, select=True)
    (told,) = [f for f in clf.diagnose().findings if f.code == "unknown_classes"]
    assert told.numbers["mean_flagged"] == found.mean[0]
    clf.save(tmp_path / "m.dipedl")
    loaded = dipedl.load(tmp_path / "m.dipedl")
    assert told in loaded.diagnose().findings
    assert str(loaded.unknown_rehearsal_) == str(found)
    assert "unknown_classes" not in clf.fit(IRIS, NAMES).diagnose().codes
    assert not hasattr(DIPClassifier(), "unknown_rehearsal_")


def test_the_picture_has_a_point_for_each_class_and_method(found):
    pytest.importorskip("matplotlib")
    shown = UnknownRehearsalDisplay(found).plot()
    order = np.argsort(found.shares[:, 0], kind="stable")
    for j, name in enumerate(found.methods):
        np.testing.assert_array_equal(
            shown.points_[name].lines[0].get_xdata(), found.shares[order, j]
        )
    assert [t.get_text() for t in shown.ax_.get_yticklabels()] == [found.classes[i] for i in order]


def test_a_class_of_few_rows_is_left_in_and_named(blobs):
    X, y = blobs
    kept = np.flatnonzero((y != 3) | (np.cumsum(y == 3) <= 5))
    found = fast().rehearse_unknown(X[kept], y[kept])
    assert found.classes == ("0", "1", "2") and found.skipped == {"3": 5}
    assert "'3' (5)" in str(found) and "'3'" in found._repr_html_().replace("&#x27;", "'")


FROZEN = FrozenEstimator(LogisticRegression(max_iter=200).fit(IRIS, KINDS))
REFUSED = {
    "two classes": (fast(), (IRIS[50:], KINDS[50:]), {}, ValueError, "two classes"),
    "a frozen classifier": (DIPClassifier(FROZEN), (IRIS, KINDS), {}, ValueError, "frozen"),
    "a frozen density": (
        DIPClassifier(density=FrozenEstimator(GDADensity().fit(IRIS, KINDS))),
        (IRIS, KINDS),
        {},
        ValueError,
        "density is frozen",
    ),
    "no class of ten": (
        fast(),
        (IRIS[::6], KINDS[::6]),
        {},
        ValueError,
        "at least 10 rows",
    ),
    "a strange class": (fast(), (IRIS, KINDS), {"classes": [3]}, ValueError, "classes must hold"),
    "no class": (fast(), (IRIS, KINDS), {"classes": []}, ValueError, "classes must name"),
    "all classes": (
        fast(),
        (IRIS, KINDS),
        {"classes": {"all": [0, 1]}},
        ValueError,
        "classes must leave two",
    ),
    "a text": (fast(), (IRIS, KINDS), {"classes": "0"}, TypeError, "classes must be a list"),
    "a number": (fast(), (IRIS, KINDS), {"classes": 0}, TypeError, "classes must be a list"),
    "few rows": (fast(), (IRIS, KINDS), {"max_rows": 10}, ValueError, "max_rows must be"),
    "half a row": (fast(), (IRIS, KINDS), {"max_rows": 200.5}, TypeError, "max_rows"),
    "a choice by one class": (
        fast(),
        (IRIS, KINDS),
        {"classes": [1], "select": True},
        ValueError,
        "select=True chooses for a class by the others",
    ),
    "groups with a gap": (
        fast(),
        (IRIS, KINDS, [None, *np.arange(149) % 7]),
        {},
        ValueError,
        "first is row 0",
    ),
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_rehearsed_is_named(given):
    clf, rows, options, kind, message = given
    with pytest.raises(kind, match=message):
        clf.rehearse_unknown(*rows, **options)


def test_warnings_of_the_fits_are_not_shown_though_a_classifier_resets_all_filters():
    """Threads of scikit-learn's forests may: a report of 1,700 notes."""

    class Loud(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            warnings.resetwarnings()
            warnings.warn("fitting", UserWarning, stacklevel=1)
            return super().fit(X, y, sample_weight)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DIPClassifier(Loud(), GDADensity()).rehearse_unknown(IRIS, KINDS)
    assert not caught


def test_an_error_of_a_fit_says_which_class_was_left_out():
    class Picky(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if len(np.unique(y)) < 3:
                raise ValueError("three classes, please")
            return super().fit(X, y, sample_weight)

    with pytest.raises(ValueError, match="three classes, please") as caught:
        DIPClassifier(Picky(), GDADensity()).rehearse_unknown(IRIS, KINDS)
    assert any("without class 0" in note for note in caught.value.__notes__)
