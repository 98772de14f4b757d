"""Input that no data set can be made of: the error and the argument that it names."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.utils import Bunch

from dipedl.datasets import Dataset, leave_class_out, load_digits, load_moons

X, Y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
WINE = load_wine()
FIELDS = {"X_train": X, "y_train": Y, "X_test": X, "y_test": Y, "target_names": ("a", "b")}


def make(**changes):
    return Dataset("toy", **{**FIELDS, **changes})


#: Call, error, and a pattern with the named argument and what came.
CASES = [
    (lambda: make(X_train=X.tolist()), TypeError, "X_train must be a float.*got list"),
    (lambda: make(X_test=X.astype(int)), TypeError, "X_test must .*got dtype int64"),
    (lambda: make(X_train=X.ravel()), ValueError, r"X_train must .*got \(8,\)"),
    (lambda: make(X_test=X[:, :1]), ValueError, r"X_test must have 2 columns .*\(4, 1\)"),
    (lambda: make(ood={"far": X[:, :1]}), ValueError, r"ood\['far'\] must have 2 columns"),
    (lambda: make(y_train=Y.astype(float)), TypeError, "y_train must .*got dtype float64"),
    (lambda: make(y_test=[0, 1, 0, 1]), TypeError, "y_test must .*got list"),
    (lambda: make(y_test=Y[:3]), ValueError, r"y_test must have shape \(4,\), got \(3,\)"),
    (lambda: make(y_test=Y + 1), ValueError, "y_test must hold indices 0..1 .* got 1..2"),
    (lambda: make(y_train=Y - 1), ValueError, "y_train must hold indices 0..1 .* got -1..0"),
    (lambda: make(image_shape=(28, 28)), ValueError, "image_shape must multiply to the 2 col"),
    *(
        (lambda c=c: load_digits(ood_classes=c), ValueError, r"ood_classes must be .*got \[")
        for c in [(), range(9), (8, 10), ("8",), (0.5,)]
    ),
    *(
        (lambda s=s: load_digits(test_size=s), ValueError, r"test_size must be in \(0, 1\)")
        for s in [0, 1, -0.5, np.nan]
    ),
    (lambda: load_moons(10.0), TypeError, "n_samples must be an integer >= 2, got 10.0"),
    (lambda: load_moons(1), ValueError, "n_samples must be an integer >= 2, got 1"),
    (lambda: load_moons(random_state=None), TypeError, "random_state must .*got None"),
    (lambda: load_moons(random_state=-1), ValueError, "random_state must .*got -1"),
    (lambda: load_moons(noise="a lot"), TypeError, "noise must be a number >= 0, got 'a lot'"),
    *(
        (lambda v=v: load_moons(noise=v), ValueError, f"noise must be finite and >= 0, got {v}")
        for v in [-0.1, np.nan, np.inf]
    ),
    (
        lambda: leave_class_out(load_breast_cancer(), "benign"),
        ValueError,
        "3 classes or more to leave one out.*malignant",
    ),
    (lambda: leave_class_out(make(), "a"), ValueError, "3 classes or more"),
    *(
        (lambda v=v: leave_class_out(WINE, v), ValueError, "label must be one of .*'class_2'")
        for v in ["class_3", 3, -1, None, 0.5]
    ),
    *(
        (lambda d=d: leave_class_out(d, 0), TypeError, "data must be a Dataset, a Bunch")
        for d in [X, [1, 2], None, ([1], [2], [3])]
    ),
    *(
        (lambda d=d: leave_class_out(d, 0), ValueError, r"inputs \(n, d\) and labels.*\(6")
        for a, b in [(np.zeros(6), np.zeros(6)), (np.zeros((6, 1)), np.zeros(5))]
        for d in [(a, b), Bunch(data=a, target=b)]
    ),
    (lambda: leave_class_out(WINE, 0, test_size=1.5), ValueError, "test_size must .*got 1.5"),
    (
        lambda: leave_class_out(load_digits(), "0", test_size=0.3),
        ValueError,
        r"test_size must be None for a Dataset.*got 0\.3",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
