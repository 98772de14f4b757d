"""Normalising flow."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..fitting import all_or_nothing
from ..inputs import validate_features, validate_fit_features
from ..maths.array_namespace import unmasked
from ..nn.device import as_tensor, limit_threads, resolve_device, seed_generators
from ..nn.flows.masked_autoregressive import MaskedAutoregressive
from ..nn.flows.preprocessing import Dequantization, Standardization
from ..nn.torch_classifier import on_device
from ..nn.training import Training, train
from ._flow import LogDensity, build, checked, negative_mean, split, training_inputs
from ._mixin import LogDensityMixin

__all__ = ["FlowDensity"]

_CHUNK, _FAR = 512, 1e12
_DTYPES = {"float64": torch.float64, "float32": torch.float32}


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
        What the flow is shown. Default: ``Standardization()``; for images ``Dequantization()``.
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
    history_ : dipedl.nn.History
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
    >>> from dipedl.nn import MaskedAutoregressive, Training
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> maf = MaskedAutoregressive(transforms=2, hidden=(16,))
    >>> flow = FlowDensity(maf, training=Training(epochs=5, learning_rate=0.01)).fit(X)
    >>> bool(flow.score(X) > flow.score(X + 3))
    True
    """

    def __init__(
        self,
        flow: Any = None,
        preprocessing: Any = None,
        training: Training | None = None,
        validation_fraction: float = 0.1,
        dtype: str = "float64",
        random_state: Any = 0,
    ) -> None:
        self.flow = flow
        self.preprocessing = preprocessing
        self.training = training
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.random_state = random_state

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
            As in `dipedl.nn.train`.

        Raises
        ------
        ValueError
            If rows, preprocessing and flow do not fit, or a feature is constant.
        FloatingPointError
            If training leaves the finite numbers.
        """
        with all_or_nothing(self):
            if self.dtype not in _DTYPES:
                raise ValueError(f"dtype must be one of {sorted(_DTYPES)}, got {self.dtype!r}")
            rows = as_tensor(validate_fit_features(self, X, ensure_min_samples=2))
            seed = int(check_random_state(self.random_state).randint(2**31))
            rows, held_out = self._split(rows, validation, seed)
            preprocessing = self._preprocessing().build(rows)
            module = LogDensity(build(self.flow, rows.shape[1], seed))
            settings = self._settings(held_out is not None)
            inputs, settings = training_inputs(rows, preprocessing, settings)
            held = None if held_out is None else (preprocessing(held_out)[0].float(),)
            run: dict[str, Any] = {"progress": progress, "deadline": deadline}
            run |= {"checkpoint": checkpoint, "validation": held, "seed": seed}
            with _default(self._device()):
                self.history_ = train(module, negative_mean, (inputs,), settings, **run)
            self.preprocessing_ = preprocessing
            self.flow_ = module.flow.to(_DTYPES[self.dtype])
            return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, d), shape (n,).

        Raises
        ------
        ValueError
            If the flow gives NaN or ``+inf`` for a row; names the rows.
        """
        return self._log_density(self._rows(X), self._preprocessing().jacobian)

    def bits_per_dimension(self, X: Any, *, draws: int = 1, random_state: Any = 0) -> float:
        """Bits per dimension of images X (n, d), as the field reports them; lower is better.

        ``-E_u log2 p(x + u) / d + log2 L`` with noise u that fills the cells of the L grey levels:
        an upper bound on the bits that the flow needs for the grey levels themselves. It counts the
        Jacobian, whatever `preprocessing` says.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Images.
        draws : int, default=1
            Draws of the noise to average over.
        random_state : int, default=0
            Seed of the noise.

        Raises
        ------
        TypeError
            If the flow was not fitted on pixels.
        """
        rows, preprocessing = self._rows(X), self.preprocessing_
        if not preprocessing.is_noisy:
            raise TypeError(
                "bits_per_dimension needs grey levels: fit with preprocessing=Dequantization(), "
                f"got {self._preprocessing()!r}"
            )
        generator = torch.Generator("cpu").manual_seed(
            check_random_state(random_state).randint(2**31)
        )
        noisy = (preprocessing.noise(rows, generator) for _ in range(draws))
        nats = [self._log_density(sample, True).mean() for sample in noisy]
        cells = rows.shape[1] * preprocessing.log_cell()
        return float(-(np.mean(nats) + cells) / (rows.shape[1] * math.log(2)))

    def sample(self, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Rows (n_samples, d) drawn from the density; grey levels for `Dequantization`.

        A masked autoregressive flow takes d passes through its networks.
        """
        check_is_fitted(self, "flow_")
        device = self._device()
        seed = int(check_random_state(random_state).randint(2**31))
        n_jobs = self._settings(False).n_jobs
        with (
            torch.no_grad(),
            limit_threads(n_jobs),
            seed_generators(seed, device),
            _default(device),
        ):
            y = on_device(device, self.flow_)().sample((n_samples,)).cpu().double()
            return np.asarray(self.preprocessing_.inverse(y).numpy())

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Arguments for the conformance checks."""
        training = Training(epochs=25, batch_size=20, learning_rate=0.02, n_jobs=1)
        return {
            "flow": MaskedAutoregressive(transforms=2, hidden=(8,)),
            "training": training,
            "validation_fraction": 0.0,
        }

    def _log_density(self, rows: Tensor, jacobian: bool) -> np.ndarray:
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
        return checked(torch.cat(parts).numpy())

    def _rows(self, X: Any) -> Tensor:
        check_is_fitted(self, "flow_")
        rows = as_tensor(validate_features(self, X))
        self._preprocessing().check("X", rows)
        return rows

    def _split(self, rows: Tensor, validation: Any, seed: int) -> tuple[Tensor, Tensor | None]:
        """Rows to train on and rows held out."""
        if validation is not None:
            return rows, self._held_out(validation)
        return split(rows, self.validation_fraction, seed)

    def _held_out(self, validation: Any) -> Tensor:
        given = validation[0] if isinstance(validation, tuple) else validation
        given = unmasked("validation", given)
        rows = as_tensor(check_array(given, dtype=np.float64, input_name="validation"))
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"validation must have {self.n_features_in_} columns as X, got {rows.shape[1]}"
            )
        self._preprocessing().check("validation", rows)
        return rows

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
    """Context in which no other device is the default: zuko moves its numbers to that one."""
    other = torch.get_default_device().type
    return nullcontext() if other in ("cpu", device.type) else device
