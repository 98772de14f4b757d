from collections import Counter

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dipedl.networks import CropFlip  # noqa: E402


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def ramp(b, shape):
    return torch.arange(b * int(np.prod(shape)), dtype=torch.float64).reshape(b, -1)


def candidates(image, shift):
    """Every cut of one image (c, h, w), by a plain loop over NumPy's reflection."""
    _, h, w = image.shape
    padded = np.pad(image, ((0, 0), (shift, shift), (shift, shift)), mode="reflect")
    for down in range(2 * shift + 1):
        for right in range(2 * shift + 1):
            cut = padded[:, down : down + h, right : right + w]
            yield (down, right, False), cut
            yield (down, right, True), cut[:, :, ::-1]


def drawn(shape, shift, b, seed=0):
    """What was done to each of b images, found by comparing with every candidate."""
    X = ramp(b, shape)
    found = CropFlip(shape, shift)(X, generator(seed)).numpy().reshape(b, *shape)
    for image, result in zip(X.numpy().reshape(b, *shape), found, strict=True):
        yield [key for key, cut in candidates(image, shift) if np.array_equal(cut, result)]


@pytest.mark.parametrize(("shape", "shift"), [((3, 6, 8), 2), ((1, 5, 4), 3), ((2, 3, 3), 1)])
def test_crop_flip_gives_one_cut_of_every_image(shape, shift):
    # in a narrow image two cuts may be the same: its reflection comes round
    assert all(drawn(shape, shift, 40))


def test_crop_flip_reaches_all_equally_often():
    n = 4000
    found = Counter(match for (match,) in drawn((1, 5, 6), 1, n))
    assert len(found) == 3 * 3 * 2
    counts = np.array(list(found.values()))
    expected = n / 18
    # chi-squared with 17 degrees of freedom: beyond 40.8 once in a thousand
    assert ((counts - expected) ** 2 / expected).sum() < 40.8
    mirrored = sum(count for (_, _, flip), count in found.items() if flip)
    assert abs(mirrored - n / 2) < 4 * np.sqrt(n / 4)


def test_crop_flip_draws_from_its_generator_alone():
    X, augment, state = ramp(30, (3, 8, 8)), CropFlip((3, 8, 8)), torch.get_rng_state()
    first, again = augment(X, generator()), augment(X, generator())
    assert torch.equal(first, again) and torch.equal(state, torch.get_rng_state())
    assert not torch.equal(first, augment(X, generator(1)))
    source = generator()
    assert not torch.equal(augment(X, source), augment(X, source))


def test_crop_flip_keeps_type_shape_and_its_input():
    X = torch.rand(5, 3072, generator=generator())
    before = X.clone()
    found = CropFlip()(X, generator())
    assert found.dtype == X.dtype and found.shape == X.shape and torch.equal(X, before)
    assert CropFlip()(X[:0], generator()).shape == (0, 3072)


def test_cutout_puts_the_mean_colour_into_one_square_of_each_image():
    b, shape, side = 500, (2, 6, 7), 3
    X = ramp(b, shape)
    plain = CropFlip(shape, 1)(X, generator()).reshape(b, *shape)
    found = CropFlip(shape, 1, cutout=side)(X, generator()).reshape(b, *shape)
    mean = plain.mean((0, 2, 3))
    corners = Counter()
    for before, after in zip(plain, found, strict=True):
        changed = (before != after).all(0)
        rows, columns = (np.flatnonzero(changed.any(axis)) for axis in (1, 0))
        np.testing.assert_array_equal(rows, rows[0] + np.arange(side))
        np.testing.assert_array_equal(columns, columns[0] + np.arange(side))
        assert changed.sum() == side**2 and torch.equal(after[:, ~changed], before[:, ~changed])
        torch.testing.assert_close(after[:, changed], mean[:, None].expand(-1, side**2))
        corners[rows[0], columns[0]] += 1
    # chi-squared with 19 degrees of freedom: beyond 43.8 once in a thousand
    counts, expected = np.array(list(corners.values())), b / 20
    assert len(corners) == 4 * 5 and ((counts - expected) ** 2 / expected).sum() < 43.8


def test_a_cutout_as_large_as_the_image_is_refused():
    with pytest.raises(ValueError, match="cutout must be smaller than the image, 5 x 6 pixels"):
        CropFlip((3, 5, 6), cutout=5)
    with pytest.raises(ValueError, match="cutout must be an integer >= 0"):
        CropFlip(cutout=-1)


@pytest.mark.parametrize("shape", [(32, 32), (3, 2, 32), (3, 32, 2)])
def test_crop_flip_bad_shape(shape):
    with pytest.raises(ValueError, match=r"image_shape must be .*longer than shift=2, got \("):
        CropFlip(shape)


@pytest.mark.parametrize("shift", [0, -1])
def test_crop_flip_bad_shift(shift):
    with pytest.raises(ValueError, match="shift must be an integer >= 1, got"):
        CropFlip(shift=shift)


def test_crop_flip_other_rows():
    with pytest.raises(ValueError, match="rows of 3072 pixels, got 784; pass the image_shape"):
        CropFlip()(torch.zeros(2, 784), generator())
