"""Every density in the plug-in folder keeps the contract: a new file is picked up by itself."""

from functools import cache

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from dipedl import density
from dipedl.density import (
    DensitySelector,
    FusedDensity,
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
)
from dipedl.testing import _shared
from dipedl.testing import densities as testing
from few_row_settings import few_row_settings

CHECKS = testing.density_checks()
# These fit every candidate.
TWO = {"candidates": [("gaussians", GDADensity()), ("neighbours", KNNDensity())]}
FEW_CANDIDATES = {
    "CustomDensity": {"model": density.GaussianDensity()},
    "DensitySelector": TWO,
    "FusedDensity": TWO,
}


def default(name):
    """The density with its cheapest arguments, or a skip if its optional package is missing."""
    try:
        cls = getattr(density, name)
    except ImportError as error:
        return pytest.param(None, id=name, marks=pytest.mark.skip(reason=str(error)))
    return pytest.param(cls(**few_row_settings(name), **FEW_CANDIDATES.get(name, {})), id=name)


def variants():
    for covariance_type in ("full", "tied", "diag"):
        yield GDADensity(covariance_type, "ledoit-wolf")
        yield GDADensity(covariance_type, None, "empirical")
    yield GDADensity("shared-basis", None, "empirical")
    yield GaussianDensity("full", "ledoit-wolf")
    yield GaussianDensity("diag", None)
    yield KernelDensity("silverman")
    yield KernelDensity(0.7)
    yield GaussianMixtureDensity(2, "tied")
    yield GaussianMixtureDensity(3, "diag", n_init=2)
    yield GaussianMixtureDensity(1, "spherical")
    yield DensitySelector()
    yield FusedDensity()


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("estimator", list(map(default, density.__all__)))
def test_density(estimator, check):
    check(subject(estimator))


@cache
def subject(estimator):
    """The estimator with one fit for all checks."""
    return _shared.Subject.of_density(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("estimator", list(variants()), ids=lambda d: str(d).replace("\n", ""))
def test_variant(estimator, check):
    check(subject(estimator))


# Each check must be able to fail: a density with one flaw for each of them.


def scoring(change):
    """A density with other scores: ``change(density, X, score)`` of the method `score`."""

    class Flawed(GaussianDensity):
        def score_samples(self, X):
            return change(self, X, super().score_samples)

    return Flawed()


class FirstRowsOnly(GaussianDensity):
    def fit(self, X, y=None):
        return super().fit(X[:20])


class LastChunkOnly(GaussianDensity):
    def partial_fit(self, X, y=None):
        vars(self).pop("moments_", None)
        return super().partial_fit(X)


class LeftOperandOnly(GaussianDensity):
    def __add__(self, other):
        return self


class IgnoresWeights(GaussianDensity):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X)


class HidesTheFeature(GaussianDensity):
    def fit(self, X, y=None):
        if np.ptp(X, axis=0).min() == 0:
            raise ValueError("singular matrix")
        return super().fit(X)


class RefusesFloat16(GaussianDensity):
    def fit(self, X, y=None):
        if getattr(X, "dtype", None) == np.float16:
            raise TypeError("float16 is not supported")
        return super().fit(X)


class CentresInPlace(GaussianDensity):
    def fit(self, X, y=None):
        if isinstance(X, np.ndarray):
            X -= X.mean(axis=0)
        return super().fit(X)


class RemembersFits(GaussianDensity):
    def fit(self, X, y=None):
        self.fits_ = getattr(self, "fits_", 0) + 1
        return super().fit(X)

    def score_samples(self, X):
        return super().score_samples(X) + self.fits_


class ForgetsInPickle(GaussianDensity):
    def __setstate__(self, state):
        super().__setstate__(state)
        self.shift_ = 1

    def score_samples(self, X):
        return super().score_samples(X) + getattr(self, "shift_", 0)


class NaNWhenFar(GaussianDensity):
    def score_samples(self, X):
        score = super().score_samples(X)
        return np.where(np.isinf(score), np.nan, score)


FLAWED = {
    _shared.check_one_finite_float_per_row: scoring(
        lambda self, X, score: score(X).astype(np.float32)
    ),
    _shared.check_unfitted_is_refused: scoring(
        lambda self, X, score: score(X) if hasattr(self, "moments_") else np.zeros(len(X))
    ),
    _shared.check_rows_are_independent: scoring(lambda self, X, score: score(X) - score(X).mean()),
    testing.check_training_order_is_irrelevant: FirstRowsOnly(),
    testing.check_far_points_score_lower: scoring(
        lambda self, X, score: np.maximum(score(X), -500.0)
    ),
    testing.check_integrates_to_one: scoring(
        lambda self, X, score: score(X) + self.factor_.log_det / 2
    ),
    testing.check_partial_fit_equals_fit: LastChunkOnly(),
    testing.check_merging_equals_fit: LeftOperandOnly(),
    testing.check_sample_weight_is_repetition: IgnoresWeights(),
    testing.check_constant_feature: HidesTheFeature(),
    _shared.check_number_types: RefusesFloat16(),
    _shared.check_nan_and_inf_are_refused: scoring(lambda self, X, score: score(np.nan_to_num(X))),
    _shared.check_wrong_width_is_refused: scoring(
        lambda self, X, score: score(X[:, : self.n_features_in_])
    ),
    _shared.check_inputs_are_left_alone: CentresInPlace(),
    _shared.check_same_seed_same_model: scoring(
        lambda self, X, score: score(X) + np.random.default_rng().normal()
    ),
    _shared.check_fit_forgets: RemembersFits(),
    _shared.check_pickle: ForgetsInPickle(),
    testing.check_memory_is_linear: scoring(
        lambda self, X, score: score(X) + 0 * np.ones((len(X), len(X))).diagonal()
    ),
    testing.check_huge_query: NaNWhenFar(),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_check_can_fail(check):
    with pytest.raises(AssertionError, match=type(FLAWED[check]).__name__):
        check(FLAWED[check])


class Plain:
    """No estimator: what `DIPClassifier` would put inside a `CustomDensity`."""

    def fit(self, X):
        cov = np.atleast_2d(np.cov(X.T))
        self.normal = stats.multivariate_normal(X.mean(axis=0), cov, allow_singular=True)

    def score_samples(self, X):
        with np.errstate(over="ignore"):
            return np.atleast_1d(self.normal.logpdf(X))


class NoFit:
    def score_samples(self, X):
        return np.zeros(len(X))


class Uniform(DensityMixin, BaseEstimator):
    """Not normalised, of bounded support: every query outside scores ``-inf``."""

    normalized = False

    def fit(self, X, y=None):
        self.inner_ = GaussianDensity().fit(X)
        return self

    def score_samples(self, X):
        check_is_fitted(self)
        score = self.inner_.score_samples(X)
        return np.where(score > -30, 0.01 * score, -np.inf)


@pytest.mark.parametrize("mine", [Plain(), Uniform()], ids=["no estimator", "bounded"])
def test_foreign_density(mine):
    testing.check_density(mine)


def test_normalized_false_is_what_spares_a_density_the_integral():
    class Claims(Uniform):
        normalized = True

    with pytest.raises(AssertionError, match="integrates to"):
        testing.check_integrates_to_one(Claims())


def test_check_density_runs_to_the_last_check():
    with pytest.raises(AssertionError, match="NaNWhenFar"):
        testing.check_density(FLAWED[CHECKS[-1]])


@pytest.mark.parametrize("thing", [NoFit(), object()])
def test_what_cannot_be_fitted_or_scored_is_refused(thing):
    with pytest.raises(TypeError, match="methods fit and score_samples"):
        testing.check_density(thing)
