"""Decisions row by row, and a Dirichlet whose intervals are too narrow."""

import pickle
import warnings
from copy import copy, deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier, Dirichlet
from dipedl.answers import Answers
from dipedl.decisions import prediction_sets
from dipedl.density import GDADensity
from dipedl.evidence import ZScore
from dipedl.explanation import FindingWarning

CLASSES = np.array(["ash", "birch", "cedar"])
CENTRES = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
FAR = np.full((1, 2), 60.0)


def draw(rng, n):
    y = rng.integers(0, 3, n)
    return CENTRES[y] + rng.normal(size=(n, 2)), CLASSES[y]


def hits(clf, X, y, **options):
    sets = clf.predict_set(X, **options)
    return sets[np.arange(len(y)), np.searchsorted(clf.classes_, y)]


def fit(rng, n=300):
    return DIPClassifier(LogisticRegression(), GDADensity()).fit(*draw(rng, n))


@pytest.fixture(scope="module")
def clf():
    rng = np.random.default_rng(1)
    return fit(rng).calibrate(*draw(rng, 400))


def test_answers_hold_sets_and_reasons_and_can_be_cut_and_joined(clf):
    X = np.vstack([draw(np.random.default_rng(3), 5)[0], FAR])
    found = clf.answers(X, coverage=0.8, reasons="flagged")
    for answer, expected in (
        (found.labels, clf.predict(X)),
        (found.dirichlet.concentration, clf.predict_dirichlet(X).concentration),
        (found.p_values, clf.p_value(X)),
        (found.flagged, clf.predict_ood(X) == -1),
        (found.sets, clf.predict_set(X, 0.8)),
    ):
        np.testing.assert_array_equal(answer, expected)
    assert ((found.reasons != "") == found.flagged).all() and found.flagged[-1]
    assert (clf.answers(X, reasons="all").reasons != "").all()
    joined = Answers.concatenate([found[:2], found[2:]])
    assert len(joined) == len(X)
    for name in ("labels", "proba", "vacuity", "log_evidence", "p_values", "sets", "reasons"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(found, name))
    plain = clf.answers(X)
    assert plain.sets is plain.reasons is None and plain[:1].sets is None
    with pytest.raises(ValueError, match="reasons must be one of"):
        clf.answers(X, reasons="some")


def test_cross_fitting_follows_the_guarantees_closely(rng):
    covered, flagged = [], []
    X, y = draw(rng, 2000)
    for _ in range(8):
        model = fit(rng)
        covered.append(hits(model, X, y, coverage=0.9).mean())
        flagged.append((model.p_value(X) <= 0.1).mean())
    assert abs(np.mean(covered) - 0.9) < 0.025
    assert abs(np.mean(flagged) - 0.1) < 0.03


def test_held_out_dirichlets_are_the_model_s_own_of_those_rows(rng):
    X, y = draw(rng, 80)
    model = fit(rng).calibrate(X, y)
    order = np.argsort(model.score_samples(X), kind="stable")
    np.testing.assert_allclose(
        model.held_out_dirichlet().concentration,
        model.predict_dirichlet(X[order]).concentration,
        rtol=1e-9,
    )


def test_sets_are_those_of_the_posterior_mean(clf, rng):
    X = draw(rng, 30)[0]
    held = clf.evidence_.held_out_
    expected = prediction_sets(
        clf.predict_proba(X), clf.held_out_dirichlet().mean, held.labels, coverage=0.8, method="aps"
    )
    sets = clf.predict_set(X, 0.8, "aps")
    np.testing.assert_array_equal(sets, expected)
    rows = np.vstack([clf.predict_set(X[i : i + 1], 0.8, "aps") for i in range(30)])
    np.testing.assert_array_equal(sets, rows)


def test_without_evidence_the_classifier_breaks_the_tie(clf):
    label = clf.classes_[clf.classifier_proba(FAR).argmax(axis=1)]
    assert label != clf.classes_[0]
    assert clf.predict_with_reject(FAR, coverage=0.9).labels == label


@pytest.mark.parametrize("kind", ["total", "vacuity", "max_prob", "entropy", "log_density"])
def test_every_kind_can_decide(clf, rng, kind):
    X = draw(rng, 3000)[0]
    answer = clf.predict_with_reject(X, coverage=0.8, kind=kind)
    np.testing.assert_array_equal(answer.labels, clf.predict(X))
    np.testing.assert_array_equal(answer.accepted, clf.uncertainty(X, kind) <= answer.threshold)
    # Given 400 held-out rows the share is Beta-distributed around 0.8.
    assert abs(answer.accepted.mean() - 0.8) < 4 * np.sqrt(0.16 / 400)
    assert (answer.coverage, answer.risk, answer.kind) == (0.8, None, kind)


def test_a_risk_that_cannot_be_promised_rejects_everything_and_says_what_can(clf, rng):
    X = draw(rng, 20)[0]
    with pytest.warns(UserWarning, match=r"risk=0.001 cannot be promised .*the smallest risk") as w:
        answer = clf.predict_with_reject(X, risk=0.001)
    assert answer.rejected.all() and answer.threshold == -np.inf
    assert w[0].filename == __file__
    smallest = clf.reject_curve().upper.min()
    assert f"{smallest:.3g}" in str(w[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clf.predict_with_reject(X, risk=smallest * 1.001).threshold > -np.inf


def test_few_held_out_rows_give_full_sets_and_a_warning(rng):
    X, y = draw(rng, 30)
    model = fit(rng).calibrate(X, y)
    message = "coverage=0.99 needs at least 99 held-out inputs, got 30: every set holds all"
    with pytest.warns(UserWarning, match=message) as w:
        assert model.predict_set(X, 0.99).all()
    assert w[0].filename == __file__


def test_without_labels_p_values_and_shares_work_and_the_rest_names_the_remedy(rng):
    X, _ = draw(rng, 100)
    model = DIPClassifier(LogisticRegression(), GDADensity(), normalizer=ZScore())
    model.fit(*draw(rng, 300)).calibrate(X)
    assert model.p_value(X).shape == (100,)
    assert model.predict_with_reject(X, coverage=0.5, kind="log_density").accepted.sum() == 51
    # A held-out row that is scored beside other rows may be less sure by its last digits.
    held_out = np.sort(model.uncertainty(X, "log_density"))
    assert model.predict_with_reject(X, coverage=0.5, kind="log_density").threshold > held_out[50]
    for ask in (
        lambda: model.predict_set(X),
        lambda: model.reject_curve(),
        lambda: model.predict_with_reject(X, risk=0.1),
    ):
        with pytest.raises(ValueError, match=r"held-out inputs.*clf\.calibrate\(X, y\)"):
            ask()


def test_rows_that_were_fitted_on_promise_nothing(rng):
    X, y = draw(rng, 100)
    model = DIPClassifier.paper(LogisticRegression()).fit(X, y)
    with pytest.raises(
        ValueError, match=r"predict_set needs held-out inputs.*in-sample.*calibrate"
    ):
        model.predict_set(X)
    assert model.calibrate(*draw(rng, 100)).predict_set(X).shape == (100, 3)


@pytest.fixture(scope="module")
def bayes():
    X, y = load_iris(return_X_y=True)
    return DIPClassifier(GaussianNB(), GDADensity()).fit(X, y)


@pytest.fixture(scope="module")
def narrow(bayes):
    return bayes.predict_dirichlet(load_iris().data[:20])


@pytest.mark.parametrize(
    "again",
    [
        copy,
        deepcopy,
        lambda d: pickle.loads(pickle.dumps(d)),
        lambda d: d.update(np.eye(3)[np.zeros(20, int)]),
        lambda d: d[3:5],
        lambda d: next(iter(d)),
    ],
    ids=["copy", "deepcopy", "pickle", "update", "slice", "iteration"],
)
def test_every_copy_warns(narrow, again):
    with pytest.warns(FindingWarning, match="often several times too narrow"):
        again(narrow).credible_interval()


def test_a_plain_dirichlet_stays_one(narrow):
    plain = Dirichlet(narrow.concentration, narrow.log_evidence, narrow.prior)
    for d in (copy(plain), pickle.loads(pickle.dumps(plain)), plain.update(np.ones(3)), plain[:2]):
        assert d.caveat is None
    assert narrow.with_strength(narrow.strength).caveat is None


def test_a_notebook_shows_it_beside_the_intervals(narrow):
    plain = Dirichlet(narrow.concentration, narrow.log_evidence, narrow.prior)
    said = "often several times too narrow"
    assert said in narrow._repr_html_() and said not in plain._repr_html_()
    assert narrow._repr_html_().startswith(plain._repr_html_())


def test_a_warning_names_the_line_of_the_user(bayes):
    with pytest.warns(FindingWarning) as told:
        bayes.predict_dirichlet(load_iris().data[:5]).credible_interval()
    assert [warning.filename for warning in told] == [__file__]
