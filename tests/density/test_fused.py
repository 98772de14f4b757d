"""The fusion against its formula, and the rule by which a density is chosen."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl import DIPClassifier
from dipedl.density import (
    DensitySelector,
    FusedDensity,
    GaussianDensity,
    GDADensity,
    KNNDensity,
    RelativeDensity,
)
from dipedl.density.ensemble import NormalScores, Reach
from dipedl.maths.scores import auroc


def settled(density, held, pseudo_outliers, blind=(), **more):
    """A bank whose parts are named and never asked."""
    density.estimators_, density.failed_ = dict.fromkeys(n for n in held if n != "classifier"), {}
    density.blind_ = set(blind)
    density.reach_ = Reach.of(np.zeros((2, 1)))
    return density.fit_combiner(held, pseudo_outliers, **more)


@pytest.fixture
def components(rng):
    held = {
        "a": rng.normal(size=4001),
        "b": rng.normal(size=4001),
        "classifier": rng.normal(size=4001),
    }
    outlying = {
        "kind": {
            "a": rng.normal(-3, 1, 500),
            "b": rng.normal(size=500),
            "classifier": rng.normal(-1, 1, 500),
        }
    }
    return held, outlying


@pytest.mark.parametrize("margin", [0.0, 1.0, 2.5])
def test_the_fusion_is_its_formula(components, margin, rng):
    held, outlying = components
    density = settled(FusedDensity(margin=margin), held, outlying)
    new = {name: rng.normal(-1, 2, 300).clip(-3, 3) for name in held}
    total, mean = 0.0, 0.0
    for name in held:
        area = roc_auc_score(
            np.r_[np.ones(4001), np.zeros(500)], np.r_[held[name], outlying["kind"][name]]
        )
        weight = max(0.0, 2 * area - 1) ** 2
        assert density.weights_[name] == pytest.approx(weight)
        # the scores are standard normal, so that normal scores are the scores themselves
        shift = 0.0 if name == "classifier" else margin
        total = total + weight * np.log(stats.norm.cdf(new[name] + shift))
        mean = mean + new[name] / 3
    expected = -np.sqrt(-2 * total) + 1e-3 * mean
    assert np.abs(density.combine(new) - expected).max() < 0.25
    assert stats.spearmanr(density.combine(new), expected).statistic > 0.998


def test_without_margin_and_with_one_component_it_is_the_p_value(rng):
    held = {"a": rng.normal(size=2000)}
    density = settled(FusedDensity(margin=0.0), held, {})
    new = rng.normal(size=50)
    p = np.array([(held["a"] <= x).mean() for x in new])
    s = density.combine({"a": new}) - 1e-3 * stats.norm.ppf(p.clip(1e-4, 1 - 1e-4))
    np.testing.assert_allclose(np.exp(-(s**2) / 2), p, atol=2e-3)


def test_one_objection_is_enough_and_praise_counts_for_nothing(components):
    held, outlying = components
    density = settled(FusedDensity(), held, outlying)
    typical = {"a": np.zeros(1), "b": np.zeros(1), "classifier": np.full(1, 1.0)}
    objected = typical | {"a": np.full(1, -6.0)}
    praised = objected | {"b": np.full(1, 3.0), "classifier": np.full(1, 3.0)}
    assert density.combine(objected)[0] < density.combine(typical)[0] - 3
    assert abs(density.combine(praised)[0] - density.combine(objected)[0]) < 0.2


def test_a_component_without_a_vote_may_be_infinitely_low(components):
    held, outlying = components
    outlying["kind"]["b"] = outlying["kind"]["b"] + 3
    density = settled(FusedDensity(), held, outlying)
    low = {"a": np.zeros(3), "b": np.array([0.0, -1e200, -np.inf]), "classifier": np.zeros(3)}
    assert density.weights_["b"] == 0
    assert not np.isnan(density.combine(low)).any()


def test_without_pseudo_outliers_all_weigh_the_same(components):
    assert set(settled(FusedDensity(), components[0], {}).weights_.values()) == {1.0}


def test_scores_rise_strictly_in_every_component_far_out(components):
    held, outlying = components
    density = settled(FusedDensity(), held, outlying)
    far = -np.geomspace(5, 1e8, 30)
    zero = np.zeros(30)
    s = density.combine({"a": far, "b": zero, "classifier": zero})
    assert np.isfinite(s).all() and (np.diff(s) < 0).all()


def test_a_constant_component_is_dropped_with_its_reason(components):
    held, outlying = components
    held["b"] = np.ones(4001)
    density = settled(FusedDensity(), held, outlying)
    assert density.component_names_ == ("a", "classifier")
    assert "must vary" in density.failed_["b"]


def test_auroc_is_that_of_scikit_learn(rng):
    a, b = rng.integers(0, 9, 60).astype(float), rng.integers(-3, 6, 40).astype(float)
    w, v = rng.uniform(0, 2, 60), rng.uniform(0, 2, 40)
    expected = roc_auc_score(
        np.r_[np.ones(60), np.zeros(40)], np.r_[a, b], sample_weight=np.r_[w, v]
    )
    assert auroc(a, b, w, v) == pytest.approx(expected, rel=1e-12)
    assert np.isnan(auroc(a, b[:0]))


def ranked(held, outlying, wrong, **parameters):
    """A selector settled on components, with a classifier that errs on the rows `wrong`."""
    return settled(DensitySelector(**parameters), held, outlying, wrong=wrong)


def test_the_criterion_is_the_mean_of_errors_and_pseudo_outliers(rng):
    m, wrong = 1000, np.arange(1000) < 100
    a, b = rng.normal(size=m) - 2.0 * wrong, rng.normal(size=m)
    outlying = {"one": {"a": rng.normal(-1, 1, 200), "b": rng.normal(-3, 1, 200)}}
    selector = ranked({"a": a, "b": b}, outlying, wrong, fuse=False)
    rows = {row["name"]: row for row in selector.ranking_}
    for name, s in {"a": a, "b": b}.items():
        errors = roc_auc_score(~wrong, s)
        made = roc_auc_score(np.r_[np.ones(m), np.zeros(200)], np.r_[s, outlying["one"][name]])
        assert rows[name]["errors"] == pytest.approx(errors)
        assert rows[name]["pseudo_outliers"] == rows[name]["one"] == pytest.approx(made)
        assert rows[name]["score"] == pytest.approx((errors + made) / 2)
    assert (selector.choice_, selector.runner_up_) == ("a", "b")


def test_standard_error_is_that_of_resampling(rng):
    wrong = np.arange(400) < 40
    a = rng.normal(size=400) - 1.0 * wrong
    selector = ranked({"a": a, "b": rng.normal(size=400)}, {}, wrong, fuse=False)
    resampled = []
    for _ in range(400):
        right_rows, wrong_rows = rng.choice(360, 360) + 40, rng.choice(40, 40)
        resampled.append(auroc(a[right_rows], a[wrong_rows]))
    row = next(r for r in selector.ranking_ if r["name"] == "a")
    assert row["standard_error"] == pytest.approx(np.std(resampled), rel=0.2)


def test_the_fusion_is_left_only_for_more_than_a_standard_error(rng):
    wrong = np.arange(2000) < 200
    good = rng.normal(size=2000) - 2.0 * wrong
    made = {"good": rng.normal(-2, 1, 500)}
    twin = {"twin": good + 0.01 * rng.normal(size=2000)}
    close = ranked({"good": good} | twin, {"one": made | {"twin": made["good"]}}, wrong)
    # one that is sure of the errors spoils the fusion, which still gives it a vote
    poor = {"poor": rng.normal(size=2000) + np.where(wrong, 0.0, rng.choice([-9.0, 0.0], 2000))}
    clear = ranked({"good": good} | poor, {"one": made | {"poor": rng.normal(-9, 1, 500)}}, wrong)
    assert close.choice_ == "fused" and clear.choice_ == "good"
    best = clear.ranking_[0]
    fused = next(row for row in clear.ranking_ if row["name"] == "fused")
    assert fused["score"] < best["score"] - best["standard_error"]


def test_the_best_by_score_ranks_last_if_it_is_blind_to_distance(rng):
    held = {"blind": rng.normal(size=500), "seeing": rng.normal(size=500)}
    outlying = {"one": {"blind": rng.normal(-9, 1, 100), "seeing": rng.normal(-1, 1, 100)}}
    selector = settled(DensitySelector(fuse=False), held, outlying, blind=["blind"])
    assert (selector.choice_, selector.runner_up_) == ("seeing", "blind")
    assert selector.ranking_[0]["score"] < selector.ranking_[1]["score"] - 0.1


def test_a_density_that_is_blind_to_distance_is_not_chosen_alone(rng):
    y = np.arange(600) % 3
    angle = 2 * np.pi * y / 3 + 0.05 * rng.normal(size=600)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(1, 3, (600, 1))
    candidates = [("unit", make_pipeline(Normalizer(), KNNDensity())), ("plain", GDADensity())]
    for fuse in (True, False):
        selector = DensitySelector(candidates, fuse=fuse).fit(X, y)
        assert selector.choice_ != "unit" and selector.blind_ == {"unit"}
        lowest = selector.score_samples(X).min()
        assert (selector.score_samples(1000 * X) < lowest).all()


def test_candidates_may_be_pipelines_and_failures_are_kept():
    X, y = load_iris(return_X_y=True)
    candidates = [
        ("unit", make_pipeline(Normalizer(), GaussianDensity())),
        ("many", KNNDensity(n_neighbors=10_000)),
    ]
    clf = DIPClassifier(LogisticRegression(max_iter=500), DensitySelector(candidates)).fit(X, y)
    reason = clf.density_.failed_["many"]
    assert clf.density_.ranking_[-1] == {"name": "many", "failed": reason}
    assert "n_neighbors must lie in" in reason and set(clf.density_.estimators_) == {"unit"}
    assert {row["name"] for row in clf.density_.ranking_} == {"fused", "unit", "many"}


class Nowhere(GDADensity):
    def score_samples(self, X):
        return np.full(len(X), np.nan)


def test_a_candidate_that_gives_nan_is_dropped_with_its_reason():
    X, y = load_iris(return_X_y=True)
    density = FusedDensity([("nan", Nowhere()), ("own", GDADensity())]).fit(X, y)
    assert list(density.estimators_) == ["own"] and "gave nan" in density.failed_["nan"]
    with pytest.raises(ValueError, match=r"every candidate density failed:\n  nan: .*gave nan"):
        FusedDensity([("nan", Nowhere())]).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_left_out_is_scored_by_the_ranks_of_all_others(weighted, rng):
    scores = np.r_[rng.normal(size=30), [-1.0, -1.0, 2.5, 2.5, 2.5]]
    weights = rng.integers(1, 4, len(scores)).astype(float) if weighted else None
    table = NormalScores().fit(scores, weights)
    found = table.leave_one_out(scores, weights)
    for i in range(len(scores)):
        count = np.ones(len(scores)) if weights is None else weights.copy()
        count[i] -= 1
        rest = NormalScores().fit(scores, count)
        rest.scale_ = table.scale_
        assert found[i] == pytest.approx(rest.transform(scores[i : i + 1])[0], abs=1e-6), i
    # Inside it is the score with the row but for one step of rank; at the ends, further out.
    every = table.transform(scores)
    assert np.abs(found - every)[np.argsort(scores)[2:-4]].max() < 0.2
    assert found.min() < every.min()


def test_the_lowest_held_out_row_scores_as_if_it_were_new(rng):
    columns = {name: np.r_[-8.0, np.sort(rng.normal(size=199))] for name in ("a", "b")}
    density, reach = FusedDensity(), Reach.of(np.zeros((2, 1)))
    density.estimators_, density.failed_, density.reach_ = dict.fromkeys(columns), {}, reach
    made = {"noised": {name: column - 2 for name, column in columns.items()}}
    density.fit_combiner(columns, made)
    found = density.combine_held_out(columns)
    for i in (0, 100):
        rest = {name: np.delete(column, i) for name, column in columns.items()}
        other = FusedDensity()
        other.estimators_, other.failed_, other.reach_ = dict.fromkeys(columns), {}, reach
        other.fit_combiner(rest, made)
        row = {name: column[i : i + 1] for name, column in columns.items()}
        # The unit of the tail is that of all rows.
        assert found[i] == pytest.approx(other.combine(row)[0], rel=0.02)
    assert found[0] < density.combine(columns)[0] - 3


X, Y = load_iris(return_X_y=True)
TWO = [("own", GDADensity()), ("tied", GDADensity("tied"))]


@pytest.mark.parametrize("bank", [DensitySelector(TWO), FusedDensity(TWO)], ids=str)
def test_a_density_of_several_is_not_fitted_again(bank):
    bank.fit(X, Y)
    before = bank.score_samples(X)
    clf = DIPClassifier(GaussianNB(), FrozenEstimator(bank)).fit(X[::2] + 5, Y[::2])
    np.testing.assert_array_equal(bank.score_samples(X), before)
    np.testing.assert_array_equal(clf.score_samples(X), before)
    np.testing.assert_array_equal(clf.calibrate(X, Y).score_samples(X), before)


def test_one_that_was_given_probabilities_is_given_them_again():
    first = DIPClassifier(GaussianNB(), FusedDensity(TWO), features="passthrough").fit(X, Y)
    before = first.score_samples(X)
    clf = DIPClassifier(GaussianNB(), FrozenEstimator(first.density_)).fit(X, Y)
    np.testing.assert_allclose(clf.score_samples(X), before)
    np.testing.assert_array_equal(first.score_samples(X), before)


@pytest.mark.parametrize("part", ["background", "density"])
def test_a_frozen_part_is_the_same_in_every_fold(part):
    frozen = FrozenEstimator(GDADensity().fit(X, Y))
    model = RelativeDensity(**{part: frozen}).fit(X + 1, Y)
    assert getattr(model.clone_with_selected(), part).estimator is frozen.estimator


def test_a_class_of_weight_zero_is_absent_and_its_column_of_probabilities_is_not(rng):
    """Without its rows the columns were taken for those of the other classes, all of them wrong."""
    y = np.arange(300) % 3
    X, there = rng.normal(size=(300, 3)) + 0.7 * y[:, None], y > 0
    P = np.zeros((300, 3))
    P[:, 1:] = GaussianNB().fit(X[there], y[there]).predict_proba(X)
    selector = DensitySelector([("gaussians", GDADensity())], fuse=False)
    all_rows = clone(selector).fit(X, y, sample_weight=1.0 * there, proba=P)
    without = selector.fit(X[there], y[there], sample_weight=np.ones(200), proba=P[there, 1:])
    assert 0 < without.ranking_[0]["errors"] < 1
    assert all_rows.ranking_[0]["errors"] == without.ranking_[0]["errors"]
