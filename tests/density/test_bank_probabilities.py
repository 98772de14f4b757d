"""Class probabilities that a density of several is given: what they must be."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from dipedl.density import DensitySelector, GDADensity

X, Y = load_iris(return_X_y=True)
EVEN = np.full((150, 3), 1 / 3)


@pytest.mark.parametrize(
    ("y", "proba", "message"),
    [
        (None, EVEN, "proba needs y"),
        (Y, EVEN[:10], r"\(150, 3\), got \(10, 3\)"),
        (Y, np.full((150, 5), 1 / 5), r"\(150, 3\), got \(150, 5\)"),
        (Y, -EVEN, "probabilities >= 0"),
        (Y, EVEN * 2, "sum"),
    ],
    ids=["no labels", "few rows", "many columns", "negative", "sums"],
)
def test_bad_probabilities_are_refused(y, proba, message):
    with pytest.raises(ValueError, match=message):
        DensitySelector([("own", GDADensity())]).fit(X, y, proba=proba)
