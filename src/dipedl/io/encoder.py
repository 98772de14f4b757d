"""A model as JSON, arrays and parts for skops: by value, from a closed table of types."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .codecs import CODECS, POOLS, is_ours, type_name
from .functions import class_name, function_name

#: dtypes that safetensors stores and gives back; everything else is kept as raw bytes.
_NATIVE = frozenset(np.dtype(c).str for c in "?bhilqBHILQefd")
RAW_DTYPE = re.compile(r"[<>|=]([biufcSUV][1-9]\d*|[mM]8(\[\d*\w+\])?)")
#: Arrays up to this many bytes lie in the manifest: a tensor of its own would take more.
_SMALL = 256
#: Gaps between rows or columns are kept in arrays that take up to this many bytes with them.
MOST_APART = 1 << 16
#: What a codec may raise over an object that is not as its table says.
_UNKNOWN = (ValueError, TypeError, AttributeError, LookupError)


class Encoder:
    """Turns a model into JSON values, arrays and parts for skops.

    `tensors` are the arrays by the path of the attribute that held them first; `parts` what is
    neither in the table nor plain data, and `paths` where those were found.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.parts: list[Any] = []
        self.paths: list[str] = []
        self._objects: list[dict[str, Any]] = []
        self._small: list[list[Any]] = []
        self._pools: dict[str, list[dict[str, np.ndarray]]] = {}
        self._seen: dict[Any, dict[str, Any]] = {}
        self._alive: list[Any] = []

    def encode(self, value: Any, path: str) -> Any:
        """JSON for `value`; `path` names it in errors and as a tensor."""
        if value is None or type(value) in (bool, int, str):
            return value
        kind = _ENCODERS.get(type(value))
        if kind is not None:
            return kind(self, value, path)
        if isinstance(value, np.generic) and _storable(value.dtype):
            return {"$scalar": [value.dtype.str, value.tobytes().hex()]}
        if isinstance(value, np.dtype) and _storable(value):
            return {"$dtype": value.str}
        return self._object(value, path)

    def contents(self) -> dict[str, Any]:
        """Type and state of each object, once however often it is used, and the small arrays.

        Call it last: it adds the arrays of all decision trees to `tensors`.
        """
        for name, members in self._pools.items():
            for field, dtype in POOLS[name].fields.items():
                arrays = [member[field] for member in members]
                counts = np.array([len(array) for array in arrays], np.int64)
                self.tensors[f"{name}/{field}"] = np.concatenate(arrays).astype(dtype)
                self.tensors[f"{name}/{field}/counts"] = counts
        return {"objects": self._objects, "small": self._small}

    def _float(self, value: float, path: str) -> Any:
        return value if math.isfinite(value) else {"$float": repr(value)}

    def _list(self, value: list[Any], path: str) -> Any:
        return [self.encode(v, f"{path}[{i}]") for i, v in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], path: str) -> Any:
        return {"$tuple": self._list(list(value), path)}

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        return {"$dict": self._list([list(item) for item in value.items()], path)}

    def _set(self, value: set[Any], path: str) -> Any:
        # In one order, whatever the hashes of texts are in this process.
        return {"$set": self._list(sorted(value, key=repr), path)}

    def _slice(self, value: slice, path: str) -> Any:
        return {"$slice": self._list([value.start, value.stop, value.step], path)}

    def _function(self, value: Any, path: str) -> Any:
        name = function_name(value)
        return self._part(value, path) if name is None else {"$function": name}

    def _class(self, value: type, path: str) -> Any:
        name = class_name(value)
        return self._part(value, path) if name is None else {"$class": name}

    def _object(self, value: Any, path: str) -> Any:
        if id(value) not in self._seen:
            name = type_name(type(value))
            if name is None:
                return self._part(value, path)
            try:
                state = self._taken(name, value)
            except _UNKNOWN as error:
                if is_ours(name):
                    raise TypeError(
                        f"{path or 'model'} cannot be saved: {error}; delete what was "
                        "added to it, or fit it again"
                    ) from error
                return self._part(value, path)
            self._add(name, value, state, path)
        return self._seen[id(value)]

    def _taken(self, name: str, value: Any) -> dict[str, Any]:
        if name not in POOLS:
            return CODECS[name].take(value)
        member = POOLS[name].take(value)
        joined = {k: (v, np.array([len(v)])) for k, v in member.items()}
        POOLS[name].make_all(type(value), joined)
        members = self._pools.setdefault(name, [])
        members.append(member)
        return {"number": len(members) - 1}

    def _add(self, name: str, value: Any, state: dict[str, Any], path: str) -> None:
        self._remember(id(value), value, {"$object": len(self._objects)})
        entry: dict[str, Any] = {"type": name}
        self._objects.append(entry)
        prefix = f"{path}." if path else ""
        # Parameters first, in a fixed order, whatever the order in which a fit or a load sets them.
        names = sorted(state, key=lambda k: (k.endswith("_"), k))
        entry["state"] = {k: self.encode(state[k], prefix + k) for k in names}

    def _part(self, value: Any, path: str) -> Any:
        if id(value) not in self._seen:
            self._remember(id(value), value, {"$part": len(self.parts)})
            self.parts.append(value)
            self.paths.append(path)
        return self._seen[id(value)]

    def _array(self, value: np.ndarray, path: str) -> Any:
        if value.dtype == object:
            return {"$objects": self._list(value.ravel().tolist(), path), "shape": value.shape}
        if not _storable(value.dtype):
            return self._part(value, path)
        # By address, not by id: a view that is made again on each access is one array.
        where = value.__array_interface__["data"][0]
        key = (where, value.shape, value.strides, value.dtype.str)
        if key not in self._seen:
            self._remember(key, value, self._laid_out(value, path))
        return self._seen[key]

    def _laid_out(self, value: np.ndarray, path: str) -> dict[str, Any]:
        """The array, and how far apart its rows or columns lie: sums can depend on it."""
        lead = _lead(value)
        code = self._stored(value, path)
        return (
            code
            if lead is None
            else {
                "$apart": code,
                "lead": lead,
                "columns": value.strides[0] == value.itemsize,
            }
        )

    def _stored(self, value: np.ndarray, path: str) -> dict[str, Any]:
        # Column order is kept: sums over another layout differ in the last bit.
        columns = not value.flags.c_contiguous and abs(value.strides[0]) < abs(value.strides[-1])
        if value.nbytes <= _SMALL:
            data = (value.T if columns else value).tobytes().hex()
            self._small.append([value.dtype.str, value.shape, "F" if columns else "C", data])
            return {"$small": len(self._small) - 1}
        name = path.encode("ascii", "backslashreplace").decode()
        if value.dtype.str not in _NATIVE:
            self.tensors[name] = np.frombuffer(value.tobytes(), np.uint8)
            return {"$raw": name, "dtype": value.dtype.str, "shape": value.shape}
        if columns:
            self.tensors[name] = np.ascontiguousarray(value.T)
            return {"$columns": name}
        self.tensors[name] = np.asarray(value, order="C")
        return {"$array": name}

    def _remember(self, key: Any, value: Any, code: dict[str, Any]) -> None:
        self._seen[key] = code
        self._alive.append(value)


_ENCODERS: dict[type, Callable[[Encoder, Any, str], Any]] = {
    float: Encoder._float,
    list: Encoder._list,
    tuple: Encoder._tuple,
    dict: Encoder._dict,
    set: Encoder._set,
    slice: Encoder._slice,
    type: Encoder._class,
    np.ndarray: Encoder._array,
    np.memmap: Encoder._array,
    np.ufunc: Encoder._function,
    partial: Encoder._function,
    types.FunctionType: Encoder._function,
}


def _lead(value: np.ndarray) -> int | None:
    """Entries from row to row, or from column to column, where there are gaps between them."""
    if value.ndim != 2 or value.itemsize not in value.strides or not value.size:
        return None
    lead = max(value.strides) // value.itemsize
    inner = value.shape[0] if value.strides[0] == value.itemsize else value.shape[1]
    outer = value.size // inner
    fits = inner < lead and lead * outer * value.itemsize <= MOST_APART
    return lead if fits and min(value.strides) > 0 else None


def _storable(dtype: np.dtype) -> bool:
    return RAW_DTYPE.fullmatch(dtype.str) is not None and dtype.fields is None
