"""Augmentations against one image at a time: NumPy's padding, SciPy's interpolation."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from networks_by_hand import equally_often, generator
from scipy import ndimage

from dipedl_bench.augmentations import AffineAugmentation, CropFlipRotate
from dipedl_bench.fast_networks import CropFlip

augment = AffineAugmentation()


CROPS = [CropFlip((1, 28, 28)), CropFlipRotate((1, 28, 28))]
each = pytest.mark.parametrize("augment", [augment, *CROPS], ids=repr)


@each
def test_everything_comes_from_the_generator(augment):
    X, state = torch.rand(20, 784), torch.get_rng_state()
    first, again = augment(X, generator()), augment(X, generator())
    assert torch.equal(first, again) and torch.equal(state, torch.get_rng_state())
    assert not torch.equal(first, augment(X, generator(1)))
    source = generator()
    assert not torch.equal(augment(X, source), augment(X, source))


@each
def test_pixels_stay_pixels_and_every_image_moves_on_its_own(augment):
    X = (torch.rand(1, 784, generator=generator()) > 0.5).float().repeat(20, 1)
    before = X.clone()
    found = augment(X, generator())
    assert found.dtype == X.dtype and found.shape == X.shape and torch.equal(X, before)
    assert found.min() >= 0 and found.max() <= 1 + 1e-6
    assert len(torch.unique(found, dim=0)) > 10
    if augment in CROPS:
        assert augment(X[:0], generator()).shape == (0, 784)


def blob(side=28):
    """A smooth image, so that the kind of interpolation hardly matters."""
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    return np.exp(-((x - 2) ** 2 + (2 * (y + 1)) ** 2) / 4)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"degrees": 40.0},
        {"translate": 0.15},
        {"scale": 0.3},
        {"shear": 20.0},
        {"degrees": 20.0, "translate": 0.1, "scale": 0.2, "shear": 10.0},
    ],
    ids=str,
)
def test_affine_agrees_with_scipy(settings):
    augment = AffineAugmentation(**{"degrees": 0, "translate": 0, "scale": 0, **settings})
    image = blob()
    X = torch.from_numpy(np.tile(image.ravel(), (5, 1)))
    found = augment(X, generator()).reshape(5, 28, 28).numpy()
    centre = (28 - 1) / 2
    draws = torch.rand(5, 5, generator=generator()).double().numpy() * 2 - 1
    for (turn, size, shear, right, down), image_found in zip(draws, found, strict=True):
        angle, scale = math.radians(augment.degrees) * turn, 1 + augment.scale * size
        rotation = np.array(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        )
        slope = math.tan(math.radians(augment.shear) * shear)
        # in (x, y); scipy counts (row, column)
        matrix = rotation / scale @ np.array([[1, slope], [0, 1]])
        matrix = matrix[::-1, ::-1]
        shift = 28 * augment.translate * np.array([down, right])
        offset = centre + shift - matrix @ [centre, centre]
        expected = ndimage.affine_transform(image, matrix, offset, order=1)
        np.testing.assert_allclose(image_found, expected, atol=1e-5)


def rotated(image, angle):
    """One channel turned about its centre, nearest pixel, black outside."""
    matrix = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    centre = (np.array(image.shape) - 1) / 2
    offset = centre - matrix @ centre
    return ndimage.affine_transform(image, matrix, offset, order=0, mode="grid-constant", cval=0.0)


def between(shape, angle):
    """Pixels whose source lies so near to the middle of two that rounding decides."""
    down, right = np.indices(shape) - (np.array(shape) - 1)[:, None, None] / 2
    places = [
        math.cos(angle) * down + math.sin(angle) * right + (shape[0] - 1) / 2,
        math.cos(angle) * right - math.sin(angle) * down + (shape[1] - 1) / 2,
    ]
    return np.any([np.abs(place % 1 - 0.5) < 1e-4 for place in places], axis=0)


def naive(image, move, mirrored, angle, shift):
    """Crop of the padded image, then its reflection, then its rotation: (c, h, w)."""
    _, h, w = image.shape
    padded = np.pad(image, ((0, 0), (shift, shift), (shift, shift)))
    top, left = shift + move[0], shift + move[1]
    cut = padded[:, top : top + h, left : left + w]
    cut = cut[:, :, ::-1] if mirrored else cut
    return np.stack([rotated(channel, angle) for channel in cut])


@pytest.mark.parametrize(
    ("shape", "shift", "degrees"),
    [((3, 32, 32), 4, 15.0), ((1, 9, 14), 2, 180.0), ((2, 6, 5), 7, 40.0), ((3, 8, 8), 1, 0.0)],
)
def test_crop_flip_rotate_equals_a_loop_over_images(shape, shift, degrees):
    b, augment = 60, CropFlipRotate(shape, shift, degrees)
    X = torch.rand(b, math.prod(shape), generator=generator(9), dtype=torch.float64) + 0.5
    moves, mirrored, angles = augment._draws(b, X.device, generator())
    found = augment(X, generator()).numpy().reshape(b, *shape)
    compared = 0
    for i, image in enumerate(X.numpy().reshape(b, *shape)):
        angle = float(angles[i])
        move = moves[:, i].flatten().tolist()
        expected = naive(image, move, bool(mirrored[i]), angle, shift)
        sure = ~between(shape[1:], angle)
        np.testing.assert_array_equal(found[i][:, sure], expected[:, sure])
        compared += sure.mean() / b
    assert compared > 0.99


def test_crop_flip_rotate_draws_uniformly():
    n = 20_000
    moves, mirrored, angles = CropFlipRotate()._draws(n, torch.device("cpu"), generator())
    for move in moves:
        assert equally_often(torch.bincount(move.flatten() + 4, minlength=9).tolist(), 9)
    assert abs(int(mirrored.sum()) - n / 2) < 4 * math.sqrt(n / 4)
    turns = np.degrees(angles.flatten().numpy())
    assert -15 <= turns.min() < -14.9 and 14.9 < turns.max() <= 15
    assert abs(turns.mean()) < 4 * 15 / math.sqrt(3 * n)
    assert abs(turns.std() - 15 / math.sqrt(3)) < 0.1
    both = np.corrcoef([moves[0].flatten(), moves[1].flatten(), mirrored.flatten(), turns])
    assert np.abs(both - np.eye(4)).max() < 4 / math.sqrt(n)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (partial(AffineAugmentation, 200), ValueError, r"degrees must be in \[0, 180\], got 200"),
        (partial(AffineAugmentation, "10"), TypeError, "degrees must be a number"),
        (partial(AffineAugmentation, translate=-0.1), ValueError, "translate must be in"),
        (partial(AffineAugmentation, scale=1.0), ValueError, r"scale must be in \[0, 1\), got 1.0"),
        (partial(AffineAugmentation, shear=90), ValueError, "shear must be in"),
        (partial(CropFlipRotate, (32, 32)), ValueError, r"image_shape must be .*got \(32, 32\)"),
        (partial(CropFlipRotate, (0, 4, 4)), ValueError, "image_shape must be"),
        (partial(CropFlipRotate, shift=0), ValueError, "shift must be an integer >= 1, got 0"),
        (partial(CropFlipRotate, degrees=-1), ValueError, r"degrees must be in \[0, 180\], got -1"),
        (partial(CropFlipRotate(), torch.zeros(2, 10), None), ValueError, "rows of .*10; pass"),
        (partial(augment, torch.zeros(2, 10), None), ValueError, "rows of .*10.*; pass"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
