"""One entry of the table: what an object of one type consists of."""

from __future__ import annotations

import os
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from inspect import Parameter, signature
from typing import Any

from ..checks import Check, Sizes, count, jobs, labels, need, plain, values
from ..homes import is_own_type, own_types

_ADDED = re.compile(r"_?[a-zA-Z]\w*_|_metadata_request")
_NAMED_KIND, _KEYWORD = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
#: What any estimator may have.
COMMON: dict[str, Check] = {
    "n_features_in_": count("d"),
    "feature_names_in_": values("d"),
    "_sklearn_output_config": plain,
}
#: What an estimator may have before its fit.
_UNFITTED = {"_sklearn_output_config"}
#: For the fitted attributes of an estimator that checks the width of its input.
WIDE: dict[str, Check] = {"n_features_in_": count("d", 1)}
#: For those of a classifier.
CLASSES = WIDE | {"classes_": labels()}
#: Checks of parameters by name, whatever the estimator.
_PARAMETERS: dict[str, Check] = {
    "n_jobs": jobs,
    # A folder of pickles, which a later fit would load.
    "memory": lambda value, sizes: need(value is None, "is a cache, which no file may name"),
}


@dataclass(frozen=True)
class Entry:
    """Checks of the attributes of a type of this library, by name: the file may hold no others.

    A key may hold several names, with spaces between them; the order is that in which they fix the
    sizes. An object without ``get_params`` is made without its constructor.

    Attributes
    ----------
    fitted, optional : dict of str to Check
        What a fit leaves: always, or in some versions and under some settings. An estimator without
        any of them is one that was not fitted.
    parameters : dict of str to Check
        Parameters that an answer depends on, beyond scikit-learn's own constraints.
    where : sequence of functions of (object, sizes)
        Relations between attributes; raise ValueError.
    dropped : set of str
        Attributes that are not saved: the next fit makes them again.
    gone : set of str
        Attributes that older versions saved; they are left out.
    restore : function of the object or None
        Called once all attributes are there, to make those that the constructor of a part makes.
    """

    fitted: Mapping[str, Check] = field(default_factory=dict)
    optional: Mapping[str, Check] = field(default_factory=dict)
    parameters: Mapping[str, Check] = field(default_factory=dict)
    where: Sequence[Callable[[Any, Sizes], None]] = ()
    dropped: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    restore: Callable[[Any], None] | None = None

    def __post_init__(self) -> None:
        for name in ("fitted", "optional", "parameters"):
            object.__setattr__(self, name, by_one_name(getattr(self, name)))

    def take(self, value: Any) -> dict[str, Any]:
        """The attributes of an object to save; ValueError if it is not as the entry says."""
        state = {k: v for k, v in vars(value).items() if k not in self.dropped}
        made: Set[str] = frozenset()
        if hasattr(value, "get_params"):
            parameters = value.get_params(deep=False)
            made = vars(type(value)(**parameters)).keys() - parameters.keys()
            left_out = made - self._checks.keys()
            if not self._is_fitted(type(value), state, made):
                left_out = state.keys() - _UNFITTED
            state = parameters | {k: _as_dict(v) for k, v in state.items() if k not in left_out}
        self._check(value, made)
        self._check_names(type(value), state)
        return state

    def make(self, cls: type, state: Mapping[str, Any]) -> Any:
        """The object of such attributes, checked."""
        state = {name: value for name, value in state.items() if name not in self.gone}
        self._check_names(cls, state)
        names = self._parameter_names(cls)
        made: Set[str] = frozenset()
        if hasattr(cls, "get_params"):
            value = cls(**{k: _setting(k, v) for k, v in state.items() if k in names})
            made = vars(value).keys() - names
        else:
            value = object.__new__(cls)
        vars(value).update({k: v for k, v in state.items() if k not in names})
        self._check(value, made)
        if self.restore is not None and self._is_fitted(cls, state, made):
            self.restore(value)
        return value

    def check(self, value: Any) -> None:
        """Raise ValueError, naming the attribute, unless the object is as the entry says."""
        self._check(value, frozenset())

    def _check(self, value: Any, made: Set[str]) -> None:
        """Check the attributes of an object whose constructor has made some of them."""
        state, sizes = vars(value), Sizes()
        self._check_parameters(value)
        if not self._is_fitted(type(value), state, made):
            return
        lacking = self.fitted.keys() - state.keys()
        need(not lacking, f"{type(value).__name__} lacks {sorted(lacking)}")
        for name, check in self._checks_of(type(value), state):
            _named(value, name, check, state[name], sizes)
        for relation in self.where:
            _named(value, "the parts", relation, value, sizes)

    @cached_property
    def _checks(self) -> dict[str, Check]:
        """The check of each attribute by name."""
        return {**COMMON, **self.fitted, **self.optional}

    def _checks_of(self, cls: type, state: Mapping[str, Any]) -> list[tuple[str, Check]]:
        return [(name, check) for name, check in self._checks.items() if name in state]

    def _check_parameters(self, value: Any) -> None:
        names = self._parameter_names(type(value))
        for name, check in {**_PARAMETERS, **self.parameters}.items():
            if name in names:
                _named(value, name, check, getattr(value, name), Sizes())
        if hasattr(value, "_parameter_constraints"):
            value._validate_params()

    def _parameter_names(self, cls: type) -> frozenset[str]:
        return _constructor(cls) if hasattr(cls, "get_params") else frozenset()

    def _is_fitted(self, cls: type, state: Mapping[str, Any], made: Set[str]) -> bool:
        """Return whether an object has what a fit leaves; one without a fit always has."""
        known = self._checks.keys() - _UNFITTED
        return not hasattr(cls, "get_params") or bool(state.keys() & known)

    def _check_names(self, cls: type, state: Mapping[str, Any]) -> None:
        known = self._checks if self._is_fitted(cls, state, frozenset()) else _UNFITTED
        unknown = state.keys() - set(known) - self._parameter_names(cls)
        unknown = {name for name in unknown if not _may_be_added(cls, name)}
        need(not unknown, f"{cls.__name__} has no {sorted(unknown)} in this version")


def by_one_name(checks: Mapping[str, Check]) -> dict[str, Check]:
    """Return the checks with one name per key."""
    return {name: check for names, check in checks.items() for name in names.split()}


def _named(owner: Any, name: str, check: Check, value: Any, sizes: Sizes) -> None:
    try:
        check(value, sizes)
    except ValueError as error:
        raise ValueError(f"{name} of {type(owner).__name__} {error}") from error


@cache
def _constructor(cls: type) -> frozenset[str]:
    """Names of the constructor's parameters, also of those that it hands on as keywords."""
    found: set[str] = set()
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = list(signature(base.__init__).parameters.values())[1:]  # type: ignore[misc]
        kinds = {p.name: p.kind for p in parameters}
        found |= {n for n, kind in kinds.items() if kind in (_NAMED_KIND, _KEYWORD)}
        if Parameter.VAR_KEYWORD not in kinds.values():
            break
    return frozenset(found)


def _may_be_added(cls: type, name: str) -> bool:
    """Return whether a user may add an attribute: to a type of ours, which reads none of it."""
    ours = any(is_own_type(cls, own) for own in own_types())
    return ours and bool(_ADDED.fullmatch(name)) and not hasattr(cls, name)


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
