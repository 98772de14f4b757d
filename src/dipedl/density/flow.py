"""Normalising flow."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from zuko.lazy import LazyDistribution

from ..inputs import require_fitted, validate_fit_features
from ..maths.arrays import check_choice, check_integer, check_number
from ..maths.seeds import random_state_of
from ..networks.device import (
    as_tensor,
    limit_threads,
    plain_defaults,
    resolve_device,
    seed_generators,
)
from ..networks.flows.masked_autoregressive import MaskedAutoregressive
from ..networks.flows.preprocessing import Dequantization, Preprocessor, Standardization
from ..networks.torch_classifier import on_device
from ..networks.training import Training, train
from ..protocols import atomic
from .base import LogDensityMixin, check_rows

__all__ = ["FlowDensity"]

_CHUNK, _FAR = 512, 1e12
_DTYPES = {"float64": torch.float64, "float32": torch.float32}


@dataclass(eq=False, repr=False)
class FlowDensity(LogDensityMixin, BaseEstimator):
    """Normalising flow, trained by maximum likelihood.

    ``log p(x) = log N(f(x); 0, 1) + log |det df/dx|`` for a bijection f.

    Parameters
    ----------
    flow : MaskedAutoregressive or callable, optional
        The architecture: a value with ``build(n_features, generator)``, or a callable that gives a
        zuko flow for a number of features, such as ``zuko.flows.NSF`` or a ``functools.partial`` of
        it. Default: ``MaskedAutoregressive()``.
    preprocessing : Standardization, Dequantization, optional
        From rows to the inputs of the flow. Default: ``Standardization()``; for images
        ``Dequantization()``.
    training : Training, optional
        How it is optimised. Default: up to 100 epochs of Adam at 1e-3 with gradients clipped to
        norm 5, stopped after 10 without a better validation score, the best weights restored.
    validation_fraction : float, default=0.1
        Share of the rows held out for validation when `fit` is given none; 0 for no validation.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the answers of the trained flow. float32 is faster, and then the
        last digits of a score, about 1e-6 of it, may change with the rows it is asked with.
    random_state : int, default=0
        Seed of initial weights, shuffling and noise; PyTorch's global generator is left alone.

    Attributes
    ----------
    flow_ : zuko.flows.Flow
        The trained flow, on preprocessed rows.
    preprocessing_ : torch.nn.Module
        The fitted preprocessing.
    history_ : dipedl.networks.History
        Training: negative log-densities in nats of preprocessed rows, epoch by epoch.
    n_features_in_ : int
        Number of features d.

    Notes
    -----
    A row that preprocessing takes beyond 1e12 in some feature has log-density ``-inf``: a flow
    over a normal would say less than -1e20 there, or overflow. Anywhere else a log-density that
    is not a number is an error, not an outlier.

    References
    ----------
    Papamakarios, Nalisnick, Rezende, Mohamed, Lakshminarayanan, "Normalizing flows for
    probabilistic modeling and inference", JMLR 22 (2021), eq. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import FlowDensity
    >>> from dipedl.networks import MaskedAutoregressive, Training
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> maf = MaskedAutoregressive(transforms=2, hidden=(16,))
    >>> flow = FlowDensity(maf, training=Training(epochs=5, learning_rate=0.01)).fit(X)
    >>> bool(flow.score(X) > flow.score(X + 3))
    True
    """

    flow: Any = None
    preprocessing: Any = None
    training: Training | None = None
    validation_fraction: float = 0.1
    dtype: str = "float64"
    random_state: Any = 0

    @classmethod
    def paper(cls, random_state: Any = 0) -> Self:
        """The DIP-EDL paper's density of MNIST pixels: 445 million weights, meant for a GPU.

        Log-densities of logits, without the Jacobian of the logit, as published. Departures: what
        `MaskedAutoregressive.paper` says, float32 in place of float16 training, and u = 1/2 in
        place of fresh noise at prediction.
        """
        training = Training(
            epochs=50,
            learning_rate=1e-4,
            weight_decay=1e-5,
            schedule="step",
            step_size=5,
            clip_norm=5.0,
            patience=5,
            restore_best=True,
        )
        pixels = Dequantization(jacobian=False)
        return cls(MaskedAutoregressive.paper(), pixels, training, 0.2, "float32", random_state)

    @atomic
    def fit(
        self,
        X: Any,
        y: Any = None,
        validation: Any = None,
        *,
        checkpoint: str | Path | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
        deadline: float | None = None,
    ) -> Self:
        """Train on rows X (n, d); y is ignored.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Finite rows; pixels in [0, 1] for `Dequantization`.
        y : ignored
            For the interface.
        validation : array-like, shape (m, d), or a tuple that starts with one, optional
            Held-out rows that choose the epoch, in place of `validation_fraction` of X.
        checkpoint, progress, deadline : optional
            As in `dipedl.networks.train`.

        Raises
        ------
        ValueError
            If rows, preprocessing and flow do not fit, or a feature is constant.
        FloatingPointError
            If training leaves the finite numbers.
        """
        check_choice("dtype", self.dtype, _DTYPES)
        rows = as_tensor(validate_fit_features(self, X, ensure_min_samples=2))
        seed = int(random_state_of(self.random_state).randint(2**31))
        rows, held_out = self._split(rows, validation, seed)
        preprocessing = self._preprocessing().build(rows)
        module = _Module(_build(self.flow, rows.shape[1], seed))
        settings, inputs = self._settings(held_out is not None), rows.float()
        if preprocessing.is_noisy or settings.augment:
            there = deepcopy(preprocessing).to(self._device(), torch.float32)
            settings = replace(settings, augment=_Augment(settings.augment, there))
        else:
            inputs = preprocessing(rows)[0].float()
        held = None if held_out is None else (preprocessing(held_out)[0].float(),)
        run: dict[str, Any] = {"progress": progress, "deadline": deadline}
        run |= {"checkpoint": checkpoint, "validation": held, "seed": seed}
        with _default(self._device()):
            self.history_ = train(
                module, lambda scores, *, epoch: -scores.mean(), (inputs,), settings, **run
            )
        self.preprocessing_ = preprocessing
        self.flow_ = module.flow.to(_DTYPES[self.dtype])
        return self

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, d) that were checked before, (n,).

        Raises
        ------
        ValueError
            If the flow gives NaN or ``+inf`` for a row; names the rows.
        """
        return self._log_prob(self._tensor(Z), self._preprocessing().jacobian)

    def bits_per_dimension(self, X: Any, *, random_state: Any = 0) -> float:
        """Bits per dimension of images X (n, d), as the field reports them; lower is better.

        ``-E_u log2 p(x + u) / d + log2 (L - 1)`` with noise u that fills the cells of the L grey
        levels, which lie 1 / (L - 1) apart: an upper bound on the bits that the flow needs for the
        grey levels themselves. It counts the Jacobian, whatever `preprocessing` says.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Images.
        random_state : int, default=0
            Seed of the noise.

        Raises
        ------
        TypeError
            If the flow was not fitted on pixels.
        """
        rows, preprocessing = self._tensor(check_rows(self, X)), self.preprocessing_
        if not preprocessing.is_noisy:
            raise TypeError(
                "bits_per_dimension needs grey levels: fit with preprocessing=Dequantization(), "
                f"got {self._preprocessing()!r}"
            )
        generator = torch.Generator("cpu").manual_seed(random_state_of(random_state).randint(2**31))
        nats = self._log_prob(preprocessing.noise(rows, generator), True).mean()
        cells = rows.shape[1] * preprocessing.log_cell()
        return float(-(nats + cells) / (rows.shape[1] * math.log(2)))

    def sample(self, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Rows (n_samples, d) drawn from the density; grey levels for `Dequantization`.

        A masked autoregressive flow takes d passes through its networks.
        """
        require_fitted(self, "flow_")
        check_integer("n_samples", n_samples, 0)
        device = self._device()
        seed = int(random_state_of(random_state).randint(2**31))
        n_jobs = self._settings(False).n_jobs
        with (
            torch.no_grad(),
            limit_threads(n_jobs),
            seed_generators(seed, device),
            _default(device),
        ):
            y = on_device(device, self.flow_)().sample((n_samples,)).cpu().double()
            return np.asarray(self.preprocessing_.inverse(y).numpy())

    def _log_prob(self, rows: Tensor, jacobian: bool) -> np.ndarray:
        device, dtype = self._device(), _DTYPES[self.dtype]
        flow = on_device(device, self.flow_)
        parts = []
        n_jobs = self._settings(False).n_jobs
        with torch.no_grad(), limit_threads(n_jobs), _default(device):
            for chunk in torch.split(rows, _CHUNK):
                y, log_det = self.preprocessing_(chunk)
                near = (y.abs() <= _FAR).all(dim=1)
                known = y.where(near[:, None], 0.0).to(device, dtype)
                score = flow().log_prob(known).double().cpu().where(near, -math.inf)
                parts.append(score + log_det if jacobian else score)
        score = torch.cat(parts).numpy()
        bad = np.flatnonzero(np.isnan(score) | np.isposinf(score))
        if len(bad):
            raise ValueError(
                f"the log-density of {len(bad)} of {len(score)} rows is NaN or +inf, rows "
                f"{bad[:5].tolist()}: the flow is numerically unstable there; use dtype='float64', "
                "a lower learning rate or clip_norm"
            )
        return np.asarray(score)

    def _tensor(self, Z: np.ndarray) -> Tensor:
        rows = as_tensor(Z)
        self._preprocessing().check("X", rows)
        return rows

    def _split(self, rows: Tensor, validation: Any, seed: int) -> tuple[Tensor, Tensor | None]:
        """Return rows to train on and rows held out, a share `validation_fraction` if none are."""
        if validation is not None:
            X = validation[0] if isinstance(validation, tuple) else validation
            try:
                held_out = as_tensor(validate_fit_features(self, X, reset=False))
            except ValueError as error:
                raise ValueError(f"validation must be as X: {error}") from error
            self._preprocessing().check("validation", held_out)
            return rows, held_out
        share = self.validation_fraction
        check_number("validation_fraction", share, "in [0, 1)", lambda x: 0 <= x < 1)
        n = math.ceil(share * len(rows))
        if n >= len(rows):
            raise ValueError(
                f"validation_fraction={share:g} leaves none of {len(rows)} rows to train on; lower "
                "it, or give rows as validation="
            )
        generator = torch.Generator("cpu").manual_seed(seed)
        order = torch.randperm(len(rows), generator=generator, device="cpu")
        return (rows[order[n:]], rows[order[:n]]) if n else (rows, None)

    def _preprocessing(self) -> Any:
        stated = Standardization() if self.preprocessing is None else self.preprocessing
        if not hasattr(stated, "build"):
            raise TypeError(
                f"preprocessing must be None, a Standardization or a Dequantization, got {stated!r}"
            )
        return stated

    def _settings(self, validated: bool) -> Training:
        if self.training is None:
            patience = 10 if validated else None
            return Training(epochs=100, clip_norm=5.0, patience=patience, restore_best=validated)
        if not isinstance(self.training, Training):
            raise TypeError(f"training must be None or a Training, got {self.training!r}")
        return self.training

    def _device(self) -> torch.device:
        return resolve_device(self._settings(False).device)


def _default(device: torch.device) -> AbstractContextManager[Any]:
    """Let no other device be the default: zuko moves its numbers to that one."""
    other = torch.get_default_device().type
    return nullcontext() if other in ("cpu", device.type) else device


class _Module(nn.Module):
    """Log-density (n,) of preprocessed rows, to be trained."""

    def __init__(self, flow: nn.Module) -> None:
        super().__init__()
        self.flow = flow

    def forward(self, y: Tensor) -> Tensor:
        """Log-density in nats of each row of y (n, d), shape (n,)."""
        log_density: Tensor = self.flow().log_prob(y)
        return log_density


@dataclass(frozen=True)
class _Augment:
    """Augmentation of a training batch: the one of the user, noise, and the preprocessing."""

    first: Any
    preprocessing: Preprocessor

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        x = x if self.first is None else self.first(x, generator)
        y: Tensor = self.preprocessing(self.preprocessing.noise(x, generator))[0]
        return y


def _build(flow: Any, n_features: int, seed: int) -> nn.Module:
    """Build an untrained flow with parameters drawn from `seed`."""
    flow = MaskedAutoregressive() if flow is None else flow
    own = hasattr(flow, "build")
    if not (own or callable(flow)):
        raise TypeError(
            "flow must be None, a MaskedAutoregressive or a callable n_features -> zuko flow, "
            f"got {flow!r}"
        )
    with seed_generators(seed, torch.device("cpu")), plain_defaults():
        generator = torch.Generator("cpu").manual_seed(seed)
        built = flow.build(n_features, generator) if own else flow(n_features)
    if not isinstance(built, LazyDistribution):
        raise TypeError(f"flow must give a zuko flow, got {type(built).__name__} from {flow!r}")
    return built  # type: ignore[no-any-return]
