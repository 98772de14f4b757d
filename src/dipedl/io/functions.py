"""Functions and classes of numbers that a file may name: a closed table."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils import check_array

#: What HistGradientBoostingClassifier does with the columns that are no categories.
_NUMBERS = partial(check_array, ensure_all_finite=False, dtype=[np.float64])
_NAMED = {
    "sklearn.feature_selection.f_classif",
    "sklearn.feature_selection.chi2",
    "sklearn.feature_selection.mutual_info_classif",
    "scipy.special.expit",
    "scipy.special.logit",
}
_OF_BOOSTING = "numbers of HistGradientBoosting"
_BUILTIN = {"bool": bool, "int": int, "float": float, "str": str}


def function_name(value: Any) -> str | None:
    """The name in a file of a function; None if it has none."""
    if isinstance(value, partial):
        same = (
            value.func is _NUMBERS.func and not value.args and value.keywords == _NUMBERS.keywords
        )
        return _OF_BOOSTING if same else None
    if isinstance(value, np.ufunc):
        names = [f"numpy.{value.__name__}", f"scipy.special.{value.__name__}"]
    else:
        names = [n for n in _NAMED if n.endswith(f".{getattr(value, '__name__', None)}")]
    return next((n for n in names if _allowed(n) and _import(n) is value), None)


def function(name: str) -> Any:
    """The function of a name in a file; ValueError if there is none."""
    if name == _OF_BOOSTING:
        return partial(_NUMBERS.func, **_NUMBERS.keywords)
    if not (isinstance(name, str) and _allowed(name)):
        raise ValueError(f"the function {name!r} is not one that a model may hold")
    return _import(name)


def _allowed(name: str) -> bool:
    package, _, function = name.rpartition(".")
    return name in _NAMED or (
        package == "numpy" and isinstance(getattr(np, function, None), np.ufunc)
    )


def _import(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)


def class_name(value: type) -> str | None:
    """The name in a file of a class of numbers or texts; None if it has none."""
    if _BUILTIN.get(value.__name__) is value:
        return value.__name__
    name = f"numpy.{value.__name__}"
    return name if _numpy_class(name) is value else None


def class_of_numbers(name: Any) -> type:
    """The class of a name in a file; ValueError if there is none."""
    found = _BUILTIN.get(name) or _numpy_class(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"the class {name!r} is not one that a model may hold")
    return found


def _numpy_class(name: str) -> type | None:
    found = getattr(np, name.removeprefix("numpy."), None) if name.startswith("numpy.") else None
    known = isinstance(found, type) and issubclass(found, np.number | np.bool_ | np.str_)
    return found if known else None
