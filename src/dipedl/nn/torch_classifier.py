"""A network trained by cross-entropy, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from torch.nn.functional import cross_entropy

from ._checks import check_choice, check_number
from ._estimator import TorchEstimator
from .backbones._network import Backbone
from .training._class_weight import ClassWeight
from .training.settings import Training

__all__ = ["TorchClassifier"]

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class TorchClassifier(TorchEstimator):
    """A network trained by cross-entropy.

    ``transform`` returns the features before the head, on which a density detects more than on
    pixels: pass the classifier as `estimator` and as `features` of a `DIPClassifier`.

    Parameters
    ----------
    backbone : backbone, optional
        One of `dipedl.nn`: `FastCNN`, `LeNet5`, `ResNet18`, `ConvLin`, `SmallCNN` take pixels in
        [0, 1] only; `MLP`, and for rows of ordered numbers, such as spectra,
        `BranchCNN` and `ConvLin1d`, take any numbers. None is ``MLP()``.
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
    >>> from dipedl.nn import FastCNN, TorchClassifier, Training
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.uniform(0, 0.5, (40, 64)) + 0.5 * y[:, None]  # dark and bright 8 x 8 images
    >>> clf = TorchClassifier(FastCNN(width=4), Training(epochs=4, batch_size=8)).fit(X, y)
    >>> clf.predict_proba(X).shape, clf.transform(X).shape
    ((40, 2), (40, 16))
    """

    def __init__(
        self,
        backbone: Backbone | None = None,
        training: Training | None = None,
        *,
        image_shape: tuple[int, ...] | None = None,
        random_state: Any = 0,
        label_smoothing: float = 0.0,
        precision: str = "float32",
        class_weight: ClassWeight = None,
    ) -> None:
        super().__init__(backbone, training, image_shape, random_state, class_weight)
        self.label_smoothing = label_smoothing
        self.precision = precision

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d), shape (n, k)."""
        return np.asarray(softmax(self.logits(X), axis=1))

    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        return self._cross_entropy(outputs, target, self.label_smoothing)

    def _score(self, outputs: Tensor, target: Tensor) -> Tensor:
        return self._cross_entropy(outputs, target, 0.0)

    def _cross_entropy(self, outputs: Tensor, target: Tensor, smoothing: float) -> Tensor:
        if self.class_weight is None:
            return cross_entropy(outputs, target, label_smoothing=smoothing)
        losses = cross_entropy(outputs, target, reduction="none", label_smoothing=smoothing)
        return self._mean(losses, target)

    def _settings(self) -> Training:
        check_number("label_smoothing", self.label_smoothing, "in [0, 1)", lambda x: 0 <= x < 1)
        return super()._settings()

    def _dtype(self) -> torch.dtype:
        check_choice("precision", self.precision, _DTYPES)
        return _DTYPES[self.precision]
