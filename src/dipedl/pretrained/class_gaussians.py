"""Class-conditional Gaussians on the features of a network, learned from a stream of batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
import torch.distributed as dist
from sklearn.exceptions import NotFittedError
from torch import Tensor

from ..gaussians.factor import explain_rows
from ..gaussians.moments import Shrinkage, machine_memory
from ..maths.arrays import LOG_2PI, check_choice, check_integer, to_numpy
from ..networks.batches import class_indices
from ..networks.checks import check_class_indices, check_finite_rows
from .class_moments import ExactMoments, SketchMoments
from .distances import (
    BufferedModule,
    DiagonalDistance,
    FullDistance,
    LowRankDistance,
    TiedDistance,
)

__all__ = ["ClassGaussians"]

CARTESIAN, POLAR = "cartesian", "polar"
#: A length below this is taken for zero, as in `torch.nn.functional.normalize`.
_ZERO = 1e-12
_FORMS: dict[str, Any] = {
    "full": FullDistance,
    "tied": TiedDistance,
    "diagonal": DiagonalDistance,
    "low-rank": LowRankDistance,
}
#: Rows wait until so many bytes are together: each class then has many at once.
_PENDING_BYTES = 1 << 26
SETTINGS = ("covariance", "coordinates", "shrinkage", "rank", "class_weights", "dtype")
_FITTED = ("n_", "n_features_", "n_classes_")


class ClassGaussians(BufferedModule):
    """Mixture of one Gaussian per class on features that stream, scored on their device.

    ``log p(x) = logsumexp_c [log w_c + log N(x; m_c, C_c)]`` in nats: `dipedl.density.GDADensity`
    for the features of a network. One pass learns mergeable moments in float64 on the CPU, and no
    feature is kept; `finish` factors them by the code of `GDADensity`, and a call scores.

    Parameters
    ----------
    covariance : {"full", "tied", "diagonal", "low-rank"}, default="full"
        A covariance per class, one shared by all classes, a variance per class and feature, or per
        class the `rank` leading directions and one variance across them: probabilistic PCA from a
        sketch, which loses nothing of classes that span at most 1.25 `rank` dimensions.
    coordinates : {"cartesian", "polar"}, default="cartesian"
        What the Gaussians are of: the features as they are, or p + 1 numbers, their direction
        ``x / |x|`` and ``log(1 + |x|)``; the log-density is then that of these numbers. Networks
        on CIFAR-10 tell images of other classes better so. It falls more slowly far from all rows.
    shrinkage : None, float in [0, 1] or "oas", default="oas"
        Shrinkage of each covariance towards ``trace / p`` times the identity. A class whose rows
        are all the same point takes the level of the pooled covariance. With None a singular
        covariance is refused: nothing is jittered silently.
    rank : int, default=32
        Number of directions a class that covariance="low-rank" holds.
    class_weights : {"equal", "empirical"}, default="equal"
        Mixture weights w_c: the paper's (equal), or the class frequencies.
    dtype : torch.float32 or torch.float64, default=torch.float32
        Of scoring. Features of any floating type are taken; sums are in float64 always.

    Attributes
    ----------
    n_ : float
        Rows seen.
    n_features_, n_classes_ : int
        Number of features p and of classes k.

    Raises
    ------
    TypeError, ValueError
        If a setting is not as above.

    References
    ----------
    Carlotti, Gligić, Farahi, section 4; Mukhoti et al., "Deep deterministic uncertainty", CVPR
    (2023). Müller, Hein, "Mahalanobis++: improving OOD detection via feature normalization", ICML
    (2025), on directions.

    Examples
    --------
    >>> import torch
    >>> from dipedl.pretrained import ClassGaussians
    >>> density = ClassGaussians()
    >>> density.update(torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 0]), n_classes=2)
    >>> density.update(torch.tensor([[9.0], [11.0]]), torch.tensor([1, 1]), n_classes=2)
    >>> density.finish()(torch.tensor([[0.0], [10.0], [5.0]]))
    tensor([ -1.6121,  -1.6121, -13.4189])
    """

    #: Classes and coordinates of the rows seen, and where their features came from.
    _sizes: tuple[int, int] | None = None
    _device = torch.device("cpu")

    origin: Tensor
    log_constant: Tensor
    log_weights: Tensor
    counts: Tensor

    def __init__(
        self,
        covariance: str = "full",
        *,
        coordinates: str = CARTESIAN,
        shrinkage: Shrinkage = "oas",
        rank: int = 32,
        class_weights: str = "equal",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        check_choice("covariance", covariance, _FORMS)
        check_choice("coordinates", coordinates, (CARTESIAN, POLAR))
        check_choice("class_weights", class_weights, ("equal", "empirical"))
        check_integer("rank", rank)
        _check_shrinkage(shrinkage)
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"dtype must be torch.float32 or torch.float64, got {dtype!r}: a log-density of "
                "hundreds of features needs their digits; the features may be of half precision"
            )
        self.covariance, self.coordinates = covariance, coordinates
        self.shrinkage, self.rank = shrinkage, rank
        self.class_weights, self.dtype = class_weights, dtype
        self.distance: Any = _FORMS[covariance]()
        self._moments: Any = None
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._waiting_bytes = 0

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
        check_finite_rows("features", features)
        check_integer("n_classes", n_classes)
        labels = class_indices(labels, "update")
        if len(labels) != len(features):
            raise ValueError(
                f"labels must have one class index a row, shape ({len(features)},), got "
                f"{tuple(labels.shape)}"
            )
        check_class_indices("labels", labels, n_classes)
        self.add(features, labels, n_classes)

    def add(self, features: Tensor, labels: Tensor, n_classes: int) -> None:
        """Take in a batch that was checked before."""
        self._check_sizes(features.shape[1], n_classes)
        if not len(features):
            return
        with torch.no_grad():
            # Copies: a loader may write the next batch into the same tensors.
            rows = np.array(to_numpy(self._coordinates(features)))
        if self._sizes is None:
            self._check_room(n_classes, rows.shape[1])
            self._sizes, self._device = (n_classes, rows.shape[1]), features.device
            self._moments = self._blank_moments(*self._sizes)
        self._waiting.append((rows, labels.cpu().numpy().copy()))
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= _PENDING_BYTES:
            self._add_waiting()

    def _blank_moments(self, k: int, p: int) -> Any:
        if self.covariance == "low-rank":
            single = self.dtype is torch.float32
            return SketchMoments(k, p, self.rank, np.float32 if single else np.float64)
        return ExactMoments("diag" if self.covariance == "diagonal" else self.covariance, k)

    def _add_waiting(self) -> None:
        """Add the waiting rows to the moments."""
        if self._waiting:
            X, y = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
            self._waiting, self._waiting_bytes = [], 0
            self._moments.add(X, y)

    def finish(self, group: dist.ProcessGroup | None = None) -> Self:
        """Factor the covariances of what was seen; more batches may follow, and `finish` again.

        Parameters
        ----------
        group : ProcessGroup, optional
            Processes of ``torch.distributed`` that have each seen a part of the rows and all call
            this: each ends with the density of one process that has seen all rows.

        Raises
        ------
        NotFittedError
            If no row was seen.
        ValueError
            If a class has no row, a covariance is singular, or the processes have seen no rows or
            other numbers of features or classes.
        """
        self._add_waiting()
        moments = self._moments if group is None else self._merge_over(group)
        if moments is None:
            raise NotFittedError(
                "finish needs rows, and none came: call update(features, labels, n_classes) "
                "for each batch first"
            )
        counts = moments.weight
        if len(empty := np.flatnonzero(counts == 0)):
            raise ValueError(
                f"classes {empty[:10].tolist()} have no row among the {counts.sum():.0f} "
                f"seen of {len(counts)} classes; give each at least one, or lower n_classes"
            )
        # Buffers made in inference mode could not be compiled, or saved for a gradient later.
        with torch.inference_mode(False), torch.no_grad():
            self._set(moments, counts)
        return self

    def _merge_over(self, group: dist.ProcessGroup) -> Any:
        """Merge the moments of all processes of a group, in the order of their ranks."""
        ranks: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(ranks, (self._sizes, self._device.type), group=group)
        sizes = [size for size, _ in ranks]
        if len({size for size in sizes if size is not None}) != 1:
            raise ValueError(
                "finish(group) needs rows, with the same numbers of classes and features in every "
                f"process that has any; got (classes, features) {sizes}"
            )
        if self._sizes is None:
            # Without rows it scores where the others do: on the current device of that type.
            self._device = torch.device(next(kind for size, kind in ranks if size is not None))
        merged = self._blank_moments(*next(size for size in sizes if size is not None))
        for rank, size in enumerate(sizes):
            if size is not None:
                # One after the other: the moments of all processes may not fit.
                part = [self._moments]
                dist.broadcast_object_list(part, dist.get_global_rank(group, rank), group)
                merged += part[0]
        return merged

    def drop_moments(self) -> None:
        """Free the moments: what scores stays, and no more rows can be taken in."""
        self._moments, self._sizes = None, None
        self._waiting, self._waiting_bytes = [], 0

    def forward(self, features: Tensor) -> Tensor:
        """Log-density in nats of features (n, p), shape (n,), in the type of scoring.

        A feature that is NaN makes it NaN; where a distance overflows it is ``-inf``.
        """
        return torch.logsumexp(self.class_log_density(features) + self.log_weights, dim=1)

    def class_log_density(self, features: Tensor) -> Tensor:
        """Log-density in nats of features (n, p) under the Gaussian of each class, (n, k)."""
        check_features(features, self.n_features_)
        kind = features.device.type
        if torch.is_autocast_enabled(kind):
            # Half precision would cost the log-density all its digits.
            with torch.autocast(kind, enabled=False):
                return self._log_density(features)
        return self._log_density(features)

    def centre(self, features: Tensor) -> Tensor:
        """The coordinates of features (n, p) as distances are taken of, in the type of scoring."""
        Z = self._coordinates(features)
        # Centred in the wider of both types: features far from zero keep their digits.
        wide = torch.promote_types(Z.dtype, self.origin.dtype)
        return (Z.to(wide) - self.origin.to(wide)).to(self.origin.dtype)

    def blank(self) -> Self:
        """An unfitted density with the same settings."""
        return type(self)(**{name: getattr(self, name) for name in SETTINGS})

    @property
    def n_(self) -> float:
        """Rows seen by the last `finish`."""
        self._check_fitted()
        return float(self.counts.sum())

    @property
    def n_features_(self) -> int:
        """Number of features p."""
        self._check_fitted()
        return len(self.origin) - self._n_extra

    @property
    def n_classes_(self) -> int:
        """Number of classes k."""
        self._check_fitted()
        return len(self.counts)

    def __getattr__(self, name: str) -> Any:
        if name in _FITTED:
            raise NotFittedError(_NOT_FITTED)
        return super().__getattr__(name)

    @property
    def _n_extra(self) -> int:
        """Number of coordinates beyond the number of features."""
        return int(self.coordinates == POLAR)

    def _coordinates(self, features: Tensor) -> Tensor:
        """Return the coordinates of features (n, p), at least float32."""
        if self.coordinates != POLAR:
            return features
        X = features.to(torch.promote_types(features.dtype, self.dtype))
        length = torch.linalg.vector_norm(X, dim=1, keepdim=True)
        return torch.cat([X / length.clamp(min=_ZERO), length.log1p()], dim=1)

    @property
    def _is_fitted(self) -> bool:
        return self._buffers["origin"] is not None

    def _check_sizes(self, p: int, n_classes: int) -> None:
        if self._sizes is None:
            if self._is_fitted:
                raise ValueError(
                    "this density was loaded, or is of a DIPModule: it scores, but holds no "
                    "moments to add rows to; take them into an unfitted one, density.blank()"
                )
            return
        for name, known, came in (
            ("n_classes", self._sizes[0], n_classes),
            ("the number of features", self._sizes[1] - self._n_extra, p),
        ):
            if known != came:
                raise ValueError(f"{name} must stay {known} after the first update, got {came}")

    def _check_room(self, k: int, p: int) -> None:
        """Raise MemoryError where the sums of k classes of p features cannot fit."""
        numbers = {"full": k * p * p, "tied": p * p, "low-rank": k * self.rank * p}
        needed, memory = 8 * numbers.get(self.covariance, 0), machine_memory()
        if needed > memory:
            other = "'diagonal'" if self.covariance == "tied" else "'tied', 'diagonal'"
            raise MemoryError(
                f"covariance={self.covariance!r} of {k} classes and {p} features does not fit in "
                f"memory ({needed / 2**30:,.1f} GiB of {memory / 2**30:,.1f}); use "
                f"covariance={other}, or 'low-rank' of a small rank"
            )

    def _log_density(self, features: Tensor) -> Tensor:
        squared: Tensor = self.distance(self.centre(features))
        # inf - inf is an overflow, unless a feature was not a number to begin with
        overflows = squared.isnan() & ~features.isnan().any(1, keepdim=True)
        return self.log_constant - 0.5 * squared.masked_fill(overflows, math.inf)

    def _check_fitted(self) -> None:
        if not self._is_fitted:
            raise NotFittedError(_NOT_FITTED)

    def _set(self, moments: Any, counts: np.ndarray) -> None:
        origin, offset = moments.place
        # Rounded to the type of scoring, so that features are centred by the very same point.
        centre = torch.from_numpy((origin + offset).mean(axis=0)).to(self._device, self.dtype)
        means = (origin - to_numpy(centre)) + offset
        factors, distance = moments.factors(self.shrinkage), _FORMS[self.covariance]()
        log_det = torch.from_numpy(np.array(distance.fill(factors, means, centre)))
        weights = np.ones_like(counts) if self.class_weights == "equal" else counts
        own = {
            "origin": centre,
            "log_constant": (-0.5 * (len(centre) * LOG_2PI + log_det)).to(centre),
            "log_weights": torch.from_numpy(np.log(weights / weights.sum())).to(centre),
            "counts": torch.from_numpy(counts).to(centre.device, torch.int64),
        }
        for name, buffer in (*own.items(), *distance.named_buffers("distance")):
            # aminmax, as isfinite would need as much memory again
            if not torch.stack(torch.aminmax(buffer)).isfinite().all():
                raise ValueError(
                    f"{name} overflows {self.dtype}; rescale the features or use "
                    "dtype=torch.float64"
                )
        # After all that may fail: what scores stays as it was.
        self.distance = distance
        for name, buffer in own.items():
            setattr(self, name, buffer)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or cast the buffers, but never below float32."""
        super()._apply(keep_precision(fn), recurse)  # type: ignore[no-untyped-call]
        return self


_NOT_FITTED = (
    "this ClassGaussians is not fitted yet: call update for each batch, then finish, or load a "
    "fitted state"
)


def check_features(features: Any, p: int | None = None) -> None:
    """Raise unless `features` is a floating tensor of rank 2, of `p` features if that is given."""
    if not isinstance(features, Tensor) or not features.is_floating_point():
        came = features.dtype if isinstance(features, Tensor) else type(features).__name__
        raise TypeError(f"features must be a tensor of floating type, got {came}")
    if features.ndim != 2:
        raise ValueError(
            f"features must have shape (rows, features), got {tuple(features.shape)}; average maps "
            "over their positions, or flatten them"
        )
    if p is not None and features.shape[1] != p:
        raise ValueError(f"features must have {p} columns, as in the fit, got {features.shape[1]}")


def _check_shrinkage(shrinkage: Any) -> None:
    number = isinstance(shrinkage, Real) and not isinstance(shrinkage, bool)
    if shrinkage is None or shrinkage == "oas" or (number and 0 <= shrinkage <= 1):
        return
    raise ValueError(f"shrinkage must be None, a number in [0, 1] or 'oas', got {shrinkage!r}")


def keep_precision(fn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the conversion `fn` that leaves the type of a tensor where it would be halved.

    ``network.half()`` means the weights; a log-density would lose all its digits.
    """

    def convert(tensor: Tensor) -> Tensor:
        converted = fn(tensor)
        half = tensor.is_floating_point() and converted.element_size() < 4
        return tensor.to(converted.device) if half else converted

    return convert


@dataclass(frozen=True, eq=False)
class ReadableGaussians:
    """Fitted Gaussians on arrays, with the names of their classes, for the cards of `explain`."""

    density: ClassGaussians
    classes: Sequence[Any]

    def score_samples(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p), shape (n,)."""
        with torch.no_grad():
            return to_numpy(self.density(self._tensor(Z)))

    def explain_rows(self, Z: np.ndarray, top: int = 5) -> list[dict[str, Any]]:
        """Return for each row of Z (n, p) its nearest class and the `top` farthest features."""
        X = self.density.centre(self._tensor(Z))
        coordinates = to_numpy(X.double() + self.density.origin.double())
        near, gradient = _nearest_and_gradient(self.density, X)
        rows: list[dict[str, Any]] = [{}] * len(Z)
        for c in np.unique(near):
            at = np.flatnonzero(near == c)
            mean = self.density.distance.mean_of(int(c), X.shape[1])
            # |x|_C^2 is quadratic: its gradient is twice C^-1 (x - m).
            parts = to_numpy(X[at].double() - mean) * gradient[at] / 2
            center = to_numpy(mean + self.density.origin.double())
            result = explain_rows(center, parts, coordinates[at], top, self.classes[c])
            for i, row in zip(at, result, strict=True):
                rows[i] = row
                for entry in row["features"]:
                    if entry["feature"] == Z.shape[1]:
                        entry["name"] = "log(1 + length)"
        return rows

    def _tensor(self, Z: np.ndarray) -> Tensor:
        return torch.from_numpy(Z).to(self.density.origin)


def _nearest_and_gradient(density: ClassGaussians, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Nearest class of centred rows X (n, p), and the gradient of the squared distance to it."""
    with torch.inference_mode(False), torch.enable_grad():
        rows = X.detach().clone().requires_grad_()
        squared = density.distance(rows)
        near = squared.argmin(dim=1)
        (gradient,) = torch.autograd.grad(squared.gather(1, near[:, None]).sum(), rows)
    return near.cpu().numpy(), to_numpy(gradient)
