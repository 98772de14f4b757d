"""OOD sets that a loader attaches on request, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from ._dataset import Dataset, Provenance

DataDir = str | os.PathLike[str] | None
Loader = Callable[[DataDir], Dataset]


def choose(ood: Iterable[str], known: Mapping[str, Loader]) -> dict[str, Loader]:
    """Loaders of the named sets; reads nothing yet."""
    names = (ood,) if isinstance(ood, str) else tuple(ood)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"ood must be names out of {sorted(known)}, got {unknown}; pass () for none"
        )
    return {name: known[name] for name in names}


def load(
    chosen: Mapping[str, Loader], data_dir: DataDir
) -> tuple[dict[str, NDArray[Any]], tuple[Provenance, ...]]:
    """Test inputs of every set, and their provenance."""
    loaded = {name: loader(data_dir) for name, loader in chosen.items()}
    arrays = {name: data.X_test for name, data in loaded.items()}
    return arrays, tuple(p for data in loaded.values() for p in data.provenance)
