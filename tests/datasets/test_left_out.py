import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets

from dipedl.datasets import Provenance, leave_class_out, load_digits, split_stratified


def rows(*parts):
    return sorted(row.tobytes() for part in parts for row in part)


@pytest.mark.parametrize("name", ["digits", "wine", "iris"])
def test_every_row_lands_in_one_place(name):
    bunch = getattr(sklearn_datasets, f"load_{name}")()
    for value, called in enumerate(map(str, bunch.target_names)):
        data = leave_class_out(bunch, value, name=name)
        assert list(data.ood) == [called] and called not in data.target_names
        assert rows(data.ood[called]) == rows(bunch.data[bunch.target == value])
        for i, other in enumerate(data.target_names):
            truth = bunch.data[np.array(list(map(str, bunch.target_names)))[bunch.target] == other]
            parts = data.X_train[data.y_train == i], data.X_test[data.y_test == i]
            assert rows(*parts) == rows(truth)
        assert not set(rows(data.X_train)) & set(rows(data.X_test))


def test_three_ways_to_give_data_and_label():
    bunch = sklearn_datasets.load_wine()
    named = bunch.target_names[bunch.target]
    made = [
        leave_class_out(bunch, "class_1"),
        leave_class_out(bunch, 1),
        leave_class_out((bunch.data, named), "class_1"),
        leave_class_out((bunch.data, bunch.target + 5), 6),
        leave_class_out(sklearn_datasets.load_wine(as_frame=True), 1),
    ]
    for data in made[1:]:
        np.testing.assert_array_equal(data.X_train, made[0].X_train)
        np.testing.assert_array_equal(data.y_test, made[0].y_test)
    assert [list(data.ood) for data in made] == [["class_1"]] * 3 + [["6"], ["class_1"]]
    assert made[0].name == "data without class_1" and made[3].target_names == ("5", "7")


def test_a_data_set_keeps_its_parts():
    digits = load_digits(ood_classes=[1])
    data = leave_class_out(digits, "3", provenance=(Provenance("extra"),))
    out = digits.target_names.index("3")
    assert data.name == "digits without 3" and data.image_shape == (8, 8)
    assert data.target_names == ("0", "2", "4", "5", "6", "7", "8", "9")
    np.testing.assert_array_equal(data.X_train, digits.X_train[digits.y_train != out])
    np.testing.assert_array_equal(data.X_test, digits.X_test[digits.y_test != out])
    names = np.array(digits.target_names)[digits.y_test[digits.y_test != out]]
    np.testing.assert_array_equal(np.array(data.target_names)[data.y_test], names)
    assert list(data.ood) == ["3"] and len(data.ood["3"]) == 183
    assert [p.name for p in data.provenance][1:] == ["extra"]


def test_a_name_comes_before_an_index():
    digits = load_digits(ood_classes=[0])  # class 1 is called "2"
    assert list(leave_class_out(digits, "2").ood) == ["2"]
    assert list(leave_class_out(digits, 1).ood) == ["2"]


def test_float32_stays_and_whole_numbers_become_float64():
    X, y = np.arange(40).reshape(20, 2), np.arange(20) % 4
    assert leave_class_out((X, y), 0).X_train.dtype == np.float64
    assert leave_class_out((X.astype(np.float32), y), 0).ood["0"].dtype == np.float32


def test_copies_stay_on_one_side_and_classes_keep_their_shares():
    rng = np.random.default_rng(0)
    distinct, y = rng.normal(size=(200, 2)), np.repeat([0, 1], [150, 50])
    copies = rng.integers(0, 200, 300)
    X, labels = np.concatenate([distinct, distinct[copies]]), np.concatenate([y, y[copies]])
    (X_train, y_train), (X_test, y_test) = split_stratified(X, labels, 0.2, 0)
    assert not set(rows(X_train)) & set(rows(X_test))
    assert rows(X_train, X_test) == rows(X)
    of = {row.tobytes(): label for row, label in zip(X, labels, strict=True)}
    assert [of[row.tobytes()] for row in X_test] == y_test.tolist()
    assert [of[row.tobytes()] for row in X_train] == y_train.tolist()
    distinct_test = {row.tobytes() for row in X_test}
    assert sorted(of[row] for row in distinct_test) == [0] * 30 + [1] * 10
