"""From names and numbers in a suite to estimators."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from .names import did_you_mean

__all__ = ["accepts", "build", "class_of", "described", "transformer_of"]

#: Plug-in folders whose public names a suite may use.
_FOLDERS = ("baselines", "density", "nn")
#: Settings that change nothing of what is learned, or are set for each run.
_NO_SETTING = ("random_state", "n_jobs", "device")
#: Tables that stand for one class, so that they need not name it.
_IMPLIED = {"training": "Training"}


def class_of(name: str, where: str) -> Any:
    """The class of this name; ValueError with the one that was probably meant if there is none."""
    single = _single_classes()
    if name in single:
        return single[name]
    for folder in _FOLDERS:
        module = import_module(f"dipedl.{folder}")
        if name in module.__all__:
            return getattr(module, name)
    known = [*single, *_public_names()]
    raise ValueError(f"{where}: unknown class {name!r}{did_you_mean(name, known)}; known: {known}")


def build(name: str, arguments: Mapping[str, Any], where: str, **given: Any) -> Any:
    """An object of the class `name`.

    Parameters
    ----------
    name : str
        A public class of dipedl.baselines, dipedl.density or dipedl.nn, DIPClassifier, a normaliser
        or LogitPixels.
    arguments : mapping
        Its arguments; tables inside become objects of the class that their key ``name`` says.
    where : str
        File and key, for errors.
    **given
        More arguments; those that the class does not take are left out.
    """
    cls = class_of(name, where)
    known = _arguments(cls)
    for key in arguments:
        if key not in known:
            raise ValueError(
                f"{where}: unknown key {key!r}{did_you_mean(key, known)}; {name} takes {known}"
            )
    values = {key: _value(value, f"{where}.{key}", key) for key, value in arguments.items()}
    fitting = {key: value for key, value in given.items() if key in known}
    try:
        return cls(**{**fitting, **values})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def transformer_of(table: Mapping[str, Any], where: str) -> Any:
    """The transformer of inputs that a table names."""
    transformer = _value(table, where, "")
    if not hasattr(transformer, "transform"):
        raise ValueError(f"{where}: {table['name']} is no transformer; take LogitPixels")
    return transformer


def described(value: Any) -> Any:
    """Plain values for an object: its class and all its settings, for a config.

    Seeds and threads are left out: they are no part of what is trained.
    """
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value):
        settings = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "get_params"):
        settings = value.get_params(deep=False)
    else:
        return getattr(value, "__qualname__", type(value).__qualname__)
    kept = {key: described(item) for key, item in settings.items() if key not in _NO_SETTING}
    return {"class": type(value).__name__, "settings": kept}


def accepts(function: Any, argument: str) -> bool:
    """Whether a function takes an argument of this name."""
    return argument in inspect.signature(function).parameters


def _arguments(cls: Any) -> list[str]:
    return [name for name in inspect.signature(cls).parameters if name != "self"]


def _value(value: Any, where: str, key: str) -> Any:
    if isinstance(value, Mapping):
        name = value.get("name", _IMPLIED.get(key))
        if name is None:
            raise ValueError(f'{where}: a table must say its class, such as name = "LeNet5"')
        return build(name, {k: v for k, v in value.items() if k != "name"}, where)
    if isinstance(value, list | tuple):
        return tuple(_value(item, f"{where}[{i}]", "") for i, item in enumerate(value))
    return value


def _single_classes() -> dict[str, Any]:
    from .. import DIPClassifier
    from ..evidence import RobustZScore, ZScore
    from ..preprocessing import LogitPixels

    return {cls.__name__: cls for cls in (DIPClassifier, LogitPixels, RobustZScore, ZScore)}


def _public_names() -> Iterator[str]:
    for folder in _FOLDERS:
        yield from import_module(f"dipedl.{folder}").__all__
