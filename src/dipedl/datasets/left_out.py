"""Leave one class of any labelled data out as the OOD set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset, Provenance, split_stratified

__all__ = ["leave_class_out"]


def leave_class_out(
    data: Any,
    label: Any,
    *,
    name: str | None = None,
    test_size: float | None = None,
    random_state: int = 0,
    provenance: tuple[Provenance, ...] = (),
) -> Dataset:
    """Make one class the OOD set and keep the others.

    Parameters
    ----------
    data : Dataset, Bunch or (X, y)
        A `Dataset`, what a loader of `sklearn.datasets` returns, or inputs (n, d) with labels (n,).
    label : str or int
        The class to leave out: its name, or its value in `y`.
    name : str or None, default=None
        Name of the result; by default that of the `Dataset`, else "data", with the class.
    test_size : float or None, default=None
        Share of the other rows that goes into the test set, in (0, 1); None is 0.3. Equal rows are
        in the same part. A `Dataset` is split already and takes None only.
    random_state : int, default=0
        Seed of that split; the same seed gives the same split.
    provenance : tuple of Provenance, default=()
        Where the data came from, in addition to that of a `Dataset`.

    Returns
    -------
    Dataset
        The k - 1 other classes, renumbered in order; one ood set, named after the class
        left out, with all its rows. A `Dataset` keeps its parts and loses its other ood sets.

    Raises
    ------
    ValueError
        If no class is called `label`, or fewer than two others remain: then there is nothing to
        classify. If `test_size` is out of range, or given for a `Dataset`.
    TypeError
        If `data` is none of the three.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from dipedl.datasets import leave_class_out
    >>> leave_class_out(load_wine(), "class_2", name="wine")
    Dataset('wine', X_train=(91, 13), X_test=(39, 13), n_classes=2, ood={'class_2': 48})
    """
    if isinstance(data, Dataset):
        if test_size is not None:
            raise ValueError(
                f"test_size must be None for a Dataset, which has a test set, got {test_size!r}; "
                "pass (X, y) to split again"
            )
        names = data.target_names
        out = _index(label, range(len(names)), names)
        of_train, of_test = data.y_train == out, data.y_test == out
        return replace(
            data,
            name=name or f"{data.name} without {names[out]}",
            X_train=data.X_train[~of_train],
            y_train=_renumber(data.y_train, out),
            X_test=data.X_test[~of_test],
            y_test=_renumber(data.y_test, out),
            ood={names[out]: np.concatenate([data.X_train[of_train], data.X_test[of_test]])},
            target_names=names[:out] + names[out + 1 :],
            provenance=data.provenance + provenance,
        )
    X, classes, y, names = _split_labels(data)
    out = _index(label, classes, names)
    train, test = split_stratified(
        X[y != out], _renumber(y, out), 0.3 if test_size is None else test_size, random_state
    )
    return Dataset(
        name or f"data without {names[out]}",
        *train,
        *test,
        ood={names[out]: X[y == out]},
        target_names=names[:out] + names[out + 1 :],
        provenance=provenance,
    )


def _split_labels(data: Any) -> tuple[NDArray[Any], list[Any], NDArray[np.int64], tuple[str, ...]]:
    """Inputs (n, d), the classes as given, indices of the labels (n,), names of the classes."""
    if hasattr(data, "data") and hasattr(data, "target"):
        X, y, names = data.data, data.target, data.get("target_names")
    elif isinstance(data, tuple) and len(data) == 2:
        (X, y), names = data, None
    else:
        raise TypeError(
            f"data must be a Dataset, a Bunch of scikit-learn or (X, y), got "
            f"{type(data).__name__}; pass a tuple of inputs and labels"
        )
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            f"data must be inputs (n, d) and labels (n,), got shapes {X.shape} and {y.shape}; "
            "give one label per row"
        )
    classes, indices = np.unique(y, return_inverse=True)
    called = classes if names is None else [names[index] for index in classes]
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return X, classes.tolist(), indices.astype(np.int64), tuple(str(name) for name in called)


def _index(label: Any, classes: Sequence[Any], names: Sequence[str]) -> int:
    if len(classes) < 3:
        raise ValueError(
            f"data must have 3 classes or more to leave one out, got {list(names)}: "
            "with one class left there is nothing to classify; "
            "take other data, or give it another ood set"
        )
    # by type too: class 1 may be called "2"
    wanted = names if isinstance(label, str) else classes
    if label not in wanted:
        raise ValueError(
            f"label must be one of the classes {list(names)}, got {label!r}; "
            "pass the name of one, or its value in y"
        )
    return list(wanted).index(label)


def _renumber(y: NDArray[np.int64], out: int) -> NDArray[np.int64]:
    """Labels of the remaining rows; classes above `out` move down by one."""
    labels: NDArray[np.int64] = y[y != out]
    labels[labels > out] -= 1
    return labels
