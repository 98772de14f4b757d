import numpy as np
import pytest

from dipedl_bench.datasets import load_kmnist


@pytest.mark.parametrize(
    ("split", "n_train", "n_test"), [("test", 0, 7), ("train", 12, 0), ("all", 12, 7)]
)
def test_split(tiny, split, n_train, n_test):
    folder, arrays = tiny
    data = load_kmnist(split=split, data_dir=folder)
    assert data.X_train.shape == (n_train, 784) and data.y_train.shape == (n_train,)
    assert data.X_test.shape == (n_test, 784) and data.y_test.shape == (n_test,)
    np.testing.assert_array_equal(data.y_test, arrays["kmnist", "t10k"][1][:n_test])
    np.testing.assert_array_equal(data.y_train, arrays["kmnist", "train"][1][:n_train])
    assert data.n_classes == 10 and "CC BY-SA 4.0" in data.provenance[0].licence


def test_unknown_split():
    with pytest.raises(ValueError, match=r"split must be one of .*got 'validation'"):
        load_kmnist(split="validation")


@pytest.mark.data
def test_real_test_part_is_balanced(full_dir):
    data = load_kmnist(data_dir=full_dir)
    assert np.bincount(data.y_test).tolist() == [1000] * 10
    assert data.X_test.min() == 0 and data.X_test.max() == 1


@pytest.mark.data
def test_training_part_is_missed_by_name(full_dir):
    if (full_dir / "kmnist/train-images-idx3-ubyte.gz").exists():
        pytest.skip("this directory has the training part")
    with pytest.raises(FileNotFoundError, match=r"kmnist/train-images-idx3-ubyte\.gz"):
        load_kmnist(split="train", data_dir=full_dir)
