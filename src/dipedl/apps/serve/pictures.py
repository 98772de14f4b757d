"""Images beside a model of pixels, for the page."""

from __future__ import annotations

import base64
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, PlainSerializer
from pydantic.dataclasses import dataclass

__all__ = ["Pictures"]


def _base64(images: np.ndarray) -> str:
    return base64.b64encode(images.tobytes()).decode("ascii")


Pixels = Annotated[np.ndarray, PlainSerializer(_base64, return_type=str)]


@dataclass(frozen=True, eq=False, config=ConfigDict(arbitrary_types_allowed=True))
class Pictures:
    """Images beside a model of pixels, which its file does not hold.

    In JSON they are their bytes in base64: one byte per pixel, 255 is ink.

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
    images: Pixels
    labels: list[str]
    examples: dict[str, Pixels]
