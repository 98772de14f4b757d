"""Our own objects as JSON and arrays, and back: by value, from a closed table of types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import BallTree, KDTree, NearestNeighbors

from ._types import lookup, type_name

#: dtypes that safetensors stores and gives back; everything else is kept as raw bytes.
_NATIVE = frozenset(np.dtype(c).str for c in "?bhilqBHILQefd")
_RAW_DTYPE = re.compile(r"[<>|=]([biufcSUV][1-9]\d*|[mM]8(\[\d*\w+\])?)")
_FITTED = re.compile(r"_?[a-zA-Z]\w*_")
_PRIVATE = frozenset({"_fit_X", "_fit_method", "_tree", "_metadata_request"})
_TREES = {"kd": KDTree, "ball": BallTree}


def is_own(value: Any) -> bool:
    """Whether the exact type of `value` is in the closed table."""
    return type_name(type(value)) is not None


def _check_state(cls: type, given: Iterable[str]) -> None:
    """Raise ValueError unless the attributes are the parameters and fitted attributes of `cls`."""
    keys = set(given)
    if is_dataclass(cls):
        required, extra = {f.name for f in fields(cls)}, set[str]()
    else:
        required = set(cls._get_param_names())  # type: ignore[attr-defined]
        extra = {k for k in keys if _FITTED.fullmatch(k) or k in _PRIVATE}
        extra = {k for k in extra if not hasattr(cls, k)}
    if keys - required - extra:
        raise ValueError(
            f"{sorted(keys - required - extra)} are not parameters or fitted attributes of "
            f"{cls.__name__}; delete them before saving"
        )
    if required - keys:
        raise ValueError(f"{cls.__name__} lacks {sorted(required - keys)}")


class Encoder:
    """Turns a model into JSON values, arrays and parts for skops.

    `objects` are type and state of each object of ours, once however often it is used; `tensors`
    the arrays by the path of the attribute that held them first; `parts` what is neither ours nor
    plain data, and `paths` where those were found.
    """

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.tensors: dict[str, np.ndarray] = {}
        self.parts: list[Any] = []
        self.paths: list[str] = []
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
        return self._object(value, path) if is_own(value) else self._part(value, path)

    def _float(self, value: float, path: str) -> Any:
        return value if math.isfinite(value) else {"$float": repr(value)}

    def _list(self, value: list[Any], path: str) -> Any:
        return [self.encode(v, f"{path}[{i}]") for i, v in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], path: str) -> Any:
        return {"$tuple": self._list(list(value), path)}

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        return {"$dict": self._list([list(item) for item in value.items()], path)}

    def _object(self, value: Any, path: str) -> Any:
        if id(value) not in self._seen:
            number = {"$object": len(self.objects)}
            self._remember(id(value), value, number)
            state = vars(value)
            try:
                _check_state(type(value), state)
            except ValueError as error:
                raise TypeError(f"{path or 'model'} cannot be saved: {error}") from error
            entry: dict[str, Any] = {"type": type_name(type(value))}
            self.objects.append(entry)
            prefix = f"{path}." if path else ""
            entry["state"] = {k: self.encode(v, prefix + k) for k, v in state.items()}
        return self._seen[id(value)]

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
            self._remember(key, value, self._stored(value, path))
        return self._seen[key]

    def _stored(self, value: np.ndarray, path: str) -> dict[str, Any]:
        name = path.encode("ascii", "backslashreplace").decode()
        if value.dtype.str not in _NATIVE:
            self.tensors[name] = np.frombuffer(value.tobytes(), np.uint8)
            return {"$raw": name, "dtype": value.dtype.str, "shape": value.shape}
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            # Column order is kept: sums over another layout differ in the last bit.
            self.tensors[name] = value.T
            return {"$columns": name}
        self.tensors[name] = np.asarray(value, order="C")
        return {"$array": name}

    def _tree(self, value: Any, path: str) -> Any:
        """A tree by its points: stored nodes could point anywhere, so they are computed again."""
        state = value.__getstate__()
        data, leaf_size, metric, weight = state[0], state[4], state[11], state[12]
        kind = next(k for k, cls in _TREES.items() if cls is type(value))
        if type(metric).__name__ != "EuclideanDistance64" or not _same_tree(
            value, _tree(kind, data, leaf_size, weight)
        ):
            return self._part(value, path)
        weights = None if weight is None else np.asarray(weight)
        parts = [kind, np.asarray(data), leaf_size, weights]
        return {"$tree": self._list(parts, path)}

    def _remember(self, key: Any, value: Any, code: dict[str, Any]) -> None:
        self._seen[key] = code
        self._alive.append(value)


_ENCODERS: dict[type, Callable[[Encoder, Any, str], Any]] = {
    float: Encoder._float,
    list: Encoder._list,
    tuple: Encoder._tuple,
    dict: Encoder._dict,
    np.ndarray: Encoder._array,
    np.memmap: Encoder._array,
    KDTree: Encoder._tree,
    BallTree: Encoder._tree,
}


def _storable(dtype: np.dtype) -> bool:
    return _RAW_DTYPE.fullmatch(dtype.str) is not None and dtype.fields is None


def _tree(kind: str, data: Any, leaf_size: int, weight: Any) -> Any:
    return _TREES[kind](data, leaf_size=leaf_size, metric="euclidean", sample_weight=weight)


def _same_tree(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a.get_arrays(), b.get_arrays(), strict=True))


def _check_index(index: NearestNeighbors) -> None:
    """Refuse an index whose parts disagree: its compiled search trusts them."""
    rows = vars(index).get("_fit_X")
    sound = (
        isinstance(rows, np.ndarray)
        and rows.ndim == 2
        and rows.dtype == np.float64
        and rows.flags.c_contiguous
        and np.isfinite(rows).all()
        and (index.n_samples_fit_, index.n_features_in_) == rows.shape
        and isinstance(index.n_neighbors, int)
        and 1 <= index.n_neighbors <= len(rows)
        and (index._tree is None or np.asarray(index._tree.data).shape == rows.shape)
    )
    if not sound:
        raise ValueError("the parts of a nearest-neighbour index do not fit together")


class Decoder:
    """Builds the objects that `Encoder` described; types come from the closed table alone."""

    def __init__(
        self, objects: list[Any], tensors: dict[str, np.ndarray], parts: list[Any]
    ) -> None:
        self._tensors = tensors
        self._parts = parts
        self._arrays: dict[str, np.ndarray] = {}
        types = [lookup(entry["type"]) for entry in objects]
        for cls, entry in zip(types, objects, strict=True):
            _check_state(cls, entry["state"])
        self._objects: list[Any] = [object.__new__(cls) for cls in types]
        for instance, entry in zip(self._objects, objects, strict=True):
            vars(instance).update({k: self.decode(v) for k, v in entry["state"].items()})
        for instance in self._objects:
            if isinstance(instance, NearestNeighbors):
                _check_index(instance)

    def decode(self, code: Any) -> Any:
        """The value that JSON `code` stands for."""
        if isinstance(code, list):
            return [self.decode(v) for v in code]
        if not isinstance(code, dict):
            return code
        tag = next(iter(code.keys() & _DECODERS.keys()), None)
        if tag is None:
            raise ValueError(f"there is no value with the keys {sorted(code)}")
        return _DECODERS[tag](self, code[tag], code)

    def _array(
        self, name: str, code: dict[str, Any], view: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        key = str(code)
        if key not in self._arrays:
            # A copy, since the bytes that were read cannot be written to.
            self._arrays[key] = view(self._tensors[name].copy())
        return self._arrays[key]

    def _raw(self, name: str, code: dict[str, Any]) -> np.ndarray:
        dtype = _raw_dtype(code["dtype"])
        return self._array(name, code, lambda a: a.view(dtype).reshape(code["shape"]))

    def _object_array(self, items: list[Any], code: dict[str, Any]) -> np.ndarray:
        values = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            values[i] = self.decode(item)
        return values.reshape(code["shape"])


def _raw_dtype(name: str) -> np.dtype:
    if not _RAW_DTYPE.fullmatch(name):
        raise ValueError(f"the dtype {name!r} is not one that an array may have")
    return np.dtype(name)


def _scalar(dtype: str, data: str) -> Any:
    return np.frombuffer(bytes.fromhex(data), _raw_dtype(dtype))[0]


_DECODERS: dict[str, Callable[[Decoder, Any, dict[str, Any]], Any]] = {
    "$float": lambda self, text, code: float(text),
    "$scalar": lambda self, pair, code: _scalar(*pair),
    "$tuple": lambda self, items, code: tuple(self.decode(items)),
    "$dict": lambda self, items, code: dict(self.decode(items)),
    "$array": lambda self, name, code: self._array(name, code, lambda a: a),
    "$columns": lambda self, name, code: self._array(name, code, lambda a: a.T),
    "$raw": Decoder._raw,
    "$objects": Decoder._object_array,
    "$tree": lambda self, parts, code: _tree(*self.decode(parts)),
    "$object": lambda self, number, code: self._objects[number],
    "$part": lambda self, number, code: self._parts[number],
}
