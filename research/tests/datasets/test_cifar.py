import hashlib
import os
import pickle
import struct

import numpy as np
import pytest

from dipedl_bench.datasets import images, load_cifar10, load_cifar100


def python2_pickle(images, label_key, labels):
    """The bytes of a published batch, written by hand: protocol 2, strings of bytes, NumPy 1."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    def number(value):
        return b"K" + bytes([value])

    content = images.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
        + (number(0) + b"\x85" + text(b"b") + b"tR(K\x01")
        + (b"J" + struct.pack("<i", len(images)) + b"J" + struct.pack("<i", images.shape[1]))
        + b"\x86cnumpy\ndtype\n"
        + (text(b"u1") + number(0) + number(1) + b"\x87R(K\x03" + text(b"|") + b"NNN")
        + (b"J" + struct.pack("<i", -1)) * 2
        + (number(0) + b"tb\x89" + b"T" + struct.pack("<i", len(content)) + content + b"tb")
    )
    listed = b"](" + b"".join(number(label) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(label_key) + listed + b"u."


@pytest.fixture
def tiny_cifar(tmp_path, put):
    """Seven batches of CIFAR-10 and CIFAR-100 in the published form, with their arrays."""
    rng = np.random.default_rng(0)
    arrays = {}
    for i, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        arrays[name] = rng.integers(0, 256, (2 + i, 3072), dtype=np.uint8), list(range(2 + i))
        put(
            tmp_path, f"cifar10/{name}", python2_pickle(arrays[name][0], b"labels", arrays[name][1])
        )
    for name, labels in (("train", [99, 0, 7]), ("test", [1, 98])):
        arrays[name] = rng.integers(0, 256, (len(labels), 3072), dtype=np.uint8), labels
        put(tmp_path, f"cifar100/{name}", python2_pickle(arrays[name][0], b"fine_labels", labels))
    return tmp_path, arrays


def test_the_form_is_the_published_one(tmp_path):
    pixels = np.arange(3 * 3072).reshape(3, 3072).astype(np.uint8)
    (tmp_path / "batch").write_bytes(python2_pickle(pixels, b"labels", [2, 0, 9]))
    read, labels = images.read_batch(tmp_path / "batch", b"labels")
    np.testing.assert_array_equal(read, pixels)
    assert labels.tolist() == [2, 0, 9] and labels.dtype == np.int64


def test_cifar10_batches_in_order(tiny_cifar):
    folder, arrays = tiny_cifar
    data = load_cifar10(data_dir=folder)
    assert repr(data) == (
        "Dataset('cifar10', X_train=(20, 3072), X_test=(7, 3072), n_classes=10, "
        "ood={'cifar100': 2})"
    )
    batches = [arrays[f"data_batch_{i}"] for i in range(1, 6)]
    np.testing.assert_array_equal(
        np.rint(data.X_train * 255), np.concatenate([pixels for pixels, _ in batches])
    )
    assert data.y_train.tolist() == [label for _, labels in batches for label in labels]
    assert data.y_test.tolist() == arrays["test_batch"][1]
    assert data.X_train.dtype == np.float32 and data.image_shape == (3, 32, 32)
    np.testing.assert_array_equal(np.rint(data.ood["cifar100"] * 255), arrays["test"][0])


@pytest.mark.parametrize(
    ("split", "n_train", "n_test"), [("test", 0, 2), ("train", 3, 0), ("all", 3, 2)]
)
def test_cifar100_split(tiny_cifar, split, n_train, n_test):
    folder, arrays = tiny_cifar
    data = load_cifar100(split=split, data_dir=folder)
    assert data.X_train.shape == (n_train, 3072) and data.X_test.shape == (n_test, 3072)
    assert data.y_train.tolist() == arrays["train"][1][:n_train]
    assert data.y_test.tolist() == arrays["test"][1][:n_test]
    assert data.target_names[98] == "woman" and data.n_classes == 100


def test_cifar_bad_arguments(tmp_path):
    with pytest.raises(
        ValueError, match=r"ood must be names out of \['cifar100', 'gtsrb', 'svhn'\]"
    ):
        load_cifar10(ood=["stl10"], data_dir=tmp_path)
    with pytest.raises(ValueError, match=r"split must be one of .*got 'validation'"):
        load_cifar100(split="validation")


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
def test_a_pickle_that_calls_something_is_refused(tmp_path, call, arguments, protocol):
    target, path = tmp_path / "done.npy", tmp_path / "batch"
    attack = Malicious(call, *(a.format(target) if isinstance(a, str) else a for a in arguments))
    content = pickle.dumps({b"data": attack}, protocol=protocol)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"must hold a pickle of plain NumPy arrays.*it asks for"):
        images.read_batch(path, b"labels")
    assert not target.exists()
    pickle.loads(content)  # the attack itself works
    assert target.exists()


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"no pickle", b"\x80\x02(.", b"\x80\x02Nb."])
def test_a_damaged_pickle(tmp_path, content):
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(ValueError, match=r"batch' must hold .* replace it by the official file"):
        images.read_batch(tmp_path / "batch", b"labels")


IMAGES = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "a dictionary, got: list"),
        ({b"labels": [0, 1]}, "an array .* of bytes under b'data', got: <class 'NoneType'>"),
        ({b"data": IMAGES.astype(float), b"labels": [0, 1]}, "an array .* of bytes .*got: float64"),
        ({b"data": IMAGES[:, 1:], b"labels": [0, 1]}, r"\(n, 3072\), got: \(2, 3071\)"),
        ({b"data": IMAGES, b"labels": [0]}, "one label per image, 2, got: 1"),
        ({b"data": IMAGES}, "one label per image, 2, got: NoneType"),
        ({b"data": IMAGES, b"labels": [0, b"1"]}, r"whole numbers as labels, got: \[b'1'\]"),
    ],
)
def test_a_batch_of_another_form(tmp_path, content, message):
    (tmp_path / "batch").write_bytes(pickle.dumps(content, protocol=3))
    with pytest.raises(ValueError, match=message):
        images.read_batch(tmp_path / "batch", b"labels")


@pytest.mark.data
@pytest.mark.parametrize("name", ["gtsrb", "cifar100"])
def test_real_cifar10_counts_and_statistics(full_dir, name):
    data = load_cifar10(ood=[name], data_dir=full_dir)
    assert np.bincount(data.y_train).tolist() == [5000] * 10
    assert np.bincount(data.y_test).tolist() == [1000] * 10
    assert len(data.ood[name]) == {"gtsrb": 12_630, "cifar100": 10_000}[name]
    # channel means and deviations as commonly published: rows are channel by channel
    channels = data.X_train.reshape(-1, *data.image_shape)
    mean = channels.mean(axis=(0, 2, 3), dtype=np.float64)
    np.testing.assert_allclose(mean, [0.4914, 0.4822, 0.4465], atol=1e-4)


@pytest.mark.data
def test_real_cifar100_test_part(full_dir):
    data = load_cifar100(data_dir=full_dir)
    assert np.bincount(data.y_test).tolist() == [100] * 100
    assert data.target_names[0] == "apple" and data.target_names[-1] == "worm"


@pytest.mark.data
def test_real_pixels_are_those_of_the_file(full_dir):
    """Images follow the pickle's head without a gap: found there byte for byte."""
    content = (full_dir / "cifar10/test_batch").read_bytes()
    pixels, _ = images.read_batch(full_dir / "cifar10/test_batch", b"labels")
    assert (
        hashlib.sha256(pixels.tobytes()).digest()
        == hashlib.sha256(
            content[(start := content.find(pixels[0].tobytes())) : start + pixels.size]
        ).digest()
    )
