"""One entry of the table: what a fitted object of one type consists of."""

from __future__ import annotations

import os
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import Parameter, signature
from typing import Any

from ..checks import Check, Sizes, count, jobs, labels, need, plain, values
from ..homes import is_own_type, own_types

_ADDED = re.compile(r"_?[a-zA-Z]\w*_|_metadata_request")
_NAMED_KIND, _KEYWORD = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
#: What any estimator may have.
_COMMON: dict[str, Check] = {
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
    """Checks of an object's attributes by name, in the order in which they fix the sizes.

    A key may hold several names, with spaces between them.

    Attributes
    ----------
    fitted, optional : dict of str to Check
        What a fit leaves: always, or in some versions and under some settings. An estimator without
        any of them is one that was not fitted, such as the template of a forest's trees.
    parameters : dict of str to Check
        Parameters that an answer depends on, beyond scikit-learn's own constraints.
    where : sequence of functions of (object, sizes)
        Relations between attributes; raise ValueError.
    dropped : set of str
        Attributes that are not saved: the next fit makes them again.
    restore : function of the object or None
        Called once all attributes are there, to make those that the constructor of a part makes.
    bare : bool
        Not an estimator: made without its constructor, from `fitted` and `optional` alone.
    """

    fitted: Mapping[str, Check]
    optional: Mapping[str, Check] = field(default_factory=dict)
    parameters: Mapping[str, Check] = field(default_factory=dict)
    where: Sequence[Callable[[Any, Sizes], None]] = ()
    dropped: frozenset[str] = frozenset()
    restore: Callable[[Any], None] | None = None
    bare: bool = False
    #: Whether no answer reads a parameter: those are checked by the next fit.
    unread: bool = False
    #: The attribute that tells a fitted object, where the constructor makes some of the others.
    sign: str | None = None
    #: Parameters that the constructor takes as keywords without naming them.
    more: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("fitted", "optional", "parameters"):
            object.__setattr__(self, name, _by_one_name(getattr(self, name)))

    def take(self, value: Any) -> dict[str, Any]:
        """The attributes of a fitted object to save; ValueError if it is not as the entry says."""
        state = {k: v for k, v in vars(value).items() if k not in self.dropped}
        if not self.bare:
            parameters = value.get_params(deep=False)
            made = vars(type(value)(**parameters)).keys() - parameters.keys() - self._known()
            if not self._is_fitted(state):
                made = state.keys() - _UNFITTED
            state = parameters | {k: _as_dict(v) for k, v in state.items() if k not in made}
        self.check(value)
        self._check_names(type(value), state)
        return state

    def make(self, cls: type, state: Mapping[str, Any]) -> Any:
        """The object of such attributes, checked."""
        self._check_names(cls, state)
        if self.bare:
            value: Any = object.__new__(cls)
            fitted = dict(state)
        else:
            names = self._parameter_names(cls)
            value = cls(**{k: _setting(k, v) for k, v in state.items() if k in names})
            fitted = {k: v for k, v in state.items() if k not in names}
        vars(value).update(fitted)
        self.check(value)
        if self.restore is not None and self._is_fitted(state):
            self.restore(value)
        return value

    def check(self, value: Any) -> None:
        """Raise ValueError, naming the attribute, unless the object is as the entry says."""
        state, sizes = vars(value), Sizes()
        if not self.bare:
            self._check_parameters(value)
        if not self._is_fitted(state):
            return
        for name, check in {**_COMMON, **self.fitted, **self.optional}.items():
            if name in state:
                _named(value, name, check, state[name], sizes)
        for relation in self.where:
            _named(value, "the parts", relation, value, sizes)

    def _check_parameters(self, value: Any) -> None:
        for name, check in {**_PARAMETERS, **self.parameters}.items():
            if name in self._parameter_names(type(value)):
                _named(value, name, check, getattr(value, name), Sizes())
        if not self.unread and hasattr(value, "_parameter_constraints"):
            value._validate_params()

    def _parameter_names(self, cls: type) -> set[str]:
        return set() if self.bare else {*_constructor(cls), *self.more}

    def _known(self) -> set[str]:
        return _COMMON.keys() | self.fitted.keys() | self.optional.keys()

    def _is_fitted(self, state: Mapping[str, Any]) -> bool:
        known = self._known() - _UNFITTED if self.sign is None else {self.sign}
        return self.bare or bool(state.keys() & known)

    def _check_names(self, cls: type, state: Mapping[str, Any]) -> None:
        known = self._known() if self._is_fitted(state) else _UNFITTED
        unknown = state.keys() - known - self._parameter_names(cls)
        unknown = {name for name in unknown if not _may_be_added(cls, name)}
        need(not unknown, f"{cls.__name__} has no {sorted(unknown)} in this version")
        lacking = self.fitted.keys() - state.keys() if self._is_fitted(state) else ()
        need(not lacking, f"{cls.__name__} lacks {sorted(lacking)}")


def _by_one_name(checks: Mapping[str, Check]) -> dict[str, Check]:
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
