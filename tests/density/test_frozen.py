"""A fitted density in `FrozenEstimator` stays as it is, in folds and inside of others too."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier
from dipedl.density import (
    DensitySelector,
    FusedDensity,
    GDADensity,
    RelativeDensity,
)

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


@pytest.mark.parametrize(
    ("whole", "part"),
    [(RelativeDensity, "background"), (RelativeDensity, "density")],
)
def test_a_frozen_part_is_the_same_in_every_fold(whole, part):
    frozen = FrozenEstimator(GDADensity().fit(X, Y))
    model = whole(**{part: frozen}).fit(X + 1, Y)
    assert getattr(model.clone_with_selected(), part).estimator is frozen.estimator
