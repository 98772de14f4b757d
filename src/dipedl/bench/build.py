"""From names and numbers in a suite to estimators."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from .names import did_you_mean

__all__ = ["accepts", "build", "check", "class_of"]

#: Plug-in folders whose public names a suite may use.
_FOLDERS = ("baselines", "density", "nn")
#: Tables that stand for one class, so that they need not name it.
_IMPLIED = {"training": "Training"}


def class_of(name: str, where: str) -> Any:
    """The class of this name; ValueError with the one that was probably meant if there is none."""
    from .. import DIPClassifier

    if name == DIPClassifier.__name__:
        return DIPClassifier
    for folder in _FOLDERS:
        module = import_module(f"dipedl.{folder}")
        if name in module.__all__:
            return getattr(module, name)
    known = [DIPClassifier.__name__, *_public_names()]
    raise ValueError(f"{where}: unknown class {name!r}{did_you_mean(name, known)}; known: {known}")


def build(table: Mapping[str, Any], where: str, *, key: str = "estimator", **given: Any) -> Any:
    """An object from its table: the class that `key` names, with all other keys as arguments.

    Parameters
    ----------
    table : mapping
        Tables inside become objects of the class that their ``name`` says.
    where : str
        File and key, for errors.
    key : str, default="estimator"
        Which key names the class.
    **given
        More arguments; those that the class does not take are left out.
    """
    cls = _checked_class(table, where, key)
    arguments = {
        name: _value(value, f"{where}.{name}", name) for name, value in table.items() if name != key
    }
    fitting = {name: value for name, value in given.items() if name in _arguments(cls)}
    try:
        return cls(**{**fitting, **arguments})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def check(table: Mapping[str, Any], where: str, *, key: str = "estimator") -> None:
    """Raise what `build` would raise, before anything long has begun."""
    build(table, where, key=key)


def accepts(function: Any, argument: str) -> bool:
    """Whether a function takes an argument of this name."""
    return argument in inspect.signature(function).parameters


def _checked_class(table: Mapping[str, Any], where: str, key: str) -> Any:
    if key not in table:
        raise ValueError(f'{where}: a table must name its class, such as {key} = "..."')
    cls = class_of(table[key], where)
    known = _arguments(cls)
    for name in table:
        if name != key and name not in known:
            raise ValueError(
                f"{where}.{name}: unknown key{did_you_mean(name, known)}; "
                f"{cls.__name__} takes {known}"
            )
    return cls


def _arguments(cls: Any) -> list[str]:
    return [name for name in inspect.signature(cls).parameters if name != "self"]


def _value(value: Any, where: str, name: str) -> Any:
    if isinstance(value, Mapping):
        implied = {"name": _IMPLIED[name]} if name in _IMPLIED else {}
        return build({**implied, **value}, where, key="name")
    if isinstance(value, list | tuple):
        return tuple(_value(item, f"{where}[{i}]", "") for i, item in enumerate(value))
    return value


def _public_names() -> Iterator[str]:
    for folder in _FOLDERS:
        yield from import_module(f"dipedl.{folder}").__all__
