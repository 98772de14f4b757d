"""The table of types: their names in a file, and what an object of each must be.

Names stay when the module that defines a type moves. Words say what one attribute must be, in terms
of named sizes: a word is called with a value and the sizes known so far, ``d`` features, ``k``
classes, and whatever name a shape uses. The first use of a name fixes its size, and every later one
must agree. An `Entry` is a type in such words.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, wraps
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..protocols import public_names

_PACKAGE = __name__.partition(".")[0]
# Names of our types in a file. A module is imported only if a file names one of its types, or a
# class that is saved may be one of them.

#: Module below this package -> names in a file, each of which ends in that of the class.
_TYPES = {
    "classifier": "DIPClassifier",
    "detector": "OODDetector",
    "evidence_model": "EvidenceModel",
    "held_out": "calibration.HeldOut",
    "calibration.spread": "calibration.Spread",
    "calibration.temperature": "calibration.Temperature",
    "density.ensemble": "density.NormalScores density.Reach",
    "explanation.unknown_classes": "explanation.UnknownRehearsal",
    "features.pipelines": "fitting.DenseRows",
    "gaussians.factor": "gaussians.BasisFactors gaussians.GaussianFactor gaussians.ThinWhitener "
    "gaussians.TiedFactors",
    "gaussians.moments": "gaussians.BasisMoments gaussians.HigherMoments gaussians.Moments "
    "gaussians.TiedMoments",
    "apps.monitor.drift_monitor": "monitoring.DriftMonitor",
    "apps.monitor.bets": "monitoring.ReferenceRanks monitoring.Wealth",
    "apps.monitor.windows": "monitoring.Calibration monitoring.Estimate "
    "monitoring.OpenWindow monitoring.Sums monitoring.Window",
    # The transformers of spectra, but not the functions and the containers beside them.
    "apps.spectra.features": "spectra.BlockStatistics spectra.EnergyNormalizer spectra.LineMeans "
    "spectra.PrincipalComponents spectra.SavitzkyGolay",
    "density.streaming": "streaming.RowSample streaming.Stream",
}
#: Folders whose public classes are found by their names.
_FOLDERS = ("density", "evidence", "preprocessing")


@cache
def own_types() -> dict[str, str]:
    """Return the full name of each class of ours, by its name in a file."""
    found = {
        name: f"{_PACKAGE}.{home}.{name.rpartition('.')[2]}"
        for home, names in _TYPES.items()
        for name in names.split()
    }
    for folder in _FOLDERS:
        homes = public_names(Path(__file__).parents[1] / folder)
        found |= {f"{folder}.{n}": f"{_PACKAGE}.{folder}.{home}.{n}" for n, home in homes.items()}
    return found | {
        "fitting.InputColumns": f"{_PACKAGE}.columns.Inputs",
        "fitting.InputColumn": f"{_PACKAGE}.columns.Column",
    }


def find(path: str) -> Any:
    """Return the class or function of a full name."""
    home, _, name = path.rpartition(".")
    return getattr(import_module(home), name)


@cache
def _class_or_none(path: str) -> Any:
    """Return the class of a full name; None if its package is not installed."""
    try:
        return find(path)
    except (ImportError, AttributeError):
        return None


def is_type(cls: type, path: str) -> bool:
    """Return whether a class is the one of a full name, imported only if it may be."""
    mine, theirs = (of.partition(".")[0] for of in (cls.__module__, path))
    return (
        cls.__name__ == path.rpartition(".")[2] and mine == theirs and _class_or_none(path) is cls
    )


def is_own_type(cls: type, name: str) -> bool:
    """Return whether a class is the one of ours of this name in a file."""
    return is_type(cls, own_types()[name])


# Words

_PACKAGES = (_PACKAGE, "sklearn")
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
    order: np.ufunc | None = None,
) -> None:
    """Floating point numbers of 4 or 8 bytes, the finite ones in [-`most`, `most`].

    `order` is true of each and the next, such as ``np.less``.
    """
    array = _array(value, "f", shape, sizes)
    need(array.itemsize in (4, 8), f"has the dtype {array.dtype}")
    need(not finite or np.isfinite(array).all(), "holds NaN or infinite values")
    large = (abs(array) > most) & np.isfinite(array)
    need(not large.any(), f"holds values beyond {most:g}")
    need(least == -math.inf or not (array < least).any(), f"holds values below {least}")
    ordered = order is None or order(array[..., :-1], array[..., 1:]).all()
    need(ordered, "holds values that fall, or do not rise")


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
    """One of a few plain values; a text of NumPy, as a grid of parameters holds it, is a text."""
    value = str(value) if type(value) is np.str_ else value
    hashable = value is None or isinstance(value, str | bool | int | float | tuple)
    # By type too: True is no 1.
    found = hashable and any(type(value) is type(o) and value == o for o in options)
    # The text of an estimator takes longer than all checks of it.
    got = repr(value) if hashable else f"a {type(value).__name__}"
    need(found, f"is {got}, not one of {options}")


def text(value: Any, sizes: Sizes) -> None:
    """A string."""
    need(isinstance(value, str), f"is a {type(value).__name__}, not text")


def flag(value: Any, sizes: Sizes) -> None:
    """True or False."""
    need(isinstance(value, bool | np.bool_), f"is {value!r}, not True or False")


def anything(value: Any, sizes: Sizes) -> None:
    """Any value: the attribute is there, and whoever reads it checks it."""


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
    # Its predict_proba takes a classifier, too.
    found = found and not is_own_type(type(value), "EvidenceModel")
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


# Entries: what an object of a type consists of, and what must be true

_NAME = re.compile(r"_?[a-zA-Z]\w*")
#: Those of the widest number.
_MOST_BYTES = 32
_ADDED = re.compile(r"_?[a-zA-Z]\w*_|_metadata_request")
#: What any estimator may have.
_COMMON: dict[str, Check] = {
    "n_features_in_": count("d"),
    "feature_names_in_": values("d"),
    "_sklearn_output_config": plain,
}
#: For the fitted attributes of an estimator that checks the width of its input.
WIDE: dict[str, Check] = {"n_features_in_": count("d", 1)}
#: For those of a classifier.
CLASSES = WIDE | {"classes_": labels()}
#: Checks of parameters by name, whatever the estimator.
_PARAMETERS: dict[str, Check] = {
    "n_jobs": jobs,
    # A folder of pickles, which a later fit would load.
    "memory": lambda value, sizes: need(value is None, "is a cache, which no file may name"),
    # Answers take this much for each number.
    "dtype": lambda value, sizes: need(np.dtype(value).itemsize <= _MOST_BYTES, "is too wide"),
}


@dataclass(frozen=True)
class Entry:
    """Checks of the attributes of a type, by name: an object of this library has no others.

    A key may hold several names, with spaces between them; the order is that in which they fix the
    sizes. An object without ``get_params`` is made without its constructor.

    Attributes
    ----------
    fitted, optional : dict of str to Check
        What a fit leaves: always, or in some versions and under some settings. An estimator without
        any of them is one that was not fitted.
    parameters : dict of str to Check
        Parameters that an answer depends on.
    where : sequence of functions of (object, sizes)
        Relations between attributes; raise ValueError.
    dropped : set of str
        Attributes that are not saved: the next fit, or `restore`, makes them again.
    restore : function of the object or None
        Called once all attributes of a fitted object are there.
    foreign : bool
        The type is of another package: other attributes may hold anything that a file can hold, as
        no code reads memory by them.
    """

    fitted: Mapping[str, Check] = field(default_factory=dict)
    optional: Mapping[str, Check] = field(default_factory=dict)
    parameters: Mapping[str, Check] = field(default_factory=dict)
    where: Sequence[Callable[[Any, Sizes], None]] = ()
    dropped: frozenset[str] = frozenset()
    restore: Callable[[Any], None] | None = None
    foreign: bool = False

    def __post_init__(self) -> None:
        for name in ("fitted", "optional", "parameters"):
            by_one = {n: c for names, c in getattr(self, name).items() for n in names.split()}
            object.__setattr__(self, name, by_one)

    def take(self, value: Any) -> dict[str, Any]:
        """Return the attributes to save; ValueError if the object is not as the entry says."""
        state = {k: as_dict(v) for k, v in vars(value).items() if k not in self.dropped}
        if hasattr(value, "get_params"):
            state = value.get_params(deep=False) | state
        self._check_names(type(value), state)
        self.check(value)
        return state

    def make(self, cls: type, state: Mapping[str, Any]) -> Any:
        """Return the object of such attributes, checked."""
        self._check_names(cls, state)
        names = _parameter_names(cls)
        if hasattr(cls, "get_params"):
            settings = {k: v for k, v in state.items() if k in names}
            if isinstance(jobs := settings.get("n_jobs"), int):
                # No more processes than this machine has cores, whatever wrote the file.
                settings["n_jobs"] = min(jobs, os.cpu_count() or 1)
            value = cls(**settings)
        else:
            value = object.__new__(cls)
        vars(value).update({k: v for k, v in state.items() if k not in names})
        self.check(value)
        if self.restore is not None and self._is_fitted(value):
            self.restore(value)
        return value

    def check(self, value: Any) -> None:
        """Raise ValueError, naming the attribute, unless the object is as the entry says."""
        cls: Any = type(value)
        state, sizes, names = vars(value), Sizes(), _parameter_names(cls)
        for name, check in {**_PARAMETERS, **self.parameters}.items():
            if name in names:
                _named(value, name, check, getattr(value, name), Sizes())
        if self.parameters and hasattr(value, "_parameter_constraints"):
            value._validate_params()
        if not self._is_fitted(value):
            return
        lacking = self.fitted.keys() - state.keys()
        need(not lacking, f"{type(value).__name__} lacks {sorted(lacking)}")
        for name, check in self._checks.items():
            if name in state:
                _named(value, name, check, state[name], sizes)
        for relation in self.where:
            _named(value, "the parts", relation, value, sizes)

    @cached_property
    def _checks(self) -> dict[str, Check]:
        """The check of each attribute by name."""
        return {**({} if self.foreign else _COMMON), **self.fitted, **self.optional}

    def _is_fitted(self, value: Any) -> bool:
        """Return whether an object has any of what a fit leaves; one without a fit always has."""
        if not hasattr(value, "get_params"):
            return True
        known = {**self.fitted, **self.optional} or self._checks
        # As scikit-learn sees it: what has any of these is asked, whatever it lacks.
        cls: Any = type(value)
        added = vars(value).keys() - _parameter_names(cls)
        return any(name in known or name.endswith("_") for name in added)

    def _check_names(self, cls: type, state: Mapping[str, Any]) -> None:
        """Refuse names that no attribute has, and those of methods."""
        others = state.keys() - self._checks.keys() - _parameter_names(cls)
        # A user may add attributes to a type of ours, which reads none of them.
        pattern = _NAME if self.foreign else _ADDED
        odd = [name for name in others if not pattern.fullmatch(name) or hasattr(cls, name)]
        need(not odd, f"{cls.__name__} has no {sorted(odd)} in this version: fit again")


def _named(owner: Any, name: str, check: Check, value: Any, sizes: Sizes) -> None:
    try:
        check(value, sizes)
    except ValueError as error:
        raise ValueError(f"{name} of {type(owner).__name__} {error}") from error


@cache
def _parameter_names(cls: type) -> frozenset[str]:
    """Names of the constructor's parameters, also of those that it hands on as keywords."""
    found: set[str] = set()
    for base in cls.__mro__ if hasattr(cls, "get_params") else ():
        if "__init__" not in vars(base):
            continue
        parameters = list(signature(base.__init__).parameters.values())[1:]  # type: ignore[misc]
        kinds = {p.name: p.kind for p in parameters}
        named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        found |= {name for name, kind in kinds.items() if kind in named}
        if Parameter.VAR_KEYWORD not in kinds.values():
            break
    return frozenset(found)


def as_dict(value: Any) -> Any:
    """The value, with plain dicts for those that know an order or a default."""
    if isinstance(value, OrderedDict | defaultdict):
        return {k: as_dict(v) for k, v in value.items()}
    return value
