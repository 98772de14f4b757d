"""Squared Mahalanobis distances to k Gaussians at once: one module for each form of covariance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..gaussians.factor import GaussianFactor
from .class_moments import PrincipalParts

_BLOCKS = 5
_CLASSES_AT_ONCE = 64
_SMALLEST_BLOCK = 64


class BufferedModule(nn.Module):
    """A module whose annotated tensors are buffers: None until filled, of the shape of a state."""

    def __init__(self) -> None:
        super().__init__()
        for name, kind in type(self).__annotations__.items():
            if kind == "Tensor":
                self.register_buffer(name, None)

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        for name, buffer in self._buffers.items():
            stored = state.get(f"{prefix}{name}")
            if isinstance(stored, Tensor):
                like = stored if buffer is None else buffer
                self._buffers[name] = like.new_empty(stored.shape)
        super()._load_from_state_dict(state, prefix, *rest)


class FullDistance(BufferedModule):
    """A covariance per class: ``|W_c (x - m_c)|^2`` with W_c the inverse Cholesky factor.

    The factors are triangular: of each block of their rows only the columns up to the diagonal are
    held, those of all classes side by side, so that a block costs one matrix product.
    """

    whiteners: Tensor
    whitened_means: Tensor

    def fill(self, factors: Iterator[GaussianFactor], means: np.ndarray, to: Tensor) -> list[float]:
        """Take the factors of k classes and their `means` (k, p); buffers are like `to`.

        Returns the log-determinants.
        """
        k, p = means.shape
        blocks = [to.new_empty(k, b - a, b) for a, b in _edges(p)]
        bias, log_det = np.empty((k, p)), []
        for c, (factor, mean) in enumerate(zip(factors, means, strict=True)):
            whitener = factor.array
            bias[c] = whitener @ mean
            log_det.append(factor.log_det)
            for block, (a, b) in zip(blocks, _edges(p), strict=True):
                block[c] = torch.from_numpy(np.ascontiguousarray(whitener[a:b, :b]))
        self.whiteners = torch.cat([block.flatten() for block in blocks])
        parts = [bias[:, a:b].reshape(-1) for a, b in _edges(p)]
        self.whitened_means = torch.from_numpy(np.concatenate(parts)).to(to)
        return log_det

    def forward(self, X: Tensor) -> Tensor:
        """Squared distances (n, k) of rows X (n, p), which are centred as the means are."""
        k = self.whitened_means.numel() // X.shape[1]
        start, first = 0, 0
        parts = []
        for a, b in _edges(X.shape[1]):
            size, width = k * (b - a) * b, k * (b - a)
            W = self.whiteners[start : start + size].view(width, b)
            # Five blocks take 0.6 of the products of a dense factor, and 0.57 to 0.75 of its time
            # (k = 10, p = 500 to 640, 32 to 512 rows, one thread); solve_triangular 0.76 to 1.09.
            whitened = F.linear(X[:, :b], W, -self.whitened_means[first : first + width])
            # One pass; the sum of squares would write them first (a fifth of the time at 32 rows).
            parts.append(torch.linalg.vector_norm(whitened.view(-1, k, b - a), dim=2).square())
            start, first = start + size, first + width
        return torch.stack(parts).sum(0)

    def mean_of(self, c: int, p: int) -> Tensor:
        """Mean (p,) of class c in float64, centred as rows are."""
        k, start, first = self.whitened_means.numel() // p, 0, 0
        W, bias = self.whiteners.new_zeros(p, p).double(), []
        for a, b in _edges(p):
            size, width = k * (b - a) * b, k * (b - a)
            W[a:b, :b] = self.whiteners[start : start + size].view(k, b - a, b)[c]
            bias.append(self.whitened_means[first : first + width].view(k, b - a)[c])
            start, first = start + size, first + width
        whitened = torch.cat(bias).double()[:, None]
        mean: Tensor = torch.linalg.solve_triangular(W, whitened, upper=False)[:, 0]
        return mean


class TiedDistance(BufferedModule):
    """One covariance for all classes: distances between whitened rows and whitened means."""

    whitener: Tensor
    tied_means: Tensor
    between: Tensor

    def fill(self, factor: GaussianFactor, means: np.ndarray, to: Tensor) -> list[float]:
        """Take the shared factor and the `means` (k, p) of classes; buffers are like `to`."""
        whitened = means @ factor.array.T
        arrays = (np.ascontiguousarray(factor.array), whitened, squared_gaps(whitened))
        W, M, between = (torch.from_numpy(array).to(to) for array in arrays)
        self.whitener, self.tied_means, self.between = W, M, between
        return [factor.log_det] * len(means)

    def forward(self, X: Tensor) -> Tensor:
        """Squared distances (n, k) of rows X (n, p), which are centred as the means are."""
        return squared_distances(X @ self.whitener.mT, self.tied_means, self.between)

    def mean_of(self, c: int, p: int) -> Tensor:
        """Mean (p,) of class c in float64, centred as rows are."""
        mean: Tensor = torch.linalg.solve(self.whitener.double(), self.tied_means[c].double())
        return mean


class DiagonalDistance(BufferedModule):
    """A variance per class and feature."""

    precision: Tensor
    diagonal_means: Tensor
    between: Tensor

    def fill(self, factors: Iterator[GaussianFactor], means: np.ndarray, to: Tensor) -> list[float]:
        """Take the factors of k classes and their `means` (k, p); buffers are like `to`."""
        whiteners, log_det = zip(*((f.whitener, f.log_det) for f in factors), strict=True)
        precision = np.stack(whiteners) ** 2
        # between[i, c]: distance of the mean of i from that of c, in the metric of c.
        scaled = means * precision
        between = means**2 @ precision.T - 2 * means @ scaled.T + (means * scaled).sum(axis=1)
        np.fill_diagonal(between, 0.0)
        arrays = (precision, means, between)
        self.precision, self.diagonal_means, self.between = (
            torch.from_numpy(array).to(to) for array in arrays
        )
        return list(log_det)

    def forward(self, X: Tensor) -> Tensor:
        """Squared distances (n, k) of rows X (n, p), which are centred as the means are."""
        precision, means = self.precision, self.diagonal_means
        # The square is expanded about the mean of a near class (see `squared_distances`).
        typical = precision.mean(0)
        near = nearest(X, means, means * typical)
        mean = means[near]
        D = X - mean
        own = (D * (D + 2 * mean)) @ precision.mT
        return own - 2 * D @ (means * precision).mT + self.between[near]

    def mean_of(self, c: int, p: int) -> Tensor:
        """Mean (p,) of class c in float64, centred as rows are."""
        return self.diagonal_means[c].double()


class LowRankDistance(BufferedModule):
    """A subspace per class, with one variance across it.

    With ``y = x - m``, ``d^2 = (|y|^2 - |U^T y|^2) / psi + sum_i (u_i y)^2 / l_i``, by Woodbury's
    identity: two matrix products, for which the rows need no copy per class.
    """

    basis: Tensor
    projected_means: Tensor
    inner: Tensor
    outer: Tensor
    low_rank_means: Tensor
    between: Tensor

    def fill(self, parts: Iterator[PrincipalParts], means: np.ndarray, to: Tensor) -> list[float]:
        """Take the parts of k classes and their `means` (k, p); buffers are like `to`.

        Returns the log-determinants.
        """
        k, p = means.shape
        log_det = []
        for c, (part, mean) in enumerate(zip(parts, means, strict=True)):
            if not c:
                # Filled in place: small tensors kept between large passing ones split the heap.
                r = len(part.inner)
                self.basis = to.new_empty(k, r, p)
                self.projected_means, self.inner = to.new_empty(2, k, r)
                self.outer = to.new_empty(k)
            self.basis[c], self.inner[c] = (
                torch.from_numpy(part.basis),
                torch.from_numpy(part.inner),
            )
            self.projected_means[c] = torch.from_numpy(part.basis @ mean)
            self.outer[c] = part.outer
            log_det.append(float(np.log(part.inner).sum()) + (p - r) * log(part.outer))
        self.low_rank_means = torch.from_numpy(means).to(to)
        self.between = torch.from_numpy(squared_gaps(means)).to(to)
        return log_det

    def forward(self, X: Tensor) -> Tensor:
        """Squared distances (n, k) of rows X (n, p), which are centred as the means are."""
        squared = squared_distances(X, self.low_rank_means, self.between)
        blocks = (self.basis, self.projected_means, self.inner, self.outer)
        parts = []
        # Blocks of classes: what is held for a row is then no larger than a row.
        for start in range(0, len(self.basis), _CLASSES_AT_ONCE):
            at = slice(start, start + _CLASSES_AT_ONCE)
            basis, means, inner, outer = (block[at] for block in blocks)
            along = F.linear(X, basis.flatten(0, 1), -means.flatten())
            along = along.view(-1, *means.shape).square()
            across = (squared[:, at] - along.sum(2)).clamp_min(0)
            parts.append(across / outer + (along / inner).sum(2))
        return torch.cat(parts, dim=1)

    def mean_of(self, c: int, p: int) -> Tensor:
        """Mean (p,) of class c in float64, centred as rows are."""
        return self.low_rank_means[c].double()


def nearest(X: Tensor, means: Tensor, scaled: Tensor) -> Tensor:
    """Return the nearest of `means` (k, p), `scaled` by the metric, for each row of X (n, p)."""
    return (X @ scaled.mT - 0.5 * (means * scaled).sum(1)).argmax(1)


def squared_distances(X: Tensor, means: Tensor, between: Tensor) -> Tensor:
    """Return squared distances (n, k) of rows X (n, p) from means (k, p), by one matrix product.

    ``|x|^2 - 2 x m + |m|^2`` cancels where rows are near their mean and both far from the origin.
    So the square is expanded about the nearest mean, of which `between` (k, k) holds the squared
    distances from the others.
    """
    near = nearest(X, means, means)
    mean = means[near]
    D = X - mean
    return (D * (D + 2 * mean)).sum(1, keepdim=True) - 2 * D @ means.mT + between[near]


def squared_gaps(means: np.ndarray) -> np.ndarray:
    """Return squared distances between the rows of `means` (k, p), shape (k, k)."""
    # Between means this expansion may cancel: float64 has the digits to spare.
    square = np.einsum("ij,ij->i", means, means)
    gaps = (square[:, None] + square - 2 * means @ means.T).clip(0)
    np.fill_diagonal(gaps, 0.0)
    return np.asarray(gaps)


def _edges(p: int) -> list[tuple[int, int]]:
    """List where each block of rows of a triangular factor starts and ends."""
    count = max(1, min(_BLOCKS, p // _SMALLEST_BLOCK))
    edges = [round(i * p / count) for i in range(count + 1)]
    return list(pairwise(edges))
