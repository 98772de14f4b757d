"""One small model of every class of this library that a file holds."""

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline

from dipedl import DIPClassifier, OODDetector, density, evidence, preprocessing
from dipedl.apps import spectra
from dipedl.calibration import Temperature

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TABLE = pd.DataFrame(
    {"a": X[:, 0], "b": pd.Categorical(np.array(["x", "y", "z"])[(X[:, 1] * 10).astype(int) % 3])}
)
PIXELS = X / 10
GENERATOR = np.random.default_rng(0)
SPECTRA = 1 + np.arange(40) / 40 + GENERATOR.random((150, 40))
WIDE = np.random.default_rng(1).normal(size=(60, 300)) + np.arange(60)[:, None] % 2


def _classifier(**settings):
    return DIPClassifier(LogisticRegression(solver="newton-cholesky"), random_state=0, **settings)


def _plain(**settings):
    return _classifier(**{"density": density.GDADensity(), "features": "passthrough", **settings})


_DENSITIES = {
    "GDADensity": density.GDADensity(),
    "tied": density.GDADensity("tied", class_weights="empirical"),
    "diagonal": density.GDADensity("diag", shrinkage="ledoit-wolf"),
    "shared basis": density.GDADensity("shared-basis"),
    "GaussianDensity": density.GaussianDensity(shrinkage="ledoit-wolf"),
    "diagonal Gaussian": density.GaussianDensity("diag"),
    "MahalanobisDensity": density.MahalanobisDensity(),
    "KernelDensity": density.KernelDensity(),
    "KNNDensity": density.KNNDensity(5),
    "some neighbours": density.KNNDensity(5, max_rows=50),
    "GaussianMixtureDensity": density.GaussianMixtureDensity(3, random_state=0),
    "CustomDensity": density.CustomDensity(GaussianMixture(2, random_state=0)),
    "RelativeDensity": density.RelativeDensity(),
    "BlockSumDensity": density.BlockSumDensity([3, 1], density.GaussianDensity(), cv=3),
    "FusedDensity": density.FusedDensity(random_state=0),
    "DensitySelector": density.DensitySelector(random_state=0),
    "one of several": density.DensitySelector(fuse=False, random_state=0),
    "pipeline": make_pipeline(PCA(2), density.GDADensity()),
}
_NORMALIZERS = {
    "CautionBudget": evidence.CautionBudget(0.05, "nll"),
    "losses": evidence.CautionBudget(0.1, "nll"),
    "QuantileEvidence": evidence.QuantileEvidence(0.05),
    "Identity": evidence.Identity(),
    "RankNormal": evidence.RankNormal(),
    "RobustZScore": evidence.RobustZScore(),
    "ZScore": evidence.ZScore(),
}
_LINES = spectra.LineMeans(np.arange(40.0), [5.0, 20.0, 33.0])
_FEATURES = {
    "SignedPower": (preprocessing.SignedPower(), X),
    "LogitPixels": (preprocessing.LogitPixels(), PIXELS),
    "LineMeans": (_LINES, SPECTRA),
    "BlockStatistics": (spectra.BlockStatistics(5), SPECTRA),
    "SavitzkyGolay": (make_pipeline(spectra.SavitzkyGolay(), PCA(3)), SPECTRA),
    "EnergyNormalizer": (make_pipeline(spectra.EnergyNormalizer(), _LINES), SPECTRA),
    "PrincipalComponents": (spectra.PrincipalComponents(3), SPECTRA),
}


def models():
    """Name -> model that is not fitted, inputs, labels."""
    found = {"default": (DIPClassifier(random_state=0), X, Y)}
    found["names"] = (_plain(max_evidence=1e4, prior=[1.0, 2.0, 3.0]), X, NAMES)
    boosting = HistGradientBoostingClassifier(max_iter=2)
    found["table"] = (DIPClassifier(boosting, random_state=0), TABLE, Y)
    found["sharpening"] = (_plain(calibrator=Temperature(confidence=0)), X, Y)
    found["sparse"] = (_classifier(), csr_matrix(X), Y)
    found["wide"] = (_plain(cv=3), WIDE, np.arange(60) % 2)
    found |= {name: (_plain(density=part), X, Y) for name, part in _DENSITIES.items()}
    found |= {name: (_plain(normalizer=part), X, Y) for name, part in _NORMALIZERS.items()}
    found |= {name: (_plain(features=p), rows, Y) for name, (p, rows) in _FEATURES.items()}
    found["OODDetector"] = (OODDetector(_plain()), X, Y)
    found["alone"] = (density.GDADensity(), X, Y)
    return found
