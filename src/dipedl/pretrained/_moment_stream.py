"""Moments of the classes of features that stream, batch by batch and process by process."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn

from ..gaussians.class_moments import (
    ClassMoments,
    DiagonalScatter,
    FullScatter,
    Group,
    Scatter,
    TiedScatter,
    check_features,
    check_finite,
    check_labels,
    exact,
    merge_over,
)
from ..gaussians.low_rank import SketchScatter
from ..gaussians.shrinkage import LEDOIT_WOLF, Shrinkage
from ..nn.checks import check_integer

CARTESIAN, POLAR = "cartesian", "polar"
#: A length below this is taken for zero, as in `torch.nn.functional.normalize`.
_ZERO = 1e-12


class MomentStream(nn.Module):
    """The learning half of `ClassGaussians`, which holds the settings and scores."""

    covariance: str
    coordinates: str
    shrinkage: Shrinkage
    rank: int
    dtype: torch.dtype
    _local: ClassMoments | None = None
    _everywhere: ClassMoments | None = None
    _device: torch.device | None = None

    def update(self, features: Tensor, labels: Tensor, n_classes: int) -> None:
        """Take in a batch; what scores changes only at the next `finish`.

        Parameters
        ----------
        features : Tensor, shape (b, p)
            Of any floating type, finite.
        labels : integer Tensor, shape (b,)
            Class indices 0..n_classes - 1.
        n_classes : int
            Number of classes k, the same at every call.

        Raises
        ------
        TypeError, ValueError
            If the arguments are not as above.
        MemoryError
            If the moments of k classes do not fit.
        """
        check_features(features)
        check_finite(features)
        self._check_size(features.shape[1], n_classes)
        labels = check_labels(labels, features, n_classes)
        if not len(features):
            return
        features = self._placed(features)
        with exact(features.device):
            if self._local is None:
                self._device = features.device
                # Apple's GPUs have no float64.
                on = "cpu" if features.device.type == "mps" else features.device
                origin = torch.zeros(n_classes, features.shape[1], dtype=torch.float64, device=on)
                self._local = self._start(origin)
            self._local.add(features, labels)

    def synchronise(self, group: Group = None) -> None:
        """Take in what every process of `group` has seen since the last call.

        A collective operation of `torch.distributed`: all processes must call it, before `finish`.
        All end up with the same moments, those of one process that has seen all rows.

        Raises
        ------
        ValueError
            If no process has seen rows, or their numbers of features or classes differ.
        """
        device = None if self._local is None else self._local.origin.device
        with exact(device or torch.device("cpu")):
            merged = merge_over(group, self._local, self._start)
            if self._everywhere is None:
                self._everywhere = merged
            else:
                self._everywhere += merged
        self._local = None

    @property
    def _added(self) -> int:
        """Number of coordinates beyond the number of features."""
        return int(self.coordinates == POLAR)

    def _placed(self, features: Tensor) -> Tensor:
        """The coordinates of features (n, p), at least float32."""
        if self.coordinates != POLAR:
            return features
        X = features.to(torch.promote_types(features.dtype, self.dtype))
        length = torch.linalg.vector_norm(X, dim=1, keepdim=True)
        return torch.cat([X / length.clamp(min=_ZERO), length.log1p()], dim=1)

    @property
    def _fitted(self) -> bool:
        return self._buffers["origin"] is not None

    def _check_size(self, p: int, n_classes: int) -> None:
        check_integer("n_classes", n_classes)
        seen = self._local or self._everywhere
        if seen is None:
            if self._fitted:
                raise ValueError(
                    "this density was loaded: it scores, but holds no moments to add rows to; "
                    "take them into an unfitted one, density.blank()"
                )
            return
        for name, known, came in (
            ("n_classes", len(seen.weight), n_classes),
            ("the number of features", seen.origin.shape[1] - self._added, p),
        ):
            if known != came:
                raise ValueError(f"{name} must stay {known} after the first update, got {came}")

    def _start(self, origin: Tensor) -> ClassMoments:
        """Moments of no row yet, like `origin` (k, p)."""
        higher = self.shrinkage == LEDOIT_WOLF
        try:
            return ClassMoments(self._scatter_type()(origin), origin, higher)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not isinstance(error, torch.OutOfMemoryError) and "allocate" not in str(error):
                raise
            other = "'diagonal'" if self.covariance == "tied" else "'tied', 'diagonal'"
            raise MemoryError(
                f"covariance={self.covariance!r} of {origin.shape[0]} classes and "
                f"{origin.shape[1]} features does not fit in memory; use covariance={other}, or "
                "'low-rank' of a small rank"
            ) from error

    def _scatter_type(self) -> Callable[[Tensor], Scatter]:
        if self.covariance == "diagonal":
            return DiagonalScatter
        if self.covariance == "low-rank":
            return partial(SketchScatter, rank=self.rank, dtype=self.dtype)
        # Fourth moments move with the scatter of their own class.
        pools = self.covariance == "tied" and self.shrinkage != LEDOIT_WOLF
        return TiedScatter if pools else FullScatter

    def _moments(self) -> ClassMoments:
        """Of all rows seen."""
        if self._local is not None and self._everywhere is not None:
            total = deepcopy(self._everywhere)
            total += self._local
            return total
        if (seen := self._local or self._everywhere) is None:
            raise NotFittedError(
                "finish needs rows, and none came: call update(features, labels, n_classes) for "
                "each batch first"
            )
        return seen
