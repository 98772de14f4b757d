import hashlib

import numpy as np
import pytest

from dipedl_bench.datasets import load_fashion_mnist
from dipedl_bench.datasets.images import read_part

# of the images and labels in bytes, one part after the other
UNPACKED = {
    "train": "16d82e2b505296aa2b78bd5ea0992634f30419a4c97def7c907d154a35ac6157",
    "test": "9f1ec356a747bfe4ebab3cfb722d3694c9ca737e2570f6f90cf31d7b6fd689d4",
}


def test_fashion_parts_and_ood_sets(tiny):
    folder, arrays = tiny
    data = load_fashion_mnist(data_dir=folder)
    assert repr(data) == (
        "Dataset('fashion_mnist', X_train=(12, 784), X_test=(7, 784), n_classes=10, "
        "ood={'mnist': 7, 'kmnist': 7})"
    )
    for part, X, y in (("train", data.X_train, data.y_train), ("t10k", data.X_test, data.y_test)):
        images, labels = arrays["fashion_mnist", part]
        np.testing.assert_array_equal(np.rint(X * 255).reshape(-1, 28, 28), images)
        np.testing.assert_array_equal(y, labels)
    for name in ("mnist", "kmnist"):
        images, _ = arrays[name, "t10k"]
        np.testing.assert_array_equal(np.rint(data.ood[name] * 255).reshape(-1, 28, 28), images)
    assert len(data.provenance) == 3 and data.provenance[0].licence == "MIT"


def test_fashion_alone_needs_its_own_files_only(tiny):
    folder, _ = tiny
    for path in [*(folder / "mnist").iterdir(), *(folder / "kmnist").iterdir()]:
        path.unlink()
    assert dict(load_fashion_mnist(ood=(), data_dir=folder).ood) == {}
    with pytest.raises(FileNotFoundError, match="kmnist/t10k-images"):
        load_fashion_mnist(ood="kmnist", data_dir=folder)


def test_fashion_unknown_ood_set(tmp_path):
    message = r"ood must be names out of \['kmnist', 'mnist'\], got \['omniglot'\]"
    with pytest.raises(ValueError, match=message):
        load_fashion_mnist(ood=["omniglot"], data_dir=tmp_path / "nowhere")


def test_fashion_other_bytes_are_refused(tiny):
    folder, _ = tiny
    path = folder / "fashion_mnist/t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(ValueError, match=r"fashion_mnist/t10k-labels.*must have the checksum"):
        load_fashion_mnist(data_dir=folder)


@pytest.mark.data
def test_real_fashion_counts_and_statistics(full_dir):
    data = load_fashion_mnist(data_dir=full_dir)
    assert np.bincount(data.y_train).tolist() == [6000] * 10
    assert np.bincount(data.y_test).tolist() == [1000] * 10
    # moments as commonly published
    assert data.X_train.mean(dtype=np.float64) == pytest.approx(0.2860, abs=5e-5)
    assert data.X_train.std(dtype=np.float64) == pytest.approx(0.3530, abs=5e-5)
    assert {name: len(X) for name, X in data.ood.items()} == {"mnist": 10_000, "kmnist": 10_000}


@pytest.mark.data
@pytest.mark.parametrize("part", ["train", "test"])
def test_real_fashion_content_whatever_its_compression(full_dir, part):
    content = read_part("fashion_mnist", part, full_dir)
    labels = content.labels.astype(np.uint8)
    found = hashlib.sha256(content.images.tobytes() + labels.tobytes()).hexdigest()
    assert found == UNPACKED[part]
