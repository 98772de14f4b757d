"""Images beside a model of pixels: what the page shows of them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images beside a model of pixels, which its file does not hold.

    Attributes
    ----------
    height, width : int
        In pixels; a row of the model is such an image, row by row, with ink in [0, 1].
    images : ndarray of uint8, shape (n, height * width)
        The training images, in the order of the fit; 255 is ink.
    labels : list of str, length n
        Their classes.
    examples : dict of str to ndarray of uint8, shape (m, height * width)
        Images that the fit has not seen, by what they are.
    """

    height: int
    width: int
    images: np.ndarray
    labels: list[str]
    examples: dict[str, np.ndarray]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``json.dump`` takes; images as their bytes in base64."""
        return {
            "height": self.height,
            "width": self.width,
            "images": _text(self.images),
            "labels": self.labels,
            "examples": {name: _text(images) for name, images in self.examples.items()},
        }


def _text(images: np.ndarray) -> str:
    return base64.b64encode(images.tobytes()).decode("ascii")
