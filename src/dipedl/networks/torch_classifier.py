"""Networks as scikit-learn classifiers: the base of all, and the one trained by cross-entropy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parametrize

from ..inputs import NotComputableError, validate_labels
from ..maths.arrays import check_choice, check_magnitude, check_number, drop_mask
from ..maths.seeds import random_state_of
from .backbones import MLP, Architecture, Network, Shape, image_shape
from .checks import check_pixels
from .device import as_tensor, limit_threads, plain_defaults, resolve_device
from .training import History, Training, TrainingPaused, train

__all__ = ["TorchClassifier"]

#: None, "balanced", or a weight per label.
ClassWeight = str | Mapping[Any, float] | None


def class_weights(setting: ClassWeight, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Weight of each of the `classes` (k,) for labels y (n,), as in scikit-learn.

    Raises
    ------
    ValueError
        If a label of a mapping is no label of y, or its weight not positive.
    """
    if isinstance(setting, Mapping):
        labels = classes.tolist()
        unknown = [label for label in setting if label not in labels]
        if unknown:
            raise ValueError(
                f"class_weight has the keys {unknown}, which are no labels of y; its classes are "
                f"{labels}"
            )
        for label, weight in setting.items():
            check_number(f"class_weight[{label!r}]", weight, "> 0", lambda w: w > 0)
        setting = dict(setting)
    return np.asarray(compute_class_weight(setting, classes=classes, y=y))


_CHUNK = 512
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}

Pair = tuple[np.ndarray, np.ndarray]


@dataclass(eq=False, repr=False)
class TorchEstimator(TransformerMixin, ClassifierMixin, BaseEstimator, ABC):
    """A scikit-learn classifier on a network; its parameters are the fields of a dataclass.

    A subclass has the parameters `backbone`, `training`, `image_shape`, `random_state` and
    `class_weight` and its own. It defines ``predict_proba``, and ``_loss`` unless that is the
    cross-entropy (and ``_score``, if the loss cannot choose an epoch).
    """

    #: Defaults of parameters that are None.
    _default_backbone: ClassVar[Architecture] = MLP()
    _default_training: ClassVar[Training] = Training()

    backbone: Architecture | None = None
    training: Training | None = None
    _: KW_ONLY
    image_shape: tuple[int, ...] | None = None
    random_state: Any = 0
    class_weight: ClassWeight = None

    classes_: np.ndarray = field(init=False)
    class_weight_: np.ndarray = field(init=False)
    module_: nn.Module = field(init=False)
    history_: History = field(init=False)
    image_shape_: Shape = field(init=False)

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
            As in `dipedl.networks.train`.

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
        with _restore_on_error(self, FloatingPointError, TrainingPaused):
            # What is left of an interrupted fit must not meet parts of an earlier one.
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)
            if self._take_network(X, y):
                return self
            data = self.validate_fit(X, y, validation)
            seed = self.draw_seed()
            with plain_defaults():
                self.module_ = self.build_network(len(self.classes_), seed)
            run: Any = {"checkpoint": checkpoint, "progress": progress, "deadline": deadline}
            self.history_ = self._train(self.module_, *data, seed=seed, **run)
            self._fit_head(X, self.classes_[data[1]], **run)
            return self

    def _take_network(self, X: Any, y: Any) -> bool:
        """Take a network that is already trained, and return True; False if there is none."""
        return False

    def _fit_head(self, X: Any, y: Any, **run: Any) -> None:
        """Fit what predictions need besides the network, on X of ``fit`` and labels y (n,).

        `run` has the checkpoint, progress and deadline of ``fit``, for what trains again.
        """

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each input of X (n, d), shape (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @abstractmethod
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d), shape (n, k)."""

    def logits(self, X: Any) -> np.ndarray:
        """Outputs of the network on inputs X (n, d), shape (n, k)."""
        return self.apply_network(X)

    def transform(self, X: Any) -> np.ndarray:
        """Features of inputs X (n, d) before the head, shape (n, n_features)."""
        return self.apply_network(X, lambda module, chunk: module.features(chunk))

    def linear_head(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weight (k, p) and bias (k,) of the last layer, by which features give logits.

        Raises
        ------
        TypeError
            If the part of the network after its features is not linear.
        """
        check_is_fitted(self, "module_")
        if not hasattr(self.module_, "head"):
            raise TypeError(f"the network of {self!r} has no head after its features")
        network: Any = self.module_
        head, p = deepcopy(network.head).to("cpu", torch.float64), network.n_features
        points = torch.randn(4, p, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        with torch.inference_mode():
            bias = head(torch.zeros(1, p, dtype=torch.float64))
            weight = (head(torch.eye(p, dtype=torch.float64)) - bias).T
            outputs = head(points)
        if not torch.allclose(outputs, points @ weight.T + bias, rtol=1e-6, atol=1e-6):
            raise TypeError(
                f"the head of {self!r} is not linear; take a backbone with one layer after its "
                "features"
            )
        return weight.numpy(), bias[0].numpy()

    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        """Mean loss of a batch, by ``weighted_mean``; `target` (n,) holds class numbers."""
        return self.cross_entropy(outputs, target)

    #: Validation score ``(outputs, target) -> mean, lower is better``; None: the loss.
    _score: ClassVar[Any] = None

    def weighted_mean(self, losses: Tensor, target: Tensor) -> Tensor:
        """Return the mean of the losses (n,), weighted by class."""
        if self.class_weight is None:
            return losses.mean()
        weights = _weights_on(losses.device, losses.dtype, *self.class_weight_.tolist())
        return (losses * weights[target]).mean()

    def error_rate(self, scores: Tensor, target: Tensor) -> Tensor:
        """Return the share of wrong predictions of class scores (n, k), weighted by class."""
        return self.weighted_mean((scores.argmax(dim=1) != target).double(), target)

    def cross_entropy(self, outputs: Tensor, target: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return the mean cross-entropy, weighted by class; `smoothing` of the labels in [0, 1)."""
        if self.class_weight is None:
            return cross_entropy(outputs, target, label_smoothing=smoothing)
        losses = cross_entropy(outputs, target, reduction="none", label_smoothing=smoothing)
        return self.weighted_mean(losses, target)

    def _recipe(self) -> TorchEstimator:
        """Return the estimator whose training, backbone and precision are those of the network."""
        return self

    def predict_dtype(self) -> torch.dtype:
        """Return the precision in which the trained network predicts: float32 without a choice."""
        precision = getattr(self._recipe(), "precision", "float32")
        check_choice("precision", precision, _DTYPES)
        return _DTYPES[precision]

    def draw_seed(self) -> int:
        """Return a seed from `random_state`."""
        return int(random_state_of(self.random_state).randint(2**31))

    def training_settings(self) -> Training:
        """Return the settings of the training, checked."""
        own = self._recipe()
        training = own._default_training if own.training is None else own.training
        if not isinstance(training, Training):
            raise TypeError(f"training must be None or a Training, got {training!r}")
        return training

    def resolve_backbone(self) -> Architecture:
        """Return the backbone: `backbone`, or the default."""
        own = self._recipe()
        backbone = own._default_backbone if own.backbone is None else own.backbone
        if not isinstance(backbone, Architecture):
            raise TypeError(
                "backbone must be None or an Architecture of dipedl.networks (such as LeNet5(), "
                f"FastCNN(), MLP(), or one of your own), got {backbone!r}"
            )
        return backbone

    def build_network(self, n_outputs: int, seed: int) -> Network:
        """Return an untrained network for the inputs of ``validate_fit``."""
        generator = torch.Generator("cpu").manual_seed(seed)
        return self.resolve_backbone().build(self.image_shape_, n_outputs, generator)

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""

    def validate_fit(
        self, X: Any, y: Any, validation: Any
    ) -> tuple[np.ndarray, np.ndarray, Pair | None]:
        """Inputs in float32 and class numbers; sets `classes_` and the shapes."""
        self.check_parameters()
        X, y = float32_rows(self, X, y)
        check_classification_targets(y)
        self.image_shape_ = image_shape(self.image_shape, X.shape[1])
        self._check_pixels("X", X)
        self.classes_, targets = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y must hold at least 2 classes, got one class: {only!r}")
        self.class_weight_ = class_weights(self.class_weight, self.classes_, y)
        return X, targets, None if validation is None else self._check_validation(validation)

    def _check_validation(self, validation: Any) -> Pair:
        if not (isinstance(validation, tuple | list) and len(validation) == 2):
            raise TypeError(f"validation must be a pair (X, y) or None, got {type(validation)}")
        X, y = drop_mask("validation", validation[0]), validate_labels(validation[1])
        try:
            X = validate_data(self, X, dtype=np.float32, reset=False)
        except ValueError as error:
            raise ValueError(f"X of validation must be as X: {error}") from error
        check_consistent_length(X, y)
        self._check_pixels("X of validation", X)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y of validation holds the labels {unknown.tolist()}, which y lacks; the classes "
                f"are {self.classes_.tolist()}"
            )
        return X, np.searchsorted(self.classes_, y)

    def _check_pixels(self, name: str, X: np.ndarray) -> None:
        if self.resolve_backbone().takes_pixels:
            check_pixels(name, X)

    def _train(
        self,
        module: nn.Module,
        X: np.ndarray,
        y: np.ndarray,
        validation: Pair | None,
        **run: Any,
    ) -> History:
        """Train `module` on the data of ``validate_fit``; it ends in eval mode with plain weights.

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
                self.training_settings(),
                validation=None if validation is None else tuple(map(as_tensor, validation)),
                score=self._score,
                **run,
            )
        finally:
            module.eval()
            for layer in list(module.modules()):
                if parametrize.is_parametrized(layer, "weight"):
                    # the weights of the end stay, such as those divided by their spectral norm
                    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
            module.to(self.predict_dtype())

    def apply_network(
        self,
        X: Any,
        function: Callable[[Any, Tensor], Tensor] = lambda module, chunk: module(chunk),
    ) -> np.ndarray:
        """Return ``function(module, rows)`` of chunks of 512 rows as one finite float64 array."""
        check_is_fitted(self, "module_")
        dtype = self.predict_dtype()
        X = validate_data(self, drop_mask("X", X), dtype=_NUMPY[dtype], reset=False)
        self._check_pixels("X", X)
        settings = self.training_settings()
        device = resolve_device(settings.device)
        network = on_device(device, self.module_)
        with torch.inference_mode(), limit_threads(settings.n_jobs):
            parts = [
                function(network, as_tensor(X[start : start + _CHUNK]).to(device)).double().cpu()
                for start in range(0, len(X), _CHUNK)
            ]
        outputs = np.asarray(torch.cat(parts).numpy())
        _check_finite(outputs, X)
        return outputs


@lru_cache
def _weights_on(device: torch.device, dtype: torch.dtype, *weights: float) -> Tensor:
    """Copy weights to a device once: it waits for a copy, and a replayed step cannot repeat it."""
    return torch.tensor(weights, dtype=dtype, device=device)


def float32_rows(model: TorchEstimator, X: Any, y: Any) -> Pair:
    """Return X (n, d) in float32 and y (n,) to fit on; `model` learns the width."""
    X = drop_mask("X", X)
    check_magnitude("X", X)
    X, y = validate_data(model, X, None if y is None else validate_labels(y), dtype=np.float32)
    return X, y


def _check_finite(outputs: np.ndarray, X: np.ndarray) -> None:
    bad = ~np.isfinite(outputs).all(axis=tuple(range(1, outputs.ndim)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise NotComputableError(
            f"the network gives NaN or infinity for {int(bad.sum())} of {len(X)} rows of X, the "
            f"first of them row {row} with values up to {np.abs(X[row]).max():g}; scale the inputs "
            "as those of fit"
        )


def on_device(device: torch.device, module: nn.Module) -> nn.Module:
    """Return the module on `device`, in eval mode: itself, or a copy, so that it is not moved.

    Between two epochs of a training, and where a user has trained it further, it may be in
    training mode, in which dropout and batch normalisation answer at random.
    """
    devices = {p.device.type for p in module.parameters()}
    return (module if devices <= {device.type} else deepcopy(module).to(device)).eval()


@dataclass(eq=False, repr=False, kw_only=True)
class TorchClassifier(TorchEstimator):
    """A network trained by cross-entropy.

    ``transform`` returns the features before the head, on which a density detects more than on
    pixels: pass the classifier as `estimator` and as `features` of a `DIPClassifier`.

    Parameters
    ----------
    backbone : backbone, optional
        One of `dipedl.networks`: `FastCNN` and `LeNet5` take pixels in [0, 1] only, `MLP` any
        numbers; or one of your own, see `Architecture`. None is ``MLP()``.
    training : Training, optional
        Settings of the training; None is ``Training()``.
    image_shape : tuple of int, optional
        (height, width) or (channels, height, width) of the rows of X; None is one square grey image
        if the number of columns is a square, and otherwise one row of numbers.
    random_state : int, RandomState or None, default=0
        Seed of initial weights, shuffling, augmentation and dropout; PyTorch's global generator is
        not used.
    label_smoothing : float, default=0.0
        Share of each label that is spread over all classes, in [0, 1).
    precision : {"float32", "float64"}, default="float32"
        Precision of prediction; training is in float32. A prediction depends on the other rows of
        the call in the last digits of this precision.
    class_weight : None, "balanced" or mapping, default=None
        Weights of the classes in the loss and in the validation score: "balanced" gives every class
        the same total, as in scikit-learn; or numbers > 0 by label, 1 for a missing label.
        Probabilities then follow the weighted frequencies.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        Class labels; the columns of ``predict_proba``.
    class_weight_ : ndarray, shape (k,)
        Weight of each class.
    module_ : torch.nn.Module
        The trained network, on the CPU, in eval mode.
    history_ : History
        Loss, score and seconds of every epoch.
    image_shape_ : tuple of int
        Channels, height and width of an input.
    n_features_in_ : int
        Number of columns d.

    See Also
    --------
    dipedl.DIPClassifier : adds a density.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.networks import FastCNN, TorchClassifier, Training
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.uniform(0, 0.5, (40, 64)) + 0.5 * y[:, None]  # dark and bright 8 x 8 images
    >>> clf = TorchClassifier(FastCNN(width=4), Training(epochs=4, batch_size=8)).fit(X, y)
    >>> clf.predict_proba(X).shape, clf.transform(X).shape
    ((40, 2), (40, 16))
    """

    label_smoothing: float = 0.0
    precision: str = "float32"

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d), shape (n, k)."""
        return np.asarray(softmax(self.logits(X), axis=1))

    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        return self.cross_entropy(outputs, target, self.label_smoothing)

    def _score(self, outputs: Tensor, target: Tensor) -> Tensor:
        return self.cross_entropy(outputs, target)

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_number("label_smoothing", self.label_smoothing, "in [0, 1)", lambda x: 0 <= x < 1)


@contextmanager
def _restore_on_error(model: Any, *but: type[Exception]) -> Iterator[None]:
    """Restore the attributes of `model` if the block raises an error.

    Attributes must be replaced in the block, not changed in place. Errors of the types `but` keep
    what was set, as does a KeyboardInterrupt.
    """
    before = dict(vars(model))
    try:
        yield
    except Exception as error:
        if not isinstance(error, but):
            vars(model).clear()
            vars(model).update(before)
        raise
