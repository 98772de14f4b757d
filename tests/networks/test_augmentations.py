"""Augmentations against one image at a time: NumPy's padding, SciPy's interpolation."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import ndimage

torch = pytest.importorskip("torch")

from dipedl.networks import AffineAugmentation  # noqa: E402

augment = AffineAugmentation()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_everything_comes_from_the_generator():
    X, state = torch.rand(20, 784), torch.get_rng_state()
    first, again = augment(X, generator()), augment(X, generator())
    assert torch.equal(first, again) and torch.equal(state, torch.get_rng_state())
    assert not torch.equal(first, augment(X, generator(1)))
    source = generator()
    assert not torch.equal(augment(X, source), augment(X, source))


def test_pixels_stay_pixels_and_every_image_moves_on_its_own():
    X = (torch.rand(1, 784, generator=generator()) > 0.5).float().repeat(20, 1)
    before = X.clone()
    found = augment(X, generator())
    assert found.dtype == X.dtype and found.shape == X.shape and torch.equal(X, before)
    assert found.min() >= 0 and found.max() <= 1 + 1e-6
    assert len(torch.unique(found, dim=0)) > 10


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


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (partial(AffineAugmentation, 200), ValueError, r"degrees must be in \[0, 180\], got 200"),
        (partial(AffineAugmentation, "10"), TypeError, "degrees must be a number"),
        (partial(AffineAugmentation, translate=-0.1), ValueError, "translate must be in"),
        (partial(AffineAugmentation, scale=1.0), ValueError, r"scale must be in \[0, 1\), got 1.0"),
        (partial(AffineAugmentation, shear=90), ValueError, "shear must be in"),
        (partial(augment, torch.zeros(2, 10), None), ValueError, "rows of .*10.*; pass"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
