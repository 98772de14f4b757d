"""Base class of the classifiers on a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data
from torch import Tensor, nn

from ..fitting.all_or_nothing import all_or_nothing
from ..inputs import NoAnswer
from ..maths.array_namespace import unmasked
from ..maths.checks import check_magnitude
from ._checks import check_pixels
from .backbones._network import Backbone, Network, Shape, image_shape
from .backbones.mlp import MLP
from .spectral_norm import baked
from .training._class_weight import ClassWeight, class_weights
from .training._device import as_tensor, plain_defaults, resolve_device, threads
from .training.deadline import TrainingPaused
from .training.settings import History, Training
from .training.train import train

_CHUNK = 512
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}

Pair = tuple[np.ndarray, np.ndarray]


class TorchEstimator(TransformerMixin, ClassifierMixin, BaseEstimator, ABC):
    """A scikit-learn classifier on a network.

    A subclass has the parameters `backbone`, `training`, `image_shape`, `random_state` and
    `class_weight` and its own. It defines ``_loss`` (and ``_score``, if the loss cannot choose an
    epoch) and ``predict_proba``. It may override ``fit`` with the same steps: ``_checked``,
    ``_build``, ``_train``.
    """

    #: Defaults of parameters that are None.
    _default_backbone: ClassVar[Backbone] = MLP()
    _default_training: ClassVar[Training] = Training()

    classes_: np.ndarray
    class_weight_: np.ndarray
    module_: nn.Module
    history_: History
    image_shape_: Shape

    def __init__(
        self,
        backbone: Backbone | None,
        training: Training | None,
        image_shape: tuple[int, ...] | None,
        random_state: Any,
        class_weight: ClassWeight,
    ) -> None:
        self.backbone = backbone
        self.training = training
        self.image_shape = image_shape
        self.random_state = random_state
        self.class_weight = class_weight

    def fit(
        self,
        X: Any,
        y: Any,
        validation: tuple[Any, Any] | None = None,
        *,
        checkpoint: str | Path | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
        deadline: float | None = None,
    ) -> Self:
        """Train on inputs X (n, d) and labels y (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Finite inputs; images as rows of pixels in [0, 1], channel by channel.
        y : array-like, shape (n,)
            Labels of at least two classes.
        validation : tuple, optional
            Inputs and labels, for ``Training.patience`` and ``restore_best``.
        checkpoint, progress, deadline : optional
            As in `dipedl.nn.train`.

        Raises
        ------
        ValueError
            If X, y, `validation`, the image shape and the backbone do not match.
        TrainingPaused
            If the deadline passed; the same call with a later one resumes from the checkpoint.
        FloatingPointError
            If the loss is not finite. As after a KeyboardInterrupt, ``module_`` is then the network
            of the end of the last whole epoch.
        """
        with all_or_nothing(self, FloatingPointError, TrainingPaused):
            if self._take_trained(X, y):
                return self
            data = self._checked(X, y, validation)
            seed = self._seed()
            with plain_defaults():
                module = self._build(len(self.classes_), seed)
            run: dict[str, Any] = {
                "checkpoint": checkpoint,
                "progress": progress,
                "deadline": deadline,
            }
            try:
                self.history_ = self._train(module, *data, seed=seed, **run)
            except (FloatingPointError, KeyboardInterrupt, TrainingPaused):
                self.module_ = module
                raise
            self.module_ = module
            self._after_training(X, y)
            return self

    def _take_trained(self, X: Any, y: Any) -> bool:
        """Whether a network that is already trained was taken, so that there is none to train."""
        return False

    def _after_training(self, X: Any, y: Any) -> None:
        """Fit what predictions need besides the network, on the arguments of ``fit``."""

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each input of X (n, d), shape (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @abstractmethod
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d), shape (n, k)."""

    def logits(self, X: Any) -> np.ndarray:
        """Outputs of the network on inputs X (n, d), shape (n, k)."""
        return self._forward(X)

    def transform(self, X: Any) -> np.ndarray:
        """Features of inputs X (n, d) before the head, shape (n, n_features)."""
        return self._forward(X, lambda module, chunk: module.features(chunk))

    @abstractmethod
    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        """Mean loss of a batch, by ``_mean``; `target` (n,) holds class numbers."""

    #: Validation score ``(outputs, target) -> mean, lower is better``; None: the loss.
    _score: Callable[[Tensor, Tensor], Any] | None = None

    def _mean(self, losses: Tensor, target: Tensor) -> Tensor:
        """Mean of the losses (n,), weighted by class."""
        if self.class_weight is None:
            return losses.mean()
        # a blocking copy would make every step wait for the GPU
        weights = torch.from_numpy(self.class_weight_).to(losses.dtype)
        return (losses * weights.to(losses.device, non_blocking=True)[target]).mean()

    def _dtype(self) -> torch.dtype:
        """Precision in which the trained network predicts."""
        return torch.float32

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def _settings(self) -> Training:
        training = self._default_training if self.training is None else self.training
        if not isinstance(training, Training):
            raise TypeError(f"training must be None or a Training, got {training!r}")
        return training

    def _backbone(self) -> Backbone:
        backbone = self._default_backbone if self.backbone is None else self.backbone
        if not isinstance(backbone, Backbone):
            raise TypeError(
                "backbone must be None or one of dipedl.nn (such as LeNet5(), FastCNN(), MLP()), "
                f"got {backbone!r}"
            )
        return backbone

    def _build(self, n_outputs: int, seed: int) -> Network:
        """An untrained network for the inputs of ``_checked``."""
        generator = torch.Generator("cpu").manual_seed(seed)
        return self._backbone().build(self.image_shape_, n_outputs, generator)

    def _checked(
        self, X: Any, y: Any, validation: Any
    ) -> tuple[np.ndarray, np.ndarray, Pair | None]:
        """Inputs in float32 and class numbers; sets `classes_` and the shapes."""
        X, y = float32_rows(self, X, y)
        check_classification_targets(y)
        self.image_shape_ = image_shape(self.image_shape, X.shape[1])
        self._check_pixels("X", X)
        self.classes_, targets = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y must hold at least 2 classes, got one class: {only!r}")
        self.class_weight_ = class_weights(self.class_weight, self.classes_, targets)
        return X, targets, None if validation is None else self._checked_validation(validation)

    def _checked_validation(self, validation: Any) -> Pair:
        if not (isinstance(validation, tuple | list) and len(validation) == 2):
            raise TypeError(f"validation must be a pair (X, y) or None, got {type(validation)}")
        X, y = (unmasked("validation", part) for part in validation)
        X, y = check_X_y(X, y, dtype=np.float32)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X of validation must have {self.n_features_in_} columns as X, got {X.shape[1]}"
            )
        self._check_pixels("X of validation", X)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y of validation holds the labels {unknown.tolist()}, which y lacks; the classes "
                f"are {self.classes_.tolist()}"
            )
        return X, np.searchsorted(self.classes_, y)

    def _check_pixels(self, name: str, X: np.ndarray) -> None:
        if self._backbone().takes_pixels:
            check_pixels(name, X)

    def _train(
        self,
        module: nn.Module,
        X: np.ndarray,
        y: np.ndarray,
        validation: Pair | None,
        **run: Any,
    ) -> History:
        """Train `module` on the data of ``_checked``; it ends in eval mode with plain weights.

        `run` has the keyword arguments of `train` from `seed` on.
        """
        inputs = as_tensor(X)
        if isinstance(module, Network):
            module.prepare(inputs)
        try:
            return train(
                module,
                self._loss,
                (inputs, as_tensor(y)),
                self._settings(),
                validation=None if validation is None else tuple(map(as_tensor, validation)),
                score=self._score,
                **run,
            )
        finally:
            baked(module).to(self._dtype())

    def _forward(
        self,
        X: Any,
        function: Callable[[Any, Tensor], Tensor] = lambda module, chunk: module(chunk),
    ) -> np.ndarray:
        """``function(module, rows)`` in chunks of 512 rows, as one finite float64 array."""
        check_is_fitted(self, "module_")
        dtype = self._dtype()
        X = validate_data(self, unmasked("X", X), dtype=_NUMPY[dtype], reset=False)
        self._check_pixels("X", X)
        settings = self._settings()
        device = resolve_device(settings.device)
        network = _on(device, self.module_)
        with torch.inference_mode(), threads(settings.n_jobs):
            parts = [
                function(network, as_tensor(X[start : start + _CHUNK]).to(device)).double().cpu()
                for start in range(0, len(X), _CHUNK)
            ]
        outputs = np.asarray(torch.cat(parts).numpy())
        _check_finite(outputs, X)
        return outputs


def float32_rows(model: TorchEstimator, X: Any, y: Any) -> Pair:
    """X (n, d) in float32 and y (n,) to fit on; `model` learns the width."""
    X, y = unmasked("X", X), unmasked("y", y)
    check_magnitude("X", X)
    X, y = validate_data(model, X, y, dtype=np.float32)
    return X, y


def _check_finite(outputs: np.ndarray, X: np.ndarray) -> None:
    bad = ~np.isfinite(outputs).all(axis=tuple(range(1, outputs.ndim)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise NoAnswer(
            f"the network gives NaN or infinity for {int(bad.sum())} of {len(X)} rows of X, the "
            f"first of them row {row} with values up to {np.abs(X[row]).max():g}; scale the inputs "
            "as those of fit"
        )


def _on(device: torch.device, module: nn.Module) -> nn.Module:
    """The module on `device`: itself, or a copy, so that the model is not moved."""
    there = {p.device.type for p in module.parameters()}
    return module if there <= {device.type} else deepcopy(module).to(device)
