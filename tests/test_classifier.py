"""DIPClassifier: the formula, what it wraps, what it answers, and every refusal."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from dipedl import DIPClassifier, OODDetector
from dipedl.density import (
    DensitySelector,
    GaussianDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    streaming,
)
from dipedl.evidence import Identity, RankNormal, RobustZScore, ZScore
from dipedl.maths.scores import round_down
from weekly import sample_of

FAR = 1e3
KINDS = (
    "vacuity total aleatoric epistemic differential_entropy max_prob entropy log_density"
).split()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X - [5, 3, 3, 1], y  # near zero a logistic regression takes a sixth of the steps


@pytest.fixture(scope="module")
def fitted(iris):
    return DIPClassifier(LogisticRegression(max_iter=1000)).fit(*iris)


def test_paper_preset_is_the_released_formula_to_the_letter(iris):
    X, y = iris
    gamma = 0.5
    clf = DIPClassifier.paper(LogisticRegression(max_iter=1000), gamma=gamma).fit(X, y)
    P = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X + 0.3)
    log_p = np.zeros((2, len(X), 3))
    for c in range(3):
        rows = X[y == c]
        mean, cov = rows.mean(0), np.cov(rows.T, ddof=0)
        for i, Z in enumerate((X, X + 0.3)):
            D = Z - mean
            distance = (D @ np.linalg.inv(cov) * D).sum(1)
            log_p[i, :, c] = -0.5 * (distance + np.linalg.slogdet(cov)[1] + 4 * np.log(2 * np.pi))
    train, new = np.log(np.exp(log_p).mean(-1))
    z = (new - train.mean()) / train.std()
    alpha = 1 + len(X) * gamma * np.exp(z)[:, None] * P
    np.testing.assert_allclose(clf.predict_dirichlet(X + 0.3).concentration, alpha, rtol=1e-8)
    np.testing.assert_allclose(
        clf.predict_proba(X + 0.3), alpha / alpha.sum(1, keepdims=True), rtol=1e-8
    )


def test_mean_is_linear_shrinkage_to_the_prior(iris):
    X, y = iris
    prior = np.array([1.0, 2.0, 5.0])
    clf = DIPClassifier(prior=prior).fit(X, y)
    X_new = np.concatenate([X, X + 3, X + FAR])
    u = clf.uncertainty(X_new)[:, None]
    bare, model = clf.estimator_.predict_proba(X_new), clf.evidence_
    np.testing.assert_allclose(
        clf.classifier_proba(X_new), model.calibrator_.transform(bare), rtol=1e-12
    )
    low, high = model.sharpening_
    share = np.clip((clf.score_samples(X_new) - low) / (high - low), 0, 1)
    # Sharpened in a share of the inverse temperature.
    assert model.temperature_ < 1
    P = bare ** (1 + share * (1 / model.temperature_ - 1))[:, None]
    P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X_new), (1 - u) * P + u * prior / 8, atol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X + FAR), np.tile(prior / 8, (150, 1)))


def test_an_empirical_prior_is_the_frequencies_times_half_of_k(iris):
    X, y = iris
    names = np.array(["c", "a", "b"])[y]
    w = np.where(names == "a", 3.0, 1.0)
    clf = DIPClassifier(prior="empirical").fit(X, names, w)
    np.testing.assert_allclose(clf.prior_, 1.5 * np.array([150, 50, 50]) / 250)
    same = DIPClassifier(prior=clf.prior_).fit(X, names, w)
    np.testing.assert_array_equal(clf.predict_proba(X + 1), same.predict_proba(X + 1))
    batches = DIPClassifier(GaussianNB(), GDADensity(), prior="empirical")
    batches.partial_fit(X[::2], y[::2], classes=[0, 1, 2]).partial_fit(X[1::2], y[1::2])
    np.testing.assert_allclose(batches.prior_, 0.5)


@pytest.mark.parametrize("batches", [False, True])
def test_a_class_that_weighs_less_than_a_row_in_an_empirical_prior_is_named(iris, batches):
    X, y = iris
    clf = DIPClassifier(GaussianNB(), GDADensity(), prior="empirical")
    fit = clf.partial_fit if batches else clf.fit
    with pytest.warns(UserWarning, match=r"class \[2\].*sample_weight"):
        fit(X, y, sample_weight=np.where(y == 2, 1e-9, 1.0)).predict(X)


def test_an_empirical_prior_keeps_the_base_rate_of_a_rare_class():
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.repeat([0, 1], [3760, 240]))
        X = rng.normal(size=(4000, 4)) + 1.2 * np.outer(y, [1, 1, 0, 0])
        clf = DIPClassifier(None, GDADensity(), prior="empirical", random_state=0).fit(
            X[:2000], y[:2000]
        )
        ratios.append(clf.predict_proba(X[2000:])[:, 1].mean() / y[:2000].mean())
    assert 0.9 < np.mean(ratios) < 1.1


@pytest.mark.parametrize(
    ("prior", "weights", "error", "message"),
    [
        ("even", None, TypeError, "prior must be a number .*'empirical', got 'even'"),
        (
            "empirical",
            np.arange(150) < 100,
            ValueError,
            "rows of every class, and 1 of 3 classes have none",
        ),
    ],
)
def test_a_prior_that_cannot_be_taken_is_refused(iris, prior, weights, error, message):
    known = FrozenEstimator(LogisticRegression(max_iter=1000).fit(*iris))
    with pytest.raises(error, match=message):
        DIPClassifier(known, prior=prior).fit(*iris, sample_weight=weights)


def test_far_from_the_data_it_knows_nothing_and_predict_follows_the_classifier(iris, fitted):
    X, y = iris
    far = X * FAR + FAR
    assert (fitted.uncertainty(far) == 1).all()
    np.testing.assert_allclose(fitted.predict_proba(far), 1 / 3)
    np.testing.assert_array_equal(fitted.predict(far), fitted.estimator_.predict(far))
    assert (fitted.predict_ood(far) == -1).all()
    assert fitted.score(X, y) > 0.95


def test_ranking_stays_exact_when_alpha_saturates(iris, fitted):
    X, y = iris
    ray = X[:1] + np.linspace(1, 1e6, 400)[:, None]
    d = clone(fitted).set_params(spread=None).fit(X, y).predict_dirichlet(ray)
    assert (d.concentration[100:] == 1 / 2).all()
    assert (np.diff(d.log_evidence) < 0).all()
    assert (np.diff(fitted.uncertainty(ray, kind="log_density")) > 0).all()


def test_a_constant_factor_or_temperature_on_the_density_changes_nothing(iris):
    X, y = iris

    class Tempered(GDADensity):
        def score_samples(self, X):
            return 0.1 * super().score_samples(X) - 700

    plain, tempered = (DIPClassifier(density=d()).fit(X, y) for d in (GDADensity, Tempered))
    np.testing.assert_allclose(
        plain.predict_dirichlet(X).concentration,
        tempered.predict_dirichlet(X).concentration,
        rtol=1e-9,
    )


def test_units_of_the_inputs_do_not_matter():
    X, y = load_wine(return_X_y=True)
    scale = 10.0 ** np.random.default_rng(0).integers(-6, 7, X.shape[1])
    a, b = (DIPClassifier(KNeighborsClassifier(), GDADensity()).fit(Z, y) for Z in (X, X * scale))
    np.testing.assert_allclose(a.score_samples(X), b.score_samples(X * scale), rtol=1e-6)


def test_permuting_labels_permutes_alpha(iris):
    X, y = iris
    knn = KNeighborsClassifier()
    a = DIPClassifier(knn, cv=5).fit(X, y).predict_dirichlet(X)
    b = DIPClassifier(knn, cv=5).fit(X, 2 - y).predict_dirichlet(X)
    np.testing.assert_allclose(a.concentration, b.concentration[:, ::-1], rtol=1e-9)
    np.testing.assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-9)


def test_gamma_shifts_the_evidence_and_the_cap_limits_it(iris):
    X, y = iris
    base, scaled, capped = (
        DIPClassifier(normalizer=ZScore(), spread=None, **kw).fit(X, y).predict_dirichlet(X)
        for kw in ({}, {"gamma": 100.0}, {"max_evidence": 20.0})
    )
    np.testing.assert_allclose(scaled.log_evidence - base.log_evidence, np.log(100))
    np.testing.assert_allclose(capped.strength, np.minimum(base.strength, 21.5))


def test_order_of_training_rows_does_not_matter(iris):
    X, y = iris
    order = np.random.default_rng(0).permutation(len(y))
    converged = LogisticRegression(solver="newton-cholesky", tol=1e-12)
    a = DIPClassifier(converged).fit(X, y)
    b = DIPClassifier(converged).fit(X[order], y[order])
    # Neighbours at equal distances are told apart by rounding, which moves an AUROC by 1e-5.
    np.testing.assert_allclose(a.score_samples(X), b.score_samples(X), rtol=1e-4, atol=1e-5)
    assert a.offset_ == pytest.approx(b.offset_, rel=1e-4)
    assert a.density_.choice_ == b.density_.choice_


@pytest.mark.parametrize(
    "estimator",
    sample_of(
        [
            RandomForestClassifier(20, random_state=0),
            HistGradientBoostingClassifier(max_iter=10),
            CalibratedClassifierCV(SVC(), cv=2, ensemble=False),
            KNeighborsClassifier(),
            make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=150, random_state=0)),
            make_pipeline(StandardScaler(), LogisticRegression()),
        ],
        0,
        2,
        4,
    ),
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_wraps_any_classifier_and_clones(iris, estimator):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    clf = DIPClassifier(estimator, GDADensity(), random_state=0)
    twin = clone(clf).fit(X, names[y])
    clf.fit(X, names[y])
    assert list(clf.classes_) == sorted(names)
    assert set(clf.predict(X)) <= set(names) and clf.score(X, names[y]) > 0.6
    np.testing.assert_array_equal(clf.predict_proba(X), twin.predict_proba(X))
    np.testing.assert_allclose(clf.predict_log_proba(X), np.log(clf.predict_proba(X)))


@pytest.mark.parametrize(
    ("module", "name"), [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")]
)
def test_wraps_boosted_trees_of_other_libraries(iris, module, name):
    X, y = iris
    estimator = getattr(pytest.importorskip(module), name)(n_estimators=10, n_jobs=1)
    clf = DIPClassifier(estimator).fit(X, y)
    assert clf.score(X, y) > 0.9 and (clf.predict_ood(X + FAR) == -1).all()


@pytest.mark.parametrize(
    ("density", "normalizer"),
    [
        (GDADensity("tied"), ZScore()),
        (GaussianDensity(), RobustZScore()),
        (KernelDensity(), RankNormal()),
        (KNNDensity(5), Identity()),
        (PCA(2), ZScore()),
        (PCA(2), Identity()),
    ],
    ids=lambda part: type(part).__name__,
)
def test_any_density_with_any_normalizer_trusts_the_data_more(iris, density, normalizer):
    """PCA is here because scikit-learn gives it score_samples: any such object will do."""
    X, y = iris
    clf = DIPClassifier(density=density, normalizer=normalizer).fit(X, y)
    assert np.median(clf.uncertainty(X)) < clf.uncertainty(X + 20).min()
    assert 0.8 < (clf.predict_ood(X) == 1).mean() and (clf.predict_ood(X + 20) == -1).all()


def test_a_fitted_classifier_comes_in_frozen(iris):
    X, y = iris
    forest = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    clf = DIPClassifier(FrozenEstimator(forest)).fit(X[1::2], y[1::2])
    np.testing.assert_array_equal(clf.estimator_.predict_proba(X), forest.predict_proba(X))
    some = y[1::2] != 1
    for density in (None, GDADensity()):
        part = DIPClassifier(FrozenEstimator(forest), density).fit(X[1::2][some], y[1::2][some])
        assert part.predict_proba(X).shape == (150, 3)
    assert list(part.density_.classes_) == [0, 2]
    with pytest.raises(ValueError, match=r"labels \[3\] that the fitted estimator does not know"):
        DIPClassifier(FrozenEstimator(forest)).fit(X, y + 1)


def test_features_transformer_is_what_the_density_sees(iris):
    X, y = iris
    clf = DIPClassifier(density=GDADensity(), features=PCA(2)).fit(X, y)
    expected = (
        GDADensity().fit(PCA(2).fit_transform(X), y).score_samples(PCA(2).fit(X).transform(X))
    )
    np.testing.assert_allclose(clf.score_samples(X), expected)
    assert clf.evidence_.transform(X).shape == (150, 2)


def test_dataframes_pipelines_and_text_columns(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(y == 0, "red", "blue"))
    columns = ColumnTransformer(
        [("number", StandardScaler(), list("abcd")), ("text", OneHotEncoder(), ["kind"])]
    )
    clf = DIPClassifier(make_pipeline(columns, LogisticRegression()), features=clone(columns))
    clf.fit(frame, y)
    assert list(clf.feature_names_in_) == ["a", "b", "c", "d", "kind"]
    assert clf.score(frame, y) > 0.95
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"a": "z"}))
    numbers = frame[list("abcd")]
    from_frame = DIPClassifier().fit(numbers, pd.Series(y)).score_samples(numbers)
    np.testing.assert_allclose(from_frame, DIPClassifier().fit(X, y).score_samples(X))


def test_lives_in_pipelines_and_searches(iris):
    X, y = iris
    pipe = make_pipeline(StandardScaler(), DIPClassifier(density=GDADensity()))
    assert cross_val_score(pipe, X, y, cv=3).min() > 0.9
    grid = {
        "dipclassifier__density__covariance_type": ["full", "tied"],
        "dipclassifier__gamma": [0.1, 1.0],
    }
    search = GridSearchCV(pipe, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_score_ > -0.5 and set(search.best_params_) == set(grid)


def test_missing_values_pass_where_classifier_and_features_take_them(iris):
    X, y = iris
    X = X.copy()
    X[::7, 1] = np.nan
    features = make_pipeline(SimpleImputer(), StandardScaler())
    clf = DIPClassifier(HistGradientBoostingClassifier(max_iter=10), features=features).fit(X, y)
    assert clf.score(X, y) > 0.9


def test_text_is_sparse_for_the_classifier_and_dense_for_the_density():
    words = [["cat", "dog", "purr", "fur"], ["tax", "bank", "loan", "rate"]]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words[i % 2], 6)) for i in range(60)]
    X, y = TfidfVectorizer().fit_transform(texts), np.arange(60) % 2
    clf = DIPClassifier(features=TruncatedSVD(3, random_state=0)).fit(X, y)
    assert clf.score(X, y) == 1
    default = DIPClassifier(random_state=0).fit(X, y)
    assert default.score(X, y) == 1 and default.evidence_.features_.steps[0][0] == "dense"
    with pytest.raises(TypeError, match=r"X is sparse, and the inputs of the fit were dense"):
        DIPClassifier(density=GDADensity()).fit(X.toarray(), y).predict(X)
    with pytest.raises(TypeError, match=r"sparse.*TruncatedSVD"):
        DIPClassifier(features="passthrough").fit(X, y)


def test_a_weight_is_a_repetition(iris):
    X, y = iris
    w = np.random.default_rng(0).integers(0, 3, len(y))
    tight = LogisticRegression(tol=1e-10, max_iter=5000)
    # Folds are of rows, and a weighted row is one: the equality is that of the same statistics.
    # Neighbours take no weights, so the candidates are those that do.
    candidates = [("own", GDADensity()), ("tied", GDADensity("tied"))]
    clf = DIPClassifier(tight, DensitySelector(candidates), cv="in-sample")
    weighted = clone(clf).fit(X, y, sample_weight=w)
    repeated = clf.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.offset_, repeated.offset_, rtol=1e-9)
    np.testing.assert_allclose(
        weighted.predict_dirichlet(X).concentration,
        repeated.predict_dirichlet(X).concentration,
        rtol=1e-4,
    )
    assert weighted.evidence_.n_ == w.sum()
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    assert DIPClassifier(pipe).fit(X, y, sample_weight=w).score(X, y) > 0.9


def test_every_kind_of_uncertainty_rises_off_the_data_or_says_how(iris, fitted):
    X, _ = iris
    d = fitted.predict_dirichlet(X)
    P = fitted.proba_and_scores(X)[0]
    expected = {k: getattr(d, k) for k in KINDS[:5]} | {
        "max_prob": 1 - P.max(1),
        "entropy": -(P * np.log(P)).sum(1),
        "log_density": -fitted.score_samples(X),
    }
    for kind in KINDS:
        found = fitted.uncertainty(X, kind=kind)
        np.testing.assert_allclose(found, expected[kind], rtol=1e-9, atol=1e-15)
    for kind in ("vacuity", "total", "epistemic", "differential_entropy", "log_density"):
        assert fitted.uncertainty(X + 50, kind).min() > np.median(fitted.uncertainty(X, kind)), kind
    with pytest.raises(ValueError, match=r"kind must be one of.*got 'epistemc'"):
        fitted.uncertainty(X, "epistemc")


@pytest.mark.parametrize(
    ("density", "fits"), [(GDADensity(), 10), pytest.param(None, 8, marks=pytest.mark.slow)]
)
def test_false_alarm_rate_holds_on_new_data(density, fits):
    """Exchangeable ID data: the mean share flagged over many fits is the rate asked for."""
    rng = np.random.default_rng(0)
    shares = {0.05: [], 0.2: []}
    for _ in range(fits):
        X, y = make_blobs(300, centers=3, random_state=int(rng.integers(1 << 30)), n_features=4)
        clf = DIPClassifier(density=density, false_alarm_rate=0.2).fit(X[:200], y[:200])
        shares[0.2].append((clf.predict_ood(X[200:]) == -1).mean())
        shares[0.05].append((clf.predict_ood(X[200:], alpha=0.05) == -1).mean())
    for rate, found in shares.items():
        error = 4 * np.std(found) / np.sqrt(len(found))
        assert rate - 0.02 - error < np.mean(found) < rate + error


@pytest.mark.parametrize(
    ("density", "fits"), [(GDADensity(), 3), pytest.param(None, 2, marks=pytest.mark.slow)]
)
def test_false_alarm_rate_holds_on_discrete_data_and_with_redundant_features(density, fits):
    """Copies of a row are spread, and the folds keep the shrinkage: scores stay comparable."""
    rng = np.random.default_rng(1)
    mix = rng.normal(size=(4, 24))
    kinds = {
        "binary": lambda n: rng.integers(0, 2, (n, 4)).astype(float),
        "counts": lambda n: rng.poisson(3.0, (n, 3)).astype(float),
        "redundant": lambda n: (lambda Z: np.c_[Z, Z @ mix])(rng.normal(size=(n, 4))),
    }
    for name, draw in kinds.items():
        shares = []
        for _ in range(fits):
            clf = DIPClassifier(density=density, false_alarm_rate=0.2)
            clf.fit(draw(500), np.arange(500) % 2)
            shares.append((clf.predict_ood(draw(1000)) == -1).mean())
        assert 0.1 < np.mean(shares) < 0.26, (name, np.mean(shares))


def test_an_alarm_that_can_never_go_off_says_so(iris):
    X, y = iris
    clf = DIPClassifier(false_alarm_rate=0.05).fit(X, y)
    with pytest.warns(UserWarning, match="needs at least 19 held-out inputs, got 10"):
        clf.calibrate(X[:150:15], y[:150:15])
    with pytest.warns(UserWarning, match="flag nothing"):
        DIPClassifier().fit(X, y, sample_weight=np.full(len(y), 1 / len(y)))


def test_a_failed_fit_or_calibration_leaves_the_model_as_it_was(iris):
    X, y = iris
    clf = DIPClassifier().fit(X, y)
    before = clf.predict_proba(X), clf.offset_, clf.evidence_.held_out_.threshold(0.1)
    with pytest.raises(ValueError, match="must vary"):
        clf.calibrate(np.repeat(X[:1], 30, axis=0), np.repeat(y[:1], 30))
    with pytest.raises(ValueError):
        clf.fit(X, np.zeros(len(y)))
    np.testing.assert_array_equal(clf.predict_proba(X), before[0])
    assert (clf.offset_, clf.evidence_.held_out_.threshold(0.1)) == before[1:]


def test_rows_of_weight_zero_are_absent_from_the_features_too(iris):
    X, y = iris
    w = np.ones(len(y) + 1)
    w[-1] = 0
    far = np.r_[X, [[1e6] * 4]]
    pairs = [
        (np.arange(0, 151, 2), np.arange(1, 151, 2)),
        (np.arange(1, 151, 2), np.arange(0, 151, 2)),
    ]
    for cv in (5, pairs):
        with_row = DIPClassifier(features=PCA(2), cv=cv).fit(far, np.r_[y, 0], sample_weight=w)
        drop = [(a[a < 150], b[b < 150]) for a, b in pairs] if cv is pairs else cv
        without = DIPClassifier(features=PCA(2), cv=drop).fit(X, y, sample_weight=w[:-1])
        np.testing.assert_allclose(with_row.score_samples(X), without.score_samples(X))
        assert with_row.offset_ == pytest.approx(without.offset_)


def test_calibrate_takes_the_statistics_from_new_data(iris):
    X, y = iris
    clf = DIPClassifier(density=GDADensity(), normalizer=ZScore(), cv="in-sample")
    clf.fit(X[::2], y[::2])
    before = clf.offset_
    assert clf.calibrate(X[1::2]) is clf
    scores = np.sort(clf.score_samples(X[1::2]))
    assert clf.normalizer_.location_ == pytest.approx(scores.mean())
    assert clf.offset_ == round_down(scores[int(0.05 * 76) - 1]) != before
    assert clf.normalizer_.source_ == "75 held-out inputs"


def test_a_rate_that_is_set_after_the_fit_plays_no_part(iris):
    clf = DIPClassifier(density=GDADensity(), random_state=0).fit(*iris)
    said, known = str(clf.diagnose()), [card.flagged for card in clf.explain(iris[0])]
    clf.set_params(false_alarm_rate=0.5)
    assert str(clf.diagnose()) == said
    assert [card.flagged for card in clf.explain(iris[0])] == known
    np.testing.assert_array_equal(clf.predict_ood(iris[0]) == -1, known)


def test_random_state_seeds_what_is_unseeded(iris):
    X, y = iris
    loose = RandomForestClassifier(5)
    own = DIPClassifier(loose, GDADensity(), cv=2)
    a, b, c = (clone(own).set_params(random_state=s).fit(X, y).predict_proba(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any() and loose.random_state is None
    fixed = RandomForestClassifier(5, random_state=7)
    same = clone(own).set_params(estimator=fixed, random_state=1).fit(X, y)
    assert same.estimator_.random_state == 7
    for state in (np.random.RandomState(0), np.random.default_rng(0)):
        clone(own).set_params(random_state=state).fit(X, y)


def test_a_fitted_density_comes_in_frozen_and_says_so(iris):
    X, y = iris
    fitted = GDADensity().fit(X[::2], y[::2])

    class Scorer:
        def log_prob(self, X):
            return fitted.score_samples(X)

    for density in (FrozenEstimator(fitted), Scorer()):
        clf = DIPClassifier(density=density).fit(X[1::2], y[1::2])
        np.testing.assert_array_equal(clf.score_samples(X), fitted.score_samples(X))
        scores = np.sort(fitted.score_samples(X[1::2]))
        np.testing.assert_array_equal(clf.evidence_.held_out_.scores, scores)
        assert clf.normalizer_.source_.endswith("by a density that was fitted before")


def test_detector_shares_the_fit_or_makes_its_own(iris, fitted):
    X, y = iris
    detector = OODDetector(fitted, false_alarm_rate=0.2)
    np.testing.assert_array_equal(detector.predict(X), fitted.predict_ood(X, 0.2))
    np.testing.assert_array_equal(detector.score_samples(X), fitted.score_samples(X))
    np.testing.assert_allclose(
        detector.decision_function(X), fitted.score_samples(X) - detector.offset_
    )
    own = OODDetector(DIPClassifier(density=GaussianDensity())).fit(X)
    assert (own.predict(X + FAR) == -1).all() and (own.predict(X) == 1).mean() > 0.9
    assert (own.fit_predict(X, y) == own.predict(X)).all()
    with pytest.raises(NotFittedError):
        OODDetector(DIPClassifier()).predict(X)
    with pytest.raises(ValueError, match=r"not fitted again.*calibrate"):
        OODDetector(FrozenEstimator(fitted)).fit(X)
    np.testing.assert_array_equal(
        OODDetector(FrozenEstimator(fitted)).predict(X), fitted.predict_ood(X)
    )
    tiny = OODDetector(fitted, false_alarm_rate=1e-6)
    with pytest.warns(UserWarning, match="flag nothing"):
        tiny.predict(X)
    assert (tiny.predict(X + FAR) == 1).all()
    assert tiny.predict(np.full((1, X.shape[1]), 1e200)) == -1


# ---------------------------------------------------------------- bad input


def calibrated_by(X, y):
    return lambda clf: clf.calibrate(X, y)


@pytest.mark.parametrize(
    "ask",
    [
        calibrated_by(np.empty((0, 4)), np.empty(0)),
        calibrated_by(np.zeros((5, 4)), np.zeros(4)),
        calibrated_by(np.zeros((5, 3)), np.zeros(5)),
        lambda clf: clf.predict(np.full((3, 4), np.inf)),
    ],
)
def test_an_error_that_says_all_has_no_other_before_it(fitted, ask):
    with pytest.raises(ValueError) as caught:
        ask(fitted)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("dtype", [np.float16, object])
def test_any_numeric_dtype_gives_float64_answers(dtype):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 50, (90, 3)), np.arange(90) % 3
    for density in (GDADensity(), None):
        clf = DIPClassifier(density=density)
        expected = clf.fit(X.astype(float), y).score_samples(X.astype(float))
        rows = X.astype(float).astype(dtype)
        got = clone(clf).fit(rows, y).score_samples(rows)
        assert got.dtype == np.float64
        # Departures from whole numbers are whole numbers: another choice, and other weights.
        if density is not None or dtype is object:
            np.testing.assert_allclose(got, expected, rtol=1e-3 if dtype is np.float16 else 1e-6)


def test_sparse_formats_without_row_access_are_converted(iris):
    X, y = iris
    clf = DIPClassifier(features=TruncatedSVD(2, random_state=0)).fit(sparse.coo_matrix(X), y)
    assert clf.predict(sparse.coo_matrix(X)).shape == (150,)


@pytest.mark.parametrize("labels", [np.array(["ant", "bee", "cat"]), np.array([1, 4, 7])], ids=str)
def test_labels_that_xgboost_does_not_take_are_encoded_and_decoded(iris, labels):
    xgboost = pytest.importorskip("xgboost")
    X, y = iris
    plain, named = (
        DIPClassifier(xgboost.XGBClassifier(n_estimators=5), GDADensity()).fit(X, given)
        for given in (y, labels[y])
    )
    np.testing.assert_array_equal(named.classes_, labels)
    np.testing.assert_array_equal(named.predict(X), labels[plain.predict(X)])
    np.testing.assert_allclose(named.predict_proba(X), plain.predict_proba(X))


def test_a_fold_without_a_class_is_encoded_by_its_own_classes(iris):
    """xgboost refuses the labels 0 and 2 as well."""
    xgboost = pytest.importorskip("xgboost")
    X, y = iris
    pairs = [(np.flatnonzero(y != 1), np.flatnonzero(y == 1)), (np.flatnonzero(y < 2), [101, 140])]
    clf = DIPClassifier(xgboost.XGBClassifier(n_estimators=5), GDADensity("tied"), cv=pairs)
    held = clf.fit(X, y).evidence_.held_out_
    assert (held.proba[held.labels == 1].argmax(axis=1) != 1).all()
    assert (held.proba[held.labels == 2].argmax(axis=1) != 2).all()


def test_labels_that_are_not_what_is_wrong_leave_the_error_as_it_is(iris):
    X, y = iris
    with pytest.raises(ValueError, match="n_estimators"):
        DIPClassifier(RandomForestClassifier(n_estimators=-1)).fit(X, y.astype(str))


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1]], ids=str)
def test_the_error_that_is_not_about_labels_is_the_one_that_is_shown(labels):
    """XGBoost speaks of the labels first, and only then of the column it cannot read."""
    xgboost, pandas = pytest.importorskip("xgboost"), pytest.importorskip("pandas")
    frame = pandas.DataFrame({"job": pandas.Categorical(["nurse", "clerk"] * 30)})
    clf = DIPClassifier(xgboost.XGBClassifier(n_estimators=2, enable_categorical=False))
    with pytest.raises(ValueError, match="enable_categorical"):
        clf.fit(frame, np.array(labels)[np.arange(60) // 30])


class NoEmptyColumns(HistGradientBoostingClassifier):
    """Of scikit-learn 1.6 it takes columns of gaps alone, of 1.9 not."""

    def fit(self, X, y):
        if np.isnan(X).all(axis=0).any():
            raise ValueError("window shape")
        return super().fit(X, y)


def test_a_column_of_gaps_that_a_classifier_refuses_is_named():
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[:, 2] = np.nan
    with pytest.raises(ValueError, match="window shape") as caught:
        DIPClassifier(NoEmptyColumns(max_iter=2)).fit(X, X[:, 0] > 0)
    assert "nothing but gaps in the columns [2], which NoEmpty" in caught.value.__notes__[0]


def test_parameters_of_a_part_that_is_chosen_at_fit_are_refused_with_the_reason(iris):
    with pytest.raises(ValueError, match=r"density__shrinkage cannot be set: density is None.*GDA"):
        DIPClassifier().set_params(density__shrinkage=0.1)
    with pytest.raises(ValueError, match=r"estimator__C cannot be set.*LogisticRegression\(\)"):
        GridSearchCV(DIPClassifier(), {"estimator__C": [1, 2]}, cv=2).fit(*iris)
    both = DIPClassifier().set_params(density=GDADensity(), density__shrinkage=0.1)
    assert both.density.shrinkage == 0.1
    with pytest.raises(ValueError, match="Invalid parameter 'densities'"):
        DIPClassifier().set_params(densities__shrinkage=0.1)


def test_a_batch_that_comes_while_another_is_learned_loses_no_answer(iris, monkeypatch):
    """Another thread adds rows between the first question and its answer."""
    X, y = iris
    clf = DIPClassifier(SGDClassifier(loss="log_loss", random_state=0), GDADensity())
    clf.partial_fit(X, y, classes=np.unique(y))
    learn = streaming.learn_evidence

    def meanwhile(model):
        learned = learn(model)
        monkeypatch.setattr(streaming, "learn_evidence", learn)
        clf.partial_fit(X, y)
        return learned

    monkeypatch.setattr(streaming, "learn_evidence", meanwhile)
    np.testing.assert_array_equal(clf.predict_proba(X), clf.predict_proba(X))


def test_parameters_that_are_set_during_a_fit_stay_set(iris):
    X, y = iris
    clf = DIPClassifier(GaussianNB(), GDADensity())

    class Setting(GaussianNB):
        def fit(self, *args, **kwargs):
            clf.set_params(gamma=3.0)
            return super().fit(*args, **kwargs)

    clf.set_params(estimator=Setting()).fit(X, y)
    assert clf.gamma == 3.0 and clf.predict(X).shape == y.shape


def test_scores_and_threshold_of_a_detector_are_of_one_state(iris, monkeypatch):
    X, y = iris
    clf = DIPClassifier(GaussianNB(), GDADensity()).fit(X, y)
    detector = OODDetector(clf)
    expected = detector.decision_function(X)
    score = DIPClassifier.score_samples

    def calibrating(model, rows):
        scores = score(model, rows)
        clf.calibrate(X[y == 0], y[y == 0])
        return scores

    monkeypatch.setattr(DIPClassifier, "score_samples", calibrating)
    np.testing.assert_array_equal(detector.decision_function(X), expected)
