"""Training and test parts, published or split; OOD sets that a loader attaches on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._dataset import Dataset, no_rows
from .files.fetch import DataDir
from .files.sources import PROVENANCE

Part = tuple[NDArray[Any], NDArray[np.int64]]
Loader = Callable[..., Dataset]

_PARTS = {"test": ("test",), "train": ("train",), "all": ("train", "test")}


def chosen(
    ood: Iterable[str], known: Mapping[str, Loader], data_dir: DataDir
) -> dict[str, Callable[[], Dataset]]:
    """Loaders of the named sets, from `data_dir`; reads nothing yet."""
    names = (ood,) if isinstance(ood, str) else tuple(ood)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"ood must be names out of {sorted(known)}, got {unknown}; pass () for none"
        )
    return {name: partial(known[name], data_dir=data_dir) for name in names}


def published_parts(split: str, read: Callable[[str], Part], n_features: int) -> tuple[Part, Part]:
    """Training and test part that `split` asks for, by ``read(part)``; else without rows."""
    if split not in _PARTS:
        raise ValueError(
            f"split must be one of {sorted(_PARTS)}, got {split!r}; 'all' loads both parts"
        )
    parts = {part: read(part) for part in _PARTS[split]}
    nothing = no_rows(n_features)
    return parts.get("train", nothing), parts.get("test", nothing)


def image_set(
    name: str,
    read: Callable[[str], Part],
    target_names: tuple[str, ...],
    image_shape: tuple[int, ...],
    *,
    split: str = "all",
    ood: Mapping[str, Callable[[], Dataset]] | None = None,
) -> Dataset:
    """The parts that `split` asks for, by ``read(part)``, and the test inputs of the ood sets."""
    train, test = published_parts(split, read, prod(image_shape))
    others = {other: load() for other, load in (ood or {}).items()}
    origins = (origin for data in others.values() for origin in data.provenance)
    return Dataset(
        name,
        *train,
        *test,
        ood={other: data.X_test for other, data in others.items()},
        target_names=target_names,
        image_shape=image_shape,
        provenance=(PROVENANCE[name], *origins),
    )


def stratified(
    X: NDArray[Any], y: NDArray[np.int64], test_size: float, random_state: int
) -> tuple[Part, Part]:
    """Training part (X, y) and test part (X, y); stratified over distinct rows.

    Equal rows are in the same part, so no test row is in the training part.
    """
    from sklearn.model_selection import train_test_split

    if not 0 < test_size < 1:
        raise ValueError(f"test_size must be a share in (0, 1), got {test_size!r}; 0.3 is usual")
    _, first, copy_of = np.unique(X, axis=0, return_index=True, return_inverse=True)
    sides = train_test_split(
        np.sort(first), test_size=test_size, stratify=y[np.sort(first)], random_state=random_state
    )
    original = first[copy_of.reshape(-1)]
    copies = np.flatnonzero(original != np.arange(len(X)))
    rows = [np.concatenate([side, copies[np.isin(original[copies], side)]]) for side in sides]
    (X_train, y_train), (X_test, y_test) = ((X[row], y[row].astype(np.int64)) for row in rows)
    return (X_train, y_train), (X_test, y_test)
