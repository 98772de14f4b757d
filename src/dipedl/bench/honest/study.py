"""The study's file: data sets, classifiers, methods and profiles as one frozen typed model."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from ..spec.names import refuse_unknown
from ..spec.suite import Limit
from ..spec.typed_toml import Frozen, read_tables, refuse_unknown_at, validated

__all__ = [
    "GROUPS",
    "NAMES",
    "ClassifierEntry",
    "DataEntry",
    "MethodEntry",
    "Study",
    "StudyProfile",
    "is_study",
    "load_study",
    "parse_study",
]

Table = dict[str, Any]
#: Fewer leave no resample in the tails of a 95 % interval.
_FEWEST_RESAMPLES = 40
#: Studies that come with the package.
NAMES = ("honest",)
#: Groups of methods, in the order of the tables.
GROUPS = ("bare", "ours", "baseline", "ablation", "candidate")


class DataEntry(Frozen):
    """A data set with its foreign sets and its classifiers.

    Attributes
    ----------
    title : str
        What the tables say.
    loader : str
        A loader of `dipedl.datasets`, or a data set of scikit-learn such as ``sklearn:wine``.
    arguments : table
        Arguments of the loader; ``ood`` and the seed are added where it takes them.
    leave_out : int, optional
        A class that is taken out and becomes the foreign set of its name; data sets of scikit-learn
        need one.
    ood : tuple of str
        Foreign sets.
    classifiers : tuple of str
        Names of classifiers.
    validation : float
        Share of the training rows that a network is not trained on.
    limit : Limit
        Most rows of each split.
    seeds : tuple of int, optional
        Default: those of the study.
    designed_on : bool
        Whether the default was designed with a look at its foreign sets.
    resamples : int
        Bootstrap resamples of the test rows behind each interval, 40 or more; 0 for none.
    """

    title: str
    loader: str
    arguments: Table = {}
    leave_out: int | None = Field(default=None, ge=0)
    ood: tuple[str, ...]
    classifiers: tuple[str, ...]
    validation: float = Field(default=0.2, gt=0, lt=1)
    limit: Limit = Limit()
    seeds: tuple[int, ...] | None = None
    designed_on: bool = False
    resamples: int = Field(default=0, ge=0)

    @field_validator("resamples")
    @classmethod
    def _enough(cls, resamples: int) -> int:
        if 0 < resamples < _FEWEST_RESAMPLES:
            raise ValueError(f"must be 0 or at least {_FEWEST_RESAMPLES}")
        return resamples


class ClassifierEntry(Frozen):
    """A classifier: its class and arguments.

    Attributes
    ----------
    frozen : bool
        A network: trained on the training rows alone and kept on disk; methods get it frozen, its
        features for the density, and the validation rows to calibrate with. Otherwise methods get
        it unfitted, with training and validation rows together.
    standardise : bool
        Whether it sees standardised inputs.
    limit : Limit
        Most rows of each split, where the data set allows more.
    """

    title: str
    estimator: str
    arguments: Table = {}
    frozen: bool = False
    standardise: bool = False
    limit: Limit = Limit()


class MethodEntry(Frozen):
    """A method, which is given each of the classifiers.

    Attributes
    ----------
    group : str
        "bare": what all are compared with. "ours", "baseline", "ablation", or "candidate": a single
        density that a selection could have chosen.
    preset : {"", "paper"}
        "paper" makes it with ``DIPClassifier.paper``.
    kinds : tuple of str
        Kinds of uncertainty; the first ranks, each other one becomes a row ``method:kind``.
    answers : {"predict_proba", "bare_proba"}
        Where its probabilities come from; with "bare_proba" it ranks by one minus the largest.
    calibrate : bool
        Whether it is given the validation rows to calibrate on, where it takes some and the
        classifier is frozen.
    trains : bool
        Whether it trains the classifier anew, as an ensemble does, also where that is frozen.
    may_refuse : bool
        Whether a ValueError or a TypeError is an answer, kept as a row.
    classifiers : tuple of str, optional
        Run with these only.
    """

    title: str
    group: Literal[GROUPS]  # type: ignore[valid-type]
    estimator: str
    arguments: Table = {}
    preset: Literal["", "paper"] = ""
    kinds: tuple[str, ...] = ()
    answers: Literal["predict_proba", "bare_proba"] = "predict_proba"
    calibrate: bool = True
    trains: bool = False
    may_refuse: bool = False
    classifiers: tuple[str, ...] | None = None
    note: str = ""


class StudyProfile(Frozen):
    """Which data sets and methods, and how much of them; `training` overrides all trainings."""

    title: str = ""
    datasets: tuple[str, ...]
    seeds: tuple[int, ...] | None = None
    limit: Limit = Limit()
    without: tuple[str, ...] = ()
    classifiers: dict[str, Table] = {}


class Study(Frozen):
    """Data sets, classifiers, methods, seeds and profiles of a study."""

    name: str
    title: str
    seeds: tuple[int, ...]
    profiles: dict[str, StudyProfile]
    datasets: dict[str, DataEntry]
    classifiers: dict[str, ClassifierEntry]
    methods: dict[str, MethodEntry]

    @property
    def bare(self) -> str:
        """Name of the method that all are compared with."""
        return next(name for name, entry in self.methods.items() if entry.group == "bare")

    def profile(self, name: str) -> StudyProfile:
        """The profile of this name; ValueError with the known ones if there is none."""
        refuse_unknown("profile", [name], self.profiles)
        return self.profiles[name]

    def chosen_methods(self, profile: str, wanted: Iterable[str] | None) -> tuple[str, ...]:
        """`wanted`, checked, in the order of the file; None gives all of the profile."""
        without = self.profile(profile).without
        return _chosen("method", wanted, [name for name in self.methods if name not in without])

    def chosen_datasets(self, profile: str, wanted: Iterable[str] | None) -> tuple[str, ...]:
        """`wanted`, checked, in the order of the profile; None gives all of the profile."""
        return _chosen("data set", wanted, self.profile(profile).datasets)


def is_study(name: str | os.PathLike[str]) -> bool:
    """Whether a name, or the TOML file at a path, is a study and not a suite."""
    if str(name) in NAMES:
        return True
    path = Path(name)
    return path.suffix == ".toml" and path.is_file() and "[study]" in path.read_text("utf-8")


def load_study(name: str | os.PathLike[str]) -> Study:
    """The study of the package, or one of your own by the path of its TOML file.

    Raises
    ------
    ValueError
        If there is no such study, or the file is not one: an unknown key or name (with the one that
        was probably meant), a missing one, a value of the wrong type.
    FileNotFoundError
        If a path is given and no file is there.

    Examples
    --------
    >>> from dipedl.bench.honest.study import load_study
    >>> load_study("honest").seeds
    (10, 20, 30)
    """
    if isinstance(name, os.PathLike) or str(name).endswith(".toml"):
        path = Path(name)
        return parse_study(path.read_text(encoding="utf-8"), str(path))
    refuse_unknown("study", [name], NAMES)
    resource = files(__package__) / f"{name}.toml"
    return parse_study(resource.read_text(encoding="utf-8"), f"{name}.toml")


def parse_study(text: str, where: str) -> Study:
    """A study from the text of its file; `where` names the file in errors."""
    tables = read_tables(text, where)
    for section, model in (("classifiers", ClassifierEntry), ("methods", MethodEntry)):
        entries = tables.get(section, {})
        tables[section] = {name: _gathered(entry, model) for name, entry in entries.items()}
    head = tables.pop("study", {})
    study = validated(Study, {**head, **tables}, where, "study")
    _check_names(study, where)
    return study


def _gathered(table: Table, model: type[BaseModel]) -> Table:
    """The same with all keys but those of `model` under "arguments"."""
    own = {key: value for key, value in table.items() if key in model.model_fields}
    rest = {key: value for key, value in table.items() if key not in model.model_fields}
    return {**own, "arguments": {**rest, **table.get("arguments", {})}}


def _check_names(study: Study, where: str) -> None:
    for name, data in study.datasets.items():
        refuse_unknown_at(
            f"{where}: datasets.{name}", "classifier", data.classifiers, study.classifiers
        )
    for name, method in study.methods.items():
        only = method.classifiers or ()
        refuse_unknown_at(f"{where}: methods.{name}", "classifier", only, study.classifiers)
    for name, profile in study.profiles.items():
        place = f"{where}: profiles.{name}"
        refuse_unknown_at(place, "data set", profile.datasets, study.datasets)
        refuse_unknown_at(place, "method", profile.without, study.methods)
        refuse_unknown_at(place, "classifier", profile.classifiers, study.classifiers)
    groups = [method.group for method in study.methods.values()]
    if groups.count("bare") != 1:
        raise ValueError(f"{where}: one method must be of the group 'bare', got {groups}")


def _chosen(what: str, wanted: Iterable[str] | None, known: Iterable[str]) -> tuple[str, ...]:
    known = tuple(known)
    names = known if wanted is None else tuple(wanted)
    if not names:
        raise ValueError(f"at least one {what} must be named, of {list(known)}; got none")
    refuse_unknown(what, names, known)
    return tuple(name for name in known if name in names)
