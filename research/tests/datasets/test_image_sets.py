"""Every data set of images, from files in the published form, made here, and from the real ones."""

import gzip
import io
import os
import pickle
import struct

import numpy as np
import pytest
from scipy.io import savemat

from dipedl_bench.datasets import files, load_cifar10, load_fashion_mnist, load_mnist
from dipedl_bench.datasets.images import read_idx, read_part


def pixels_of(X, shape):
    return np.rint(X * 255).reshape(-1, *shape)


# IDX


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_hand_made_idx_file(tmp_path, pack):
    hand = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 20, 30, 40, 50, 60])
    (tmp_path / "some-idx").write_bytes(pack(hand))
    np.testing.assert_array_equal(read_idx(tmp_path / "some-idx"), [[10, 20, 30], [40, 50, 60]])


@pytest.mark.parametrize("load", [load_mnist, load_fashion_mnist])
def test_parts_labels_and_ood_sets(tiny, load):
    _, arrays = tiny
    data = load()
    assert data.X_train.dtype == np.float32 and data.y_train.dtype == np.int64
    for part, X, y in (("train", data.X_train, data.y_train), ("t10k", data.X_test, data.y_test)):
        expected, labels = arrays[data.name, part]
        np.testing.assert_array_equal(pixels_of(X, data.image_shape), expected)
        np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(
        pixels_of(data.ood["kmnist"], (28, 28)), arrays["kmnist", "t10k"][0]
    )
    assert data.n_classes == 10


def test_ood_sets_on_request_and_only_the_files_needed_are_read(tiny):
    folder, _ = tiny
    both = load_mnist(ood=iter(["omniglot_inverted", "omniglot"])).ood
    np.testing.assert_array_equal(both["omniglot_inverted"], 1 - both["omniglot"])
    (folder / "omniglot/images_evaluation.zip").unlink()
    assert list(load_mnist(ood="kmnist").ood) == ["kmnist"] and not load_mnist(ood=()).ood
    with pytest.raises(FileNotFoundError, match=r"omniglot/images_evaluation\.zip"):
        load_mnist()
    with pytest.raises(ValueError, match=r"ood must be names out of \['kmnist', .*got \['svhn'\]"):
        load_mnist(ood=["svhn"])


# drawings


def test_order_pixels_and_labels_of_drawings(tiny, monkeypatch):
    _, arrays = tiny
    drawings, labels, names = read_part("omniglot", "test")
    np.testing.assert_array_equal(drawings, arrays["omniglot"])
    # by hand: rows 0..1 all ink, 2..3 no ink, 4..5 ink above the middle
    assert drawings[:2].max() == 0 and drawings[2:4].min() == 255
    assert drawings[4, :13].max() == 0 and drawings[4, 15:].min() == 255
    assert labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert names[1:] == ["Angelic/character02", "Tengwar/character01"]
    monkeypatch.setitem(files.TABLES["omniglot"], "sha256", "0" * 64)
    with pytest.raises(ValueError, match=f"SHA-256 {'0' * 64} .*got {arrays['omniglot_sha256']}"):
        read_part("omniglot", "test")


# pickles


def python2_pickle(pixels, label_key, labels):
    """The bytes of a published batch, written by hand: protocol 2, strings of bytes, NumPy 1."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    def number(value):
        return b"K" + bytes([value])

    content = pixels.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
        + (number(0) + b"\x85" + text(b"b") + b"tR(K\x01")
        + (b"J" + struct.pack("<i", len(pixels)) + b"J" + struct.pack("<i", pixels.shape[1]))
        + b"\x86cnumpy\ndtype\n"
        + (text(b"u1") + number(0) + number(1) + b"\x87R(K\x03" + text(b"|") + b"NNN")
        + (b"J" + struct.pack("<i", -1)) * 2
        + (number(0) + b"tb\x89" + b"T" + struct.pack("<i", len(content)) + content + b"tb")
    )
    listed = b"](" + b"".join(number(label) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(label_key) + listed + b"u."


def test_batches_of_cifar_in_order(put):
    rng, arrays = np.random.default_rng(0), {}
    for i, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        arrays[name] = rng.integers(0, 256, (2 + i, 3072), dtype=np.uint8), list(range(2 + i))
        put(f"cifar10/{name}", python2_pickle(arrays[name][0], b"labels", range(2 + i)))
    hundred = rng.integers(0, 256, (2, 3072), dtype=np.uint8)
    put("cifar100/test", python2_pickle(hundred, b"fine_labels", [1, 98]))
    data = load_cifar10()
    batches = [arrays[f"data_batch_{i}"] for i in range(1, 6)]
    expected = np.concatenate([pixels for pixels, _ in batches])
    np.testing.assert_array_equal(pixels_of(data.X_train, (3072,)), expected)
    assert data.y_train.tolist() == [label for _, labels in batches for label in labels]
    assert data.y_test.tolist() == arrays["test_batch"][1] and data.image_shape == (3, 32, 32)
    np.testing.assert_array_equal(pixels_of(data.ood["cifar100"], (3072,)), hundred)
    assert read_part("cifar100", "test").names[98] == "woman"


def test_grey_images_beside_cifar_are_enlarged_as_by_opencv_s_grid(tiny, put):
    """Bilinear, each pixel a square: the centre of pixel i is at (i + 1/2) 28/32 - 1/2."""
    _, arrays = tiny
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        put(f"cifar10/{name}", python2_pickle(np.zeros((1, 3072), np.uint8), b"labels", [0]))
    data = load_cifar10(ood=["mnist", "fashion_mnist"])
    at = (np.arange(32) + 0.5) * 28 / 32 - 0.5
    for name, rows in data.ood.items():
        images = rows.reshape(-1, 3, 32, 32)
        np.testing.assert_array_equal(images[:, 0], images[:, 2])
        for grey, large in zip(arrays[name, "t10k"][0], images[:, 1], strict=True):
            across = np.array([np.interp(at, np.arange(28), row) for row in grey.astype(float)])
            expected = np.array([np.interp(at, np.arange(28), row) for row in across.T]).T
            np.testing.assert_allclose(large * 255, expected, atol=1.5)


class Malicious:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("call", "arguments"),
    [(os.system, ("touch {}",)), (eval, ("open('{}', 'w')",)), (np.save, ("{}", 1))],
)
def test_a_pickle_that_calls_something_is_refused(tmp_path, put, call, arguments, protocol):
    target = tmp_path / "done.npy"
    attack = Malicious(call, *(a.format(target) if isinstance(a, str) else a for a in arguments))
    content = pickle.dumps({b"data": attack}, protocol=protocol)
    put("cifar100/test", content)
    with pytest.raises(pickle.UnpicklingError, match="it asks for"):
        read_part("cifar100", "test")
    assert not target.exists()
    pickle.loads(content)  # the attack itself works
    assert target.exists()


# MATLAB


def mat(**variables):
    """A MATLAB 5 file with compression, as the published ones: arrays column by column."""
    stream = io.BytesIO()
    savemat(stream, variables, do_compression=True)
    return stream.getvalue()


@pytest.mark.parametrize("kind", [np.uint8, float])
def test_images_and_digits_of_svhn(put, rng, kind):
    pixels = rng.integers(0, 256, (23, 3, 32, 32), dtype=np.uint8)
    labels = np.arange(23) % 10 + 1
    # as loaded in MATLAB: row, column, colour, number of the image
    X = np.asfortranarray(pixels.transpose(2, 3, 1, 0))
    put("svhn/test_32x32.mat", mat(X=X, y=labels[:, None].astype(kind)))
    found = read_part("svhn", "test")
    np.testing.assert_array_equal(found.images, pixels)
    # 1 to 9 are themselves; 10 is the digit 0
    assert found.labels.tolist() == [int(str(label)[-1]) for label in labels]
    assert found.labels.dtype == np.int64


# a sheet


def test_a_sheet_is_cut_row_by_row(put, rng):
    from PIL import Image

    expected = rng.integers(0, 256, (115, 3, 32, 32), dtype=np.uint8)
    pixels = np.zeros((2 * 32, 113 * 32, 3), np.uint8)
    for i, image in enumerate(expected):
        top, left = 32 * (i // 113), 32 * (i % 113)
        pixels[top : top + 32, left : left + 32] = image.transpose(1, 2, 0)
    sheet, labels = io.BytesIO(), io.BytesIO()
    Image.fromarray(pixels).save(sheet, "WEBP", lossless=True, quality=0, method=0)
    np.save(labels, (np.arange(115) % 43).astype(np.uint8))
    put("gtsrb/gtsrb_test_32x32.webp", sheet.getvalue())
    put("gtsrb/labels.npy", labels.getvalue())
    found = read_part("gtsrb", "test")
    np.testing.assert_array_equal(found.images, expected)
    assert found.labels.tolist() == [i % 43 for i in range(115)]


# the real files

#: Data set and part -> rows, rows of each class, and the mean of the first channel.
FACTS = {
    ("mnist", "train"): (
        60_000,
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        0.1307,
    ),
    ("fashion_mnist", "train"): (60_000, [6000] * 10, 0.2860),
    ("kmnist", "test"): (10_000, [1000] * 10, None),
    ("omniglot", "test"): (13_180, [20] * 659, None),
    ("cifar10", "train"): (50_000, [5000] * 10, 0.4914),
    ("cifar100", "test"): (10_000, [100] * 100, None),
    ("svhn", "test"): (26_032, [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595], None),
    ("gtsrb", "test"): (12_630, [60, 720, 750, 450, 660, 630], None),
}


@pytest.mark.data
@pytest.mark.usefixtures("full_dir")
@pytest.mark.parametrize(("name", "part"), FACTS)
def test_counts_and_means_are_the_published_ones(name, part):
    n, counts, mean = FACTS[name, part]
    try:
        found = read_part(name, part)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert len(found.images) == n
    assert np.bincount(found.labels)[: len(counts)].tolist() == counts
    if mean is not None:
        channel = found.images if found.images.ndim == 3 else found.images[:, 0]
        assert channel.mean() / 255 == pytest.approx(mean, abs=1e-4)
