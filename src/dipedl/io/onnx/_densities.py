"""Fitted densities as parts of a graph, one converter each; others are refused by name.

Densities that keep their training rows hold them in the graph as float64 constants, 8 n p bytes
each, and need 8 bytes for each pair of an input and a row while the graph runs: give it batches of
a few thousand inputs at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ...density.block_sum import BlockSumDensity
from ...density.ensemble import CLASSIFIER, TIE_BREAK, DensitySelector, FusedDensity, Reach
from ...density.gaussian import GaussianDensity, GDADensity, MahalanobisDensity, RelativeDensity
from ...density.kde import KernelDensity
from ...density.knn import KNNDensity
from ...density.mixture import GaussianMixtureDensity
from ...dirichlet import LEAST_DOUBT
from ...evidence import RankNormal
from ...features.scaling import RANGES
from ...gaussians.factor import BasisFactors, GaussianFactor
from ...maths.arrays import LOG_2PI
from ._check import unfrozen
from ._estimators import Data, last_step
from ._nodes import Tensor, interpolate, log_ndtr, log_sum_exp, stack_columns


def gaussian(density: GaussianDensity, Z: Tensor) -> Tensor:
    return _log_densities([density.factor_], Z).squeeze(1)


def discriminant(density: GDADensity, Z: Tensor) -> Tensor:
    return log_sum_exp(_log_densities(density.factors_, Z) + density.log_weights_)


def mahalanobis(density: MahalanobisDensity, Z: Tensor) -> Tensor:
    """Minus half the squared distance (n,) to the nearest class mean."""
    return -0.5 * _distances_to(density.factors_, Z).reduce("Min", 1)


def mixture(density: GaussianMixtureDensity, Z: Tensor) -> Tensor:
    """Log-density (n,) of a Gaussian mixture of standardised features."""
    scaler, fitted = density.scaler_, density.mixture_
    Z = (Z - scaler.mean_) / scaler.scale_
    p = fitted.means_.shape[1]
    whiteners, log_dets = _of_mixture(fitted, p)
    constant = np.log(fitted.weights_) - 0.5 * (p * LOG_2PI + log_dets)
    distance = _squared(Z, fitted.means_, whiteners)
    return log_sum_exp(distance * -0.5 + constant) - float(np.log(scaler.scale_).sum())


def _of_mixture(fitted: Any, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Inverse Cholesky factors, as `_squared` takes them, and log-determinants (k,)."""
    factor = np.asarray(fitted.precisions_cholesky_)
    kind = fitted.covariance_type
    if kind == "full":
        diagonals = np.diagonal(factor, axis1=1, axis2=2)
        return factor, -2 * np.log(diagonals).sum(axis=1)
    if kind == "tied":
        return factor, np.full(len(fitted.means_), -2 * np.log(np.diag(factor)).sum())
    wide = np.broadcast_to(factor.reshape(len(factor), -1), (len(factor), p))
    return wide[:, None, :], -2 * np.log(wide).sum(axis=1)


def _log_densities(factors: Sequence[GaussianFactor], Z: Tensor) -> Tensor:
    p = len(factors[0].mean)
    constant = p * LOG_2PI + np.array([f.log_det for f in factors])
    return (_distances_to(factors, Z) + constant) * -0.5


def _distances_to(factors: Sequence[GaussianFactor], Z: Tensor) -> Tensor:
    """Squared Mahalanobis distances (n, k)."""
    if isinstance(factors, BasisFactors):
        turned = (Z - factors.mean[0]) @ np.ascontiguousarray(factors.basis.T)
        return _squared(turned, factors.along, factors.variance[:, None, :] ** -0.5)
    means = np.stack([f.mean for f in factors])
    rests = [np.zeros_like(f.mean) if f.rest is None else f.rest for f in factors]
    shared = all(f.whitener is factors[0].whitener for f in factors)
    own = [factors[0]] if shared else factors
    whiteners = np.stack([w[None] if w.ndim == 1 else w.T for w in (f.array for f in own)])
    return _squared(Z, means, whiteners, np.stack(rests))


def _squared(
    Z: Tensor, means: np.ndarray, whiteners: np.ndarray, rests: np.ndarray | None = None
) -> Tensor:
    """Squared lengths (n, k) of the rows Z (n, p) less each mean (k, p), whitened.

    `whiteners` are factors to the right, (k, p, p) or one (p, p) or (1, p, p) for all, or factors
    of each column, (k, 1, p) or (1, 1, p).
    """
    D = Z.unsqueeze(0) - means[:, None, :]
    if rests is not None and rests.any():
        D = D - rests[:, None, :]
    columnwise = whiteners.ndim == 3 and whiteners.shape[1] == 1 and means.shape[1] > 1
    white = D * whiteners if columnwise else D @ whiteners
    # inf - inf is an overflow too: the row is far away.
    distances = white.reduce("SumSquare", 2).nan_to(np.inf)
    return Z.graph.op("Transpose", distances, perm=[1, 0])


#: Candidates beyond the k nearest whose distances are recomputed, without the rounding of the
#: fast search.
_SPARE = 8


def neighbours(density: KNNDensity, Z: Tensor) -> Tensor:
    """Log-density (n,) by the distance to the k-th nearest training row."""
    rows: np.ndarray = density.neighbors_._fit_X
    centred = Z - density.center_
    stored = Z.graph.rows(rows, f"KNNDensity({density.n_neighbors})")
    radius = _kth_distance(centred, stored, rows, density.n_neighbors_)
    log_radius = radius.at_least(density.radius_floor_).apply("Log")
    return log_radius * float(-rows.shape[1]) + density.log_constant_


def kernels(density: KernelDensity, Z: Tensor) -> Tensor:
    """Log-density (n,) of Gaussian kernels at the training rows, standardised."""
    rows: np.ndarray = density.rows_
    h, p = density.bandwidth_, rows.shape[1]
    scaled = (Z - density.scaler_.mean_) / density.scaler_.scale_
    squared = _squared_distances(scaled, Z.graph.rows(rows, "KernelDensity"), rows)
    log_kernels = squared * (-0.5 / h**2) + density.log_weights_
    log_scale = np.log(density.scaler_.scale_).sum()
    constant = float(p * np.log(h) + p / 2 * np.log(2 * np.pi) + log_scale)
    return log_sum_exp(log_kernels) - constant


def _kth_distance(X: Tensor, stored: Tensor, rows: np.ndarray, k: int) -> Tensor:
    """Distance (n,) of X (n, p) to its k-th nearest row."""
    graph = X.graph
    near = min(len(rows), k + _SPARE)
    squared = _squared_distances(X, stored, rows)
    chosen = _lowest(squared, near)[1]
    gap = X.unsqueeze(1) - graph.op("Gather", stored, chosen)
    exact = gap.reduce("SumSquare", 2).nan_to(np.inf)
    return _lowest(exact, k)[0].reduce("Max", 1).apply("Sqrt")


def _squared_distances(X: Tensor, stored: Tensor, rows: np.ndarray) -> Tensor:
    """Squared distances (n, m) of X (n, p) to rows (m, p); inf where they overflow."""
    lengths = np.einsum("ij,ij->i", rows, rows)
    partial = X.graph.op("Gemm", X, stored, lengths, alpha=-2.0, transB=1)
    return (partial + X.reduce("SumSquare", 1, keep=True)).nan_to(np.inf)


def _lowest(x: Tensor, k: int) -> list[Tensor]:
    """The k lowest entries of each row of x, and their positions."""
    options: dict[str, Any] = {"axis": 1, "largest": 0, "sorted": 0}
    return x.graph.ops("TopK", x, np.array([k]), outputs=2, **options)


class Seen(NamedTuple):
    """Inputs of a density: features (n, p) and, with a classifier, probabilities."""

    features: Data
    proba: Tensor | None = None


def log_density(density: Any, seen: Seen) -> Tensor:
    """Scores (n,) of a fitted density; -inf where it is zero or a distance overflows."""
    density = unfrozen(density)
    if type(density) in _OF_FEATURES:
        return _OF_FEATURES[type(density)](density, seen.features.tensor)
    if type(density) in _OF_BOTH:
        return _OF_BOTH[type(density)](density, seen)
    known = sorted(kind.__name__ for kind in (*_OF_FEATURES, *_OF_BOTH))
    raise TypeError(
        f"density {type(density).__name__} cannot be exported to ONNX; one of {', '.join(known)} "
        "can, so fit with density=None or such a density"
    )


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
    return ((stack_columns(blocks) - density.center_) / density.scale_).reduce("Sum", 1)


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
    scores = stack_columns([_component(density, name, seen) for name in names])
    z = normal_scores(scores, [density.normal_scores_[name] for name in names])
    weights = np.array([density.weights_[name] for name in names])
    margin = np.array([0.0 if name == CLASSIFIER else density.margin for name in names])
    # Skip zero weights: 0 * inf is NaN.
    voting = np.flatnonzero(weights > 0)
    objections = log_ndtr(z.columns(voting) + margin[voting]) * weights[voting]
    total = (objections.reduce("Sum", 1) * -2.0).at_least(0.0)
    return z.reduce("Mean", 1) * TIE_BREAK - total.apply("Sqrt")


def normal_scores(scores: Tensor, normalizers: Sequence[RankNormal]) -> Tensor:
    """Normal scores (n, c): each column of `scores` (n, c) by its own table."""
    inside = interpolate(
        scores, [n.knots_ for n in normalizers], [n.normal_scores_ for n in normalizers]
    )
    low, high = (np.array([n.knots_[end] for n in normalizers]) for end in (0, -1))
    scale = np.array([n.scale_ for n in normalizers])
    # Each clipped on its own side, so that an infinite score meets no inf - inf.
    below, above = scores.at_most(low) - low, scores.at_least(high) - high
    return inside + below / scale + above / scale


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


_OF_FEATURES: dict[type, Callable[[Any, Tensor], Tensor]] = {
    GaussianDensity: gaussian,
    GDADensity: discriminant,
    MahalanobisDensity: mahalanobis,
    GaussianMixtureDensity: mixture,
    KNNDensity: neighbours,
    KernelDensity: kernels,
}
_OF_BOTH: dict[type, Callable[[Any, Seen], Tensor]] = {
    Pipeline: _pipeline,
    RelativeDensity: _relative,
    BlockSumDensity: _block_sum,
    DensitySelector: _selector,
    FusedDensity: lambda density, seen: _held(density.reach_, _fused(density, seen), seen),
}
