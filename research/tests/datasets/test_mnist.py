import numpy as np
import pytest

from dipedl_bench.datasets import load_mnist


def test_parts_and_ood_sets(tiny):
    folder, arrays = tiny
    data = load_mnist(data_dir=folder)
    assert repr(data) == (
        "Dataset('mnist', X_train=(12, 784), X_test=(7, 784), n_classes=10, "
        "ood={'kmnist': 7, 'omniglot': 6})"
    )
    for part, X, y in (("train", data.X_train, data.y_train), ("t10k", data.X_test, data.y_test)):
        images, labels = arrays["mnist", part]
        assert X.dtype == np.float32 and y.dtype == np.int64
        np.testing.assert_array_equal(np.rint(X * 255).reshape(-1, *data.image_shape), images)
        np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(
        np.rint(data.ood["kmnist"] * 255).reshape(-1, 28, 28), arrays["kmnist", "t10k"][0]
    )
    assert [p.name.split()[0].strip('"') for p in data.provenance] == [
        "MNIST",
        "KMNIST",
        "Omniglot,",
    ]


def test_ood_sets_on_request(tiny, monkeypatch):
    folder, _ = tiny
    monkeypatch.setenv("DIPEDL_DATA", str(folder))
    assert dict(load_mnist(ood=()).ood) == {}
    assert list(load_mnist(ood="kmnist").ood) == ["kmnist"]
    both = load_mnist(ood=iter(["omniglot_inverted", "omniglot"])).ood
    assert list(both) == ["omniglot_inverted", "omniglot"]
    np.testing.assert_array_equal(both["omniglot_inverted"], 1 - both["omniglot"])


def test_only_the_files_needed_are_read(tiny):
    folder, _ = tiny
    (folder / "omniglot/images_evaluation.zip").unlink()
    load_mnist(ood=["kmnist"], data_dir=folder)
    with pytest.raises(FileNotFoundError, match=r"omniglot/images_evaluation\.zip"):
        load_mnist(data_dir=folder)


def test_unknown_ood_set_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(ValueError, match=r"ood must be names out of \['kmnist', .*got \['svhn'\]"):
        load_mnist(ood=["kmnist", "svhn"], data_dir=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("shape", "n_labels", "message"),
    [
        ((7, 27, 28), 7, r"images of shape \(n, 28, 28\), got: uint8 \(7, 27, 28\)"),
        ((7, 28, 28), 6, r"one label per image, 7, got: \(6,\)"),
    ],
)
def test_files_that_do_not_fit_together(tiny, put_idx, shape, n_labels, message):
    folder, _ = tiny
    put_idx(folder, "mnist/t10k-images-idx3-ubyte.gz", np.zeros(shape, np.uint8))
    put_idx(folder, "mnist/t10k-labels-idx1-ubyte.gz", np.zeros(n_labels, np.uint8))
    with pytest.raises(ValueError, match=message):
        load_mnist(ood=(), data_dir=folder)


@pytest.mark.data
def test_real_counts_and_statistics(full_dir):
    data = load_mnist(ood=("kmnist", "omniglot", "omniglot_inverted"), data_dir=full_dir)
    assert data.X_train.shape == (60_000, 784) and data.X_test.shape == (10_000, 784)
    # class counts and moments as commonly published
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(data.y_train).tolist() == counts
    of_test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(data.y_test).tolist() == of_test
    assert data.X_train.mean(dtype=np.float64) == pytest.approx(0.1307, abs=5e-5)
    assert data.X_train.std(dtype=np.float64) == pytest.approx(0.3081, abs=5e-5)
    assert {name: len(X) for name, X in data.ood.items()} == {
        "kmnist": 10_000,
        "omniglot": 13_180,
        "omniglot_inverted": 13_180,
    }


@pytest.mark.data
def test_real_parts_are_disjoint(full_dir):
    data = load_mnist(ood=(), data_dir=full_dir)
    train = {row.tobytes() for row in data.X_train}
    assert not any(row.tobytes() in train for row in data.X_test)
