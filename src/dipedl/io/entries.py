"""One entry of the table of types: what an object of a type consists of, and what must be true."""

from __future__ import annotations

import os
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from inspect import Parameter, signature
from typing import Any

import numpy as np

from .checks import Check, Sizes, count, jobs, labels, need, plain, values

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
        state = {k: _as_dict(v) for k, v in vars(value).items() if k not in self.dropped}
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
            value = cls(**{k: _setting(k, v) for k, v in state.items() if k in names})
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


def _setting(name: str, value: Any) -> Any:
    """A parameter; no more processes than this machine has cores, whatever wrote the file."""
    if name != "n_jobs" or not isinstance(value, int):
        return value
    return min(value, os.cpu_count() or 1)


def _as_dict(value: Any) -> Any:
    """The value, with plain dicts for those that know an order or a default."""
    if isinstance(value, OrderedDict | defaultdict):
        return {k: _as_dict(v) for k, v in value.items()}
    return value
