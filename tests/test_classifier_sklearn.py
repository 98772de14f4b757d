"""DIPClassifier, OODDetector and every density under scikit-learn checks; no expected failure."""

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl import DIPClassifier, OODDetector
from dipedl.density import (
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
)
from dipedl.evidence import RankNormal, RobustZScore


@parametrize_with_checks(
    [
        DIPClassifier(),
        DIPClassifier(GaussianNB(), GDADensity("tied"), normalizer=RankNormal(), cv=3),
        DIPClassifier(density=GaussianDensity(), normalizer=RobustZScore(), prior=0.5),
        DIPClassifier.paper(density=GDADensity("diag")),
        OODDetector(),
        OODDetector(DIPClassifier(density=GaussianDensity())),
        GDADensity(),
        GDADensity("tied"),
        GDADensity("diag", class_weights="empirical"),
        GaussianDensity(),
        GaussianMixtureDensity(1),
        KernelDensity(),
        KNNDensity(1),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)
