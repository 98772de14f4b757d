"""Where intervals of a spread are known to fall short, the diagnosis and the intervals say so."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier, load
from dipedl.calibration import Rehearsal, rehearsal
from dipedl.density import GDADensity
from dipedl.explanation import FindingWarning
from known_truth import known_truth

SHORT = {"intervals_of_a_rare_class", "intervals_without_noise"}


@pytest.fixture(scope="module", autouse=True)
def one_candidate():
    """The others take seconds, and what is found does not depend on them."""
    whole = rehearsal._other_classifiers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "_other_classifiers", lambda *a: {"linear": whole(*a)["linear"]})
        yield


def fitted(X, y, estimator=None, **rows):
    estimator = LogisticRegression(max_iter=1000) if estimator is None else estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier(estimator, GDADensity(), spread=Rehearsal(), random_state=0)
        return clf.fit(X, y, **rows)


def codes(clf):
    return {finding.code: finding.severity for finding in clf.diagnose().findings}


@pytest.fixture(scope="module")
def ordinary():
    return known_truth(250)


def test_ordinary_rows_have_no_such_note(ordinary):
    clf = fitted(ordinary.X_train, ordinary.y_train)
    assert not SHORT & codes(clf).keys() and codes(clf)["intervals_rehearsed"] == "ok"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.predict_dirichlet(ordinary.X_test).credible_interval()


@pytest.mark.parametrize(
    ("code", "sizes", "apart"),
    [("intervals_of_a_rare_class", (300, 6), 1.0), ("intervals_without_noise", (100, 100), 12.0)],
)
def test_a_rare_class_and_labels_without_noise_are_told(tmp_path, code, sizes, apart):
    y = np.repeat([0, 1], sizes)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + apart * y[:, None]
    clf = fitted(X, y)
    assert codes(clf)[code] == "note"
    numbers = {f.code: f.numbers for f in clf.diagnose().findings}[code]
    if code == "intervals_of_a_rare_class":
        assert numbers["share"] == pytest.approx(6 / 153)
    else:
        held = clf.evidence_.held_out_.proba.max(axis=1).mean()
        assert numbers["confidence"] == pytest.approx(held, abs=0.01) and held > 0.98
    clf.save(tmp_path / "model.dipedl")
    for model in (clf, load(tmp_path / "model.dipedl")):
        found = model.predict_dirichlet(X[:3])
        with pytest.warns(FindingWarning, match=r"may hold less than they promise.*diagnose\(\)"):
            found[0].credible_interval()
        np.testing.assert_allclose(found.strength, clf.spread_.strength(found.log_evidence))


def test_rows_that_a_frozen_classifier_has_learned_are_no_good_support(ordinary):
    X, y = ordinary.X_train, ordinary.y_train
    forest = FrozenEstimator(RandomForestClassifier(20, random_state=0).fit(X[:200], y[:200]))
    known = fitted(X[:200], y[:200], forest)
    assert known.evidence_.memorised_
    assert codes(known)["intervals_of_seen_rows"] == "warning"
    assert "intervals_rehearsed" not in codes(known)
    held = ordinary.X_test[:200], ordinary.y_test[:200]
    new = fitted(X[:200], y[:200], forest, calibration=held)
    assert codes(new)["intervals_rehearsed"] == "ok"
    gap = known.predict_dirichlet(ordinary.X_test).mean - ordinary.truth["test"]
    assert known.spread_.error_ < 0.6 * (gap**2).sum(axis=1).mean()


def test_calibration_rows_that_were_given_to_fit_are_no_good_support(ordinary):
    X, y = ordinary.X_train, ordinary.y_train
    clf = fitted(X, y)
    with pytest.warns(FindingWarning, match="given to fit too"):
        clf.calibrate(X, y)
    assert codes(clf)["intervals_of_seen_rows"] == "warning"
