"""A model as JSON and arrays, and built again: types come from a closed table, or need trust.

An object is its type and its attributes, once however often it is used. Those of the table are
checked by it; any other that Python copies by its attributes alone is of a class that whoever loads
the file must name.
"""

from __future__ import annotations

import copyreg
import math
import re
import sys
import types
from abc import ABCMeta
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils import check_array

from . import boosters, compiled, foreign, own
from .checks import as_dict, check_hashes, find, is_type, need, own_types

#: dtypes that safetensors stores and gives back; everything else is kept as raw bytes.
_NATIVE = frozenset(np.dtype(c).str for c in "?bhilqBHILQefd")
_RAW_DTYPE = re.compile(r"[<>|=]([biufcSUV][1-9]\d*|[mM]8(\[\d*\w+\])?)")
#: Arrays up to this many bytes lie in the manifest: a tensor of its own would take more.
_SMALL = 256
#: Gaps between rows or columns are kept in arrays that take up to this many bytes with them.
_MOST_APART = 1 << 16
#: What one object takes, about; random states take the most.
_PER_OBJECT = 3000
#: An object takes at least as much in the file.
_PER_OBJECT_IN_FILE = 40
#: The hash of a whole number is that of its remainder by it.
_LARGE = sys.hash_info.modulus
#: Objects may take this many times the size of the file, and search trees in it.
_MOST_GROWTH, _ALWAYS = 6, 1 << 22
#: What a codec may raise over an object that is not as its table says.
_UNKNOWN = (ValueError, TypeError, AttributeError, LookupError)
_OF_TORCH = (
    "it holds a network or tensors of PyTorch; save a network with dipedl.pretrained.DIPModule, or "
    "this whole model with joblib.dump, and load it only from where nobody else can write"
)
_PLAIN_DATA = (
    "use a class or function that can be imported and holds plain data, such as a named function "
    "instead of a lambda, or save this part on its own"
)


# The closed table of types that a file may name, made from the code, never from a file

#: Name of a type in a file, the full public one for those of others -> how its parts are taken, and
#: how an object is made of them: `take(value)` and `make(cls, state)`, a ValueError if not sound.
CODECS: dict[str, Any] = {
    **foreign.ENTRIES,
    **own.ENTRIES,
    **compiled.CODECS,
    **boosters.CODECS,
}
#: Types whose objects lie in a file one after another: `fields` by name, `take_all(values)` and
#: `make_all(cls, joined)`.
POOLS: dict[str, Any] = compiled.POOLS


@cache
def paths() -> dict[str, str]:
    """Return the full name of each class, by its name in a file."""
    return {name: own_types().get(name, name) for name in (*CODECS, *POOLS)}


_NAMES: WeakKeyDictionary[type, str | None] = WeakKeyDictionary()


def type_name(cls: type) -> str | None:
    """Return the name of a type in a file; None for a type that is not in the table."""
    if cls not in _NAMES:
        _NAMES[cls] = next((name for name, path in paths().items() if is_type(cls, path)), None)
    return _NAMES[cls]


def is_ours(name: str) -> bool:
    """Return whether the name of a type in a file is one of this package."""
    return name in own_types()


def lookup(name: Any) -> type:
    """Return the type that a file names; ValueError if the table has no such name."""
    known = isinstance(name, str) and name in paths()
    need(known, f"the type {name!r} is not one that a model may hold")
    try:
        found: type = find(paths()[name])
    except (ImportError, AttributeError) as error:
        package = paths()[name].partition(".")[0]
        raise ValueError(f"the type {name} needs {package}, as it was saved: {error}") from error
    return found


class Encoder:
    """Turns a model into JSON values and arrays.

    `tensors` are the arrays by the path of the attribute that held them first; `paths` where
    objects were found that need trust; `unchecked` why those of types of the table do, by name.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.paths: list[str] = []
        self.unchecked: dict[str, str] = {}
        self._objects: list[dict[str, Any]] = []
        self._small: list[list[Any]] = []
        self._pools: dict[str, list[Any]] = {}
        self._seen: dict[Any, dict[str, Any]] = {}
        self._alive: list[Any] = []

    def encode(self, value: Any, path: str) -> Any:
        """JSON for `value`; `path` names it in errors and as a tensor."""
        if value is None or type(value) in (bool, int, str):
            return value
        kind = _ENCODERS.get(type(value))
        if kind is not None:
            return kind(self, value, path)
        if isinstance(value, np.generic) and (_storable(value.dtype) or not value.nbytes):
            return {"$scalar": [value.dtype.str, value.tobytes().hex()]}
        if isinstance(value, np.dtype) and _storable(value):
            return {"$dtype": value.str}
        return self._object(value, path)

    def contents(self) -> dict[str, Any]:
        """Type and state of each object, once however often it is used, and the small arrays.

        Call it last: it adds the arrays of all decision trees to `tensors`.
        """
        for name, members in self._pools.items():
            try:
                joined = POOLS[name].take_all(members)
                POOLS[name].make_all(lookup(name), joined)
            except _UNKNOWN as error:
                raise TypeError(f"the trees of the model cannot be saved: they {error}") from error
            for field, (array, counts) in joined.items():
                self.tensors[f"{name}/{field}"] = array
                self.tensors[f"{name}/{field}/counts"] = counts
        return {"objects": self._objects, "small": self._small}

    def _list(self, value: Iterable[Any], path: str) -> Any:
        return [self.encode(v, f"{path}[{i}]") for i, v in enumerate(value)]

    def _bytes(self, value: bytes | bytearray, path: str) -> Any:
        return {
            "$bytes": self.encode(np.frombuffer(value, np.uint8), path),
            "fixed": type(value) is bytes,
        }

    def _masked(self, value: np.ma.MaskedArray, path: str) -> Any:
        parts = [value.data, np.ma.getmaskarray(value), value.fill_value]
        return {"$masked": self._list(parts, path)}

    def _function(self, value: Any, path: str) -> Any:
        name = _function_name(value)
        return self._named(value, path) if name is None else {"$function": name}

    def _class(self, value: type, path: str) -> Any:
        known = _BUILTIN.get(value.__name__), _of_numpy(f"numpy.{value.__name__}")
        if value not in known:
            return self._named(value, path)
        return {"$class": value.__name__ if value is known[0] else f"numpy.{value.__name__}"}

    def _named(self, value: Any, path: str) -> Any:
        """A function or class that whoever loads the file must name."""
        return self._add({"named": _full_name(value, path)}, value, {}, path)

    def _object(self, value: Any, path: str) -> Any:
        if id(value) not in self._seen:
            name = type_name(type(value))
            try:
                state = None if name is None else self._take(name, value)
            except _UNKNOWN as error:
                if is_ours(str(name)):
                    raise TypeError(
                        f"{path or 'model'} cannot be saved: {error}; delete what was "
                        "added to it, or fit it again"
                    ) from error
                state, self.unchecked[_full_name(value, path)] = None, str(error)
            entry = {"type": name} if state is not None else {"class": _full_name(value, path)}
            self._add(entry, value, _attributes(value, path) if state is None else state, path)
        return self._seen[id(value)]

    def _take(self, name: str, value: Any) -> dict[str, Any]:
        if name not in POOLS:
            return dict(CODECS[name].take(value))
        members = self._pools.setdefault(name, [])
        members.append(value)
        return {"number": len(members) - 1}

    def _add(self, entry: dict[str, Any], value: Any, state: dict[str, Any], path: str) -> Any:
        if id(value) in self._seen:
            return self._seen[id(value)]
        self._remember(id(value), value, {"$object": len(self._objects)})
        self._objects.append(entry)
        if "type" not in entry:
            self.paths.append(path)
        prefix = f"{path}." if path else ""
        # Parameters first, in a fixed order, whatever the order in which a fit or a load sets them.
        names = sorted(state, key=lambda k: (k.endswith("_"), k))
        entry["state"] = {k: self.encode(state[k], prefix + k) for k in names}
        return self._seen[id(value)]

    def _array(self, value: np.ndarray, path: str) -> Any:
        if value.dtype == object:
            return {"$objects": self._list(value.ravel().tolist(), path), "shape": value.shape}
        if not _storable(value.dtype):
            raise TypeError(
                f"{path} cannot be saved without pickle: it has the dtype {value.dtype}"
            )
        # By address, not by id: a view that is made again on each access is one array.
        where = value.__array_interface__["data"][0]
        key = (where, value.shape, value.strides, value.dtype.str)
        if key not in self._seen:
            lead, code = _lead(value), self._store(value, path)
            if lead is not None:
                # How far apart its rows or columns lie: sums can depend on it.
                columns = value.strides[0] == value.itemsize
                code = {"$apart": code, "lead": lead, "columns": columns}
            self._remember(key, value, code)
        return self._seen[key]

    def _store(self, value: np.ndarray, path: str) -> dict[str, Any]:
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
    float: lambda self, x, path: x if math.isfinite(x) else {"$float": repr(x)},
    list: Encoder._list,
    tuple: lambda self, items, path: {"$tuple": self._list(items, path)},
    dict: lambda self, pairs, path: {"$dict": self._list(map(list, pairs.items()), path)},
    # In one order, whatever the hashes of texts are in this process.
    set: lambda self, items, path: {"$set": self._list(sorted(items, key=repr), path)},
    slice: lambda self, s, path: {"$slice": self._list([s.start, s.stop, s.step], path)},
    type: Encoder._class,
    bytes: Encoder._bytes,
    bytearray: Encoder._bytes,
    np.ndarray: Encoder._array,
    np.ma.MaskedArray: Encoder._masked,
    np.memmap: Encoder._array,
    np.ufunc: Encoder._function,
    partial: Encoder._function,
    types.FunctionType: Encoder._function,
    types.BuiltinFunctionType: Encoder._function,
    ABCMeta: Encoder._class,
}


def _lead(value: np.ndarray) -> int | None:
    """Entries from row to row, or from column to column, where there are gaps between them."""
    if value.ndim != 2 or value.itemsize not in value.strides or not value.size:
        return None
    lead = max(value.strides) // value.itemsize
    inner = value.shape[0] if value.strides[0] == value.itemsize else value.shape[1]
    outer = value.size // inner
    fits = inner < lead and lead * outer * value.itemsize <= _MOST_APART
    return lead if fits and min(value.strides) > 0 else None


def _storable(dtype: np.dtype) -> bool:
    return _RAW_DTYPE.fullmatch(dtype.str) is not None and dtype.fields is None


def _full_name(value: Any, path: str) -> str:
    """The name by which a class or function, or the class of an object, can be imported again."""
    named = isinstance(value, type | types.FunctionType | types.BuiltinFunctionType)
    of = value if named else type(value)
    name = f"{of.__module__}.{of.__qualname__}"
    try:
        found = find(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _refusal(value, path, str(error)) from error
    if found is not of:
        raise _refusal(value, path, f"{name} is another object")
    return name


def _attributes(value: Any, path: str) -> dict[str, Any]:
    """The state of an object of which Python's own copy would be its attributes alone."""
    try:
        made, arguments, *state = value.__reduce_ex__(2)
    except (TypeError, ValueError) as error:
        raise _refusal(value, path, str(error)) from error
    state = [*state, None, None, None][:3]
    sound = made is copyreg.__newobj__ and arguments == (type(value),) and state[1:] == [None, None]  # type: ignore[attr-defined]
    if not sound or _is_torch(value) or not isinstance(state[0], dict | None):
        raise _refusal(value, path, "it is more than its attributes")
    attributes = state[0] or {}
    # No type of the table needs the order or the defaults of its dicts; a class of a user may.
    known = type_name(type(value)) is not None
    return {k: as_dict(v) for k, v in attributes.items()} if known else attributes


def _is_torch(value: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "torch" for base in type(value).__mro__)


def _refusal(value: Any, path: str, cause: str) -> TypeError:
    cause = _OF_TORCH if _is_torch(value) else f"{cause}; {_PLAIN_DATA}"
    return TypeError(f"{path} ({type(value).__name__}) cannot be saved without pickle: {cause}")


class Decoder:
    """Values from the JSON of a file and its arrays; ValueError for what is unsound.

    `contents` are those of `Encoder.contents`, `trusted` the full names of classes and functions
    beyond the table.
    """

    def __init__(
        self,
        contents: Mapping[str, Any],
        tensors: dict[str, np.ndarray],
        trusted: Collection[str] = (),
    ) -> None:
        self._objects, self._small = list(contents["objects"]), list(contents["small"])
        self._tensors = tensors
        self._trusted = trusted
        self._arrays: dict[Any, np.ndarray] = {}
        self._made: dict[int, Any] = {}
        self._building: set[int] = set()
        self._holder: str | None = None
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
        known = type(number) is int and 0 <= number < len(self._objects)
        need(known, f"there is no object {number!r}")
        if number not in self._made:
            need(number not in self._building, f"the object {number} holds itself")
            self._building.add(number)
            self._made[number] = self._new(self._objects[number])
            self._building.discard(number)
        name = self._objects[number].get("type")
        # Their methods read memory without a look at the inputs: only these ask them well.
        held = name not in POOLS or self._holder in (None, *POOLS[name].holders)
        need(held, f"a {self._holder} holds no {name}")
        return self._made[number]

    def _new(self, entry: dict[str, Any]) -> Any:
        if "type" not in entry:
            return self._new_trusted(entry)
        name, cls = entry["type"], lookup(entry["type"])
        state = self._state(entry, name)
        if name in POOLS:
            return self._pool_members[name][_index(state["number"])]
        codec = CODECS[name]
        if not is_ours(name):
            self._charge(_PER_OBJECT + (codec.cost(state) if hasattr(codec, "cost") else 0))
        return codec.make(cls, state)

    def _new_trusted(self, entry: dict[str, Any]) -> Any:
        """A function or class by its name, or an object of such a class by its attributes."""
        (kind,) = entry.keys() - {"state"}
        need(entry[kind] in self._trusted, f"{entry[kind]!r} is not trusted")
        try:
            found = find(entry[kind])
        except (ImportError, AttributeError) as error:
            remedy = "install the package that it came from, or fit the model again"
            raise ValueError(f"{entry[kind]} is not there: {error}; {remedy}") from error
        if kind == "named":
            return found
        need(kind == "class" and isinstance(found, type), f"{entry[kind]} is no class")
        state = self._state(entry, None)
        self._charge(_PER_OBJECT)
        made: Any = found.__new__(found)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            vars(made).update(state)
        return made

    def _state(self, entry: dict[str, Any], holder: str | None) -> dict[str, Any]:
        """The attributes of an object; `holder` is the name of its type, None for a trusted one."""
        outer, self._holder = self._holder, holder
        state = {k: self.decode(v) for k, v in entry["state"].items()}
        self._holder = outer
        return state

    def _charge(self, size: int) -> None:
        self._left -= size
        need(self._left >= 0, "its objects would take many times the memory of the file")

    @cached_property
    def _pool_members(self) -> dict[str, list[Any]]:
        """All decision trees of the file, by type: checked at once, and in one pass."""
        return {
            name: pool.make_all(lookup(name), self._join(name, pool.fields))
            for name, pool in POOLS.items()
            if f"{name}/{next(iter(pool.fields))}" in self._tensors
        }

    def _join(
        self, name: str, fields: Mapping[str, Any]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        joined = {}
        for field, dtype in fields.items():
            array, counts = (self._tensors[f"{name}/{field}{end}"] for end in ("", "/counts"))
            whole = counts.dtype == np.int64 and counts.ndim == array.ndim == 1
            sound = whole and array.dtype == dtype and (counts >= 0).all()
            need(sound, f"{name}/{field} has another type or shape")
            # In Python's numbers, which do not overflow.
            need(sum(counts.tolist()) == len(array), f"{name}/{field} has other counts")
            joined[field] = (array, counts)
        trees = {len(counts) for _, counts in joined.values()}
        need(len(trees) == 1, f"the fields of {name} are of different numbers of trees")
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
        fits = order in ("C", "F") and len(data) == 2 * kind.itemsize * math.prod(sizes)
        need(fits, f"the small array {number} has another size than its shape")

        def made() -> np.ndarray:
            flat = np.frombuffer(bytes.fromhex(data), kind).copy()
            return flat.reshape(sizes) if order == "C" else flat.reshape(sizes[::-1]).T

        return self._view(_index(number), made)

    def _apart(self, code: Any, outer: dict[str, Any]) -> np.ndarray:
        """The array, with gaps between its rows or columns."""
        array, lead = self.decode(code), _index(outer["lead"])
        columns = outer["columns"] is True
        flat = array.T if columns else array
        near = array.ndim == 2 and flat.shape[1] < lead
        near = near and lead * array.nbytes <= _MOST_APART * flat.shape[1]
        need(near, "the rows of an array are too far apart")

        def made() -> np.ndarray:
            self._charge(lead * len(flat) * array.itemsize)
            parent = np.zeros((len(flat), lead), array.dtype)
            parent[:, : flat.shape[1]] = flat
            rows = parent[:, : flat.shape[1]]
            return rows.T if columns else rows

        return self._view(("apart", id(array), lead, columns), made)

    def _bytes(self, data: Any, code: dict[str, Any]) -> bytes | bytearray:
        array = self.decode(data)
        self._charge(array.nbytes)
        return (bytes if code["fixed"] is True else bytearray)(array.tobytes())

    def _masked(self, parts: list[Any], code: dict[str, Any]) -> np.ma.MaskedArray:
        data, mask, fill = self.decode(parts)
        # numpy would make arrays of other masks and data, as many as the file names.
        sound = type(data) is type(mask) is np.ndarray and mask.dtype == bool
        need(sound and data.shape == mask.shape, "a masked array is not an array and its mask")
        return np.ma.MaskedArray(data, mask, fill_value=fill)

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
        large = (v for v in values if type(v) is int and abs(v) >= _LARGE)
        check_hashes([*large, *(v for v in values if isinstance(v, tuple | np.generic))])
        return values.reshape(_shape(code["shape"]))


def _index(number: Any) -> int:
    need(type(number) is int and number >= 0, f"{number!r} is no number of an object")
    return int(number)


def _shape(sizes: Any) -> tuple[int, ...]:
    need(isinstance(sizes, list), f"{sizes!r} is not a shape")
    return tuple(map(_index, sizes))


def _raw_dtype(name: Any) -> np.dtype:
    known = isinstance(name, str) and _RAW_DTYPE.fullmatch(name)
    need(known, f"the dtype {name!r} is not one that an array may have")
    return np.dtype(str(name))


def _scalar(dtype: str, data: str) -> Any:
    if dtype in ("<U0", "|S0"):
        return np.dtype(dtype).type()
    return np.frombuffer(bytes.fromhex(data), _raw_dtype(dtype))[0]


#: Keys that stand beside a tag.
_BESIDE = {
    **{"$apart": ("lead", "columns"), "$raw": ("dtype", "shape")},
    **{"$objects": ("shape",), "$bytes": ("fixed",)},
}
_DECODERS: dict[str, Callable[[Decoder, Any, dict[str, Any]], Any]] = {
    "$float": lambda self, text, code: float(text),
    "$scalar": lambda self, pair, code: _scalar(*pair),
    "$tuple": lambda self, items, code: tuple(self.decode(items)),
    "$set": Decoder._set,
    "$bytes": Decoder._bytes,
    "$masked": Decoder._masked,
    "$dict": Decoder._dict,
    "$slice": lambda self, ends, code: slice(*self.decode(ends)),
    "$dtype": lambda self, name, code: _raw_dtype(name),
    "$class": lambda self, name, code: _class_of_numbers(name),
    "$function": lambda self, name, code: _function(name),
    "$array": lambda self, name, code: self._copy(name),
    "$columns": Decoder._columns,
    "$raw": Decoder._raw,
    "$small": Decoder._small_array,
    "$apart": Decoder._apart,
    "$objects": Decoder._object_array,
    "$object": Decoder._object,
}


# Functions and classes of numbers that a file may name

#: What HistGradientBoostingClassifier does with the columns that are no categories.
_NUMBERS = partial(check_array, ensure_all_finite=False, dtype=[np.float64])
_OF_BOOSTING = "numbers of HistGradientBoosting"
_FUNCTIONS = {
    *(f"sklearn.feature_selection.{name}" for name in ("f_classif", "chi2", "mutual_info_classif")),
    *("scipy.special.expit", "scipy.special.logit"),
}
_BUILTIN = {"bool": bool, "int": int, "float": float, "str": str}


def _function_name(value: Any) -> str | None:
    """The name in a file of a function of the table; None if it has none."""
    if isinstance(value, partial):
        parts = (value.func, value.args, value.keywords)
        return _OF_BOOSTING if parts == (_NUMBERS.func, (), _NUMBERS.keywords) else None
    name = f".{getattr(value, '__name__', None)}"
    names = [known for known in _FUNCTIONS if known.endswith(name)]
    names += [f"numpy{name}"] if isinstance(value, np.ufunc) else []
    return next((n for n in names if (_of_numpy(n) or find(n)) is value), None)


def _function(name: Any) -> Any:
    """The function of a name in a file; ValueError if there is none."""
    if name == _OF_BOOSTING:
        return partial(_NUMBERS.func, **_NUMBERS.keywords)
    if name in _FUNCTIONS:
        return find(name)
    found = _of_numpy(name)
    known = isinstance(found, np.ufunc)
    need(known, f"the function {name!r} is not one that a model may hold")
    return found


def _class_of_numbers(name: Any) -> type:
    """The class of a name in a file; ValueError if there is none."""
    found: type = _BUILTIN.get(name) or _of_numpy(name)
    kinds = (*_BUILTIN.values(), np.number, np.bool_, np.str_)
    known = isinstance(found, type) and issubclass(found, kinds)
    need(known, f"the class {name!r} is not one that a model may hold")
    return found


def _of_numpy(name: Any) -> Any:
    known = isinstance(name, str) and name.startswith("numpy.")
    # Not by `getattr`, which imports what numpy has left for later.
    return vars(np).get(name.removeprefix("numpy.")) if known else None
