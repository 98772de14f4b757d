"""The bundled digits in colour, for trials of everything that is made for small photographs."""

from __future__ import annotations

import numpy as np

from dipedl.datasets import Dataset, load_mini_mnist

_SIDE, _MARGIN = 32, 2


def load_colour_digits() -> Dataset:
    """Digits in one random colour on another, 3 x 32 x 32; nothing is downloaded.

    The images of `dipedl.datasets.load_mini_mnist`, with two pixels of margin on every side,
    channel by channel, as those of `load_cifar10`. Colours are drawn once, from a fixed seed, so
    every image keeps its own.
    """
    grey = load_mini_mnist()
    rng = np.random.default_rng(0)
    return Dataset(
        "colour_digits",
        _coloured(grey.X_train, rng),
        grey.y_train,
        _coloured(grey.X_test, rng),
        grey.y_test,
        ood={name: _coloured(X, rng) for name, X in sorted(grey.ood.items())},
        target_names=grey.target_names,
        image_shape=(3, _SIDE, _SIDE),
        provenance=grey.provenance,
    )


def _coloured(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of grey pixels (n, 784) as rows of coloured ones (n, 3072)."""
    side = _SIDE - 2 * _MARGIN
    margins = ((0, 0), (0, 0), (_MARGIN, _MARGIN), (_MARGIN, _MARGIN))
    ink = np.pad(X.reshape(-1, 1, side, side), margins, mode="edge")
    pen, paper = rng.uniform(0.0, 1.0, (2, len(X), 3, 1, 1)).astype(np.float32)
    images = ink * pen + (1 - ink) * paper
    return np.asarray(images.reshape(len(X), -1))
