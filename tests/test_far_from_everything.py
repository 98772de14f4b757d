"""What lies far from everything is unknown, whatever the data: never dropped, never outvoted."""

import tracemalloc
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler

from dipedl import DIPClassifier, OODDetector
from dipedl.density import DensitySelector, FusedDensity, GDADensity, KNNDensity, RelativeDensity
from dipedl.density.ensemble import Reach, blind_to_distance
from dipedl.features.scaling import (
    RANGES,
    fit_scaler,
    limits,
    outside_of,
    spread,
    warn_of_gross_outliers,
)
from weekly import sample_of


def gross_outliers(X, w=None):
    return outside_of(*limits(X, w), X)


@pytest.fixture(scope="module")
def study(benchmark):
    """The benchmark of the same name, whose fits these are a few of."""
    return benchmark("far_from_everything")


@pytest.mark.parametrize("kind", sample_of(range(11), 0, 3, 6, 9))
def test_far_inputs_of_any_data_are_flagged_and_lose_their_evidence(study, kind):
    """1e3 to 1e150 standard deviations out; the receipt of the benchmark has thousands of fits."""
    rows = [study.outcome(20_000 + 11 * i + kind) for i in range(1)]
    assert sum(row["queries"] for row in rows) > 25
    assert [row for row in rows if row["missed"] or row["low"]] == []


def classes(rng, n=300, p=8):
    y = np.arange(n) % 3
    return rng.normal(size=(3, p))[y] * 2 + rng.normal(size=(n, p)), y


def fitted(X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return DIPClassifier(LogisticRegression(max_iter=300), **settings).fit(X, y)


@pytest.mark.parametrize("seed", sample_of(range(4), 0, 1))
def test_two_bad_rows_do_not_blind_it(seed):
    """Their distance was learned by every density that sees any, and all these were dropped."""
    rng = np.random.default_rng(seed)
    X, y = classes(rng)
    spread = X.std(axis=0)
    X[rng.choice(len(X), 2, replace=False)] *= 100
    clf = fitted(X, y, cv=5)
    ray = rng.normal(size=(200, X.shape[1]))
    ray /= np.linalg.norm(ray, axis=1)[:, None]
    assert not set(clf.density_.voting_) <= clf.density_.blind_
    assert (clf.predict_ood(np.median(X, axis=0) + 30 * spread * ray) == -1).mean() > 0.9
    far = np.median(X, axis=0) + 1e9 * spread * ray
    assert (clf.predict_ood(far) == -1).all()
    assert (clf.predict_dirichlet(far).vacuity > 0.99).all()


def test_rows_far_from_the_rest_are_named(rng):
    X, y = classes(rng)
    X[[7, 91], 2] = [-9999.0, 5e4]
    with pytest.warns(UserWarning, match=r"2 of 300 rows .* rows \[7, 91\], columns \[2\]") as said:
        DIPClassifier(LogisticRegression(max_iter=300)).fit(X, y)
    assert "-9999 in row 7, column 2" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DIPClassifier(GaussianNB(), random_state=0).fit(*classes(rng))


def test_a_tenth_of_a_column_is_its_own_tail_and_not_named(rng):
    """A pixel that is nearly always full: most deviations are of its last step."""
    X = rng.normal(size=(500, 3))
    X[:, 1] = 1 - rng.integers(0, 2, 500) / 256
    X[:100, 1] = rng.uniform(0, 0.5, 100)
    assert not gross_outliers(X).any()
    X[:90, 1] = 1.0
    assert gross_outliers(X)[90:100, 1].all()


@pytest.mark.parametrize("what", ["table", "steps", "mixture"])
def test_rows_far_from_the_rest_of_a_table_are_named_in_its_units(rng, what):
    X, y = classes(rng, p=3)
    X[[5, 80], 1] = 1e6
    table = pd.DataFrame(X, columns=["age", "dose", "weight"])
    columns, model = ["age", "dose", "weight"], LogisticRegression(max_iter=300)
    named, value = r"\['dose'\]", r"1e\+06 in row 5, column 'dose'"
    if what == "table":
        table["job"] = pd.Categorical(rng.choice(["nurse", "clerk"], len(X)))
        model = HistGradientBoostingClassifier(max_iter=5)
    elif what == "steps":
        table["job"] = rng.choice(["nurse", "clerk"], len(X))
        model = make_pipeline(
            ColumnTransformer([("n", MinMaxScaler(), columns), ("j", OneHotEncoder(), ["job"])]),
            model,
        )
    else:
        named, value = r"\['pca0'\]", "in row 5, column 'pca0'"
        model = make_pipeline(PCA(1), model)
    with pytest.warns(UserWarning, match=rf"rows \[5, 80\], columns {named}.*{value}") as said:
        DIPClassifier(model, GDADensity()).fit(table, y)
    assert {w.filename for w in said if "far from the rest" in str(w.message)} == {__file__}


def test_components_of_rare_levels_are_no_rows_far_from_the_rest(rng):
    table = pd.DataFrame({"town": rng.zipf(1.3, 400).astype(str), "job": ["a", "b"] * 200})
    encoder = ColumnTransformer([("l", OneHotEncoder(handle_unknown="ignore"), ["town", "job"])])
    for steps in ([encoder], [encoder, TruncatedSVD(20, random_state=0)]):
        model = make_pipeline(*steps, LogisticRegression(max_iter=300))
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*far from the rest")
            DIPClassifier(model, GDADensity()).fit(table, np.arange(400) % 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_clean_columns_are_standardised_to_the_last_bit(rng, weighted):
    X = np.column_stack([rng.normal(size=400), rng.exponential(size=400), rng.random(400) < 0.03])
    w = rng.random(400) if weighted else None
    expected = StandardScaler().fit(X, sample_weight=w)
    got = fit_scaler(X, w)
    assert np.array_equal(got.mean_, expected.mean_) and np.array_equal(got.scale_, expected.scale_)


@pytest.mark.parametrize("far", [1e3, -9999.0, 1e6, 1e100])
def test_a_few_rows_have_no_part_in_the_scale(rng, far):
    X = rng.normal(size=(300, 4))
    bad = X.copy()
    bad[:3, 1] = far
    got, expected = fit_scaler(bad), StandardScaler().fit(X[3:])
    assert got.mean_[1] == pytest.approx(expected.mean_[1], rel=1e-12)
    assert got.scale_[1] == pytest.approx(expected.scale_[1], rel=1e-12)
    np.testing.assert_array_equal(got.scale_[[0, 2, 3]], StandardScaler().fit(X).scale_[[0, 2, 3]])


def test_weights_are_repetition_in_the_scale(rng):
    X, times = rng.standard_cauchy((60, 3)), rng.integers(1, 4, 60)
    repeated = X.repeat(times, axis=0)
    assert gross_outliers(repeated).any()
    np.testing.assert_array_equal(
        gross_outliers(X, times).repeat(times, axis=0), gross_outliers(repeated)
    )
    np.testing.assert_allclose(fit_scaler(X, times).scale_, fit_scaler(repeated).scale_, rtol=1e-12)


def test_sparse_and_constant_columns_have_a_spread(rng):
    amounts = np.where(rng.random(300) < 0.05, rng.uniform(50, 150, 300), 0.0)
    X = np.column_stack([amounts, np.full(300, 7.0), rng.random(300) < 0.01])
    spreads = [spread(np.abs(column - np.median(column))) for column in X.T]
    assert 50 < spreads[0] < 150 and spreads[1:] == [1.0, 1.0]
    assert fit_scaler(X).scale_[0] == StandardScaler().fit(X).scale_[0]


def binary(rng):
    y = np.arange(200) % 2
    return (rng.random((200, 6)) < np.where(y == 1, 0.8, 0.2)[:, None]).astype(float), y


@pytest.mark.parametrize("make", [classes, binary])
def test_directions_and_ratios_are_blind_and_distances_are_not(rng, make):
    X, y = make(rng)
    Z = StandardScaler().fit_transform(X)
    unit = make_pipeline(Normalizer(), GDADensity())
    assert blind_to_distance(unit.fit(Z, y), Z)
    assert blind_to_distance(RelativeDensity().fit(Z, y), Z)
    assert blind_to_distance(make_pipeline(StandardScaler(), RelativeDensity()).fit(Z, y), Z)
    for density in (GDADensity(), GDADensity("tied"), GDADensity("diag"), KNNDensity(60)):
        assert not blind_to_distance(density.fit(Z + 1e-9 * rng.normal(size=Z.shape), y), Z)


class Sideways(GDADensity):
    """Sees the first feature only."""

    def score_samples(self, X):
        return -(np.asarray(X)[:, 0] ** 2)


def test_one_direction_that_is_not_seen_is_enough(rng):
    X, y = classes(rng)
    assert blind_to_distance(Sideways().fit(X, y), X)


def test_of_unsteady_densities_the_steadiest_that_sees_distance_stays(rng):
    names = ("unit", "own", "tied")
    density = FusedDensity([(name, GDADensity()) for name in names])
    density.estimators_, density.failed_, density.blind_ = dict.fromkeys(names), {}, {"unit"}
    base = rng.normal(size=100)
    moved = {"unit": 0.0, "own": 30.0, "tied": 9.0}
    density.drop_unsteady([{n: base + i * moved[n] for n in names} for i in range(3)])
    assert set(density.estimators_) == {"unit", "tied"}
    assert "a few rows far from all others" in density.failed_["own"]


def test_a_fusion_whose_voters_are_blind_is_blind(rng):
    held = {name: rng.normal(size=500) for name in ("unit", "seeing")}
    made = {"unit": rng.normal(-9, 1, 100), "seeing": rng.normal(1, 1, 100)}
    selector = DensitySelector()
    selector.estimators_, selector.failed_ = dict.fromkeys(held), {}
    selector.blind_ = {"unit"}
    selector.reach_ = Reach.of(np.zeros((2, 1)))
    selector.fit_combiner(held, {"one": made})
    blind = {row["name"]: row["blind"] for row in selector.ranking_}
    assert blind == {"seeing": False, "unit": True, "fused": True}
    assert selector.choice_ == "seeing"


def test_only_blind_candidates_are_said_aloud_and_the_reach_still_holds(rng):
    X, y = classes(rng)
    unit = [("unit", make_pipeline(Normalizer(), GDADensity()))]
    with pytest.warns(UserWarning, match=r"the score is that of \['unit'\].*3 ranges outside"):
        clf = DIPClassifier(LogisticRegression(max_iter=300), DensitySelector(unit)).fit(X, y)
    far = 1e4 * X
    assert (clf.predict_ood(far) == -1).all()
    assert (clf.predict_dirichlet(far).vacuity > 0.99).all()


def test_reach_is_as_defined(rng):
    X = rng.uniform(-1, 1, (50, 2)) * [1, 10]
    X[:2] = [[-1, -10], [1, 10]]
    scores = rng.normal(size=500)
    reach = Reach.of(X).below(scores, None)
    inside, outside = np.array([[6.9, 0.0], [0.0, -69.0]]), np.array([[7.1, 0.0], [0.0, -1e5]])
    assert reach.ranges_outside(np.array([[3.0, 0.0], [0.0, -50.0]])) == pytest.approx([1, 2])
    high = np.full(2, 1e9)
    np.testing.assert_array_equal(reach.hold_down(high, inside), high)
    held = reach.hold_down(high, outside)
    assert held[1] < held[0] < reach.ceiling < scores.min() - 10
    assert held[1] - held[0] == pytest.approx(
        reach.unit * np.log(3.05 / ((1e5 - 10) / 20)), rel=1e-9
    )
    assert reach.hold_down(np.full(1, -1e300), outside[:1]) == -1e300
    assert reach.hold_down(np.zeros(1), np.array([[1e308, 0.0]])) < held[1]


def test_the_graph_holds_down_the_same_inputs(rng, tmp_path):
    X, y = classes(rng)
    clf = fitted(X, y, random_state=0)
    queries = np.vstack([X[:5], X[:5] * 30, X.mean(axis=0) + 1e4 * np.eye(8), 1e6 * X[:3]])
    clf.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    found = dict(
        zip(names, session.run(None, {session.get_inputs()[0].name: queries}), strict=True)
    )
    assert (
        clf.density_.reach_.ranges_outside(clf.evidence_.transform(queries)) > RANGES
    ).sum() > 10
    np.testing.assert_allclose(found["vacuity"], clf.predict_dirichlet(queries).vacuity, atol=1e-6)


def test_detectors_too(rng):
    X = classes(rng)[0]
    detector = OODDetector().fit(X)
    assert (detector.predict(1e4 * X) == -1).all()
    assert detector.predict(X).mean() > 0.7


@pytest.mark.slow
def test_wide_data_need_no_matrix_of_all_features(rng):
    """n = 60, p = 1500: one covariance alone would be 18 MB, and there are three classes."""
    X, y = classes(rng, n=60, p=1500)
    tracemalloc.start()
    fitted(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 90e6


@pytest.mark.parametrize("share", [0.02, 0.12, 0.3])
def test_a_code_of_missing_values_is_named_however_common_it_is(rng, share):
    X = rng.normal(size=(400, 3))
    X[rng.random(400) < share, 1] = -9999
    scaler = fit_scaler(X)
    with pytest.warns(UserWarning, match=r"columns \[1\]; such as -9999 in row"):
        warn_of_gross_outliers(scaler.transform(X), None, X, scaler)


def test_a_heavy_tail_is_no_code(rng):
    X = np.where(rng.random((400, 1)) < 0.2, 1000 + 50 * rng.normal(size=(400, 1)), 0.0)
    X = X + rng.normal(size=(400, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaler = fit_scaler(X)
        warn_of_gross_outliers(scaler.transform(X), None, X, scaler)
