"""Monte Carlo dropout."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from ..answers import Decisions
from ..maths.arrays import check_integer
from ..networks.backbones import MLP, Architecture, Network
from ..networks.torch_classifier import TorchEstimator, float32_rows
from ..networks.training import Training
from .deep_ensemble import Reduction, uncertainty_of_samples
from .evidential import TRAINING

__all__ = ["MCDropout"]


@dataclass(eq=False, repr=False, kw_only=True)
class MCDropout(Decisions, TorchEstimator):
    r"""A network trained with dropout by cross-entropy; prediction averages passes with dropout.

    .. math:: p(x) = \frac{1}{m} \sum_s p_s(x), \quad
              u(x) = H(p(x)) - \frac{1}{m} \sum_s H(p_s(x)),

    with p_s the softmax of a pass in which units are dropped at random and all else (batch
    normalisation) is as in evaluation. Uncertainty is the mutual information of label and weights.

    Parameters
    ----------
    backbone : backbone, optional
        One of `dipedl.networks` with a dropout strictly between 0 and 1; None is
        ``MLP(dropout=0.5)``. For images: ``LeNet5(dropout=0.5)``.
    training : Training, optional
        Settings of the training; None is Adam for 8 epochs, one cycle with a peak of 2e-3.
    n_samples : int, default=50
        Passes m.
    image_shape, precision, class_weight : optional
        As of `dipedl.networks.TorchClassifier`.
    random_state : int, RandomState or None, default=0
        Seed of initial weights, shuffling, dropout in training, and of the m passes.
    network : network classifier, optional
        A network already trained with dropout, in `sklearn.frozen.FrozenEstimator`, such as a
        `dipedl.networks.TorchClassifier`. It is not trained again, and `backbone`,
        `training`, `image_shape`, `precision` and `class_weight` are its own.

    Attributes
    ----------
    classes_, module_, image_shape_, n_features_in_
        As of `dipedl.networks.TorchClassifier`; so are `class_weight_` and `history_`, which a
        given `network` leaves out.
    sample_seeds_ : list of int
        Seeds of the m patterns of dropped units.

    Raises
    ------
    ValueError
        From ``fit``: the backbone has no dropout, or the data and a given network do not match.
    TypeError
        From ``fit``: `network` is no frozen network classifier.

    Notes
    -----
    Each pass drops the same units for every input: it is one sample of the weights, as in the
    derivation. Frameworks drop other units per row, for speed in training. Per input both have the
    same distribution, but here a prediction does not depend on the other rows and is repeatable.
    ``logits`` and ``transform`` are those of the whole network, without dropout.

    References
    ----------
    Gal, Ghahramani, "Dropout as a Bayesian approximation", ICML (2016), equation 6; one pattern for
    all inputs: Kirsch, van Amersfoort, Gal, "BatchBALD", NeurIPS (2019), section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.baselines import MCDropout
    >>> from dipedl.networks import MLP, Training
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.normal(size=(40, 3)) + 4 * y[:, None]
    >>> training = Training(epochs=30, batch_size=8, learning_rate=0.01)
    >>> mc = MCDropout(MLP((32,), dropout=0.5), training).fit(X, y)
    >>> near, between = mc.uncertainty([[4.0, 4.0, 4.0], [2.0, 2.0, 2.0]])
    >>> bool(near < between)
    True
    """

    _default_backbone: ClassVar[Architecture] = MLP(dropout=0.5)
    _default_training: ClassVar[Training] = TRAINING

    n_samples: int = 50
    precision: str = "float32"
    network: Any = None

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("n_samples", self.n_samples)
        super().check_parameters()

    def _take_network(self, X: Any, y: Any) -> bool:
        self.check_parameters()
        seeds = np.random.SeedSequence(self.draw_seed()).generate_state(self.n_samples)
        self.sample_seeds_ = seeds.tolist()
        trained = self._trained_network()
        if trained is None:
            return False
        check_is_fitted(trained, "module_")
        check_dropout(trained.module_)  # type: ignore[arg-type]
        X, y = float32_rows(self, X, y)
        unknown = np.setdiff1d(y, trained.classes_)
        if X.shape[1] != trained.n_features_in_ or len(unknown):
            raise ValueError(
                f"X and y must match the data of network: {trained.n_features_in_} columns "
                f"and labels {trained.classes_.tolist()}, got {X.shape[1]} columns and the labels "
                f"{unknown.tolist()} besides; pass its training rows"
            )
        self.classes_, self.image_shape_ = trained.classes_, trained.image_shape_
        self.module_ = trained.module_
        return True

    def predict_proba(self, X: Any) -> np.ndarray:
        """Mean class probabilities of inputs X (n, d) over the passes, shape (n, k)."""
        return self._reduce_samples(X, lambda samples: samples.mean(axis=0))

    def uncertainty(self, X: Any, kind: str = "mutual_information") -> np.ndarray:
        """Uncertainty of each input of X (n, d), shape (n,), `kind` as for `DeepEnsemble`."""
        return self._reduce_samples(X, uncertainty_of_samples(kind))

    def sample_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d) in every pass, shape (n_samples, n, k)."""
        return self._reduce_samples(X, lambda samples: samples.swapaxes(0, 1)).swapaxes(0, 1)

    def _reduce_samples(self, X: Any, reduce: Reduction) -> np.ndarray:
        """``reduce(samples)`` of samples (m, n, k), in chunks to save memory."""

        def reduce_chunk(network: Network, chunk: Tensor) -> Tensor:
            outputs = sample_outputs(network, chunk, self.sample_seeds_)
            samples = outputs.double().softmax(dim=-1).cpu().numpy()
            return torch.from_numpy(np.ascontiguousarray(reduce(samples)))

        return self.apply_network(X, reduce_chunk)

    def _trained_network(self) -> TorchEstimator | None:
        if self.network is None:
            return None
        inner = self.network.estimator if isinstance(self.network, FrozenEstimator) else None
        if not isinstance(inner, TorchEstimator):
            raise TypeError(
                "network must be None or a network classifier of dipedl.networks in "
                f"FrozenEstimator, got {self.network!r}"
            )
        return inner

    def _recipe(self) -> TorchEstimator:
        return self._trained_network() or self

    def build_network(self, n_outputs: int, seed: int) -> Network:
        """Return an untrained network, which must have dropout."""
        network = super().build_network(n_outputs, seed)
        check_dropout(network)
        return network


_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_PLAIN = (nn.Dropout, *_CHANNELS)


class _Pattern(nn.Module):
    """Dropout whose pattern is the same for every row, drawn from a given generator."""

    def __init__(self, layer: _DropoutNd, generator: torch.Generator) -> None:
        super().__init__()
        self.p, self.generator = layer.p, generator
        self.whole_channels = isinstance(layer, _CHANNELS)

    def forward(self, x: Tensor) -> Tensor:
        shape = [1, *x.shape[1:]]
        if self.whole_channels:
            shape[2:] = [1] * (x.ndim - 2)
        draws = torch.rand(shape, generator=self.generator, device="cpu", dtype=torch.float32)
        mask = draws >= self.p
        return x * (mask.to(x.device, x.dtype) / (1 - self.p))


def check_dropout(network: Network) -> None:
    """Raise ValueError unless some layer drops units, by a dropout supported here."""
    layers = [layer for layer in network.modules() if isinstance(layer, _DropoutNd)]
    unsupported = sorted({type(x).__name__ for x in layers if not isinstance(x, _PLAIN)})
    if unsupported:
        raise ValueError(
            f"backbone has layers {unsupported}; only Dropout, Dropout1d, Dropout2d and Dropout3d "
            "are sampled: use those"
        )
    shares = sorted({layer.p for layer in layers})
    if not shares or not 0 < shares[-1] < 1:
        raise ValueError(
            "backbone must have a dropout strictly between 0 and 1, got "
            f"{shares or 'no Dropout layer'}; pass one that drops units, such as "
            "LeNet5(dropout=0.5) or MLP(dropout=0.5)"
        )


def sample_outputs(network: Network, X: Tensor, seeds: list[int]) -> Tensor:
    """Outputs (m, n, k) for rows X (n, d) of the m networks, one per seed.

    Layers before the first dropout are computed once.
    """
    generator = torch.Generator("cpu")
    before, after = _around_dropout(_with_dropout(network, generator))
    shared = before(X)
    outputs = []
    for seed in seeds:
        generator.manual_seed(seed)
        outputs.append(after(shared))
    return torch.stack(outputs)


def _around_dropout(network: Network) -> tuple[Callable[[Tensor], Tensor], nn.Module]:
    """Return a function for the input of the part with the first dropout, and that part."""
    if not _drops(network.body):
        return network.features, network.head
    if type(network).features is not Network.features:
        return nn.Identity(), network
    parts = list(network.body) if isinstance(network.body, nn.Sequential) else [network.body]
    first = next(i for i, part in enumerate(parts) if _drops(part))
    before = nn.Sequential(nn.Unflatten(1, network.input_shape), *parts[:first])
    return before, nn.Sequential(*parts[first:], network.head)


def _drops(part: nn.Module) -> bool:
    return any(isinstance(layer, _Pattern) for layer in part.modules())


def _with_dropout(network: Network, generator: torch.Generator) -> Network:
    """Return a copy that shares the weights; it draws from `generator`, in eval mode too."""
    shared = {id(t): t for t in chain(network.parameters(), network.buffers())}
    copy = deepcopy(network, shared)
    for parent in list(copy.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, _PLAIN) and layer.p > 0:
                setattr(parent, name, _Pattern(layer, generator))
    return copy
