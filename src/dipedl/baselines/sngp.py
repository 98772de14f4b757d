"""Spectral-normalised neural Gaussian process (SNGP)."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp, softmax
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..answers import Decisions
from ..maths.arrays import check_integer, check_positive_number
from ..networks.backbones import Network, blank_layer, in_float32
from ..networks.torch_classifier import TorchEstimator
from ..networks.training import Training
from .evidential import TRAINING

__all__ = ["SNGP"]

_CHUNK = 4096


@dataclass(eq=False, repr=False, kw_only=True)
class SNGP(Decisions, TorchEstimator):
    r"""A network whose last layer is a Gaussian process, by random Fourier features.

    .. math:: f = \beta \phi, \quad \phi = \sqrt{2 / D} \cos(V z / \ell + a), \qquad
        v = \phi^T (I + \sum_i \phi_i \phi_i^T / r)^{-1} \phi, \qquad
        p = \mathrm{softmax}\left(\frac{f}{\sqrt{1 + \pi v / 8}}\right),

    with z the features of the backbone, V standard normal and a uniform on a circle, both fixed,
    and :math:`\beta` trained with the backbone by cross-entropy. The sum is over the training rows.

    Parameters
    ----------
    backbone : backbone, optional
        One of `dipedl.networks`; None is ``MLP()``. The paper's has residual connections and
        spectral normalisation.
    n_fourier : int, default=1024
        D.
    length_scale : float, default=2.0
        l > 0, in units of the features.
    ridge : float, default=1.0
        r > 0. All three are the released code's for CIFAR-10.
    training, image_shape, random_state, class_weight : optional
        As of `EDL`.

    Attributes
    ----------
    classes_, class_weight_, module_, image_shape_, n_features_in_, history_
        As of `dipedl.networks.TorchClassifier`.
    factor_ : ndarray, shape (D, D)
        Lower Cholesky factor of ``I + sum phi phi^T / r``.

    Notes
    -----
    Uncertainty is ``-log sum_c exp`` of the logits after division, which ranks as the
    Dempster-Shafer uncertainty ``K / (K + sum_c exp)`` of the paper.

    The covariance is one for all classes, with a Gaussian likelihood, as in the released code; it
    is exact, from one pass over the training rows after the training, not a moving average. The
    released code multiplies v by a factor that is tuned for calibration; here it is the paper's
    pi / 8.

    References
    ----------
    Liu, Lin, Padhy, Tran, Bedrax-Weiss, Lakshminarayanan, "Simple and principled uncertainty
    estimation with deterministic deep learning via distance awareness", NeurIPS 2020, equations 8
    to 10 and algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import SNGP
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> sngp = SNGP(training=Training(epochs=30, batch_size=16), n_fourier=128).fit(X, y)
    >>> near, far = sngp.uncertainty([X[0], 10 * X[0]])
    >>> sngp.score(X, y) > 0.9, bool(near < far)
    (True, True)
    """

    _default_training: ClassVar[Training] = TRAINING

    n_fourier: int = 1024
    length_scale: float = 2.0
    ridge: float = 1.0

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("n_fourier", self.n_fourier)
        check_positive_number("length_scale", self.length_scale)
        check_positive_number("ridge", self.ridge)
        super().check_parameters()

    def build_network(self, n_outputs: int, seed: int) -> Network:
        """Return an untrained backbone with random Fourier features before its last layer."""
        generator = torch.Generator("cpu").manual_seed(seed)
        network = self.resolve_backbone().build(self.image_shape_, n_outputs, generator)
        layer, bound = blank_layer(nn.Linear, self.n_fourier, n_outputs, bias=False), 0.01
        for weights in layer.parameters():
            nn.init.normal_(weights, std=bound, generator=generator)
        fourier = _Fourier(network.n_features, self.n_fourier, self.length_scale, generator)
        network.head = nn.Sequential(fourier, layer)
        return network

    def _fit_head(self, X: Any, y: Any, **run: Any) -> None:
        precision = np.eye(self.n_fourier)
        for start in range(0, len(y), _CHUNK):
            rows = _safe_indexing(X, slice(start, start + _CHUNK))
            phi = self.apply_network(rows, _fourier_features)
            precision += phi.T @ phi / self.ridge
        self.factor_ = cholesky(precision, lower=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), averaged over the process, shape (n, k)."""
        return np.asarray(softmax(self._mean_field_logits(X), axis=1))

    def uncertainty(self, X: Any) -> np.ndarray:
        """``-log sum_c exp`` of the averaged logits of each input X (n, d), shape (n,)."""
        return np.asarray(-logsumexp(self._mean_field_logits(X), axis=1))

    def variance(self, X: Any) -> np.ndarray:
        """Variance v of the process at each input X (n, d), in [0, 2], shape (n,)."""
        check_is_fitted(self, "factor_")
        phi = self.apply_network(X, _fourier_features)
        return np.asarray(np.square(solve_triangular(self.factor_, phi.T, lower=True)).sum(axis=0))

    def _mean_field_logits(self, X: Any) -> np.ndarray:
        variance = self.variance(X)
        return np.asarray(self.logits(X) / np.sqrt(1 + pi / 8 * variance)[:, None])


class _Fourier(nn.Module):
    """Random Fourier features of rows (n, p), shape (n, D)."""

    weight: Tensor
    offset: Tensor

    def __init__(self, p: int, D: int, length_scale: float, generator: torch.Generator) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(D, p, generator=generator) / length_scale)
        self.register_buffer("offset", 2 * pi * torch.rand(D, generator=generator))

    @in_float32  # the angles are large
    def forward(self, features: Tensor) -> Tensor:
        angles = features @ self.weight.T + self.offset
        phi: Tensor = angles.cos() * (2 / len(self.offset)) ** 0.5
        return phi


def _fourier_features(module: Any, chunk: Tensor) -> Tensor:
    features: Tensor = module.head[0](module.features(chunk))
    return features
