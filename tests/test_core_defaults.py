"""The defaults end to end: density chosen, temperature, caution, held-out rows, processes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dipedl import DIPClassifier, OODDetector
from dipedl.baselines import MaxSoftmax
from dipedl.calibration import crossfit
from dipedl.calibration.temperature import Temperature
from dipedl.density import DensitySelector, GaussianDensity, GDADensity, RelativeDensity
from dipedl.density.ensemble import default_candidates
from dipedl.evidence import CautionBudget, QuantileEvidence
from weekly import sample_of

KINDS = ("blended", "pasted", "permuted", "noised")

X, Y = load_iris(return_X_y=True)
X -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TWO = [("own", GDADensity()), ("tied", GDADensity("tied"))]


def quick(**parameters):
    """A classifier of defaults with two candidates instead of six."""
    parameters.setdefault("density", DensitySelector(TWO))
    return DIPClassifier(GaussianNB(), **parameters)


@pytest.fixture(scope="module")
def fitted():
    return DIPClassifier(random_state=0).fit(X, NAMES)


def test_defaults_end_to_end(fitted):
    evidence = fitted.evidence_
    assert isinstance(fitted.density_, DensitySelector)
    assert isinstance(fitted.normalizer_, CautionBudget)
    assert isinstance(evidence.calibrator_, Temperature)
    assert fitted.score(X, NAMES) > 0.95
    far = X[:5] * 50
    np.testing.assert_allclose(fitted.predict_proba(far), 1 / 3, atol=1e-3)
    assert (fitted.predict_ood(far) == -1).all() and (fitted.p_value(far) == 1 / 151).all()
    held = evidence.held_out_
    assert held.proba.shape == (150, 3) and held.labels.shape == (150,)
    assert held.components.shape == (150, len(held.component_names))
    assert (np.diff(held.scores) >= 0).all() and held.source == "5-fold cross-fitting of 150 inputs"


def test_the_caution_bought_stays_within_the_budget(fitted):
    held, evidence = fitted.evidence_.held_out_, fitted.evidence_
    hit = np.eye(3)[held.labels]
    proba = evidence.calibrate_in_full(held.bare_proba)
    full = evidence.n_ / (evidence.n_ + 3) * (proba - 1 / 3) + 1 / 3
    bare = ((full - hit) ** 2).sum(axis=1).mean()
    cautious = ((fitted.held_out_dirichlet().mean - hit) ** 2).sum(axis=1).mean()
    # Of the loss at full evidence, or of one row's where that is more.
    alone = ((1 / 3 - hit) ** 2).sum(axis=1).mean() / 150
    assert cautious <= bare + 0.02 * max(bare, alone) * (1 + 1e-9)


def test_the_choice_is_kept_and_shown(fitted):
    density = fitted.density_
    shown = {row["name"]: row["score"] for row in density.ranking_}
    assert set(shown) == {"fused", *density.estimators_} and density.failed_ == {}
    seeing = {row["name"]: row["score"] for row in density.ranking_ if not row["blind"]}
    # A ratio is the best by score here, and blind along directions that the classes share.
    assert max(shown, key=shown.get) == "relative" not in seeing
    assert density.choice_ == max(seeing, key=seeing.get) != density.runner_up_
    assert density.runner_up_ == density.ranking_[1]["name"]


def test_calibration_in_fit_is_fit_and_calibrate():
    rows = np.arange(len(X)) % 3 == 0
    held = X[rows], NAMES[rows]
    given = quick().fit(X[~rows], NAMES[~rows], calibration=held)
    after = quick().fit(X[~rows], NAMES[~rows]).calibrate(*held)
    np.testing.assert_allclose(given.predict_proba(X), after.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(given.p_value(X), after.p_value(X))
    assert given.offset_ == after.offset_ and given.normalizer_.source_ == "50 held-out inputs"
    assert given.evidence_.n_ == 100


@pytest.mark.parametrize("rows", [np.flatnonzero(Y == 1), np.array([0, 1, 60, 61, 120, 121])])
def test_calibration_rows_of_one_class_or_very_few_say_what_they_cannot_do(rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = quick().fit(X, Y, calibration=(X[rows], Y[rows]))
    assert np.isfinite(clf.predict_proba(X)).all()
    if len(rows) < 19:
        assert any("needs at least 19 held-out inputs, got 6" in str(w.message) for w in caught)
    else:
        assert any("held-out rows are of class 1" in str(w.message) for w in caught)
        with pytest.raises(ValueError, match=r"two classes at least.*are all of one class"):
            clf.predict_set(X)


def test_calibrate_without_labels_learns_what_needs_none():
    clf = quick(normalizer=QuantileEvidence()).fit(X[::2], Y[::2])
    calibrator = clf.evidence_.calibrator_
    clf.calibrate(X[1::2])
    held = clf.evidence_.held_out_
    assert clf.evidence_.calibrator_ is calibrator
    assert held.labels is None and held.proba.shape == (75, 3) and len(held) == 75
    assert np.isnan([row["errors"] for row in clf.density_.ranking_]).all()
    assert clf.p_value(X).shape == (150,)
    with pytest.raises(ValueError, match="have no labels"):
        clf.predict_set(X)
    cautious = quick().fit(X[::2], Y[::2])
    before = cautious.predict_proba(X)
    with pytest.raises(ValueError, match=r"y is needed: .*75 held-out inputs have none; give cal"):
        cautious.calibrate(X[1::2])
    np.testing.assert_array_equal(cautious.predict_proba(X), before)


def test_a_candidate_whose_scores_shift_from_fold_to_fold_is_dropped(rng):
    """With redundant features ratios of densities do: an alarm would never go off, or always."""
    mix = rng.normal(size=(4, 24))

    def draw(n):
        base = rng.normal(size=(n, 4))
        return np.column_stack([base, base @ mix])

    clf = quick(density=DensitySelector([*TWO, ("relative", RelativeDensity())]))
    density = clf.fit(draw(500), np.arange(500) % 2).density_
    assert set(density.estimators_) == {"own", "tied"}
    assert "times their spread from fold to fold: a few rows" in density.failed_["relative"]
    assert 0.02 < (clf.predict_ood(draw(2000)) == -1).mean() < 0.09
    kept = quick(density=DensitySelector([*TWO, ("relative", RelativeDensity())])).fit(X, Y)
    assert kept.density_.failed_ == {}
    alone = DensitySelector([("relative", RelativeDensity())]).fit(draw(500), np.arange(500) % 2)
    assert list(alone.estimators_) == ["relative"]


def test_scores_of_zero_density_do_not_count_as_a_shift():
    class Sphere(GaussianDensity):
        def score_samples(self, X):
            scores = super().score_samples(X)
            return np.where(scores > np.median(scores), scores, -np.inf)

    density = DensitySelector([*TWO, ("sphere", Sphere())])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        density.fit(X, Y)
    assert "fold to fold" not in density.failed_.get("sphere", "")


class Fixed(ClassifierMixin, BaseEstimator):
    """Gives what a function makes of the inputs."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return self.answer(np.asarray(X))


def hard(X):
    return np.eye(3)[(X[:, 2] > -0.5) + (X[:, 3] > 0.7).astype(int)]


@pytest.mark.parametrize("estimator", [Fixed(hard), DecisionTreeClassifier(random_state=0)])
def test_probabilities_of_exactly_zero_and_one_are_taken(estimator):
    clf = DIPClassifier(estimator).fit(X, Y)
    assert set(np.unique(clf.estimator_.predict_proba(X))) == {0.0, 1.0}
    P = clf.predict_proba(X)
    assert (P > 0).all() and np.isfinite(clf.predict_log_proba(X)).all()
    assert clf.score(X, Y) > 0.9
    for kind in ("total", "entropy", "max_prob", "vacuity", "log_density"):
        assert np.isfinite(clf.uncertainty(X, kind)).all()


@pytest.mark.parametrize("change", sample_of(["constant", "duplicated", "both"], 2))
def test_constant_and_duplicated_features_are_taken(change):
    extra = {"constant": [np.full(150, 7.0)], "duplicated": [X[:, 0]]}
    extra["both"] = [*extra["constant"], *extra["duplicated"]]
    wide = np.column_stack([X, *extra[change]])
    clf = DIPClassifier().fit(wide, Y)
    assert clf.score(wide, Y) > 0.95
    assert (clf.predict_ood(wide) == 1).mean() > 0.85
    assert (clf.predict_ood(wide * 50) == -1).all()


class AsksProba(DensityMixin, BaseEstimator):
    """Wants the class probabilities of its rows."""

    def fit(self, X, y=None, sample_weight=None, proba=None):
        self.seen_ = np.asarray(proba)
        self.center_ = X.mean(axis=0)
        return self

    def score_samples(self, X, proba=None):
        return proba.max(axis=1) - ((X - self.center_) ** 2).sum(axis=1)


def test_a_density_that_asks_for_probabilities_gets_them():
    clf = quick(density=AsksProba()).fit(X, Y)
    P = clf.estimator_.predict_proba(X)
    np.testing.assert_allclose(clf.density_.seen_, P, rtol=1e-12)
    Z = clf.evidence_.transform(X)
    np.testing.assert_allclose(clf.score_samples(X), clf.density_.score_samples(Z, proba=P))
    weighted = quick(density=AsksProba()).fit(X, Y, sample_weight=np.ones(150))
    np.testing.assert_allclose(weighted.score_samples(X), clf.score_samples(X))


@pytest.mark.parametrize(
    ("enough", "folds"), [(20, 1), (30, 1), (31, 2), (90, 3), (150, 5), (10_000, 5)]
)
def test_auto_holds_out_as_many_folds_as_are_enough(enough, folds, monkeypatch):
    monkeypatch.setattr(crossfit, "ENOUGH", enough)
    clf = quick(density=GDADensity()).fit(X, Y)
    assert len(clf.evidence_.held_out_) == 30 * folds
    whole = quick(density=GDADensity(), cv=5).fit(X, Y)
    assert len(whole.evidence_.held_out_) == 150


@pytest.mark.parametrize("choice", ["fused", "neighbours", "unit-gaussians"])
def test_an_answer_does_not_depend_on_other_rows(choice, fitted):
    named = default_candidates()
    kept = named if choice == "fused" else [pair for pair in named if pair[0] == choice]
    clf = DIPClassifier(density=DensitySelector(kept, fuse=choice == "fused")).fit(X, Y)
    some = np.concatenate([X[::7], X[:3] * 9])
    for ask in (clf.predict_proba, clf.score_samples, clf.p_value, clf.uncertainty):
        whole = ask(some)
        alone = np.concatenate([ask(some[i : i + 1]) for i in range(len(some))])
        np.testing.assert_allclose(alone, whole, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(ask(some[::-1])[::-1], whole, rtol=1e-9, atol=1e-13)


def test_a_frame_is_asked_about_pseudo_outliers_like_an_array():
    frame = pd.DataFrame(X, columns=list("abcd"))
    from_frame, from_array = quick().fit(frame, Y), quick().fit(X, Y)
    assert from_frame.density_.ranking_[0]["pseudo_outliers"] > 0.5
    np.testing.assert_allclose(from_frame.score_samples(frame), from_array.score_samples(X))


def coded(codes):
    """Iris with a column of categories, and features and classifier that encode it."""
    frame = pd.DataFrame(X, columns=list("abcd")).assign(code=codes)
    features = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["code"]), (StandardScaler(), list("abcd"))
    )
    clf = DIPClassifier(
        make_pipeline(clone(features), LogisticRegression(max_iter=500)),
        DensitySelector(TWO),
        features=features,
    )
    return clf, frame


@pytest.mark.parametrize("form", ["category", "string"])
def test_categories_and_text_give_no_pseudo_outliers_even_if_they_are_spelt_as_numbers(form, rng):
    codes = rng.choice([1, 3, 7], len(X))
    column = pd.Series(codes if form == "category" else codes.astype(str)).astype(form)
    clf, frame = coded(column)
    clf.fit(frame, Y)
    assert not set(clf.density_.ranking_[0]) & {*KINDS}
    assert (clf.predict(frame) == Y).mean() > 0.95


def test_an_array_of_objects_gives_pseudo_outliers_if_it_holds_numbers():
    clf = quick().fit(X.astype(object), Y)
    assert set(clf.density_.ranking_[0]) >= {*KINDS}
    spelt = DIPClassifier(density=DensitySelector(TWO)).fit(X.astype(str).astype(object), Y)
    assert not set(spelt.density_.ranking_[0]) & {*KINDS}


@pytest.mark.parametrize("kind", [np.int8, float, str, bool])
def test_labels_of_any_kind(kind):
    labels = {bool: Y == 1, str: NAMES}.get(kind, Y)
    labels = labels if kind is str else labels.astype(kind)
    clf = quick().fit(X, labels)
    assert clf.score(X, labels) > 0.8 and set(clf.predict(X)) <= set(labels)
    held = clf.evidence_.held_out_.labels
    assert held.dtype.kind == "i" and held.max() == len(clf.classes_) - 1


class Own(ClassifierMixin, BaseEstimator):
    """Naive Bayes that numbers its classes from the last to the first."""

    def fit(self, X, y):
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_[::-1]
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, ::-1]


@pytest.mark.parametrize(("first", "then"), [(str, object), (object, str)])
def test_text_is_text_in_an_array_of_objects_too(first, then):
    frozen = FrozenEstimator(GaussianNB().fit(X, NAMES.astype(first)))
    clf = DIPClassifier(frozen, GDADensity()).fit(X, NAMES.astype(then))
    clf.calibrate(X, NAMES.astype(first)).calibrate(X, NAMES.astype(then))
    assert clf.score(X, NAMES) > 0.9
    with pytest.raises(ValueError, match="the same labels"):
        clf.calibrate(X, Y)


def test_a_classifier_with_its_own_order_of_classes():
    plain = DIPClassifier(make_pipeline(StandardScaler(), GaussianNB()), GDADensity())
    other = DIPClassifier(make_pipeline(StandardScaler(), Own()), GDADensity())
    plain.fit(X, NAMES)
    other.fit(X, NAMES)
    assert list(other.estimator_.classes_) == sorted(set(NAMES))[::-1]
    assert list(other.classes_) == sorted(set(NAMES))
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), rtol=1e-9)


def test_a_baseline_calibrates_by_the_labels_whatever_the_order_of_classes():
    plain, other = (
        MaxSoftmax(of).fit(X, NAMES).calibrate(X, NAMES) for of in (GaussianNB(), Own())
    )
    assert list(other.classes_) == list(plain.classes_[::-1])
    np.testing.assert_array_equal(other.predict_set(X)[:, ::-1], plain.predict_set(X))


def test_a_number_of_folds_may_be_one_of_numpy():
    plain, other = (quick(cv=cv).fit(X, Y) for cv in (3, np.int64(3)))
    np.testing.assert_array_equal(other.p_value(X), plain.p_value(X))


def test_a_class_that_a_fold_has_not_seen():
    """Two rows of a class are never held out; by index pairs both can be."""
    few = np.concatenate([np.flatnonzero(Y < 2), [100, 101]])
    clf = quick().fit(X[few], Y[few])
    assert clf.predict_proba(X).shape == (150, 3) and clf.evidence_.held_out_.labels.max() == 1
    held = np.r_[0:100:5, 100, 101]
    pairs = [(np.setdiff1d(np.arange(102), held), held)]
    by_pairs = quick(cv=pairs).fit(X[few], Y[few])
    P = by_pairs.evidence_.held_out_.proba
    unseen = by_pairs.evidence_.held_out_.labels == 2
    assert unseen.sum() == 2 and P.shape == (22, 3) and (P[unseen, 2] == 0).all()


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "UInt64"])
def test_nullable_whole_numbers_are_classes_to_the_last_digit(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    labels = pd.Series(2**53 + Y, dtype=dtype)
    clf = DIPClassifier(density=GDADensity()).fit(X, labels)
    assert clf.classes_.tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    assert clf.score(X, labels) > 0.9


@pytest.mark.parametrize("seed", sample_of([None, 3, np.random.RandomState], 0, 2))
def test_results_do_not_depend_on_the_number_of_processes(seed):
    forest = RandomForestClassifier(10, random_state=0)

    def fit(n_jobs):
        random_state = seed(5) if callable(seed) else seed
        return DIPClassifier(forest, random_state=random_state, n_jobs=n_jobs).fit(X, Y)

    one, two = fit(None), fit(2)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.evidence_.held_out_.scores, two.evidence_.held_out_.scores)


def test_the_detector_takes_both_from_its_classifier(capsys):
    one = OODDetector().fit(X)
    two = OODDetector(DIPClassifier(n_jobs=2, verbose=1)).fit(X)
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))
    assert "[dipedl] candidate neighbours fitted" in capsys.readouterr().out


def test_a_verbose_fit_prints_a_line_per_candidate_and_per_fold(capsys):
    DIPClassifier(cv=3, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[dipedl] ") and line.endswith(" s") for line in lines)
    assert sum("candidate" in line for line in lines) == 6
    assert sum("fold: classifier fitted on" in line for line in lines) == 3
    assert sum("fold: density fitted" in line for line in lines) == 3
    assert "classifier fitted on 150 rows" in lines[0]


def test_a_fit_is_silent_by_default(capsys):
    DIPClassifier(cv=2).fit(X, Y)
    assert capsys.readouterr().out == ""
