"""Stochastic weight averaging, Gaussian (SWAG)."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters
from torch.optim.swa_utils import update_bn

from ..answers import Decisions
from ..maths.arrays import check_integer
from ..networks.device import as_tensor, seed_generators
from ..networks.torch_classifier import Pair, TorchEstimator, on_device
from ..networks.training import History, Training, train
from .deep_ensemble import uncertainty_of_samples
from .evidential import TRAINING

__all__ = ["SWAG"]

_CHUNK = 512


@dataclass(eq=False, repr=False, kw_only=True)
class SWAG(Decisions, TorchEstimator):
    r"""Networks drawn from a Gaussian of the weights that SGD passes at a constant rate.

    .. math:: w_s = \bar w + \sqrt{d / 2} \, \epsilon + \frac{D \eta}{\sqrt{2 (K - 1)}}, \quad
              p(x) = \frac{1}{m} \sum_s p_s(x), \quad
              u(x) = H(p(x)) - \frac{1}{m} \sum_s H(p_s(x)),

    with mean :math:`\bar w` and variances d of the weights after each epoch, the last K deviations
    D from their running mean, and :math:`\epsilon`, :math:`\eta` standard normal.

    Parameters
    ----------
    backbone, training, image_shape, class_weight : optional
        As of `EDL`: of the training by cross-entropy before the first iterate.
    iterates : Training, optional
        Settings of the epochs that follow, each with an iterate at its end; at least two. None is
        SGD for 20 epochs at a rate of 0.01.
    rank : int, default=20
        Largest K, at least 2.
    n_samples : int, default=30
        Networks m; with the rate of the iterates and K the paper's for CIFAR-10.
    random_state : int, RandomState or None, default=0
        Seed of initial weights, shuffling and the m networks.

    Attributes
    ----------
    classes_, class_weight_, image_shape_, n_features_in_, history_
        As of `dipedl.networks.TorchClassifier`; the history is that of the training.
    module_ : torch.nn.Module
        The network of the mean weights, whose are ``logits`` and ``transform``.
    mean_, variance_ : ndarray, shape (w,)
        Mean and variances of the w weights over the iterates.
    deviations_ : ndarray, shape (K, w)
        The rows of D.
    networks_ : list of torch.nn.Module
        The m networks, the batch normalisation of each by a pass over the training rows.

    Notes
    -----
    Iterates are not in a checkpoint: a fit that is resumed goes through them again.

    References
    ----------
    Maddox, Garipov, Izmailov, Vetrov, Wilson, "A simple baseline for Bayesian uncertainty in deep
    learning", NeurIPS 2019, equation 1 and algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import SWAG
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> training = Training(epochs=30, batch_size=16)
    >>> swag = SWAG(training=training, iterates=Training(20, 16, "sgd", 0.05)).fit(X, y)
    >>> near, between = swag.uncertainty(X[[0, 70]])
    >>> swag.score(X, y) > 0.9, bool(near < between)
    (True, True)
    """

    _default_training: ClassVar[Training] = TRAINING

    iterates: Training | None = None
    rank: int = 20
    n_samples: int = 30

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("rank", self.rank, 2)
        check_integer("n_samples", self.n_samples)
        if self._iterates().epochs < 2:
            raise ValueError("iterates must have at least 2 epochs, for a variance; got 1")
        super().check_parameters()

    def _iterates(self) -> Training:
        if self.iterates is not None and not isinstance(self.iterates, Training):
            raise TypeError(f"iterates must be None or a Training, got {self.iterates!r}")
        return self.iterates or Training(epochs=20, optimizer="sgd", learning_rate=0.01)

    def _train(
        self, module: nn.Module, X: np.ndarray, y: np.ndarray, validation: Pair | None, **run: Any
    ) -> History:
        history = super()._train(module, X, y, validation, **run)
        path, rows, seed = _Path(self.rank), as_tensor(X), run["seed"]

        def add(report: dict[str, Any]) -> None:
            weights = [part.detach().double().cpu().numpy() for part in module.parameters()]
            path.add(np.concatenate([part.ravel() for part in weights]))

        train(module, self._loss, (rows, as_tensor(y)), self._iterates(), seed=seed, progress=add)
        self.mean_, self.variance_ = path.mean, path.squares / path.n
        self.deviations_ = np.stack(path.deviations)
        low_rank = self.deviations_ / np.sqrt(2 * (len(self.deviations_) - 1))
        chunks = rows.tensor_split(-(-len(rows) // _CHUNK))
        rng, self.networks_ = np.random.default_rng(seed), list[nn.Module]()
        for _ in range(self.n_samples):
            noise = np.sqrt(self.variance_ / 2) * rng.standard_normal(len(self.mean_))
            weights = self.mean_ + noise + rng.standard_normal(len(low_rank)) @ low_rank
            self.networks_.append(_with_weights(module, weights, chunks))
        module.load_state_dict(_with_weights(module, self.mean_, chunks).state_dict())
        return history

    def predict_proba(self, X: Any) -> np.ndarray:
        """Mean class probabilities of inputs X (n, d) over the networks, shape (n, k)."""
        return np.asarray(self.sample_proba(X).mean(axis=0))

    def uncertainty(self, X: Any, kind: str = "mutual_information") -> np.ndarray:
        """Uncertainty of each input of X (n, d), shape (n,), `kind` as for `DeepEnsemble`."""
        return uncertainty_of_samples(kind)(self.sample_proba(X))

    def sample_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d) by every network, shape (n_samples, n, k)."""
        check_is_fitted(self, "networks_")

        def logits_of(member: nn.Module) -> np.ndarray:
            return self.apply_network(X, lambda _, chunk: on_device(chunk.device, member)(chunk))

        return np.stack([softmax(logits_of(member), axis=1) for member in self.networks_])


@dataclass(eq=False)
class _Path:
    """Mean, sum of squares and the last deviations of weights that are added in turn."""

    rank: int
    n: int = 0
    mean: Any = 0.0
    squares: Any = 0.0
    deviations: list[np.ndarray] = field(default_factory=list)

    def add(self, weights: np.ndarray) -> None:
        self.n += 1
        gap = weights - self.mean
        self.mean = self.mean + gap / self.n
        self.deviations = [*self.deviations, weights - self.mean][-self.rank :]
        self.squares = self.squares + gap * self.deviations[-1]


def _with_weights(module: nn.Module, weights: np.ndarray, rows: Iterable[Tensor]) -> nn.Module:
    """Return a copy with these weights (w,), and batch normalisation by chunks of rows (n, d)."""
    copy = deepcopy(module)
    vector_to_parameters(torch.from_numpy(weights).float(), copy.parameters())
    with seed_generators(0, torch.device("cpu")):  # dropout is on in that pass
        update_bn(rows, copy)
    return copy
