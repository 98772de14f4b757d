"""Densities made of others: ratios, sums over blocks of columns, and those of other libraries."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl.density import (
    BlockSumDensity,
    CustomDensity,
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    RelativeDensity,
)
from dipedl.density.base import log_density
from dipedl.testing import check_density
from dipedl.testing.densities import check_sample_weight_is_repetition, density_checks

K, P = 3, 4


@pytest.fixture
def rows(rng):
    y = np.repeat(np.arange(K), (50, 70, 90))
    centres = 3 * rng.normal(size=(K, P))
    return centres[y] + rng.normal(size=(len(y), P)) @ rng.normal(size=(P, P)), y


def squared_distance(X, mean, covariance):
    gap = X - mean
    return np.einsum("ij,jk,ik->i", gap, np.linalg.inv(covariance), gap)


def test_tied_covariance_is_the_relative_mahalanobis_score(rows, rng):
    """Ren et al. 2021: M_c with one covariance of the residuals, M_0 with that of all rows."""
    X, y = rows
    means = np.array([X[y == c].mean(axis=0) for c in range(K)])
    within = (X - means[y]).T @ (X - means[y]) / len(X)
    total = np.cov(X.T, bias=True)
    queries = 5 * rng.normal(size=(40, P))
    relative = np.column_stack([squared_distance(queries, m, within) for m in means])
    relative -= squared_distance(queries, X.mean(axis=0), total)[:, None]
    constant = (np.linalg.slogdet(total)[1] - np.linalg.slogdet(within)[1]) / 2
    density = RelativeDensity(GDADensity("tied", None), GaussianDensity(shrinkage=None)).fit(X, y)
    score = density.score_samples(queries)
    expected = logsumexp(-relative / 2, axis=1) - np.log(K) + constant
    np.testing.assert_allclose(score, expected, rtol=1e-9)
    # The published score is the nearest class alone: the mean of K terms is within log K of it.
    nearest = -relative.min(axis=1) / 2 + constant
    np.testing.assert_array_less(score, nearest + 1e-6)
    np.testing.assert_array_less(nearest - np.log(K), score + 1e-6)


def test_defaults_are_tied_classes_over_one_gaussian(rows):
    X, y = rows
    expected = GDADensity("tied").fit(X, y).score_samples(X) - GaussianDensity().fit(
        X
    ).score_samples(X)
    np.testing.assert_allclose(RelativeDensity().fit(X, y).score_samples(X), expected)


def test_a_frozen_background_keeps_its_own_rows(rows, rng):
    X, y = rows
    broad = GaussianDensity().fit(10 * rng.normal(size=(100, P)))
    density = RelativeDensity(background=FrozenEstimator(broad)).fit(X, y)
    expected = GDADensity("tied").fit(X, y).score_samples(X) - broad.score_samples(X)
    np.testing.assert_allclose(density.score_samples(X), expected)


def test_parts_may_be_pipelines_and_need_no_labels(rows):
    X, _ = rows
    parts = make_pipeline(Normalizer(), KNNDensity(5)), make_pipeline(Normalizer(), KNNDensity(50))
    density = RelativeDensity(*parts).fit(X)
    expected = parts[0].fit(X).score_samples(X) - parts[1].fit(X).score_samples(X)
    np.testing.assert_allclose(density.score_samples(X), expected)


def test_folds_keep_the_settled_shrinkage(rows):
    X, y = rows
    density = RelativeDensity().fit(X, y)
    copy = density.clone_with_selected().fit(X[::2], y[::2])
    assert copy.density_.shrinkage_[0] == pytest.approx(density.density_.shrinkage_[0])
    assert copy.background_.shrinkage_ == density.background_.shrinkage_
    random = RelativeDensity(GaussianMixtureDensity(2), GaussianMixtureDensity(1)).fit(X)
    assert random.clone_with_selected().density.n_components == 2


WIDTHS = [3, 1, 2]
SLICES = [slice(0, 3), slice(3, 4), slice(4, 6)]


@pytest.fixture
def table(rng):
    y = np.arange(120) % 3
    return rng.normal(size=(120, 6)) * np.arange(1, 7) + y[:, None], y


@pytest.mark.parametrize("density", [GDADensity(), GaussianDensity(), KNNDensity(5)])
def test_naive_sum(table, density):
    X, y = table
    total = sum(clone(density).fit(X[:, s], y).score_samples(X[:, s]) for s in SLICES)
    fitted = BlockSumDensity(WIDTHS, density).fit(X, y)
    np.testing.assert_allclose(fitted.score_samples(X), total, rtol=1e-12)
    np.testing.assert_allclose(fitted.block_scores(X).sum(axis=1), total, rtol=1e-12)
    assert [range(6)[b] for b in fitted.blocks_] == [range(6)[b] for b in SLICES]


def test_of_independent_blocks_it_is_the_joint_density(table):
    """A diagonal Gaussian is the product of its columns."""
    X, _ = table
    joint = GaussianDensity("diag", None).fit(X)
    total = BlockSumDensity(None, GaussianDensity(shrinkage=None)).fit(X)
    np.testing.assert_allclose(total.score_samples(X), joint.score_samples(X), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_standardised_by_held_out_scores(table, rng, weighted):
    X, y = table
    weights = rng.integers(0, 3, len(X)).astype(float) if weighted else np.ones(len(X))
    given = weights if weighted else None
    kept = np.flatnonzero(weights)
    total = np.zeros(len(X))
    for s in SLICES:
        held = np.empty(len(kept))
        for train, test in KFold(4).split(kept):
            part = GDADensity().fit(X[kept[train], s], y[kept[train]], weights[kept[train]])
            held[test] = part.score_samples(X[kept[test], s])
        mean = np.average(held, weights=weights[kept])
        sd = np.sqrt(np.average((held - mean) ** 2, weights=weights[kept]))
        total += (GDADensity().fit(X[:, s], y, given).score_samples(X[:, s]) - mean) / sd
    fitted = BlockSumDensity(WIDTHS, cv=KFold(4)).fit(X, y, given)
    np.testing.assert_allclose(fitted.score_samples(X), total, rtol=1e-9)


@pytest.mark.parametrize("density", [GaussianDensity(), KernelDensity()], ids=str)
def test_the_contract_of_a_density(density):
    check_density(BlockSumDensity(None, density))


# Copies of a row are spread over the folds; a weighted row lies in one of them.
STANDARDISED = [c for c in density_checks() if c is not check_sample_weight_is_repetition]


@pytest.mark.parametrize("check", STANDARDISED, ids=lambda c: c.__name__)
def test_the_contract_with_cv(check):
    check(BlockSumDensity(None, GaussianDensity(), cv=3))


def test_it_integrates_to_one_where_its_parts_do():
    assert BlockSumDensity(None, GaussianDensity()).normalized
    assert not BlockSumDensity(None, KNNDensity()).normalized
    assert not BlockSumDensity(None, GaussianDensity(), cv=5).normalized


class Normal:
    """A flow, as it were: fitted already, has log_prob only."""

    def log_prob(self, X):
        return stats.norm.logpdf(X).sum(axis=1)


class Both(Normal):
    def score_samples(self, X):
        return np.full(len(X), 7.0)


class Fitted:
    """No scikit-learn estimator; remembers what its fit was given."""

    def __init__(self):
        self.seen = None

    def fit(self, X):
        self.seen = X
        return self

    def score_samples(self, X):
        return -np.abs(X - self.seen.mean(axis=0)).sum(axis=1)


class Labelled(Fitted):
    def fit(self, X, y):
        self.labels = y
        return super().fit(X)


@pytest.fixture
def X(rng):
    return rng.normal(size=(20, 2))


def test_object_without_fit_is_taken_as_it_is(X):
    model = Normal()
    density = CustomDensity(model).fit(X)
    assert density.model_ is model
    np.testing.assert_array_equal(density.score_samples(X), stats.norm.logpdf(X).sum(axis=1))


def test_another_parameter_after_the_fit_changes_no_answer(X):
    density = CustomDensity(GaussianMixture()).fit(X)
    before = density.score_samples(X)
    for other in (None, Normal()):
        np.testing.assert_array_equal(density.set_params(model=other).score_samples(X), before)


def test_object_with_fit_is_copied_and_fitted(X):
    model = Fitted()
    density = CustomDensity(model).fit(X)
    assert model.seen is None
    assert density.model_ is not model
    expected = -np.abs(X - X.mean(axis=0)).sum(axis=1)
    np.testing.assert_array_equal(density.score_samples(X), expected)


def test_labels_go_to_a_fit_that_takes_them(X):
    y = np.arange(20) % 2
    assert np.array_equal(CustomDensity(Labelled()).fit(X, y).model_.labels, y)
    expected = GDADensity().fit(X, y).score_samples(X)
    got = CustomDensity(GDADensity()).fit(X, y).score_samples(X)
    np.testing.assert_array_equal(got, expected)


def test_scikit_learn_model(X):
    mixture = GaussianMixture(2, random_state=0)
    got = CustomDensity(mixture).fit(X).score_samples(X)
    np.testing.assert_array_equal(got, mixture.fit(X).score_samples(X))


def test_score_samples_goes_before_log_prob(X):
    assert (CustomDensity(Both()).fit(X).score_samples(X) == 7.0).all()


def test_a_module_in_training_mode_answers_each_row_alone(X):
    torch = pytest.importorskip("torch")

    class Normed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(2, dtype=torch.float64)

        def log_prob(self, X):
            return -self.norm(X).square().sum(dim=1)

    module = Normed()
    density = CustomDensity(module, torch.float64).fit(X)
    alone = [density.score_samples(row[None])[0] for row in X[:5]]
    np.testing.assert_allclose(density.score_samples(X)[:5], alone, rtol=1e-12)
    assert module.training  # the user's own is left alone


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_distribution(X, dtype):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, dtype)
    location = torch.tensor([1.0, -1.0], dtype=dtype, requires_grad=True)
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=dtype)
    normal = torch.distributions.MultivariateNormal(location, covariance)
    score = CustomDensity(normal, dtype=dtype).fit(X).score_samples(X)
    expected = stats.multivariate_normal([1, -1], covariance.numpy()).logpdf(X)
    assert isinstance(score, np.ndarray) and score.dtype == np.float64
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(score, expected, rtol=tolerance, atol=tolerance)


class Shifted(GaussianDensity):
    """A density of a user that changes the scores of one of ours, and nothing else."""

    def score_samples(self, X):
        return super().score_samples(X) - 5


@pytest.mark.parametrize("frozen", [False, True])
def test_scores_of_a_subclass_are_its_own(rng, frozen):
    X = rng.normal(size=(40, 2))
    density = Shifted().fit(X)
    expected = GaussianDensity().fit(X).log_density(X) - 5
    held = FrozenEstimator(density) if frozen else density
    np.testing.assert_array_equal(log_density(held, X), expected)
    np.testing.assert_allclose(log_density(GaussianDensity().fit(X), X), expected + 5, rtol=1e-12)
