"""Detectors that look at no shape: what an OOD set gives away for free.

A foreign image whose border is not black, or which holds more ink than a digit, is recognised
without any model. Where these do well, a high AUROC says little about a method.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["DETECTORS", "border_ink", "ink", "unusual_ink"]


def border_ink(images: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Mean of the outermost pixels, shape (n,).

    MNIST digits stand in the middle of a black frame, so ink there is taken to mean "no digit".

    Parameters
    ----------
    images : ndarray, shape (n, channels, height, width)
        In [0, 1].
    reference : ndarray, optional
        Not looked at; detectors are called alike.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.bench.trivial import border_ink
    >>> image = np.zeros((1, 1, 4, 4))
    >>> image[..., 0, :3] = 1  # 3 of 12 border pixels
    >>> border_ink(image)
    array([0.25])
    """
    border = np.ones(_checked(images).shape[1:], dtype=bool)
    border[:, 1:-1, 1:-1] = False
    return np.asarray(images[:, border].mean(axis=1, dtype=np.float64))


def ink(images: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Mean of all pixels, shape (n,): the brighter, the less a digit. Parameters as above."""
    return np.asarray(_checked(images).mean(axis=(1, 2, 3), dtype=np.float64))


def unusual_ink(images: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Distance of the mean of all pixels from that of the training images, shape (n,).

    Parameters
    ----------
    images : ndarray, shape (n, channels, height, width)
        In [0, 1].
    reference : ndarray, shape (m, ...)
        Training images; their mean is all that is used.
    """
    return np.abs(ink(images) - float(np.mean(reference, dtype=np.float64)))


#: Title of a detector -> ``(images, training images)`` to uncertainty (n,), higher = less a digit.
#: The direction of each was fixed beforehand; none was turned round to suit a set.
DETECTORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "border ink": border_ink,
    "mean intensity": ink,
    "unusual mean intensity": unusual_ink,
}


def _checked(images: np.ndarray) -> np.ndarray:
    if np.ndim(images) != 4:
        raise ValueError(
            "images must have shape (n, channels, height, width), got "
            f"{np.shape(images)}; reshape rows of pixels first"
        )
    return images
