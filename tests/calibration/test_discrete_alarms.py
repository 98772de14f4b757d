"""Alarm rates of the default where rows repeat: scores have levels, and none may flag them all."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.density import GDADensity, KNNDensity


def binary(seed, n, d):
    """Binary columns with a noisy sum as label: n rows, and 1,000 more."""
    rng = np.random.default_rng(seed)
    parts = []
    for m in (n, 1000):
        X = (rng.random((m, d)) < 0.4) * 1.0
        parts.append((X, (X.sum(axis=1) + rng.normal(0, 1, m) > 2).astype(int)))
    return parts


@pytest.mark.parametrize("seed", [5, 22])
def test_the_rows_of_the_fit_are_flagged_no_more_often_than_asked(seed):
    """Of these seeds every row was once flagged: scores of the folds lay above the final ones."""
    (X, y), (new, _) = binary(seed, 100, 5)
    clf = DIPClassifier(LogisticRegression(), random_state=seed).fit(X, y)
    assert (clf.predict_ood(X) == -1).mean() <= 0.05
    assert (clf.predict_ood(new) == -1).mean() < 0.15


@pytest.mark.parametrize("density", [GDADensity(), KNNDensity()])
def test_of_continuous_rows_few_scores_are_lowered(density):
    """Alarms stay about as frequent as asked for: the caution is for discrete rows."""
    rates = []
    for seed in range(10):
        X, y = make_blobs(1300, centers=3, n_features=4, random_state=seed)
        clf = DIPClassifier(density=density).fit(X[:300], y[:300])
        rates.append((clf.predict_ood(X[300:]) == -1).mean())
    assert 0.035 < np.mean(rates) < 0.05 + 2 * np.std(rates) / np.sqrt(len(rates))


def test_a_row_of_the_fit_is_not_its_own_neighbour(rng):
    X = rng.normal(size=(30, 3))
    density = KNNDensity(4).fit(X)
    distances = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)
    density.radius_floor_ = 0.0
    expected = density.log_constant_ - 3 * np.log(distances[:, 4])
    np.testing.assert_allclose(density.exclude_self().score_samples(X), expected)
    np.testing.assert_allclose(
        density.score_samples(X), density.log_constant_ - 3 * np.log(distances[:, 3])
    )
    part = KNNDensity(4, max_rows=10).fit(X)
    assert part.exclude_self() is part
