"""Several layers of a network side by side, as features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import get_ident
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..maths.arrays import check_choice
from ..protocols import atomic
from .backbones import Network
from .torch_classifier import TorchEstimator

__all__ = ["LayerFeatures"]

POOLS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "average": lambda x, dim: x.mean(dim),
    "max": lambda x, dim: x.amax(dim),
}


class LayerFeatures(TransformerMixin, BaseEstimator):
    """Concatenated outputs of several layers of a network, maps pooled to one number per channel.

    Early layers see texture and noise that the last one was trained to ignore.

    Parameters
    ----------
    estimator : TorchEstimator
        A classifier of `dipedl.networks` or a network baseline. A copy is trained; one in
        `sklearn.frozen.FrozenEstimator` is used as it is; pass this to a `DIPClassifier`.
    layers : sequence of str
        Names of modules as ``estimator.module_.named_modules()`` gives them, such as ``"body.3"``;
        ``"body"`` is the features, ``"head"`` the logits. A name that does not exist is an error
        that lists those that do, with shapes.
    pool : {"average", "max"}, default="average"
        How a map is pooled over its pixels.

    Attributes
    ----------
    estimator_ : TorchEstimator
        The trained network.
    widths_ : list of int
        Columns of each layer, as `dipedl.density.BlockSumDensity` takes them.
    n_features_in_ : int
        Number of inputs d.

    Notes
    -----
    One forward pass for all layers. The network is not changed: hooks capture the outputs while a
    batch runs, in the calling thread. A module that runs several times in one pass gives its
    last output. Of a network that averages views of an image, layers of the body are those of the
    image itself, and the head sees the mean.

    References
    ----------
    Lee et al., "A simple unified framework for detecting out-of-distribution samples and
    adversarial attacks", NeurIPS (2018), section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from dipedl.networks import MLP, LayerFeatures, TorchClassifier, Training
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> clf = TorchClassifier(MLP((8, 4)), Training(epochs=2)).fit(X, X[:, 0] > 0)
    >>> features = LayerFeatures(FrozenEstimator(clf), ["body.2", "body", "head"]).fit(X)
    >>> features.transform(X).shape, features.widths_
    ((40, 14), [8, 4, 2])
    """

    def __init__(self, estimator: Any, layers: Sequence[str], pool: str = "average") -> None:
        self.estimator = estimator
        self.layers = layers
        self.pool = pool

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train a copy on inputs X (n, d) and labels y (n,), unless it is frozen; find the layers.

        Raises
        ------
        ValueError
            If a layer does not exist, or none is named; lists names and shapes.
        TypeError
            If the estimator has no network of `dipedl.networks`.
        """
        check_choice("pool", self.pool, POOLS)
        self.estimator_ = self._network(X, y)
        self.n_features_in_ = self.estimator_.n_features_in_
        shapes = self._shapes(_safe_indexing(X, slice(1)))
        self._check_layers(shapes)
        self.widths_ = [shapes[name][0] for name in self.layers]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Pooled outputs of the layers on inputs X (n, d), shape (n, sum of `widths_`)."""
        check_is_fitted(self, "estimator_")
        layers = list(self.layers)
        # where a network averages views, its body need not run on those before the image itself
        of_body = all(name.partition(".")[0] == "body" for name in layers)

        def pool_layers(network: Network, chunk: Tensor) -> Tensor:
            with capture_outputs(network, layers, partial(copy_rows, pool=self.pool)) as captured:
                Network.features(network, chunk) if of_body else network(chunk)
            return torch.cat([captured[name] for name in layers], dim=1)

        return self.estimator_.apply_network(X, pool_layers)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Layer and number of each column, shape (sum of `widths_`,)."""
        check_is_fitted(self, "estimator_")
        pairs = zip(self.layers, self.widths_, strict=True)
        names = [f"{name}[{i}]" for name, width in pairs for i in range(width)]
        return np.array(names, dtype=object)

    def _network(self, X: Any, y: Any) -> TorchEstimator:
        frozen = isinstance(self.estimator, FrozenEstimator)
        inner = self.estimator.estimator if frozen else self.estimator
        if not isinstance(inner, TorchEstimator):
            raise TypeError(
                "estimator must be a network classifier of dipedl, such as TorchClassifier, got "
                f"{inner!r}; for another network write a transformer of your own"
            )
        if frozen:
            check_is_fitted(inner, "module_")
            return inner
        trained: TorchEstimator = clone(inner).fit(X, y)
        return trained

    def _shapes(self, row: Any) -> dict[str, tuple[int, ...]]:
        """Output shape of each layer for one input."""
        result: dict[str, tuple[int, ...]] = {}

        def shapes(network: nn.Module, chunk: Tensor) -> Tensor:
            names = [name for name, _ in network.named_modules() if name]
            with capture_outputs(network, names, shape_of_one) as captured:
                answer: Tensor = network(chunk)
            result.update((name, captured[name]) for name in names if name in captured)
            return answer

        self.estimator_.apply_network(row, shapes)
        return {name: shape for name, shape in result.items() if shape}

    def _check_layers(self, shapes: dict[str, tuple[int, ...]]) -> None:
        if isinstance(self.layers, str):
            raise TypeError(f"layers must be a list of names, got the string {self.layers!r}")
        unknown = [name for name in self.layers if name not in shapes]
        if unknown or not len(self.layers):
            listed = ", ".join(f"{name} {'x'.join(map(str, s))}" for name, s in shapes.items())
            raise ValueError(
                f"layers must name some of the network's layers, got {list(self.layers)}; "
                f"it has: {listed}"
            )


@contextmanager
def capture_outputs(
    network: nn.Module, names: Sequence[str], keep: Callable[[Tensor], Any]
) -> Iterator[dict[str, Any]]:
    """Context with a dictionary that collects ``keep(output)`` of named modules as they run."""
    captured: dict[str, Any] = {}
    thread = get_ident()

    def store(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        tensor = first_tensor(output)
        if tensor is not None and get_ident() == thread:
            captured.pop(name, None)
            captured[name] = keep(tensor)

    modules = dict(network.named_modules())
    with ExitStack() as hooks:
        for name in dict.fromkeys(names):
            hooks.enter_context(modules[name].register_forward_hook(partial(store, name)))
        yield captured


def first_tensor(output: Any) -> Tensor | None:
    """Return a tensor or the first of a tuple or mapping; None for no tensor or a ragged one."""
    if isinstance(output, Mapping):
        output = next(iter(output.values()), None)
    elif isinstance(output, tuple | list) and output:
        output = output[0]
    # nn.TransformerEncoder packs padded rows into a nested tensor, which has no shape.
    return output if isinstance(output, Tensor) and not output.is_nested else None


def shape_of_one(output: Tensor) -> tuple[int, ...]:
    """Return the shape of one input's output."""
    return tuple(output.shape[1:])


def pool_rows(values: Tensor, pool: str | None) -> Tensor:
    """Return one row an input of maps or sequences; None, and rows, stay as they are."""
    if pool is None or values.ndim < 3:
        return values
    # (n, tokens, channels), or (n, channels, height, width) and deeper.
    return POOLS[pool](values, 1) if values.ndim == 3 else POOLS[pool](values.flatten(2), 2)


def copy_rows(output: Tensor, pool: str | None) -> Tensor:
    """Return pooled rows that survive a next layer that works in place (ReLU(inplace=True))."""
    rows = pool_rows(output, pool)
    return rows.clone() if rows is output else rows
