"""A suite: data, methods, seeds and profiles, read from TOML into one frozen typed model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..data.splits import DATASETS, OOD_SETS, SHIFTED_SETS
from .names import refuse_unknown
from .typed_toml import Frozen, read_tables, refuse_unknown_at, validated

__all__ = [
    "Limit",
    "Method",
    "OodNames",
    "Profile",
    "Suite",
    "checked_method",
    "chosen_ood",
    "every_ood",
    "load_suite",
    "parse_suite",
    "suite_names",
]

Table = dict[str, Any]
Name = str
Choice = Callable[[tuple[str, ...]], str]
#: OOD sets; of those in a tuple inside, the first that can be had.
OodNames = tuple[str | tuple[str, ...], ...]


class Limit(Frozen):
    """At most so many rows of each split; None takes all.

    The rows of train and validation are the first of the seed's permutation; those of test and OOD
    sets are drawn once, the same for every seed.
    """

    train: int | None = Field(default=None, ge=1)
    validation: int | None = Field(default=None, ge=1)
    test: int | None = Field(default=None, ge=1)
    ood: int | None = Field(default=None, ge=1)


class Profile(Frozen):
    """How much of everything: which data, and what differs from the suite's own settings.

    `training` overrides every ``training`` table, `classifiers`, `densities` and `methods` override
    single entries; a table is merged key by key, unless it names another class. `ood` and `seeds`
    replace those of the suite; `shifted` are labelled test sets from elsewhere.
    """

    title: str = ""
    dataset: str
    ood: OodNames | None = None
    shifted: tuple[Name, ...] = ()
    seeds: tuple[int, ...] | None = None
    limit: Limit = Limit()
    resamples: int = Field(default=100, ge=0)
    training: Table = {}
    classifiers: dict[Name, Table] = {}
    densities: dict[Name, Table] = {}
    methods: dict[Name, Table] = {}
    without: tuple[Name, ...] = ()


class Method(Frozen):
    """One method: an uncertainty classifier, and the trained parts that it is given.

    Attributes
    ----------
    title : str
        What the tables say.
    estimator : str
        Class of the method.
    arguments : table
        Its arguments. They may stand beside the other keys too, unless they share a name with one.
    classifier, density : str, table or None
        Parts that are trained once a seed and shared: a name out of the suite's ``[classifiers]``
        or ``[densities]``, or such a table.
    sees : {"answers", "pixels"}
        What a method with a classifier is given: row numbers, and a classifier that looks its
        stored answers up; or the pixels, and the trained network itself, frozen.
    statistics : {"train", "validation"}
        Rows from which DIPClassifier takes the statistics of its normaliser.
    uncertainty : str, optional
        Passed to the method's ``uncertainty`` as `kind`.
    seeds : tuple of int, optional
        Default seeds of this method, where they differ from those of the others.
    note : str
        A sentence for readers.
    """

    title: str
    estimator: str
    classifier: str | Table | None = None
    density: str | Table | None = None
    sees: Literal["answers", "pixels"] = "answers"
    statistics: Literal["train", "validation"] = "train"
    uncertainty: str | None = None
    seeds: tuple[int, ...] | None = None
    note: str = ""
    arguments: Table = {}


class Suite(Frozen):
    """Data, methods, seeds and profiles of a benchmark.

    Attributes
    ----------
    name, title : str
        Identifier and title.
    ood : tuple
        Out-of-distribution sets; of a tuple of names inside, the first whose files are there.
    validation_fraction : float
        Share of the official training set that is held out for validation, another one each seed.
    seeds : tuple of int
        Default seeds.
    profiles : dict of str to Profile
        By name.
    classifiers, densities : dict of str to table
        Parts that several methods share: ``estimator`` and its arguments; of a density also
        ``features``: "pixels", "network", or a table that names a transformer of pixels.
    methods : dict of str to table
        See `Method`; completed by a profile.
    """

    name: str
    title: str
    ood: OodNames
    validation_fraction: float = Field(gt=0, lt=1)
    seeds: tuple[int, ...]
    profiles: dict[Name, Profile]
    classifiers: dict[Name, Table] = {}
    densities: dict[Name, Table] = {}
    methods: dict[Name, Table]

    def profile(self, name: str) -> Profile:
        """The profile of this name; ValueError with the known ones if there is none."""
        refuse_unknown("profile", [name], self.profiles)
        return self.profiles[name]

    def method_names(self, profile: str) -> tuple[str, ...]:
        """Names of the methods that a profile runs, in the order of the file."""
        without = self.profile(profile).without
        return tuple(name for name in self.methods if name not in without)

    def chosen_methods(self, profile: str, wanted: Iterable[str] | None = None) -> tuple[str, ...]:
        """`wanted` once each and checked, in the order of the file; None or "all" gives all."""
        known = self.method_names(profile)
        names = list(wanted) if wanted is not None else ["all"]
        if names == ["all"]:
            return known
        if not names:
            raise ValueError(f"methods must name at least one of {list(known)}, got none")
        refuse_unknown("method", names, known)
        return tuple(name for name in known if name in names)


def suite_names() -> list[str]:
    """Names of the suites that come with the package."""
    folder = files(__package__) / "suites"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def load_suite(name: str | os.PathLike[str]) -> Suite:
    """A suite of the package by name, or one of your own by the path of its TOML file.

    Raises
    ------
    ValueError
        If there is no such suite, or the file is not a suite: an unknown key (with the one that was
        probably meant), a missing one, a value of the wrong type.
    FileNotFoundError
        If a path is given and no file is there.

    Examples
    --------
    >>> from dipedl.bench import load_suite
    >>> suite = load_suite("mnist")
    >>> suite.seeds, suite.ood
    ((10, 20, 30, 40), ('kmnist', 'omniglot', 'omniglot_inverted'))
    """
    if isinstance(name, os.PathLike) or str(name).endswith(".toml"):
        path = Path(name)
        return parse_suite(path.read_text(encoding="utf-8"), str(path))
    refuse_unknown("suite", [name], suite_names())
    resource = files(__package__) / "suites" / f"{name}.toml"
    return parse_suite(resource.read_text(encoding="utf-8"), f"{name}.toml")


def parse_suite(text: str, where: str) -> Suite:
    """A suite from the text of its file; `where` names the file in errors.

    With the key ``extends``, the name of a suite of the package, its parts and methods are that
    suite's; a profile that extends one of that suite's has its settings, with its own on top.
    """
    tables = read_tables(text, where)
    head = tables.pop("suite", {})
    base = head.pop("extends", None)
    whole = {**head, **tables}
    suite = validated(Suite, _extended(base, whole, where) if base else whole, where, "suite")
    _check_names(suite, where)
    return suite


def checked_method(table: Table, where: str) -> Method:
    """A method from its completed table; `where` names file and key in errors."""
    return validated(Method, table, where, "suite")


def chosen_ood(suite: Suite, profile: Profile, choose: Choice | None = None) -> list[str]:
    """OOD sets of a profile; `choose` takes one of a tuple of alternatives, or it is the first."""
    entries = suite.ood if profile.ood is None else profile.ood
    pick = choose or (lambda names: names[0])
    return [entry if isinstance(entry, str) else pick(entry) for entry in entries]


def every_ood(suite: Suite, profile: Profile) -> list[str]:
    """All OOD sets that a profile names, those that may stand in for others too."""
    entries = suite.ood if profile.ood is None else profile.ood
    return [name for entry in entries for name in ([entry] if isinstance(entry, str) else entry)]


def _extended(base: str, own: Table, where: str) -> Table:
    """Parts and methods of another suite of the package, and the profiles that say they extend."""
    refuse_unknown_at(f"{where}: extends", "suite", [base], suite_names())
    resource = files(__package__) / "suites" / f"{base}.toml"
    tables = read_tables(resource.read_text(encoding="utf-8"), f"{base}.toml")
    shared = {key: tables.get(key, {}) for key in ("classifiers", "densities", "methods")}
    profiles = {}
    for name, profile in own.get("profiles", {}).items():
        extends = profile.get("extends")
        if extends is not None:
            place = f"{where}: profiles.{name}.extends"
            refuse_unknown_at(place, "profile", [extends], tables["profiles"])
        rest = {key: value for key, value in profile.items() if key != "extends"}
        profiles[name] = {**tables["profiles"].get(extends, {}), **rest}
    return {**shared, **own, "profiles": profiles}


def _check_names(suite: Suite, where: str) -> None:
    for name, profile in suite.profiles.items():
        place = f"{where}: profiles.{name}"
        for section in ("classifiers", "densities", "methods"):
            refuse_unknown_at(
                f"{place}.{section}", "name", getattr(profile, section), getattr(suite, section)
            )
        refuse_unknown_at(f"{place}.without", "method", profile.without, suite.methods)
        refuse_unknown_at(f"{place}.dataset", "data set", [profile.dataset], DATASETS)
        at = f"{where}: ood" if profile.ood is None else f"{place}.ood"
        known = OOD_SETS[profile.dataset]
        refuse_unknown_at(at, "OOD set", every_ood(suite, profile), known)
        shifted = SHIFTED_SETS.get(profile.dataset, ())
        refuse_unknown_at(f"{place}.shifted", "shifted set", profile.shifted, shifted)
