"""Corruptions of images, of the fifteen kinds of CIFAR-10-C, in five severities, by a seed.

Constants are the published ones [1]_, for a side of 32 pixels; lengths grow with the side. The
images are not those of the original files, whose numbers must not stand beside these:

- each row has a generator of its own, from the seed and the number of the row;
- blurs are convolutions of scipy with the edge repeated, in place of OpenCV's and ImageMagick's;
- the haze of fog is octaves of smooth noise, not a diamond-square fractal;
- ice and snow are made of noise; the original pastes photographs of frost;
- results are rounded to 8 bits, where the original cuts off.

References
----------
.. [1] D. Hendrycks, T. Dietterich, "Benchmarking neural network robustness to common corruptions
   and perturbations", ICLR 2019.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from .names import refuse_unknown

__all__ = ["CORRUPTIONS", "corrupt"]

Image = npt.NDArray[np.float64]
#: An image (height, width, channels) in [0, 1], a severity from 0 to 4, and its generator.
Corruption = Callable[[Image, int, np.random.Generator], Image]

_SIDE = 32
_AXES = (0, 1)


def corrupt(images: npt.ArrayLike, kind: str, severity: int, *, seed: int = 0) -> np.ndarray:
    """Return images with a corruption, rounded to 8 bits.

    Parameters
    ----------
    images : array-like, shape (n, channels, height, width)
        In [0, 1], with one channel or three.
    kind : str
        One of `CORRUPTIONS`.
    severity : int
        From 1, the mildest, to 5.
    seed : int, default=0
        Row i is changed by a generator of `seed` and i alone.

    Returns
    -------
    ndarray, shape (n, channels, height, width)
        Of the type of `images`, float32 of what is no floating point.

    Raises
    ------
    ValueError
        If `images` has another shape or a value outside [0, 1], or `kind` or `severity` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl_bench.corruptions import corrupt
    >>> grey = np.full((2, 3, 32, 32), 0.5)
    >>> corrupt(grey, "brightness", 3).max().round(3)
    np.float64(0.651)
    """
    given = np.asarray(images)
    if given.ndim != 4 or given.shape[1] not in (1, 3):
        raise ValueError(
            "images must have shape (n, channels, height, width) with 1 or 3 channels, got "
            f"{given.shape}; reshape rows of pixels with the image_shape of their data set"
        )
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError(
            f"images must be in [0, 1], got {given.min()} to {given.max()}; divide bytes by 255"
        )
    refuse_unknown("kind of corruption", [kind], CORRUPTIONS)
    if severity not in range(1, 6):
        raise ValueError(f"severity must be an integer from 1 to 5, got {severity!r}")
    change = CORRUPTIONS[kind]
    dtype = given.dtype if given.dtype.kind == "f" else np.dtype(np.float32)
    changed = np.empty(given.shape, dtype=dtype)
    for i, image in enumerate(given):
        planes = np.moveaxis(image.astype(np.float64), 0, 2)
        found = change(planes, severity - 1, np.random.default_rng([seed, i]))
        changed[i] = np.moveaxis(np.round(255 * np.clip(found, 0, 1)) / 255, 2, 0)
    return changed


# ------------------------------------------------------------------------------------- noise


def _gaussian_noise(x: Image, s: int, rng: np.random.Generator) -> Image:
    return x + rng.normal(0, (0.04, 0.06, 0.08, 0.09, 0.10)[s], x.shape)


def _shot_noise(x: Image, s: int, rng: np.random.Generator) -> Image:
    photons = (500, 250, 100, 75, 50)[s]
    return np.asarray(rng.poisson(x * photons) / photons)


def _impulse_noise(x: Image, s: int, rng: np.random.Generator) -> Image:
    hit = rng.random(x.shape) < (0.01, 0.02, 0.03, 0.05, 0.07)[s]
    return np.where(hit, rng.integers(2, size=x.shape), x)


# -------------------------------------------------------------------------------------- blur


def _defocus_blur(x: Image, s: int, rng: np.random.Generator) -> Image:
    radius, blur = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))[s]
    at = np.arange(-3, 4)
    disk = (np.hypot(at[:, None], at) <= radius).astype(np.float64)
    kernel = ndimage.gaussian_filter(disk, blur, radius=1)
    return np.asarray(ndimage.convolve(x, (kernel / kernel.sum())[..., None], mode="nearest"))


def _glass_blur(x: Image, s: int, rng: np.random.Generator) -> Image:
    sigma, rounds = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))[s]
    x = _smooth(x, sigma)
    rows, columns = np.indices(x.shape[:2])
    for _ in range(rounds):  # each pixel becomes itself, the one above, to the left, or above left
        moves = rng.integers(-1, 1, size=(2, *x.shape[:2]))
        x = x[np.maximum(rows + moves[0], 0), np.maximum(columns + moves[1], 0)]
    return _smooth(x, sigma)


def _motion_blur(x: Image, s: int, rng: np.random.Generator) -> Image:
    radius, sigma = ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))[s]
    return _drag(x, radius, sigma, rng.uniform(-45, 45))


def _zoom_blur(x: Image, s: int, rng: np.random.Generator) -> Image:
    most = (6, 11, 16, 21, 26)[s]
    layers = [_zoom(x, 1 + step / 100) for step in range(most)]
    return np.asarray((x + np.sum(layers, axis=0)) / (most + 1))


def _smooth(x: Image, sigma: float) -> Image:
    return np.asarray(ndimage.gaussian_filter(x, sigma, mode="nearest", axes=_AXES))


def _drag(x: Image, radius: int, sigma: float, angle: float) -> Image:
    """Mean along a line to one side, with the weights of half a Gaussian."""
    scale = x.shape[0] / _SIDE
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    turn = np.deg2rad(angle)
    moved = [
        weight
        * ndimage.shift(
            x, (scale * k * np.sin(turn), scale * k * np.cos(turn), 0), order=1, mode="nearest"
        )
        for k, weight in zip(steps, weights, strict=True)
    ]
    return np.asarray(np.sum(moved, axis=0) / weights.sum())


def _zoom(x: Image, factor: float) -> Image:
    """The middle of an image, enlarged to the whole of it."""
    centre = (np.array(x.shape[:2]) - 1) / 2
    return np.asarray(
        ndimage.affine_transform(
            x,
            np.r_[1 / factor, 1 / factor, 1.0],
            np.r_[centre - centre / factor, 0.0],
            order=1,
            mode="nearest",
        )
    )


# ----------------------------------------------------------------------------------- weather


def _snow(x: Image, s: int, rng: np.random.Generator) -> Image:
    mean, sd, size, least, radius, sigma, kept = (
        (0.1, 0.2, 1.0, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1.0, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    )[s]
    flakes = _zoom(rng.normal(mean, sd, (*x.shape[:2], 1)), size)
    flakes = np.clip(np.where(flakes < least, 0, flakes), 0, 1)
    flakes = _drag(flakes, radius, sigma, rng.uniform(-135, -45))
    grey = x.mean(axis=2, keepdims=True)
    pale = kept * x + (1 - kept) * np.maximum(x, 1.5 * grey + 0.5)
    return np.asarray(pale + flakes + flakes[::-1, ::-1])


def _frost(x: Image, s: int, rng: np.random.Generator) -> Image:
    kept, ice = ((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))[s]
    ridges = 1 - np.abs(2 * _haze(x.shape[:2], 1.7, rng) - 1)
    colour = np.array([0.85, 0.93, 1.0])[3 - x.shape[2] :]
    return np.asarray(kept * x + ice * ridges[..., None] * colour)


def _fog(x: Image, s: int, rng: np.random.Generator) -> Image:
    amount, decay = ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))[s]
    top = x.max()
    hazy = x + amount * _haze(x.shape[:2], decay, rng)[..., None]
    return np.asarray(hazy * top / (top + amount))


def _brightness(x: Image, s: int, rng: np.random.Generator) -> Image:
    """Lift the value of HSV; hue and saturation stay."""
    lift = (0.05, 0.1, 0.15, 0.2, 0.3)[s]
    value = x.max(axis=2, keepdims=True)
    lifted = np.minimum(value + lift, 1)
    return np.asarray(np.where(value > 0, x * lifted / np.where(value > 0, value, 1), lifted))


def _haze(shape: tuple[int, ...], decay: float, rng: np.random.Generator) -> Image:
    """Octaves of smooth noise, each finer and weaker by `decay` than the last, in [0, 1]."""
    total, cells, weight = np.zeros(shape), 1, 1.0
    while cells < max(shape):
        corners = rng.uniform(-1, 1, (cells + 1, cells + 1))
        at = np.meshgrid(*(np.linspace(0, cells, n) for n in shape), indexing="ij")
        total += weight * ndimage.map_coordinates(corners, at, order=1)
        cells, weight = 2 * cells, weight / decay
    total -= total.min()
    return np.asarray(total / total.max())


# ----------------------------------------------------------------------------------- digital


def _contrast(x: Image, s: int, rng: np.random.Generator) -> Image:
    mean = x.mean(axis=_AXES, keepdims=True)
    return np.asarray((x - mean) * (0.75, 0.5, 0.4, 0.3, 0.15)[s] + mean)


def _elastic_transform(x: Image, s: int, rng: np.random.Generator) -> Image:
    size, sigma, corner = np.array(
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03))
    )[s] * len(x)
    # an affine map by three points of the middle, each moved at random
    centre, arm = np.array(x.shape[:2]) // 2, min(x.shape[:2]) // 3
    points = centre + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = points + rng.uniform(-corner, corner, (3, 2))
    back = np.linalg.solve(np.column_stack([moved, np.ones(3)]), points)
    grid = np.stack(np.meshgrid(*map(np.arange, x.shape[:2]), indexing="ij"), axis=-1)
    at = grid @ back[:2] + back[2]
    for axis in _AXES:
        field = rng.uniform(-1, 1, x.shape[:2])
        at[..., axis] += size * ndimage.gaussian_filter(field, sigma, truncate=3)
    planes = [
        ndimage.map_coordinates(x[..., i], np.moveaxis(at, 2, 0), order=1, mode="reflect")
        for i in range(x.shape[2])
    ]
    return np.stack(planes, axis=2)


def _pixelate(x: Image, s: int, rng: np.random.Generator) -> Image:
    from PIL import Image as Pillow

    small = tuple(int(side * (0.95, 0.9, 0.85, 0.75, 0.65)[s]) for side in x.shape[1::-1])
    picture = _picture(x).resize(small, Pillow.Resampling.BOX)
    return _pixels(picture.resize(x.shape[1::-1], Pillow.Resampling.BOX))


def _jpeg_compression(x: Image, s: int, rng: np.random.Generator) -> Image:
    from PIL import Image as Pillow

    file = io.BytesIO()
    _picture(x).save(file, "JPEG", quality=(80, 65, 58, 50, 40)[s])
    return _pixels(Pillow.open(file))


def _picture(x: Image) -> Any:
    from PIL import Image as Pillow

    pixels = np.round(255 * x).astype(np.uint8)
    return Pillow.fromarray(pixels[..., 0] if x.shape[2] == 1 else pixels)


def _pixels(picture: Any) -> Image:
    pixels = np.asarray(picture, dtype=np.float64) / 255
    return pixels[..., None] if pixels.ndim == 2 else pixels


#: By the name of the file in CIFAR-10-C.
CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": _gaussian_noise,
    "shot_noise": _shot_noise,
    "impulse_noise": _impulse_noise,
    "defocus_blur": _defocus_blur,
    "glass_blur": _glass_blur,
    "motion_blur": _motion_blur,
    "zoom_blur": _zoom_blur,
    "snow": _snow,
    "frost": _frost,
    "fog": _fog,
    "brightness": _brightness,
    "contrast": _contrast,
    "elastic_transform": _elastic_transform,
    "pixelate": _pixelate,
    "jpeg_compression": _jpeg_compression,
}
