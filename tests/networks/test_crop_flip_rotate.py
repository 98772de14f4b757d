"""The paper's augmentation against one image at a time: NumPy's padding, SciPy's rotation."""

import math

import numpy as np
import pytest
from scipy.ndimage import affine_transform

torch = pytest.importorskip("torch")

from dipedl.networks import CropFlipRotate  # noqa: E402


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def rotated(image, angle):
    """One channel turned about its centre, nearest pixel, black outside."""
    matrix = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    centre = (np.array(image.shape) - 1) / 2
    offset = centre - matrix @ centre
    return affine_transform(image, matrix, offset, order=0, mode="grid-constant", cval=0.0)


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
def test_equals_a_loop_over_images(shape, shift, degrees):
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


def test_draws_are_uniform():
    n = 20_000
    moves, mirrored, angles = CropFlipRotate()._draws(n, torch.device("cpu"), generator())
    for move in moves:
        counts = torch.bincount(move.flatten() + 4, minlength=9)
        # chi-squared with 8 degrees of freedom: beyond 26.1 once in a thousand
        assert len(counts) == 9 and float(((counts - n / 9) ** 2 / (n / 9)).sum()) < 26.1
    assert abs(int(mirrored.sum()) - n / 2) < 4 * math.sqrt(n / 4)
    turns = np.degrees(angles.flatten().numpy())
    assert -15 <= turns.min() < -14.9 and 14.9 < turns.max() <= 15
    assert abs(turns.mean()) < 4 * 15 / math.sqrt(3 * n)
    assert abs(turns.std() - 15 / math.sqrt(3)) < 0.1
    both = np.corrcoef([moves[0].flatten(), moves[1].flatten(), mirrored.flatten(), turns])
    assert np.abs(both - np.eye(4)).max() < 4 / math.sqrt(n)


def test_bytes_stay_bytes_and_the_input_stays_as_it_is():
    X = torch.randint(1, 256, (5, 3072), generator=generator(), dtype=torch.uint8)
    before = X.clone()
    found = CropFlipRotate()(X, generator())
    assert found.dtype == torch.uint8 and found.shape == X.shape and torch.equal(X, before)
    floats = CropFlipRotate()(X.float(), generator())
    assert torch.equal(found.float(), floats) and (floats == 0).any()
    assert CropFlipRotate()(X[:0], generator()).shape == (0, 3072)


def test_everything_comes_from_the_generator():
    X, augment, state = torch.rand(20, 3072), CropFlipRotate(), torch.get_rng_state()
    first = augment(X, generator())
    assert torch.equal(first, augment(X, generator()))
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(first, augment(X, generator(1)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CropFlipRotate((32, 32)), ValueError, r"image_shape must be .*got \(32, 32\)"),
        (lambda: CropFlipRotate((0, 4, 4)), ValueError, "image_shape must be"),
        (lambda: CropFlipRotate(shift=0), ValueError, "shift must be an integer >= 1, got 0"),
        (lambda: CropFlipRotate(degrees=-1), ValueError, r"degrees must be in \[0, 180\], got -1"),
        (lambda: CropFlipRotate(degrees="15"), TypeError, "degrees must be a number"),
        (
            lambda: CropFlipRotate()(torch.zeros(2, 784), generator()),
            ValueError,
            "rows of 3072 pixels, got 784; pass the image_shape",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
