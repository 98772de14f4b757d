"""The words of the table: each says what one attribute must be, in terms of named sizes.

A word is called with a value and the sizes known so far: ``d`` features, ``k`` classes, and
whatever name a shape uses. The first use of a name fixes its size, and every later one must agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .names import is_own_type, is_type

_PACKAGES = (__name__.partition(".")[0], "sklearn")
#: Raises ValueError unless the value is what the word asks for.
Check = Callable[[Any, "Sizes"], None]
Shape = str | int

#: Sizes that follow from the number of classes.
_DERIVED: dict[str, Callable[[int], int]] = {
    "pairs": lambda k: k * (k - 1) // 2,
    "k-1": lambda k: k - 1,
}
#: Larger numbers no fit gives; products of two of these, and of their inverses, are finite.
LARGEST = np.float64(1e100)
#: More threads than any machine has cores to gain from, and few enough to start.
_MOST_JOBS = 1024
#: A few keys have one hash by accident, such as -1 and -2, and tuples of these.
_MOST_OF_ONE_HASH = 256
_LARGEST_LOG = np.float64(750.0)
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_PLAIN = (str, slice, type, np.dtype, np.generic, *_NUMBERS)


class Sizes(dict[str, int]):
    """Named sizes of one estimator."""

    def agree(self, name: Shape, size: int) -> None:
        """Fix the size `name`, or raise ValueError if it is another one already."""
        if name == "*":
            return
        if isinstance(name, int):
            wanted = name
        elif name in _DERIVED and "k" in self:
            wanted = _DERIVED[name](self["k"])
        else:
            wanted = self.setdefault(name, int(size))
        if wanted != size:
            raise ValueError(f"has {size} entries where {name} is {wanted}")


def check_hashes(keys: Iterable[Any]) -> None:
    """Raise ValueError if many keys of a set or a dict have one hash.

    Each would be compared with all others: numbers that differ by 2**61 - 1 take hours.
    """
    keys = list(keys)
    often = {h for h, n in Counter(map(hash, keys)).items() if n > _MOST_OF_ONE_HASH}
    found: dict[int, list[Any]] = {h: [] for h in often}
    for key in keys if often else ():
        same = found.get(hash(key))
        if same is not None and key not in same:
            same.append(key)
            need(len(same) <= _MOST_OF_ONE_HASH, "its keys have one hash")


def need(condition: Any, message: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(message)


def word(function: Callable[..., None]) -> Callable[..., Check]:
    """Make a word of a function of value and sizes: its other arguments are those of the word."""

    @wraps(function)
    def make(*args: Any, **options: Any) -> Check:
        return lambda value, sizes: function(value, sizes, *args, **options)

    return make


def _array(value: Any, kinds: str, shape: tuple[Shape, ...], sizes: Sizes) -> np.ndarray:
    need(type(value) is np.ndarray, f"is a {type(value).__name__}, not an array")
    need(value.dtype.kind in kinds and value.dtype.isnative, f"has the dtype {value.dtype}")
    need(value.ndim == len(shape), f"has the shape {value.shape}, not {shape}")
    for name, size in zip(shape, value.shape, strict=True):
        sizes.agree(name, size)
    return np.asarray(value)


@word
def floats(
    value: Any,
    sizes: Sizes,
    *shape: Shape,
    finite: bool = True,
    least: float = -math.inf,
    most: float = LARGEST,
) -> None:
    """Floating point numbers of 4 or 8 bytes, the finite ones in [-`most`, `most`]."""
    array = _array(value, "f", shape, sizes)
    need(array.itemsize in (4, 8), f"has the dtype {array.dtype}")
    need(not finite or np.isfinite(array).all(), "holds NaN or infinite values")
    large = (abs(array) > most) & np.isfinite(array)
    need(not large.any(), f"holds values beyond {most:g}")
    need(least == -math.inf or not (array < least).any(), f"holds values below {least}")


def positive(*shape: Shape) -> Check:
    """Numbers that may be divided by, and have a logarithm."""
    return floats(*shape, least=float(1 / LARGEST))


def logs(*shape: Shape) -> Check:
    """Logarithms of numbers that are not 0, or these negated."""
    return floats(*shape, most=_LARGEST_LOG)


@word
def scores(value: Any, sizes: Sizes, name: Shape) -> None:
    """Log-densities, finite or -inf."""
    floats(name, finite=False)(value, sizes)
    need(not (np.isnan(value) | (value == np.inf)).any(), "holds NaN or infinity")


@word
def doubles(value: Any, sizes: Sizes, *shape: Shape) -> None:
    """float64 in row order: what compiled code reads by address."""
    floats(*shape)(value, sizes)
    need(value.dtype == np.float64 and value.flags.c_contiguous, "is not float64 in row order")


@word
def ints(
    value: Any,
    sizes: Sizes,
    *shape: Shape,
    least: int | None = None,
    below: Shape | None = None,
    dtype: Any = None,
) -> None:
    """Whole numbers in [`least`, `below`)."""
    array = _array(value, "iu", shape, sizes)
    need(dtype is None or array.dtype == dtype, f"has the dtype {array.dtype}")
    if array.size:
        need(least is None or array.min() >= least, f"holds values below {least}")
        bound = sizes[below] if isinstance(below, str) else below
        need(bound is None or array.max() < bound, f"holds {array.max()} where {below} is {bound}")


@word
def values(value: Any, sizes: Sizes, *shape: Shape, kinds: str = "biufcUSOMm") -> None:
    """An array of anything plain."""
    _array(value, kinds, shape, sizes)


def bools(*shape: Shape) -> Check:
    """Truth values."""
    return values(*shape, kinds="b")


@word
def labels(value: Any, sizes: Sizes, name: Shape = "k") -> None:
    """Class labels, each once."""
    array = _array(value, "biufUSOMm", (name,), sizes)
    need(len(array) and len(set(array.tolist())) == len(array), "names a class twice or none")


@word
def number(value: Any, sizes: Sizes, least: float = -math.inf, most: float = math.inf) -> None:
    """A number in [`least`, `most`]; NaN only where both are open."""
    need(isinstance(value, _NUMBERS), f"is a {type(value).__name__}, not a number")
    bounded = least != -math.inf or most != math.inf
    need(not bounded or least <= value <= most, f"is {value}, not in [{least}, {most}]")


def real(least: float = -LARGEST) -> Check:
    """A finite number, not beyond `LARGEST`."""
    return number(least, float(LARGEST))


#: A number that may be divided by, a share of something, and one that is neither none nor all.
SIZE, SHARE = real(float(1 / LARGEST)), number(0, 1)
RATE = number(float(1 / LARGEST), math.nextafter(1, 0))


@word
def count(value: Any, sizes: Sizes, name: Shape = "*", least: int = 0) -> None:
    """A whole number, perhaps the size `name`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    need(whole and value >= least, f"is {value!r}, not a whole number >= {least}")
    sizes.agree(name, int(value))


@word
def one_of(value: Any, sizes: Sizes, *options: Any) -> None:
    """One of a few plain values."""
    hashable = value is None or isinstance(value, str | bool | int | float | tuple)
    # By type too: True is no 1.
    found = hashable and any(type(value) is type(o) and value == o for o in options)
    need(found, f"is {value!r}, not one of {options}")


def text(value: Any, sizes: Sizes) -> None:
    """A string."""
    need(isinstance(value, str), f"is a {type(value).__name__}, not text")


def flag(value: Any, sizes: Sizes) -> None:
    """True or False."""
    need(isinstance(value, bool | np.bool_), f"is {value!r}, not True or False")


def plain(value: Any, sizes: Sizes) -> None:
    """Anything that the file can hold without an object: no answer depends on it."""
    nested: Iterable[Any] = ()
    if isinstance(value, dict):
        nested = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        nested = value
    elif isinstance(value, np.ndarray):
        nested = value.ravel().tolist() if value.dtype == object else ()
    else:
        simple = value is None or isinstance(value, _PLAIN)
        need(simple, f"is or holds a {type(value).__name__}")
    for item in nested:
        plain(item, sizes)


def maybe(check: Check) -> Check:
    """Apply `check`, unless the value is None."""
    return lambda value, sizes: None if value is None else check(value, sizes)


@word
def either(value: Any, sizes: Sizes, *checks: Check) -> None:
    """Require that one of the checks passes."""
    errors = []
    for attempt in checks:
        trial = Sizes(sizes)
        try:
            attempt(value, trial)
        except ValueError as error:
            errors.append(str(error))
        else:
            return sizes.update(trial)
    raise ValueError(" and ".join(errors))


@word
def each(value: Any, sizes: Sizes, check: Check, name: Shape = "*", *, kind: type = list) -> None:
    """A list (or tuple, or set) whose items are what `check` asks for."""
    need(type(value) is kind, f"is a {type(value).__name__}, not a {kind.__name__}")
    sizes.agree(name, len(value))
    for item in value:
        check(item, sizes)


@word
def mapping(value: Any, sizes: Sizes, key: Check, item: Check) -> None:
    """A dict whose keys and values are what the checks ask for."""
    need(type(value) is dict, f"is a {type(value).__name__}, not a dict")
    for name, found in value.items():
        key(name, sizes)
        item(found, sizes)


@word
def fields(value: Any, sizes: Sizes, *checks: Check) -> None:
    """A tuple with one check per item."""
    need(type(value) is tuple and len(value) == len(checks), "is not a tuple of that length")
    for item, one in zip(value, checks, strict=True):
        one(item, sizes)


@word
def grid(value: Any, sizes: Sizes, check: Check, *shape: Shape) -> None:
    """An array of objects, each of which is what `check` asks for."""
    for item in _array(value, "O", shape, sizes).ravel():
        check(item, sizes)


#: A number of threads that can be started.
jobs = maybe(number(-_MOST_JOBS, _MOST_JOBS))

# Objects among the attributes: estimators, and parts of this library


def _is_known(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in _PACKAGES


#: Attributes that say how many features ``d`` and classes ``k`` an object has.
_SIZES = {"d": ("n_features_in_", "n_features"), "k": ("classes_", "max_n_classes", "n_classes")}


def _agree(value: Any, sizes: Sizes, same: Mapping[str, Shape], *, required: bool) -> None:
    """Check the sizes `same` of an object made of checked parts against ours of these names."""
    for theirs, name in same.items():
        found = (getattr(value, attribute, None) for attribute in _SIZES[theirs])
        size = next((size for size in found if size is not None), None)
        if size is not None:
            sizes.agree(name, int(size) if np.ndim(size) == 0 else len(size))
        else:
            need(not required, f"has no size {theirs}")


@word
def is_a(value: Any, sizes: Sizes, *types: str, **same: Shape) -> None:
    """An object of one of the named types, with sizes that agree with ours."""
    found = any(is_type(type(value), path) for path in types)
    need(found, f"is a {type(value).__name__}, not one of {types}")
    _agree(value, sizes, same, required=True)


@word
def model(value: Any, sizes: Sizes, method: str = "get_params", **same: Shape) -> None:
    """An estimator with a method; one of a package with known rules has sizes that agree."""
    found = hasattr(value, "get_params") and hasattr(value, method)
    need(found, f"is a {type(value).__name__}, not an estimator with {method}")
    if _is_known(value):
        _agree(value, sizes, same, required=False)


@word
def ours(value: Any, sizes: Sizes, *names: str, **lengths: str) -> None:
    """An object of one of the classes of this library, by their names in a file.

    `lengths` names the attribute that has the length of a size, or is that size.
    """
    found = any(is_own_type(type(value), name) for name in names)
    need(found, f"is a {type(value).__name__}, not one of {names}")
    for size, attribute in lengths.items():
        length = getattr(value, attribute)
        sizes.agree(size, length if isinstance(length, int) else len(length))


@word
def fitted(value: Any, sizes: Sizes, check: Check) -> None:
    """Apply `check`, and require a fitted object if it is of a library that says so."""
    check(value, sizes)
    if _is_known(value) and hasattr(value, "fit"):
        check_is_fitted(value)


@word
def has(value: Any, sizes: Sizes, *methods: str) -> None:
    """Any object with one of the methods."""
    found = any(callable(getattr(value, method, None)) for method in methods)
    need(found, f"is a {type(value).__name__} without {' or '.join(methods)}")
