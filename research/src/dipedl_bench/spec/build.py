"""From names and numbers in a suite to estimators."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.pipeline import make_pipeline

from dipedl.writing import sha256_of

from ..names import did_you_mean, refuse_unknown
from .own_score import OwnScore, is_score

#: Modules whose public classes a suite may use, and their names where these are not all of them.
_MODULES: dict[str, tuple[str, ...]] = {
    "dipedl": ("DIPClassifier",),
    "dipedl.baselines": (),
    "dipedl.calibration": ("Temperature",),
    "dipedl.density": (),
    "dipedl.evidence": (),
    "dipedl.networks": (),
    "dipedl.preprocessing": ("LogitPixels",),
    "dipedl_bench.augmentations": (),
    "dipedl_bench.checkpoints": (),
    "dipedl_bench.ecod": (),
    "dipedl_bench.fast_networks": ("CropFlip", "PoolCNN", "WhitenedCNN"),
    "dipedl_bench.paper_networks": (),
    "dipedl_bench.spec.module_method": ("DIPModuleMethod", "PolarDIPModuleMethod"),
    "sklearn.decomposition": ("PCA",),
    "sklearn.ensemble": (
        "HistGradientBoostingClassifier",
        "IsolationForest",
        "RandomForestClassifier",
    ),
    "sklearn.linear_model": ("LogisticRegression",),
    "sklearn.neighbors": ("LocalOutlierFactor",),
    "sklearn.neural_network": ("MLPClassifier",),
    "sklearn.pipeline": ("Pipeline",),
    "sklearn.preprocessing": ("Normalizer", "StandardScaler"),
}
#: Key of a table that stands for a chain of scikit-learn.
_CHAIN = "pipeline"
#: Argument whose table stands for itself, not for a class.
_PLAIN = "options"
#: Settings that change nothing of what is learned, or are set for each run; a trained network is a
#: part with a config of its own.
_NO_SETTING = ("random_state", "n_jobs", "device", "compile", "network", "stored")
#: Settings younger than published rows: at these values the config is what it was before.
_YOUNG = {
    "class_weight": (None,),
    "caution": (None,),
    "spread": (None, "auto"),
    "bootstrap": (False,),
}
#: Settings that published rows have and the library no longer, at the values that they had.
_GONE: dict[str, dict[str, Any]] = {
    "KNNDensity": {"index": "exact", "probe": 0.1},
    "MaskedAutoregressive": {"order": "reversed"},
    "Temperature": {"bounds": [0.05, 20.0]},
}
#: Tables that stand for one class, so that they need not name it.
_IMPLIED = {"training": "Training"}


@cache
def _homes() -> dict[str, str]:
    """Module of each class by its name; nothing is imported that its folder does not need."""
    return {
        name: module
        for module, names in _MODULES.items()
        for name in names or import_module(module).__all__
    }


def build(
    name: str, arguments: Mapping[str, Any], where: str, *, preset: str = "", **extra: Any
) -> Any:
    """An object of the class `name`; `where` says file and key, for errors.

    ``package.module:Class`` names a class outside this package; one whose ``fit`` takes features,
    logits and labels becomes an `OwnScore`. Tables in `arguments` become objects of the class that
    their key ``name`` says, or a pipeline of the objects in the list under their key ``pipeline``.
    `preset` is a class method that makes it, such as ``paper`` of DIPClassifier. Of `extra`, what
    the class does not take is left out.
    """
    make = find_class(name, where)
    scores = is_score(make)
    if scores and not hasattr(make, "uncertainty"):
        raise ValueError(
            f"{where}: {name} has fit(features, logits, labels) alone; it must have "
            "uncertainty(features, logits) too"
        )
    make = getattr(make, preset) if preset else make
    known = [key for key in _parameters(make) if key != "self"]
    for key in arguments:
        if key not in known:
            raise ValueError(
                f"{where}: unknown key {key!r}{did_you_mean(key, known)}; {name} takes {known}"
            )
    values = {key: _value(value, f"{where}.{key}", key) for key, value in arguments.items()}
    fitting = {key: value for key, value in extra.items() if key in known}
    if requires(make, "estimator"):
        # while a suite is read there is no network yet
        fitting.setdefault("estimator", None)
    try:
        made = make(**{**fitting, **values})
        if "estimator" not in extra and hasattr(made, "check_parameters"):
            made.check_parameters()  # before anything is trained
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error
    return OwnScore(extra.get("estimator"), made, values) if scores else made


def find_class(name: str, where: str) -> Any:
    """Return the class of a name that a suite may use, or of ``package.module:Class``.

    Modules are looked for in the working directory too.
    """
    module, colon, attribute = name.rpartition(":")
    if not colon:
        refuse_unknown("class", [name], _homes(), where)
        return getattr(import_module(_homes()[name]), name)
    return _attribute(module, attribute, where, "class", inspect.isclass)


def import_object(name: str, where: str) -> Any:
    """Return the class or function that ``package.module:name`` stands for."""
    module, colon, attribute = name.rpartition(":")
    if not colon:
        raise ValueError(f"{where}: must be package.module:function or :Class, got {name!r}")
    return _attribute(module, attribute, where, "function or class", callable)


def _attribute(module: str, name: str, where: str, what: str, is_one: Callable[[Any], bool]) -> Any:
    """Return an attribute of a module anywhere; the working directory is looked in too."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = import_module(module)
    except Exception as error:  # the code of the module runs: it may raise anything
        raise ValueError(
            f"{where}: {f'{module}:{name}'!r} cannot be imported ({type(error).__name__}: "
            f"{error}); write package.module:name, with the folder of the package as the working "
            "directory or on PYTHONPATH"
        ) from error
    known = [key for key, value in vars(found).items() if is_one(value)]
    refuse_unknown(f"{what} of {module}", [name], known, where)
    return getattr(found, name)


def sources_of(table: Any, made: Any = None) -> dict[str, str]:
    """Hash of each file outside this package that an estimator depends on, by its name.

    Files are those of the classes in its table, and those that `made`, the estimator itself, says
    in ``sources()``. They stand in the config: after a change of one a method is trained again.
    """
    outside = sorted({name for name in _class_names(table) if ":" in name})
    of_classes = {name: source_hash(find_class(name, "")) for name in outside}
    return {**of_classes, **(made.sources() if hasattr(made, "sources") else {})}


def _class_names(value: Any, key: str = "") -> Iterator[str]:
    """Names of classes in a table, however deep they lie."""
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _class_names(item, inner)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _class_names(item)
    elif isinstance(value, str) and key in ("name", "estimator"):
        yield value


def source_hash(made: Any) -> str:
    """Twelve hex digits of the SHA-256 of the file of a class or function; "" without one."""
    try:
        return sha256_of(Path(inspect.getfile(made)))[:12]
    except (OSError, TypeError):
        return ""


def _value(value: Any, where: str, key: str, **extra: Any) -> Any:
    if isinstance(value, Mapping) and set(value) == {_CHAIN}:
        return make_pipeline(*_value(value[_CHAIN], where, ""))
    if isinstance(value, Mapping) and key == _PLAIN:
        return dict(value)
    if isinstance(value, Mapping):
        name = value.get("name", _IMPLIED.get(key))
        if name is None:
            raise ValueError(f'{where}: a table must say its class, such as name = "LeNet5"')
        return build(name, {k: v for k, v in value.items() if k != "name"}, where, **extra)
    if isinstance(value, list | tuple):
        return tuple(_value(item, f"{where}[{i}]", "") for i, item in enumerate(value))
    if value == "None":
        # TOML has no null.
        return None
    if key == "optimizer" and value == "muon":
        return import_module("dipedl_bench.fast_networks").muon
    return value


def transformer_of(table: Mapping[str, Any], where: str, **extra: Any) -> Any:
    """The transformer of inputs that a table names; `extra` as in `build`."""
    transformer = _value(table, where, "", **extra)
    if not hasattr(transformer, "transform"):
        raise ValueError(f"{where}: {table['name']} is no transformer; take LogitPixels")
    return transformer


def describe(value: Any) -> Any:
    """Plain values for an object: its class and all its settings, for a config.

    Seeds and threads are left out: they are no part of what is trained.
    """
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, OwnScore):
        return {"class": type(value.score).__name__, "settings": describe(value.arguments)}
    if isinstance(value, dict):
        return {key: describe(item) for key, item in value.items()}
    if hasattr(value, "get_params"):
        settings = value.get_params(deep=False)
    elif is_dataclass(value):
        settings = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        return getattr(value, "__qualname__", type(value).__qualname__)
    values = {
        key: describe(item)
        for key, item in settings.items()
        if key not in _NO_SETTING and item not in _YOUNG.get(key, ())
    }
    name = type(value).__name__
    return {"class": name, "settings": {**values, **_GONE.get(name, {})}}


def find_settings(name: str, value: Any) -> Iterator[Any]:
    """Every setting of this name in a table, however deep it lies."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from [item] if key == name else find_settings(name, item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_settings(name, item)


def accepts(function: Any, argument: str) -> bool:
    """Return whether a function takes an argument of this name."""
    return argument in _parameters(function)


def requires(function: Any, argument: str) -> bool:
    """Return whether a function takes an argument of this name, and has no default for it."""
    parameter = _parameters(function).get(argument)
    return parameter is not None and parameter.default is inspect.Parameter.empty


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function or a class; of a class a plan asks again and again."""
    read = _of_class if isinstance(function, type) else inspect.signature
    return read(function).parameters


_of_class = cache(inspect.signature)
