"""Tables of OpenML as numbers: counts as their publishers have them."""

import numpy as np

from dipedl_bench.datasets.splits import load_data
from dipedl_bench.datasets.tables import load_openml


def test_penguins():
    data = load_openml("penguins")
    assert data.target_names == ("Adelie", "Chinstrap", "Gentoo")
    assert np.bincount(data.target).tolist() == [152, 68, 124]
    # three islands; length of the bill and its gaps, depth, flipper, mass; sex, once not told
    assert data.data[0].tolist() == [0, 0, 1, 39.1, 0, 18.7, 0, 181, 0, 3750, 0, 0, 1, 0]
    assert data.data[:, [4, 6, 8, 10]].sum(axis=0).tolist() == [2, 2, 2, 2]
    assert data.data[3, 3] == 44.45  # the median of 342 bills
    assert data.data[:, -3:].sum(axis=0).tolist() == [165, 168, 1]


def test_titanic():
    data = load_openml("titanic")
    assert np.bincount(data.target).tolist() == [323, 277, 709]
    female, male = data.data[:, :2].T
    assert (female.sum(), male.sum()) == (466, 843) and np.all(female + male == 1)
    assert data.data[:, 3].sum() == 263  # ages that nobody knew
    assert np.isfinite(data.data).all()


def test_a_class_is_left_out():
    config = {"loader": "openml:titanic", "leave_out": 2, "ood": ["3"], "arguments": {}}
    data = load_data(config, seed=1)
    assert data.target_names == ("1", "2") and len(data.ood["3"]) == 709
    assert len(data.X_train) + len(data.X_test) == 600
