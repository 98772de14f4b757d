"""Corruptions of images: what each does to pixels, by formulas, Pillow and colorsys."""

import colorsys
import io

import numpy as np
import pytest

pytest.importorskip("PIL")

from PIL import Image

from dipedl.datasets import load_mini_mnist
from dipedl_bench.corruptions import CORRUPTIONS, corrupt

BLURS = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")


@pytest.fixture(scope="module")
def images():
    """Colour images of 32 x 32 pixels with edges and shades, in whole bytes."""
    digits = load_mini_mnist().X_train[:6].reshape(6, 1, 28, 28)
    padded = np.pad(digits, ((0, 0), (0, 0), (2, 2), (2, 2)))
    shade = np.linspace(0.1, 0.5, 32)
    colours = np.array([0.9, 0.6, 0.4]).reshape(1, 3, 1, 1)
    return np.round(255 * np.clip(0.5 * padded * colours + shade, 0, 1)) / 255


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_rows_are_their_own_and_grow_worse(images, kind):
    changed = [corrupt(images, kind, severity, seed=3) for severity in range(1, 6)]
    for rows in changed:
        assert rows.shape == images.shape and rows.dtype == images.dtype
        assert rows.min() >= 0 and rows.max() <= 1
        np.testing.assert_allclose(rows * 255, np.round(rows * 255), atol=1e-9)
    np.testing.assert_array_equal(corrupt(images[:2], kind, 4, seed=3), changed[3][:2])
    far = [np.mean((rows - images) ** 2) for rows in changed]
    assert far[0] > 0
    # glass of a higher severity blurs more too, which takes some of the distance back; an elastic
    # transform bends more, and turns less
    if kind not in ("glass_blur", "elastic_transform"):
        assert far[0] < far[4]
    grey = corrupt(images[:2, :1].astype(np.float32), kind, 2)
    assert grey.shape == (2, 1, 32, 32) and grey.dtype == np.float32


@pytest.mark.parametrize("kind", [*BLURS, "contrast", "elastic_transform", "pixelate"])
def test_an_even_image_stays_as_it_is(kind):
    even = np.full((2, 3, 32, 32), 100 / 255)
    np.testing.assert_allclose(corrupt(even, kind, 5), even, atol=1.01 / 255)


def test_noise_has_the_published_spread():
    even = np.full((20, 3, 32, 32), 0.5)
    noise = corrupt(even, "gaussian_noise", 5) - even
    assert noise.std() == pytest.approx(0.10, rel=0.02)
    shots = corrupt(even, "shot_noise", 5)
    assert shots.var() == pytest.approx(0.5 / 50, rel=0.04)
    salted = corrupt(even, "impulse_noise", 5)
    assert np.mean(salted == 0) == pytest.approx(0.035, rel=0.1)
    assert np.mean(salted == 1) == pytest.approx(0.035, rel=0.1)


def test_brightness_is_the_value_of_hsv(images):
    found = corrupt(images, "brightness", 4)
    for i, y, x in [(0, 3, 5), (1, 16, 14), (4, 20, 31)]:
        hue, saturation, value = colorsys.rgb_to_hsv(*images[i, :, y, x])
        expected = colorsys.hsv_to_rgb(hue, saturation, min(1, value + 0.2))
        np.testing.assert_allclose(found[i, :, y, x], expected, atol=0.51 / 255)


def test_contrast_is_that_of_the_formula(images):
    mean = images.mean(axis=(2, 3), keepdims=True)
    expected = mean + 0.3 * (images - mean)
    np.testing.assert_allclose(corrupt(images, "contrast", 4), expected, atol=0.51 / 255)


def test_jpeg_is_that_of_pillow(images):
    pixels = np.round(255 * images[2]).astype(np.uint8).transpose(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=50)
    expected = np.asarray(Image.open(file)).transpose(2, 0, 1) / 255
    np.testing.assert_allclose(corrupt(images, "jpeg_compression", 4)[2], expected, atol=1e-12)


def test_glass_takes_pixels_from_beside_and_blurs_keep_the_sum(images):
    sharp = images[0, 0]
    moved = corrupt(images[:1, :1], "glass_blur", 1)[0, 0]  # its blur is too narrow to be seen
    above, left = (np.roll(sharp, 1, axis=axis) for axis in (0, 1))
    beside = np.stack([sharp, above, left, np.roll(above, 1, axis=1)])
    assert (moved == beside).any(axis=0)[1:, 1:].all() and not np.array_equal(moved, sharp)
    point = np.zeros((1, 1, 33, 33))
    point[0, 0, 16, 16] = 1
    for kind in ("defocus_blur", "motion_blur"):
        assert corrupt(point, kind, 5).sum() == pytest.approx(1, abs=0.1)


def test_fog_and_frost_lighten_the_dark(images):
    dark = images * 0.3
    for kind in ("fog", "frost", "snow"):
        found = corrupt(dark, kind, 5)
        shade = dark < np.median(dark)
        assert found[shade].mean() > dark[shade].mean()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: corrupt(np.zeros((2, 3072)), "fog", 1), "images must have shape"),
        (lambda: corrupt(np.zeros((2, 4, 8, 8)), "fog", 1), "images must have shape"),
        (lambda: corrupt(np.full((1, 3, 8, 8), 255), "fog", 1), "images must be in"),
        (lambda: corrupt(np.full((1, 3, 8, 8), np.nan), "fog", 1), "images must be in"),
        (lambda: corrupt(np.zeros((1, 3, 8, 8)), "foq", 1), "kind of corruption 'foq'"),
        (lambda: corrupt(np.zeros((1, 3, 8, 8)), "fog", 0), "severity must be"),
        (lambda: corrupt(np.zeros((1, 3, 8, 8)), "fog", 6), "severity must be"),
    ],
)
def test_what_is_refused(call, name):
    with pytest.raises(ValueError, match=name):
        call()
