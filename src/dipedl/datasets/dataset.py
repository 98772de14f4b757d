"""`Dataset`, the return type of every loader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "Provenance", "split_stratified"]

#: Inputs (n, d) and labels (n,).
Part = tuple[NDArray[Any], NDArray[np.int64]]


@dataclass(frozen=True)
class Provenance:
    """Source and licence of data.

    Parameters
    ----------
    name : str
        Name of the source, as its publishers use it.
    urls : tuple of str
        Official addresses; empty for synthetic data.
    checksums : tuple of str
        Checksums a loader accepts, each ``"path algorithm:hex"``; empty where nothing is
        downloaded.
    licence : str
        The licence as published.
    notes : str, default=""
        What was selected or changed.

    Examples
    --------
    >>> from dipedl.datasets import Provenance
    >>> Provenance("coin tosses", licence="CC0").licence
    'CC0'
    """

    name: str
    urls: tuple[str, ...] = ()
    checksums: tuple[str, ...] = ()
    licence: str = ""
    notes: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A classification problem with its OOD sets; immutable.

    Parameters
    ----------
    name : str
        Name of the data set.
    X_train, X_test : ndarray (n, d), float32 or float64
        Inputs, one row each. Without a training part, X_train has ``n = 0`` rows. Images
        are flattened, in units of full scale: 0 is black, 1 is white.
    y_train, y_test : ndarray (n,), int64
        Classes, as indices into `target_names`.
    ood : mapping of str to ndarray (m, d), default={}
        Inputs that belong to no class, by name.
    target_names : tuple of str
        Names of the k classes.
    image_shape : tuple of int or None, default=None
        ``X.reshape(-1, *image_shape)`` gives images; None if rows are no images.
    provenance : tuple of Provenance, default=()
        One entry per source.
    truth : mapping of str to ndarray (m, k), default={}
        Where they are known, the class probabilities of the rows of "test" and of OOD sets.

    Raises
    ------
    TypeError
        If an array is not a NumPy array or has the wrong type of number.
    ValueError
        If shapes disagree, or a label is not an index into `target_names`.

    Notes
    -----
    Arrays are read-only views: ``data.X_train.copy()`` gives one to write to.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.datasets import Dataset
    >>> X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    >>> Dataset("toy", X, y, X, y, ood={"far": X + 9}, target_names=("a", "b"))
    Dataset('toy', X_train=(4, 2), X_test=(4, 2), n_classes=2, ood={'far': 4})
    """

    name: str
    X_train: NDArray[Any]
    y_train: NDArray[np.int64]
    X_test: NDArray[Any]
    y_test: NDArray[np.int64]
    ood: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    target_names: tuple[str, ...] = field(kw_only=True)
    image_shape: tuple[int, ...] | None = field(default=None, kw_only=True)
    provenance: tuple[Provenance, ...] = field(default=(), kw_only=True)
    truth: Mapping[str, NDArray[Any]] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        _check_inputs("X_train", self.X_train, None)
        _check_inputs("X_test", self.X_test, self.n_features)
        for name, X in self.ood.items():
            _check_inputs(f"ood[{name!r}]", X, self.n_features)
        _check_labels("y_train", self.y_train, len(self.X_train), self.n_classes)
        _check_labels("y_test", self.y_test, len(self.X_test), self.n_classes)
        if self.image_shape is not None and np.prod(self.image_shape) != self.n_features:
            raise ValueError(
                f"image_shape must multiply to the {self.n_features} columns of X_train, got "
                f"{self.image_shape}; pass None if rows are no images"
            )
        for name in ("X_train", "y_train", "X_test", "y_test"):
            object.__setattr__(self, name, _read_only(getattr(self, name)))
        ood = {name: _read_only(X) for name, X in self.ood.items()}
        object.__setattr__(self, "ood", MappingProxyType(ood))
        for name, P in self.truth.items():
            rows = len(self.X_test) if name == "test" else len(self.ood.get(name, ()))
            if P.shape != (rows, self.n_classes):
                raise ValueError(
                    f"truth[{name!r}] must have shape {(rows, self.n_classes)}, got {P.shape}"
                )
        truth = {name: _read_only(P) for name, P in self.truth.items()}
        object.__setattr__(self, "truth", MappingProxyType(truth))

    @property
    def n_features(self) -> int:
        """Number d of inputs per row."""
        return int(self.X_train.shape[1])

    @property
    def n_classes(self) -> int:
        """Number k of classes."""
        return len(self.target_names)

    def __repr__(self) -> str:
        sizes = {name: len(X) for name, X in self.ood.items()}
        return (
            f"Dataset({self.name!r}, X_train={self.X_train.shape}, X_test={self.X_test.shape}, "
            f"n_classes={self.n_classes}, ood={sizes})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # a mappingproxy cannot be pickled, and unpickled arrays are writable again: rebuild it
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        return _rebuild, ({**state, "ood": dict(self.ood), "truth": dict(self.truth)},)


def unit_pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Images (n, h, w) of bytes as rows (n, h * w) in units of full scale, float32 in [0, 1]."""
    rows = images.reshape(len(images), int(np.prod(images.shape[1:]))).astype(np.float32)
    rows /= np.float32(255)
    return rows


def split_stratified(
    X: NDArray[Any], y: NDArray[np.int64], test_size: float, random_state: int
) -> tuple[Part, Part]:
    """Split rows by class, with equal rows in the same part: no test row is a training row.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Inputs.
    y : ndarray of int64, shape (n,)
        Classes; the shares of the parts are of the distinct rows.
    test_size : float
        Share of the distinct rows that are test rows, in (0, 1).
    random_state : int
        Seed.

    Returns
    -------
    train, test : tuple of ndarray
        X and y of each part.

    Raises
    ------
    ValueError
        If `test_size` is no such share, or a class has fewer than two distinct rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.datasets import split_stratified
    >>> X, y = np.arange(8.0)[:, None] // 2, np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> train, test = split_stratified(X, y, 0.5, random_state=0)
    >>> set(train[0].flat) & set(test[0].flat)
    set()
    """
    from sklearn.model_selection import train_test_split

    from ..maths.arrays import check_number

    check_number("test_size", test_size, "in (0, 1)", lambda x: 0 < x < 1)
    _, first, copy_of = np.unique(X, axis=0, return_index=True, return_inverse=True)
    sides = train_test_split(
        np.sort(first), test_size=test_size, stratify=y[np.sort(first)], random_state=random_state
    )
    original = first[copy_of.reshape(-1)]
    copies = np.flatnonzero(original != np.arange(len(X)))
    rows = [np.concatenate([side, copies[np.isin(original[copies], side)]]) for side in sides]
    (X_train, y_train), (X_test, y_test) = ((X[row], y[row].astype(np.int64)) for row in rows)
    return (X_train, y_train), (X_test, y_test)


def _rebuild(state: dict[str, Any]) -> Dataset:
    return Dataset(**state)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _check_inputs(name: str, X: NDArray[Any], n_features: int | None) -> None:
    if getattr(X, "dtype", None) not in (np.float32, np.float64):
        raise TypeError(
            f"{name} must be a float32 or float64 array, got {_kind(X)}; "
            "convert it with np.asarray(..., dtype=np.float32)"
        )
    if X.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d), got {X.shape}; flatten each row")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"{name} must have {n_features} columns like X_train, got shape {X.shape}; "
            "bring both to the same inputs"
        )


def _check_labels(name: str, y: NDArray[np.int64], n: int, n_classes: int) -> None:
    if getattr(y, "dtype", None) != np.int64:
        raise TypeError(
            f"{name} must be an int64 array, got {_kind(y)}; "
            "convert it with np.asarray(..., dtype=np.int64)"
        )
    if y.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {y.shape}; give one label per row")
    if n and not 0 <= y.min() <= y.max() < n_classes:
        raise ValueError(
            f"{name} must hold indices 0..{n_classes - 1} into target_names, "
            f"got {y.min()}..{y.max()}; number the classes from 0 and name them all"
        )


def _kind(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else f"dtype {dtype}"
