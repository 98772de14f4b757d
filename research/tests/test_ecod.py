"""ECOD against the published algorithm, one row after the other."""

import numpy as np
from scipy.stats import ecdf, skew

from dipedl_bench.ecod import ECOD


def test_scores_are_those_of_algorithm_1_with_the_row_added_to_the_training_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=40), -rng.exponential(size=40), np.ones(40)])
    X[:, 0] = X[:, 0].round(1)  # with ties
    test = np.vstack([X[:5], [[9.0, 1.0, 2.0], [-1.0, -9.0, 1.0]]])
    scores = ECOD().fit(X).score_samples(test)
    for x, score in zip(test, scores, strict=True):
        rows = np.vstack([X, x])
        left = [-np.log(ecdf(rows[:, j]).cdf.evaluate(x[j])) for j in range(3)]
        right = [-np.log(ecdf(-rows[:, j]).cdf.evaluate(-x[j])) for j in range(3)]
        negative = [skew(X[:, j]) < 0 for j in range(2)] + [False]
        longer = np.where(negative, left, right)
        np.testing.assert_allclose(score, -max(sum(left), sum(right), sum(longer)), rtol=1e-12)
