"""Class-conditional Gaussians on the features of a network, learned from a stream of batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor
from torch.distributed import ProcessGroup

from ..gaussians.factor import explain_rows
from ..gaussians.moments import Shrinkage
from ..maths.arrays import LOG_2PI, check_integer, to_numpy
from ..networks.checks import check_choice, check_finite_rows
from ..networks.class_moments import (
    ClassMoments,
    DiagonalScatter,
    FullScatter,
    SketchScatter,
    TiedScatter,
    check_features,
    check_labels,
    class_factors,
    exact,
    merge_over,
    principal_parts,
    tied_factor,
)
from ..networks.device import is_out_of_memory
from ..networks.distances import (
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
#: Distance, sums of squares and factors of each form of covariance.
_FORMS: dict[str, tuple[Any, Any, Any]] = {
    "full": (FullDistance, FullScatter, class_factors),
    "tied": (TiedDistance, TiedScatter, tied_factor),
    "diagonal": (DiagonalDistance, DiagonalScatter, class_factors),
    "low-rank": (LowRankDistance, SketchScatter, principal_parts),
}
SETTINGS = ("covariance", "coordinates", "shrinkage", "rank", "class_weights", "dtype")
_FITTED = ("n_", "n_features_", "n_classes_")


class ClassGaussians(BufferedModule):
    """Mixture of one Gaussian per class on features that stream, on the device they come from.

    ``log p(x) = logsumexp_c [log w_c + log N(x; m_c, C_c)]`` in nats: `dipedl.density.GDADensity`
    for the features of a network. One pass learns mergeable moments in float64, and no feature is
    kept; `finish` factors them by the code of `GDADensity`, and a call scores.

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

    #: Moments of the rows seen, on the device that they came from unless it has no float64.
    _moments: ClassMoments | None = None
    _device: torch.device | None = None

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
        self.distance: Any = _FORMS[covariance][0]()

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
        self._check_size(features.shape[1], n_classes)
        labels = check_labels(labels, features, n_classes)
        if not len(features):
            return
        features = self._coordinates(features)
        with exact(features.device):
            if self._moments is None:
                self._device = features.device
                # Apple's GPUs have no float64.
                on = "cpu" if features.device.type == "mps" else features.device
                origin = torch.zeros(n_classes, features.shape[1], dtype=torch.float64, device=on)
                self._moments = self._start(origin)
            self._moments.add(features, labels)

    def finish(self, group: ProcessGroup | None = None) -> Self:
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
        with exact(torch.device("cpu") if self._moments is None else self._moments.origin.device):
            moments = self._moments if group is None else merge_over(group, self._moments)
            if moments is None:
                raise NotFittedError(
                    "finish needs rows, and none came: call update(features, labels, n_classes) "
                    "for each batch first"
                )
            counts = moments.weight
            if len(empty := (counts == 0).nonzero()):
                raise ValueError(
                    f"classes {empty[:10, 0].tolist()} have no row among the {counts.sum():.0f} "
                    f"seen of {len(counts)} classes; give each at least one, or lower n_classes"
                )
            self._set(moments)
        return self

    def drop_moments(self) -> None:
        """Free the moments: what scores stays, and no more rows can be taken in."""
        self._moments = None

    def forward(self, features: Tensor) -> Tensor:
        """Log-density in nats of features (n, p), shape (n,), in the type of scoring.

        A feature that is NaN makes it NaN; where a distance overflows it is ``-inf``.
        """
        return torch.logsumexp(self.class_log_density(features) + self.log_weights, dim=1)

    def class_log_density(self, features: Tensor) -> Tensor:
        """Log-density in nats of features (n, p) under the Gaussian of each class, (n, k)."""
        self._check_fitted()
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
        return len(self.origin) - self._added

    @property
    def n_classes_(self) -> int:
        """Number of classes k."""
        self._check_fitted()
        return len(self.counts)

    def extra_repr(self) -> str:
        """The settings."""
        names = ("coordinates", "shrinkage", "dtype")
        return ", ".join(
            [repr(self.covariance), *(f"{name}={getattr(self, name)!r}" for name in names)]
        )

    def __getattr__(self, name: str) -> Any:
        if name in _FITTED:
            raise NotFittedError(_NOT_FITTED)
        return super().__getattr__(name)

    @property
    def _added(self) -> int:
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
    def _fitted(self) -> bool:
        return self._buffers["origin"] is not None

    def _check_size(self, p: int, n_classes: int) -> None:
        check_integer("n_classes", n_classes)
        seen = self._moments
        if seen is None:
            if self._fitted:
                raise ValueError(
                    "this density was loaded, or is of a DIPModule: it scores, but holds no "
                    "moments to add rows to; take them into an unfitted one, density.blank()"
                )
            return
        for name, known, came in (
            ("n_classes", len(seen.weight), n_classes),
            ("the number of features", seen.origin.shape[1] - self._added, p),
        ):
            if known != came:
                raise ValueError(f"{name} must stay {known} after the first update, got {came}")

    def _start(self, origin: Tensor) -> ClassMoments:
        """Return moments of no row yet, like `origin` (k, p)."""
        try:
            scatter = _FORMS[self.covariance][1]
            if scatter is SketchScatter:
                scatter = partial(scatter, rank=self.rank, dtype=self.dtype)
            return ClassMoments(scatter(origin), origin)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            other = "'diagonal'" if self.covariance == "tied" else "'tied', 'diagonal'"
            raise MemoryError(
                f"covariance={self.covariance!r} of {origin.shape[0]} classes and "
                f"{origin.shape[1]} features does not fit in memory; use covariance={other}, or "
                "'low-rank' of a small rank"
            ) from error

    def _log_density(self, features: Tensor) -> Tensor:
        squared: Tensor = self.distance(self.centre(features))
        # inf - inf is an overflow, unless a feature was not a number to begin with
        overflows = squared.isnan() & ~features.isnan().any(1, keepdim=True)
        return self.log_constant - 0.5 * squared.masked_fill(overflows, math.inf)

    def _check_fitted(self) -> None:
        if not self._fitted:
            raise NotFittedError(_NOT_FITTED)

    def _set(self, moments: ClassMoments) -> None:
        # Rounded to the type of scoring, so that features are centred by the very same point.
        centre = (moments.origin + moments.offset).mean(0).to(self.dtype)
        means = (moments.origin - centre.to(moments.origin)) + moments.offset
        like = centre.to(self._device or centre.device)
        factors = _FORMS[self.covariance][2](moments, self.shrinkage)
        log_det = self.distance.fill(factors, means, like)
        log_det = torch.tensor(log_det, dtype=torch.float64, device="cpu")
        constant = -0.5 * (len(centre) * LOG_2PI + log_det)
        equal = self.class_weights == "equal"
        weights = torch.ones_like(moments.weight) if equal else moments.weight
        self.origin, self.log_constant = like, constant.to(like)
        self.log_weights = (weights / weights.sum()).log().to(like)
        self.counts = moments.weight.to(like.device, torch.int64)
        for name, buffer in self.named_buffers():
            # aminmax, as isfinite would need as much memory again
            if not torch.stack(torch.aminmax(buffer)).isfinite().all():
                raise ValueError(
                    f"{name} overflows {self.dtype}; rescale the features or use "
                    "dtype=torch.float64"
                )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or cast the buffers, but never below float32."""
        super()._apply(keep_precision(fn), recurse)  # type: ignore[no-untyped-call]
        return self


_NOT_FITTED = (
    "this ClassGaussians is not fitted yet: call update for each batch, then finish, or load a "
    "fitted state"
)


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
