"""DIPClassifier, OODDetector and every density under scikit-learn checks; no expected failure.

A density that is dropped into the plug-in folder is checked without an edit here.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl import DIPClassifier, OODDetector, density
from dipedl.density import (
    GaussianDensity,
    GDADensity,
    KernelDensity,
)
from dipedl.evidence import RobustZScore
from few_row_settings import few_row_settings

# Some checks fit on very few rows. A selector fits every candidate: two are enough each day.
TWO = {"candidates": [("gaussians", GDADensity()), ("kernels", KernelDensity())]}
FEW_ROWS = {
    "CustomDensity": {"model": density.GaussianDensity()},
    "DensitySelector": TWO,
    "FusedDensity": TWO,
    "GaussianMixtureDensity": {"n_components": 1},
    "KNNDensity": {"n_neighbors": 1},
    # Others hold a class that is a single point in one column.
    "BlockSumDensity": {"density": GaussianDensity()},
}


def every_density():
    for name in density.__all__:
        try:
            cls = getattr(density, name)
        except ImportError:  # an extra that is not installed
            continue
        yield cls(**few_row_settings(name), **FEW_ROWS.get(name, {}))


@parametrize_with_checks(
    [
        DIPClassifier(density=GaussianDensity(), normalizer=RobustZScore(), prior=0.5),
        OODDetector(DIPClassifier(density=GaussianDensity())),
        *every_density(),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        DIPClassifier(),
        DIPClassifier.paper(density=GDADensity("diag")),
        OODDetector(),
    ]
)
def test_sklearn_contract_of_variants(estimator, check):
    check(estimator)
