"""The words of the table: each says what one attribute must be, in terms of named sizes.

A word is called with a value and the sizes known so far: ``d`` features, ``k`` classes, and
whatever name a shape uses. The first use of a name fixes its size, and every later one must agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
    # Of one class there are no outputs.
    "outputs": lambda k: k if k > 2 else k - 1,
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
    counts = Counter(map(hash, keys))
    need(max(counts.values(), default=0) <= _MOST_OF_ONE_HASH, "its keys have one hash")


def need(condition: Any, message: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(message)


def _array(value: Any, kinds: str, shape: tuple[Shape, ...], sizes: Sizes) -> np.ndarray:
    need(type(value) is np.ndarray, f"is a {type(value).__name__}, not an array")
    need(value.dtype.kind in kinds and value.dtype.isnative, f"has the dtype {value.dtype}")
    need(value.ndim == len(shape), f"has the shape {value.shape}, not {shape}")
    for name, size in zip(shape, value.shape, strict=True):
        sizes.agree(name, size)
    return np.asarray(value)


def floats(
    *shape: Shape, finite: bool = True, least: float = -math.inf, most: float = LARGEST
) -> Check:
    """Floating point numbers of 4 or 8 bytes, the finite ones in [-`most`, `most`]."""

    def check(value: Any, sizes: Sizes) -> None:
        array = _array(value, "f", shape, sizes)
        need(array.itemsize in (4, 8), f"has the dtype {array.dtype}")
        need(not finite or np.isfinite(array).all(), "holds NaN or infinite values")
        large = (abs(array) > most) & np.isfinite(array)
        need(not large.any(), f"holds values beyond {most:g}")
        need(least == -math.inf or not (array < least).any(), f"holds values below {least}")

    return check


def positive(*shape: Shape) -> Check:
    """Numbers that may be divided by, and have a logarithm."""
    return floats(*shape, least=float(1 / LARGEST))


def logs(*shape: Shape) -> Check:
    """Logarithms of numbers that are not 0, or these negated."""
    return floats(*shape, most=_LARGEST_LOG)


def scores(name: Shape) -> Check:
    """Log-densities, finite or -inf."""

    def check(value: Any, sizes: Sizes) -> None:
        floats(name, finite=False)(value, sizes)
        need(not (np.isnan(value) | (value == np.inf)).any(), "holds NaN or infinity")

    return check


def doubles(*shape: Shape) -> Check:
    """float64 in row order: what compiled code reads by address."""

    def check(value: Any, sizes: Sizes) -> None:
        floats(*shape)(value, sizes)
        need(value.dtype == np.float64 and value.flags.c_contiguous, "is not float64 in row order")

    return check


def ints(
    *shape: Shape, least: int | None = None, below: Shape | None = None, dtype: Any = None
) -> Check:
    """Whole numbers in [`least`, `below`)."""

    def check(value: Any, sizes: Sizes) -> None:
        array = _array(value, "iu", shape, sizes)
        need(dtype is None or array.dtype == dtype, f"has the dtype {array.dtype}")
        if not array.size:
            return
        need(least is None or array.min() >= least, f"holds values below {least}")
        if below is not None:
            bound = below if isinstance(below, int) else sizes[below]
            need(array.max() < bound, f"holds {array.max()} where {below} is {bound}")

    return check


def bools(*shape: Shape) -> Check:
    """Truth values."""
    return lambda value, sizes: void(_array(value, "b", shape, sizes))


def void(value: Any) -> None:
    """Nothing, of anything: makes a check of a call that returns a value."""


def values(*shape: Shape, kinds: str = "biufcUSOMm") -> Check:
    """An array of anything plain."""
    return lambda value, sizes: void(_array(value, kinds, shape, sizes))


def labels(name: Shape = "k") -> Check:
    """Class labels, each once."""

    def check(value: Any, sizes: Sizes) -> None:
        array = _array(value, "biufUSOMm", (name,), sizes)
        need(len(array) and len(set(array.tolist())) == len(array), "names a class twice or none")

    return check


def number(least: float = -math.inf, most: float = math.inf) -> Check:
    """A number in [`least`, `most`]; NaN only where both are open."""

    def check(value: Any, sizes: Sizes) -> None:
        need(isinstance(value, _NUMBERS), f"is a {type(value).__name__}, not a number")
        bounded = least != -math.inf or most != math.inf
        need(not bounded or least <= value <= most, f"is {value}, not in [{least}, {most}]")

    return check


def real(least: float = -LARGEST) -> Check:
    """A finite number, not beyond `LARGEST`."""
    return number(least, float(LARGEST))


#: A number that may be divided by, a share of something, and one that is neither none nor all.
SIZE, SHARE = real(float(1 / LARGEST)), number(0, 1)
RATE = number(float(1 / LARGEST), math.nextafter(1, 0))


def count(name: Shape = "*", least: int = 0) -> Check:
    """A whole number, perhaps the size `name`."""

    def check(value: Any, sizes: Sizes) -> None:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        need(whole and value >= least, f"is {value!r}, not a whole number >= {least}")
        sizes.agree(name, int(value))

    return check


def one_of(*options: Any) -> Check:
    """One of a few plain values."""
    # By type too: True is no 1.
    allowed = {(type(option), option) for option in options}

    def check(value: Any, sizes: Sizes) -> None:
        hashable = value is None or isinstance(value, str | bool | int | float | tuple)
        need(hashable and (type(value), value) in allowed, f"is {value!r}, not one of {options}")

    return check


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


def either(*checks: Check) -> Check:
    """Require that one of the checks passes."""

    def check(value: Any, sizes: Sizes) -> None:
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

    return check


def each(check: Check, name: Shape = "*", *, kind: type = list) -> Check:
    """A list (or tuple, or set) whose items are what `check` asks for."""

    def check_all(value: Any, sizes: Sizes) -> None:
        need(type(value) is kind, f"is a {type(value).__name__}, not a {kind.__name__}")
        sizes.agree(name, len(value))
        for item in value:
            check(item, sizes)

    return check_all


def mapping(key: Check, value: Check) -> Check:
    """A dict whose keys and values are what the checks ask for."""

    def check_all(found: Any, sizes: Sizes) -> None:
        need(type(found) is dict, f"is a {type(found).__name__}, not a dict")
        for name, item in found.items():
            key(name, sizes)
            value(item, sizes)

    return check_all


def fields(*checks: Check) -> Check:
    """A tuple with one check per item."""

    def check(value: Any, sizes: Sizes) -> None:
        need(type(value) is tuple and len(value) == len(checks), "is not a tuple of that length")
        for item, one in zip(value, checks, strict=True):
            one(item, sizes)

    return check


def grid(check: Check, *shape: Shape) -> Check:
    """An array of objects, each of which is what `check` asks for."""

    def check_all(value: Any, sizes: Sizes) -> None:
        for item in _array(value, "O", shape, sizes).ravel():
            check(item, sizes)

    return check_all


def jobs(value: Any, sizes: Sizes) -> None:
    """A number of threads that can be started."""
    maybe(number(-_MOST_JOBS, _MOST_JOBS))(value, sizes)


# Objects among the attributes: estimators, and parts of this library


def _is_known(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in _PACKAGES


def sizes_of(value: Any) -> dict[str, int]:
    """The sizes that an object made of checked parts has: features ``d``, classes ``k``."""
    found: dict[str, int] = {}
    for name, attributes in {
        "d": ("n_features_in_", "n_features"),
        "k": ("classes_", "max_n_classes", "n_classes"),
    }.items():
        for attribute in attributes:
            size = getattr(value, attribute, None)
            if size is not None:
                found[name] = int(size) if np.ndim(size) == 0 else len(size)
                break
    return found


def is_a(*types: str, **same: Shape) -> Check:
    """An object of one of the named types, with sizes that agree with ours."""

    def check(value: Any, sizes: Sizes) -> None:
        found = any(is_type(type(value), path) for path in types)
        need(found, f"is a {type(value).__name__}, not one of {types}")
        _agree(sizes, sizes_of(value), same, required=True)

    return check


def model(method: str = "get_params", **same: Shape) -> Check:
    """An estimator with a method; one of a package with known rules has sizes that agree."""

    def check(value: Any, sizes: Sizes) -> None:
        found = hasattr(value, "get_params") and hasattr(value, method)
        need(found, f"is a {type(value).__name__}, not an estimator with {method}")
        if _is_known(value):
            _agree(sizes, sizes_of(value), same, required=False)

    return check


def _agree(
    sizes: Sizes, found: Mapping[str, int], same: Mapping[str, Shape], *, required: bool
) -> None:
    for theirs, ours in same.items():
        if theirs in found:
            sizes.agree(ours, found[theirs])
        else:
            need(not required, f"has no size {theirs}")


def ours(*names: str, **lengths: str) -> Check:
    """An object of one of the classes of this library, by their names in a file.

    `lengths` names the attribute that has the length of a size, or is that size.
    """

    def check(value: Any, sizes: Sizes) -> None:
        found = any(is_own_type(type(value), name) for name in names)
        need(found, f"is a {type(value).__name__}, not one of {names}")
        for size, attribute in lengths.items():
            length = getattr(value, attribute)
            sizes.agree(size, length if isinstance(length, int) else len(length))

    return check


def fitted(check: Check) -> Check:
    """Apply `check`, and require a fitted object if it is of a library that says so."""

    def check_both(value: Any, sizes: Sizes) -> None:
        check(value, sizes)
        if _is_known(value) and hasattr(value, "fit"):
            check_is_fitted(value)

    return check_both


def has(*methods: str) -> Check:
    """Any object with one of the methods."""

    def check(value: Any, sizes: Sizes) -> None:
        found = any(callable(getattr(value, method, None)) for method in methods)
        need(found, f"is a {type(value).__name__} without {' or '.join(methods)}")

    return check
