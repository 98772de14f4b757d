"""Fitted densities as parts of a graph, one converter each; others are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ....density.block_sum import BlockSumDensity
from ....density.ensemble import CLASSIFIER, TIE_BREAK, DensitySelector, FusedDensity, Reach
from ....density.gaussian import GaussianDensity, GDADensity, MahalanobisDensity, RelativeDensity
from ....density.kde import KernelDensity
from ....density.knn import KNNDensity
from ....density.mixture import GaussianMixtureDensity
from ....dirichlet import LEAST_DOUBT
from ....features.scaling import RANGES
from .._estimators.transformers import Data, last_step
from .._nodes.builder import Tensor, stacked
from .._nodes.ops import log_ndtr
from .evidence import normal_scores
from .gaussians import discriminant, gaussian, mahalanobis, mixture
from .rows import kernels, neighbours


class Seen(NamedTuple):
    """Inputs of a density: features (n, p) and, with a classifier, probabilities."""

    features: Data
    proba: Tensor | None = None


def log_density(density: Any, seen: Seen) -> Tensor:
    """Scores (n,) of a fitted density; -inf where it is zero or a distance overflows."""
    if isinstance(density, FrozenEstimator):
        return log_density(density.estimator, seen)
    converter = _CONVERTERS.get(type(density))
    if converter is None:
        raise TypeError(
            f"density {type(density).__name__} cannot be exported to ONNX; one of "
            f"{', '.join(sorted(kind.__name__ for kind in _CONVERTERS))} can, so fit with "
            "density=None or such a density"
        )
    return converter(density, seen)


def _pipeline(density: Pipeline, seen: Seen) -> Tensor:
    last, features = last_step(density, seen.features)
    return log_density(last, Seen(features, seen.proba))


def _relative(density: RelativeDensity, seen: Seen) -> Tensor:
    parts = [log_density(part, seen) for part in (density.density_, density.background_)]
    # Both are -inf where distances overflow: the row is far from all data.
    seen_by_both = parts[0].at_most(parts[1]) > -np.inf
    return seen_by_both.where(parts[0] - parts[1], -np.inf)


def _block_sum(density: BlockSumDensity, seen: Seen) -> Tensor:
    whole = seen.features
    blocks = [
        log_density(part, Seen(whole.columns(np.arange(density.n_features_in_)[block])))
        for part, block in zip(density.densities_, density.blocks_, strict=True)
    ]
    return ((stacked(blocks) - density.center_) / density.scale_).reduce("Sum", 1)


def _selector(density: DensitySelector, seen: Seen) -> Tensor:
    if density.fusion_ is not None:
        return _held(density.reach_, _fused(density.fusion_, seen), seen)
    score = log_density(density.estimators_[density.choice_], seen)
    return _held(density.reach_, score, seen)


def _held(reach: Reach, scores: Tensor, seen: Seen) -> Tensor:
    """The scores (n,), those of inputs outside of the reach held down."""
    place = (seen.features.tensor - reach.low) / reach.width
    ranges = (-place).at_least(place - 1.0).reduce("Max", 1)
    ceiling = reach.ceiling - (ranges.at_least(RANGES) / RANGES).apply("Log") * reach.unit
    return (ranges > RANGES).where(scores.at_most(ceiling), scores)


def _fused(density: FusedDensity, seen: Seen) -> Tensor:
    names = list(density.normal_scores_)
    scores = stacked([_component(density, name, seen) for name in names])
    z = normal_scores(scores, [density.normal_scores_[name] for name in names])
    weights = np.array([density.weights_[name] for name in names])
    margin = np.array([0.0 if name == CLASSIFIER else density.margin for name in names])
    # Skip zero weights: 0 * inf is NaN.
    voting = np.flatnonzero(weights > 0)
    objections = log_ndtr(z.columns(voting) + margin[voting]) * weights[voting]
    total = (objections.reduce("Sum", 1) * -2.0).at_least(0.0)
    return z.reduce("Mean", 1) * TIE_BREAK - total.apply("Sqrt")


def _component(density: FusedDensity, name: str, seen: Seen) -> Tensor:
    if name != CLASSIFIER:
        return log_density(density.estimators_[name], seen)
    if seen.proba is None:
        raise ValueError(
            f"{type(density).__name__} was fitted with the probabilities of a classifier and "
            "there is none here; export the DIPClassifier that it belongs to"
        )
    return confidence(seen.proba)


def confidence(P: Tensor) -> Tensor:
    """Minus the log of one minus the largest probability, in nats (n,), at most 27.6."""
    graph = P.graph
    largest = graph.op("ArgMax", P, axis=1, keepdims=1)
    k = graph.op("Shape", P, start=1, end=2).squeeze(0)
    columns = graph.op("Range", np.array(0), k, np.array(1))
    # Summed over the other classes: 1 - max is 0 for every confident row, a tie.
    others = largest.equals(columns).where(0.0, P).reduce("Sum", 1)
    return -others.at_least(LEAST_DOUBT).apply("Log")


def _on_features(convert: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Seen], Tensor]:
    return lambda density, seen: convert(density, seen.features.tensor)


_CONVERTERS: dict[type, Callable[[Any, Seen], Tensor]] = {
    GaussianDensity: _on_features(gaussian),
    GDADensity: _on_features(discriminant),
    MahalanobisDensity: _on_features(mahalanobis),
    GaussianMixtureDensity: _on_features(mixture),
    KNNDensity: _on_features(neighbours),
    KernelDensity: _on_features(kernels),
    Pipeline: _pipeline,
    RelativeDensity: _relative,
    BlockSumDensity: _block_sum,
    DensitySelector: _selector,
    FusedDensity: lambda density, seen: _held(density.reach_, _fused(density, seen), seen),
}
