import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest

from dipedl import datasets
from dipedl.datasets import Dataset, Provenance
from dipedl.datasets.dataset import unit_pixels

X = np.arange(8.0).reshape(4, 2)
Y = np.array([0, 1, 0, 1])


def make(**changes):
    fields = {
        "name": "toy",
        "X_train": X,
        "y_train": Y,
        "X_test": X + 1,
        "y_test": Y,
        "ood": {"far": X + 9},
        "target_names": ("a", "b"),
        "image_shape": (1, 2),
        "provenance": (Provenance("me", licence="CC0"),),
    }
    return Dataset(**{**fields, **changes})


def test_registry_lists_functions_that_give_a_data_set_or_spectra():
    assert {"load_digits", "load_mini_mnist", "load_moons"} <= set(datasets.__all__)
    others = {name for name in datasets.__all__ if not name.startswith("load_")}
    spectra = {name for name in others if name.endswith("_spectra")}
    assert others - spectra == {"Dataset", "Provenance", "leave_class_out", "split_stratified"}
    for name in {*datasets.__all__} - {"Dataset", "Provenance", "split_stratified"}:
        given = inspect.signature(getattr(datasets, name)).return_annotation
        assert given == ("Spectra" if name in spectra else "Dataset")
    assert datasets.Dataset is Dataset


def test_nothing_can_be_changed():
    data = make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    with pytest.raises(TypeError):
        data.ood["near"] = X
    for array in (data.X_train, data.y_train, data.X_test, data.y_test, data.ood["far"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert X.flags.writeable  # the caller's array stays the caller's


@pytest.mark.parametrize(
    "twin", [lambda d: pickle.loads(pickle.dumps(d)), copy.deepcopy, copy.copy]
)
def test_pickle_and_copy(twin):
    data = make()
    other = twin(data)
    assert repr(other) == repr(data)
    assert other.provenance == data.provenance and other.image_shape == data.image_shape
    assert np.array_equal(other.X_test, data.X_test)
    assert np.array_equal(other.ood["far"], data.ood["far"])
    assert not other.X_train.flags.writeable and not other.ood["far"].flags.writeable


def test_a_missing_part_has_no_rows():
    data = make(X_train=X[:0], y_train=Y[:0])
    assert data.X_train.shape == (0, 2) and data.n_features == 2


def test_unit_pixels():
    images = np.array([[[0, 51], [102, 255]]], np.uint8)
    rows = unit_pixels(images)
    assert rows.dtype == np.float32 and rows.shape == (1, 4)
    np.testing.assert_array_equal(rows, np.array([[0, 51, 102, 255]], np.float32) / np.float32(255))
    assert unit_pixels(images[:0]).shape == (0, 4)
