"""Factors of the covariances of classes, by the code of `dipedl.density.GDADensity`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .class_moments import ClassMoments
from .factor import GaussianFactor, factorise
from .moments import Moments
from .shrinkage import Shrinkage, class_shrinkage


def class_factors(moments: ClassMoments, shrinkage: Shrinkage) -> Iterator[GaussianFactor]:
    """The factor of each class in turn; of a full or diagonal scatter."""
    pooled = None if shrinkage in (None, 0) else _pooled_variance(moments)
    for c, m in enumerate(moments.per_class()):
        yield _factor(m, *class_shrinkage(m, shrinkage, pooled), f"class {c}")


def tied_factor(moments: ClassMoments, shrinkage: Shrinkage) -> GaussianFactor:
    """The factor of the covariance of the residuals from the class means."""
    pooled = moments.pooled()
    return _factor(pooled, *class_shrinkage(pooled, shrinkage, None), "the tied covariance")


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
    everyone = torch.arange(len(moments.weight), device=moments.weight.device)
    trace = moments.scatter_per_class().spread(everyone).sum()
    return float(trace / moments.weight.sum() / moments.origin.shape[1])
