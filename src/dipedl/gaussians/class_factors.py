"""Factors of the covariances of classes, by the code of `dipedl.density.GDADensity`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .class_moments import ClassMoments
from .factor import GaussianFactor, Shrinkage, factorise, mean_variance, shrinkage_intensity
from .moments import Moments
from .scatter import DiagonalScatter, FullScatter


def class_factors(moments: ClassMoments, shrinkage: Shrinkage) -> Iterator[GaussianFactor]:
    """The factor of each class in turn; of a full or diagonal scatter."""
    pooled = _pooled_variance(moments)
    for c, m in enumerate(moments.per_class()):
        intensity, target = shrinkage_intensity(m, shrinkage), mean_variance(m)
        if target == 0 and shrinkage not in (None, 0):
            # A class whose rows are all the same point has no level of its own.
            intensity, target = 1.0, pooled
        yield _factor(m, intensity, target, f"class {c}")


def tied_factor(moments: ClassMoments, shrinkage: Shrinkage) -> GaussianFactor:
    """The factor of the covariance of the residuals from the class means."""
    pooled = moments.pooled()
    intensity = shrinkage_intensity(pooled, shrinkage)
    return _factor(pooled, intensity, mean_variance(pooled), "the tied covariance")


def _factor(moments: Moments, intensity: float, target: float, who: str) -> GaussianFactor:
    try:
        return factorise(moments, intensity, target, who)
    except ValueError as error:
        # The remedy by the names that it has here.
        remedy = (
            str(error).replace("covariance_type=", "covariance=").replace("'diag'", "'diagonal'")
        )
        raise ValueError(remedy) from None


def _pooled_variance(moments: ClassMoments) -> float:
    scatter = moments.scatter
    if not isinstance(scatter, FullScatter | DiagonalScatter):
        raise TypeError(f"no scatter per class in {type(scatter).__name__}")
    everyone = torch.arange(len(moments.weight), device=moments.weight.device)
    trace = scatter.spread(everyone).sum()
    return float(trace / moments.weight.sum() / moments.origin.shape[1])
