"""The whole table: what may be in a file, of this library and of others."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .compiled import lightgbm, random, search_trees, trees, xgboost
from .table import foreign, own_densities, own_features, own_models, own_monitoring


class Codec(Protocol):
    """How objects of one type are taken apart and made again, every part checked."""

    def take(self, value: Any) -> dict[str, Any]:
        """The parts; ValueError if the object is not one that the codec knows."""
        ...

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        """The object; ValueError unless the parts fit together."""
        ...


class Pool(Protocol):
    """How all objects of one type lie in a file: one array per field, one object after another."""

    fields: dict[str, Any]

    def take(self, value: Any) -> dict[str, np.ndarray]:
        """The fields of one object, each (n,)."""
        ...

    def make_all(self, cls: Any, joined: trees.Joined) -> list[Any]:
        """The objects; ValueError unless every one is sound."""
        ...


_FAMILIES = (foreign, own_models, own_densities, own_features, own_monitoring)
_ENTRIES = {name: entry for family in _FAMILIES for name, entry in family.ENTRIES.items()}
#: Name of a type in a file, the full public one for those of others -> its codec.
CODECS: dict[str, Codec] = {
    **_ENTRIES,
    **random.CODECS,
    **search_trees.CODECS,
    **lightgbm.CODECS,
    **xgboost.CODECS,
}
#: Types whose objects lie in a file one after another.
POOLS: dict[str, Pool] = trees.POOLS
