"""Builds what `Encoder` described: types come from the closed table alone, and are checked."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from .checks import check_hashes
from .codecs import CODECS, POOLS, is_ours, lookup
from .encoder import MOST_APART, RAW_DTYPE
from .functions import class_of_numbers, function

#: What one object takes, about; random states take the most.
_PER_OBJECT = 3000
#: An object takes at least as much in the file.
_PER_OBJECT_IN_FILE = 40
#: The hash of a whole number is that of its remainder by it.
_LARGE = sys.hash_info.modulus
#: Objects may take this many times the size of the file, and search trees in it.
_MOST_GROWTH, _ALWAYS = 6, 1 << 22


class Decoder:
    """Values from the JSON of a file, its arrays and its parts; ValueError for what is unsound.

    `contents` are those of `Encoder.contents`.
    """

    def __init__(
        self, contents: Mapping[str, Any], tensors: dict[str, np.ndarray], parts: list[Any]
    ) -> None:
        self._objects, self._small = list(contents["objects"]), list(contents["small"])
        self._tensors = tensors
        self._parts = parts
        self._arrays: dict[Any, np.ndarray] = {}
        self._made: dict[int, Any] = {}
        self._building: set[int] = set()
        size = sum(array.nbytes for array in tensors.values())
        size += _PER_OBJECT_IN_FILE * len(self._objects)
        self._left = _ALWAYS + _MOST_GROWTH * size

    def decode(self, code: Any) -> Any:
        """The value that JSON `code` stands for."""
        if isinstance(code, list):
            return [self.decode(v) for v in code]
        if not isinstance(code, dict):
            return code
        for tag in code.keys() & _DECODERS.keys():
            if code.keys() == {tag, *_BESIDE.get(tag, ())}:
                return _DECODERS[tag](self, code[tag], code)
        raise ValueError(f"there is no value with the keys {sorted(code)}")

    def _object(self, number: int, code: dict[str, Any]) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise ValueError(f"there is no object {number!r}")
        if number not in self._made:
            if number in self._building:
                raise ValueError(f"the object {number} holds itself")
            self._building.add(number)
            self._made[number] = self._new(self._objects[number])
            self._building.discard(number)
        return self._made[number]

    def _new(self, entry: dict[str, Any]) -> Any:
        name, cls = entry["type"], lookup(entry["type"])
        state = {k: self.decode(v) for k, v in entry["state"].items()}
        if name in POOLS:
            return self._pool_members[name][_index(state["number"])]
        codec = CODECS[name]
        if not is_ours(name):
            self._charge(_PER_OBJECT + (codec.cost(state) if hasattr(codec, "cost") else 0))
        return codec.make(cls, state)

    def _charge(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ValueError("its objects would take many times the memory of the file")

    @cached_property
    def _pool_members(self) -> dict[str, list[Any]]:
        """All decision trees of the file, by type: checked at once, and in one pass."""
        return {
            name: pool.make_all(lookup(name), self._joined(name, pool.fields))
            for name, pool in POOLS.items()
            if f"{name}/{next(iter(pool.fields))}" in self._tensors
        }

    def _joined(
        self, name: str, fields: Mapping[str, Any]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        joined = {}
        for field, dtype in fields.items():
            array, counts = (self._tensors[f"{name}/{field}{end}"] for end in ("", "/counts"))
            whole = counts.dtype == np.int64 and counts.ndim == array.ndim == 1
            if not whole or array.dtype != dtype or (counts < 0).any():
                raise ValueError(f"{name}/{field} has another type or shape")
            if int(counts.astype(object).sum() if len(counts) else 0) != len(array):
                raise ValueError(f"{name}/{field} has other counts than entries")
            joined[field] = (array, counts)
        if len({len(counts) for _, counts in joined.values()}) != 1:
            raise ValueError(f"the fields of {name} are of different numbers of trees")
        return joined

    def _copy(self, name: str) -> np.ndarray:
        """The array of a name, once: the bytes that were read cannot be written to."""
        if name not in self._arrays:
            self._arrays[name] = self._tensors[name].copy()
        return self._arrays[name]

    def _view(self, key: Any, view: Callable[[], np.ndarray]) -> np.ndarray:
        # One view for all who share the array, as when it was saved.
        if key not in self._arrays:
            self._arrays[key] = view()
        return self._arrays[key]

    def _columns(self, name: str, code: dict[str, Any]) -> np.ndarray:
        return self._view(("T", name), lambda: self._copy(name).T)

    def _raw(self, name: str, code: dict[str, Any]) -> np.ndarray:
        dtype, shape = _raw_dtype(code["dtype"]), _shape(code["shape"])
        key = (name, dtype.str, shape)
        return self._view(key, lambda: self._copy(name).view(dtype).reshape(shape))

    def _small_array(self, number: int, code: dict[str, Any]) -> np.ndarray:
        dtype, shape, order, data = self._small[_index(number)]
        kind, sizes = _raw_dtype(dtype), _shape(shape)
        if order not in ("C", "F") or len(data) != 2 * kind.itemsize * math.prod(sizes):
            raise ValueError(f"the small array {number} has another size than its shape")

        def made() -> np.ndarray:
            flat = np.frombuffer(bytes.fromhex(data), kind).copy()
            return flat.reshape(sizes) if order == "C" else flat.reshape(sizes[::-1]).T

        return self._view(_index(number), made)

    def _apart(self, code: Any, outer: dict[str, Any]) -> np.ndarray:
        """The array, with gaps between its rows or columns."""
        array, lead = self.decode(code), _index(outer["lead"])
        columns = outer["columns"] is True
        flat = array.T if columns else array
        if (
            array.ndim != 2
            or lead <= flat.shape[1]
            or lead * array.nbytes > (MOST_APART * flat.shape[1])
        ):
            raise ValueError("the rows of an array are too far apart")

        def made() -> np.ndarray:
            self._charge(lead * len(flat) * array.itemsize)
            parent = np.zeros((len(flat), lead), array.dtype)
            parent[:, : flat.shape[1]] = flat
            rows = parent[:, : flat.shape[1]]
            return rows.T if columns else rows

        return self._view(("apart", id(array), lead, columns), made)

    def _set(self, items: list[Any], code: dict[str, Any]) -> set[Any]:
        values = self.decode(items)
        check_hashes(values)
        return set(values)

    def _dict(self, items: list[Any], code: dict[str, Any]) -> dict[Any, Any]:
        pairs = self.decode(items)
        check_hashes(key for key, _ in pairs)
        return dict(pairs)

    def _object_array(self, items: list[Any], code: dict[str, Any]) -> np.ndarray:
        values = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            values[i] = self.decode(item)
        # scikit-learn looks levels up in a dict. Smaller numbers have hashes of their own.
        large = sorted(value for value in values if type(value) is int and abs(value) >= _LARGE)
        check_hashes(value for value, _ in groupby(large))
        return values.reshape(_shape(code["shape"]))


def _index(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no number of an object")
    return number


def _shape(sizes: Any) -> tuple[int, ...]:
    if not (isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes)):
        raise ValueError(f"{sizes!r} is not a shape")
    return tuple(sizes)


def _raw_dtype(name: Any) -> np.dtype:
    if not (isinstance(name, str) and RAW_DTYPE.fullmatch(name)):
        raise ValueError(f"the dtype {name!r} is not one that an array may have")
    return np.dtype(name)


def _scalar(dtype: str, data: str) -> Any:
    return np.frombuffer(bytes.fromhex(data), _raw_dtype(dtype))[0]


#: Keys that stand beside a tag.
_BESIDE = {"$apart": ("lead", "columns"), "$raw": ("dtype", "shape"), "$objects": ("shape",)}
_DECODERS: dict[str, Callable[[Decoder, Any, dict[str, Any]], Any]] = {
    "$float": lambda self, text, code: float(text),
    "$scalar": lambda self, pair, code: _scalar(*pair),
    "$tuple": lambda self, items, code: tuple(self.decode(items)),
    "$set": Decoder._set,
    "$dict": Decoder._dict,
    "$slice": lambda self, ends, code: slice(*self.decode(ends)),
    "$dtype": lambda self, name, code: _raw_dtype(name),
    "$class": lambda self, name, code: class_of_numbers(name),
    "$function": lambda self, name, code: function(name),
    "$array": lambda self, name, code: self._copy(name),
    "$columns": Decoder._columns,
    "$raw": Decoder._raw,
    "$small": Decoder._small_array,
    "$apart": Decoder._apart,
    "$objects": Decoder._object_array,
    "$object": Decoder._object,
    "$part": lambda self, number, code: self._parts[_index(number)],
}
