"""Densities that keep their training rows, as parts of a graph with exact search.

A graph holds these rows as float64 constants, 8 n p bytes for each density, and needs 8 bytes for
each pair of an input and a row while it runs: give it batches of a few thousand inputs at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....density.kde import KernelDensity
from ....density.knn import KNNDensity
from .._nodes.builder import Tensor
from .._nodes.ops import log_sum_exp

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
