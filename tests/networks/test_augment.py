import math

import numpy as np
import pytest
from scipy import ndimage

torch = pytest.importorskip("torch")

from dipedl.networks import AffineAugmentation  # noqa: E402


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def blob(side=28):
    """A smooth image, so that the kind of interpolation hardly matters."""
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    return np.exp(-((x - 2) ** 2 + (2 * (y + 1)) ** 2) / 4)


@pytest.mark.parametrize(
    "settings",
    [
        {"degrees": 40.0},
        {"translate": 0.15},
        {"scale": 0.3},
        {"shear": 20.0},
        {"degrees": 20.0, "translate": 0.1, "scale": 0.2, "shear": 10.0},
    ],
    ids=str,
)
def test_agrees_with_scipy(settings):
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


def test_amounts_are_within_their_limits_and_reach_them():
    settings = AffineAugmentation(degrees=30, translate=0.2, scale=0.25, shear=15)
    maps = settings._maps(4000, torch.zeros(1), generator())
    size = 1 / (maps[:, 0, 0] ** 2 + maps[:, 1, 0] ** 2).sqrt()
    angle = torch.atan2(maps[:, 1, 0], maps[:, 0, 0]).rad2deg()
    for value, low, high in [
        (size, 0.75, 1.25),
        (angle, -30, 30),
        (maps[:, 0, 2], -0.4, 0.4),
        (maps[:, 1, 2], -0.4, 0.4),
    ]:
        margin = 0.01 * (high - low)
        assert low - 1e-4 <= value.min() < low + margin
        assert high + 1e-4 >= value.max() > high - margin


def test_nothing_asked_nothing_done():
    X = torch.rand(3, 49, generator=generator())
    same = AffineAugmentation(degrees=0, translate=0, scale=0)(X, generator())
    torch.testing.assert_close(same, X, rtol=0, atol=1e-6)


def test_pixels_stay_in_range_and_every_image_moves_on_its_own():
    X = (torch.rand(1, 784, generator=generator()) > 0.5).float().repeat(20, 1)
    out = AffineAugmentation()(X, generator())
    assert out.dtype == X.dtype and out.shape == X.shape
    assert out.min() >= 0 and out.max() <= 1 + 1e-6
    assert len(torch.unique(out, dim=0)) == 20


def test_the_generator_decides():
    X, state = torch.rand(4, 784), torch.get_rng_state()
    augment = AffineAugmentation()
    one, two, three = (augment(X, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(one, two) and not torch.equal(one, three)
    assert torch.equal(torch.get_rng_state(), state)


def test_bad_input():
    with pytest.raises(ValueError, match="takes square grey images, got rows of 10 pixels"):
        AffineAugmentation()(torch.zeros(2, 10), generator())
    for bad, message in [
        ({"degrees": 200}, r"degrees must be in \[0, 180\], got 200"),
        ({"translate": -0.1}, "translate must be in"),
        ({"scale": 1.0}, r"scale must be in \[0, 1\), got 1.0"),
        ({"shear": 90}, "shear must be in"),
    ]:
        with pytest.raises(ValueError, match=message):
            AffineAugmentation(**bad)
    with pytest.raises(TypeError, match="degrees must be a number"):
        AffineAugmentation(degrees="10")
