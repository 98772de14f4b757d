import numpy as np
from sklearn import datasets as sklearn_datasets

from dipedl.datasets import load_digits


def test_every_image_lands_in_one_place():
    data = load_digits()
    X, digit = sklearn_datasets.load_digits(return_X_y=True)
    parts = np.concatenate([data.X_train, data.X_test, data.ood["held_out"]]) * 16
    labels = np.concatenate([data.y_train, data.y_test, np.full(len(data.ood["held_out"]), 8)])
    truth = {row.tobytes(): min(d, 8) for row, d in zip(X, digit, strict=True)}
    assert len(truth) == len(parts) == 1797
    assert [truth[row.tobytes()] for row in parts.astype(float)] == labels.tolist()


def test_types_and_split():
    data = load_digits()
    assert data.X_train.dtype == np.float32 and data.X_train.max() == 1 and data.X_train.min() == 0
    assert data.image_shape == (8, 8) and data.target_names == tuple("01234567")
    share = np.bincount(data.y_test) / (np.bincount(data.y_train) + np.bincount(data.y_test))
    np.testing.assert_allclose(share, 0.3, atol=0.01)


def test_same_seed_same_split():
    a, b, c = load_digits(), load_digits(random_state=0), load_digits(random_state=1)
    np.testing.assert_array_equal(a.X_train, b.X_train)
    assert not np.array_equal(a.X_train, c.X_train)


def test_other_classes_held_out():
    data = load_digits(ood_classes=[0, 3])
    assert data.target_names == ("1", "2", "4", "5", "6", "7", "8", "9")
    assert np.unique(data.y_train).tolist() == list(range(8))
    assert len(data.ood["held_out"]) == 178 + 183
