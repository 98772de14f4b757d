"""Training and test parts, published or split; OOD sets that a loader attaches on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import prod

from dipedl.datasets.dataset import Dataset, Part, no_rows

from .files.fetch import DataDir
from .files.sources import PROVENANCE

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
