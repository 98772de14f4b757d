"""A suite: data, methods, seeds and profiles, read from TOML into one frozen typed model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from ..datasets.spectra_splits import SPECTRA_SHIFTED
from ..datasets.splits import DATASETS, OOD_SETS
from ..names import is_folder_name, refuse_unknown
from .entries import (
    CrossedClassifier,
    CrossedData,
    MeasureEntry,
    Method,
    Profile,
)
from .typed_toml import Frozen, read_tables, validated

__all__ = [
    "Suite",
    "chosen",
    "file_of",
    "gathered",
    "load_suite",
    "parse_suite",
    "suite_names",
]

Table = dict[str, Any]
Name = str


class Suite(Frozen):
    """A benchmark: data sets x classifiers x methods x seeds.

    A suite with ``[datasets]`` is crossed: every method is given each classifier of each data set.
    Any other has one data set a profile, and its classifiers are parts of its methods. A table that
    ``extends`` one above it in its section has the keys of that one, with its own on top.
    """

    name: str
    title: str
    #: A crossed suite names them with each data set.
    ood: tuple[Name, ...] = ()
    #: Share of the official training set that is held out for validation, another one each seed.
    validation_fraction: float = Field(default=0.2, gt=0, lt=1)
    seeds: tuple[int, ...] = Field(min_length=1)
    profiles: dict[Name, Profile]
    datasets: dict[Name, CrossedData] = {}
    #: ``estimator`` and its arguments. Of a crossed suite, see `CrossedClassifier`; of another,
    #: parts that several methods share, a density with ``features``: "pixels", "network", or a
    #: table that names a transformer of pixels.
    classifiers: dict[Name, Table] = {}
    densities: dict[Name, Table] = {}
    #: See `Method`; completed by a profile.
    methods: dict[Name, Table]
    #: What a crossed suite is to show.
    measures: tuple[MeasureEntry, ...] = ()

    @field_validator("profiles", "datasets", "classifiers", "densities", "methods", mode="before")
    @classmethod
    def _completed(cls, section: Any) -> Any:
        return _each_on_top(section) if isinstance(section, Mapping) else section

    @property
    def crossed(self) -> bool:
        """Return whether data sets are crossed with classifiers."""
        return bool(self.datasets)

    def profile(self, name: str) -> Profile:
        """The profile of this name; ValueError with the known ones if there is none."""
        refuse_unknown("profile", [name], self.profiles, f"suite {self.name!r}")
        return self.profiles[name]

    def ood_of(self, profile: Profile) -> tuple[str, ...]:
        """OOD sets of a profile of a suite with one data set a profile."""
        return self.ood if profile.ood is None else profile.ood

    def method_names(self, profile: str) -> tuple[str, ...]:
        """Names of the methods that a profile runs, in the order of the file."""
        without = self.profile(profile).without
        return tuple(name for name in self.methods if name not in without)

    def chosen_methods(self, profile: str, wanted: Iterable[str] | None = None) -> tuple[str, ...]:
        """`wanted` once each and checked, in the order of the file; None or "all" gives all."""
        return chosen("method", wanted, self.method_names(profile))

    def chosen_datasets(self, profile: str, wanted: Iterable[str] | None = None) -> tuple[str, ...]:
        """`wanted`, checked, in the order of the profile; None or "all" gives all."""
        return chosen("dataset", wanted, self.profile(profile).datasets)


def chosen(what: str, wanted: Iterable[str] | None, known: Iterable[str]) -> tuple[str, ...]:
    """`wanted` once each and checked, in the order of `known`; None or "all" gives all."""
    known = tuple(known)
    names = list(wanted) if wanted is not None else ["all"]
    if names == ["all"]:
        return known
    if not names:
        raise ValueError(f"{what}s must name at least one of {list(known)}, got none")
    refuse_unknown(what, names, known)
    return tuple(name for name in known if name in names)


def suite_names() -> list[str]:
    """Names of the suites that come with the package."""
    folder = files(__package__) / "suites"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def file_of(name: str | os.PathLike[str]) -> str:
    """The file of a suite, for errors."""
    return str(name) if str(name).endswith(".toml") else f"{name}.toml"


def load_suite(name: str | os.PathLike[str]) -> Suite:
    """A suite of the package by name, or one of your own by the path of its TOML file.

    FileNotFoundError if there is no such file. ValueError if there is no such suite, or the file is
    not a suite: an unknown key (with the one that was probably meant), a missing one, a value of
    the wrong type, the name of a suite of the package.

    Examples
    --------
    >>> from dipedl_bench import load_suite
    >>> suite = load_suite("mnist")
    >>> suite.seeds, suite.ood
    ((10, 20, 30, 40), ('kmnist', 'omniglot', 'omniglot_inverted'))
    """
    if isinstance(name, os.PathLike) or str(name).endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise FileNotFoundError(
                f"no suite file {str(path)!r}; pass the path of your TOML file, or one of "
                f"{suite_names()}"
            )
        suite = parse_suite(_text_of(path), str(path))
        if suite.name in suite_names():
            raise ValueError(
                f"{path}: suite.name: {suite.name!r} is a suite of the package, whose rows would "
                "lie in the same folder; choose another name"
            )
        return suite
    # Its tables can be changed, and the cached suite is everybody's.
    return _of_package(str(name)).model_copy(deep=True)


def _text_of(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # also UTF-16 without a byte-order mark
        raise ValueError(f"{path}: must be a TOML file in UTF-8; save it as UTF-8")
    return text


@cache
def _of_package(name: str) -> Suite:
    refuse_unknown("suite", [name], suite_names())
    return parse_suite(_text(name), f"{name}.toml")


def _text(name: str) -> str:
    return (files(__package__) / "suites" / f"{name}.toml").read_text(encoding="utf-8")


def parse_suite(text: str, where: str) -> Suite:
    """A suite from the text of its file; `where` names the file in errors.

    With the key ``extends``, the name of a suite of the package, its parts and methods are that
    suite's; a profile that extends one of that suite's has its settings, with its own on top.
    """
    tables = read_tables(text, where)
    head = tables.pop("suite", {})
    base = head.pop("extends", None)
    whole = {**head, **tables}
    whole = _extended(base, whole, where) if base else whole
    refuse_unknown("key", whole, Suite.model_fields, f"{where}: suite")
    for key in ("name", "title", "seeds"):
        if key not in whole:
            raise ValueError(f"{where}: suite.{key}: this key is missing")
    suite = validated(Suite, whole, where, "suite")
    _check_names(suite, where)
    return suite


def gathered(table: Table, own: Iterable[str]) -> Table:
    """The same with all keys but `own` under "arguments", where they may stand already."""
    own = set(own) - {"arguments"}
    rest = {k: v for k, v in table.items() if k not in own and k != "arguments"}
    kept = {k: v for k, v in table.items() if k in own}
    return {**kept, "arguments": {**rest, **table.get("arguments", {})}}


def _extended(base: str, own: Table, where: str) -> Table:
    """Parts and methods of another suite of the package, and the profiles that say they extend."""
    refuse_unknown("suite", [base], suite_names(), f"{where}: extends")
    tables = read_tables(_text(base), f"{base}.toml")
    shared = {key: tables.get(key, {}) for key in ("classifiers", "densities", "methods")}
    known = _each_on_top(tables["profiles"])
    profiles = {
        name: _on_top(profile, known, "profile", f"{where}: profiles.{name}.extends")
        for name, profile in own.get("profiles", {}).items()
    }
    return {**shared, **own, "profiles": profiles}


def _each_on_top(section: Mapping[str, Any]) -> Table:
    """The tables of a section, each with those keys of one above it that it extends."""
    found: Table = {}
    for name, table in section.items():
        found[name] = _on_top(table, found, "name above it", f"{name}.extends")
    return found


def _on_top(table: Any, known: Mapping[str, Table], what: str, where: str) -> Any:
    """The table of `known` that a table extends, if it does, with its own keys on top."""
    if not isinstance(table, Mapping) or "extends" not in table:
        return table
    if not isinstance(table["extends"], str):
        raise ValueError(f"{where}: must be a name, got {table['extends']!r}")
    refuse_unknown(what, [table["extends"]], known, where)
    own = {key: value for key, value in table.items() if key != "extends"}
    return {**known[table["extends"]], **own}


def _check_names(suite: Suite, where: str) -> None:
    for key, names in (("suite.name", [suite.name]), ("profiles", suite.profiles)):
        for name in names:
            if not is_folder_name(name):
                raise ValueError(
                    f"{where}: {key}: must be of letters, digits, '-', '_' and '.', for it names a "
                    f"folder, got {name!r}"
                )
    for name, profile in suite.profiles.items():
        place = f"{where}: profiles.{name}"
        for section in ("classifiers", "densities", "methods"):
            refuse_unknown(
                "name", getattr(profile, section), getattr(suite, section), f"{place}.{section}"
            )
        refuse_unknown("method", profile.without, suite.methods, f"{place}.without")
        if suite.crossed:
            refuse_unknown("data set", profile.datasets, suite.datasets, f"{place}.datasets")
        else:
            _check_data(suite, profile, where, place)
    if suite.crossed:
        _check_crossed(suite, where)


def _check_data(suite: Suite, profile: Profile, where: str, place: str) -> None:
    """The data set of a profile, its OOD sets and its shifted sets."""
    refuse_unknown("data set", [profile.dataset], DATASETS, f"{place}.dataset")
    at = f"{where}: ood" if profile.ood is None else f"{place}.ood"
    refuse_unknown("OOD set", suite.ood_of(profile), OOD_SETS[profile.dataset], at)
    shifted = SPECTRA_SHIFTED.get(profile.dataset, ())
    refuse_unknown("shifted set", profile.shifted, shifted, f"{place}.shifted")


def _check_crossed(suite: Suite, where: str) -> None:
    """Every classifier and method of a crossed suite, and the classifiers that are named."""
    for name, data in suite.datasets.items():
        place = f"{where}: datasets.{name}"
        refuse_unknown("classifier", data.classifiers, suite.classifiers, place)
    for name, table in suite.classifiers.items():
        own = tuple(CrossedClassifier.model_fields)
        validated(CrossedClassifier, gathered(table, own), f"{where}: classifiers.{name}", "suite")
    groups = []
    for name, table in suite.methods.items():
        place = f"{where}: methods.{name}"
        method = validated(Method, gathered(table, Method.keys(crossed=True)), place, "suite")
        if not method.group:
            raise ValueError(f"{place}: group: this key is missing")
        refuse_unknown("classifier", method.classifiers or (), suite.classifiers, place)
        groups.append(method.group)
    if groups.count("bare") != 1:
        raise ValueError(f"{where}: one method must be of the group 'bare', got {groups}")
    known = [*suite.methods, *groups]
    for number, measure in enumerate(suite.measures):
        refuse_unknown("method", [measure.against], known, f"{where}: measures[{number}].against")
