import io

import numpy as np
import pytest
from scipy.io import savemat

from dipedl_bench.datasets import files, images, load_cifar10, load_svhn


def mat(**variables):
    """A MATLAB 5 file with compression, as the published ones: arrays column by column."""
    stream = io.BytesIO()
    savemat(stream, variables, do_compression=True)
    return stream.getvalue()


def numbers(n, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)
    labels = (np.arange(n) % 10 + 1).astype(np.uint8)
    return images, labels


def published(images, labels):
    # as loaded in MATLAB: row, column, colour, number of the image
    return mat(X=np.asfortranarray(images.transpose(2, 3, 1, 0)), y=labels[:, None])


@pytest.fixture
def tiny_svhn(tmp_path, put):
    arrays = {"test": numbers(23), "train": numbers(11, seed=1)}
    for part, of_part in arrays.items():
        put(tmp_path, f"svhn/{part}_32x32.mat", published(*of_part))
    return tmp_path, arrays


def test_images_and_digits(tiny_svhn):
    folder, arrays = tiny_svhn
    data = load_svhn(data_dir=folder)
    images, labels = arrays["test"]
    assert repr(data) == (
        "Dataset('svhn', X_train=(0, 3072), X_test=(23, 3072), n_classes=10, ood={})"
    )
    np.testing.assert_array_equal(np.rint(data.X_test * 255).reshape(images.shape), images)
    assert data.X_test.dtype == np.float32 and data.image_shape == (3, 32, 32)
    # 1 to 9 are themselves; 10 is the digit 0
    assert data.y_test.tolist() == [int(str(label)[-1]) for label in labels]
    assert data.target_names == tuple("0123456789") and data.y_test.dtype == np.int64
    assert data.provenance[0].name.startswith("SVHN, cropped digits")


def test_a_pixel_by_hand(tmp_path, put):
    """Fourth image, blue, row 5, column 7: where a wrong order of the axes would show."""
    X = np.zeros((32, 32, 3, 6), np.uint8)
    X[5, 7, 2, 3] = 255
    put(tmp_path, "svhn/test_32x32.mat", mat(X=X, y=np.full((6, 1), 10, np.uint8)))
    data = load_svhn(data_dir=tmp_path)
    assert np.argwhere(data.X_test).tolist() == [[3, 2 * 1024 + 5 * 32 + 7]]
    assert data.y_test.tolist() == [0] * 6


@pytest.mark.parametrize(
    ("split", "n_train", "n_test"), [("test", 0, 23), ("train", 11, 0), ("all", 11, 23)]
)
def test_split(tiny_svhn, split, n_train, n_test):
    folder, _ = tiny_svhn
    data = load_svhn(split=split, data_dir=folder)
    assert data.X_train.shape == (n_train, 3072) and data.X_test.shape == (n_test, 3072)
    assert len(data.y_train) == n_train


def test_labels_of_any_number_type(tmp_path, put):
    images, labels = numbers(4)
    X = images.transpose(2, 3, 1, 0)
    put(tmp_path, "svhn/test_32x32.mat", mat(X=X, y=labels[:, None].astype(float)))
    assert load_svhn(data_dir=tmp_path).y_test.tolist() == [1, 2, 3, 4]


X4 = np.zeros((32, 32, 3, 4), np.uint8)
Y4 = np.ones((4, 1), np.uint8)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"images": X4, "y": Y4}, r"the variables X and y, got: \['y'\]"),
        ({}, r"the variables X and y, got: \[\]"),
        (
            {"X": X4.astype(float), "y": Y4},
            r"bytes, images of shape \(n, 3, 32, 32\), got: float64",
        ),
        (
            {"X": X4.transpose(3, 0, 1, 2), "y": Y4},
            r"X of shape \(32, 32, 3, n\) .*got: \(4, 32, 32, 3\)",
        ),
        ({"X": X4[..., 0], "y": Y4}, r"X of shape .*got: \(32, 32, 3\)"),
        ({"X": X4, "y": Y4[:3]}, r"y of shape \(n, 1\), got: .*\(3, 1\)"),
        ({"X": X4, "y": Y4.T}, r"y of shape \(n, 1\), got: .*\(1, 4\)"),
        ({"X": X4, "y": 0 * Y4}, r"labels 1 to 10 \(10 is the digit 0\), got: \[0, 0, 0\]"),
        ({"X": X4, "y": Y4 + 10}, r"labels 1 to 10 .*got: \[11, 11, 11\]"),
        ({"X": X4, "y": Y4 + 0.5}, r"labels 1 to 10 .*got: \[1.5"),
    ],
)
def test_a_file_of_another_form(tmp_path, put, variables, message):
    put(tmp_path, "svhn/test_32x32.mat", mat(**variables))
    with pytest.raises(ValueError, match=rf"test_32x32\.mat' must hold .*{message}.*; replace it"):
        load_svhn(data_dir=tmp_path)


@pytest.mark.parametrize("content", [b"", b"nothing of the kind" * 20, "cut", "bits", "hdf5"])
def test_a_damaged_file_with_the_right_checksum(tmp_path, put, content):
    whole = published(*numbers(5))
    if content == "cut":
        content = whole[: len(whole) // 2]
    elif content == "bits":
        content = whole[:300] + bytes(200) + whole[500:]
    elif content == "hdf5":  # MATLAB 7.3
        content = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n"
    put(tmp_path, "svhn/test_32x32.mat", content)
    with pytest.raises(ValueError, match=r"test_32x32\.mat' must hold .*; replace it by the off"):
        load_svhn(data_dir=tmp_path)


def test_another_file_of_that_name(tiny_svhn):
    folder, _ = tiny_svhn
    path = folder / "svhn/test_32x32.mat"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"test_32x32\.mat.*(checksum|MD5|md5)"):
        load_svhn(data_dir=folder)


def test_the_official_checksums_and_sizes():
    test, train = (files.FILES[f"svhn/{part}_32x32.mat"] for part in ("test", "train"))
    assert test.checksums == ("md5:eb5a983be6a315427106f1b164d9cef3",)
    assert train.checksums == ("md5:e26dedcc434d2e4c54c9b2d4a06d8373",)
    assert (test.size, train.size) == (64_275_384, 182_040_794)
    assert test.urls == ("http://ufldl.stanford.edu/housenumbers/test_32x32.mat",)


def test_a_download_is_kept(mirror, register):
    pytest.importorskip("pooch")
    content = published(*numbers(3))
    mirror.files["/test_32x32.mat"] = content
    register("svhn/test_32x32.mat", content, urls=(f"{mirror.url}/test_32x32.mat",))
    assert len(load_svhn().X_test) == len(load_svhn().X_test) == 3
    assert len(mirror.asked) == 1
    assert (files.cache_folder() / "svhn/test_32x32.mat").read_bytes() == content


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"split must be one of .*got 'extra'"):
        load_svhn(split="extra")
    with pytest.raises(FileNotFoundError, match=r"test_32x32\.mat"):
        load_svhn(data_dir=tmp_path)


def test_it_is_an_ood_set_of_cifar10(monkeypatch, tiny_svhn):
    folder, arrays = tiny_svhn
    part = np.zeros((2, 3, 32, 32), np.uint8), np.arange(2), folder
    monkeypatch.setitem(images.READERS, "pickle", lambda paths, table: images.Images(*part))
    monkeypatch.setattr(files, "_verified", lambda path, *_: path)
    for name in ("test_batch", *(f"data_batch_{i}" for i in range(1, 6))):
        (folder / "cifar10").mkdir(exist_ok=True)
        (folder / "cifar10" / name).touch()
    data = load_cifar10(ood="svhn", data_dir=folder)
    np.testing.assert_array_equal(np.rint(data.ood["svhn"] * 255).astype(int)[0, :4], [
        *arrays["test"][0][0, 0, 0, :4]
    ])  # fmt: skip
    assert [p.name[:7] for p in data.provenance] == ["CIFAR-1", "SVHN, c"]


@pytest.mark.data
def test_real_numbers(full_dir):
    if not (full_dir / "svhn/test_32x32.mat").exists():
        pytest.skip("no SVHN in DIPEDL_DATA")
    data = load_svhn(data_dir=full_dir)
    assert data.X_test.shape == (26_032, 3072)
    # of the digits 0 to 9, as published
    counts = [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]
    assert np.bincount(data.y_test).tolist() == counts
