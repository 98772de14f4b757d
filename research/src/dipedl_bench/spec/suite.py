"""A suite: data, methods, seeds and profiles, read from TOML into one frozen typed model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from ..datasets.own import is_own
from ..datasets.spectra_splits import SPECTRA
from ..datasets.splits import OOD_SETS, ood_sets, shifted_sets
from ..names import check_folder_name, refuse_unknown
from .toml import Frozen, read_model, read_tables

__all__ = [
    "Data",
    "MeasureEntry",
    "Method",
    "Profile",
    "Suite",
    "load_suite",
    "parse_suite",
    "suite_names",
]

Table = dict[str, Any]
Name = str
#: Splits that a limit may name.
Split = Literal["train", "validation", "test", "ood"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test", "ood")
#: At most so many rows of a split. Those of train and validation are the first of the seed's
#: permutation; those of test and OOD sets are drawn once, the same for every seed.
Limits = dict[Split, Annotated[int, Field(ge=1)]]
#: Groups of crossed methods, in the order of the tables.
GROUPS = ("bare", "ours", "baseline", "ablation", "candidate")
#: Fewer leave no resample in the tails of a 95 % interval.
_FEWEST_RESAMPLES = 40


class Profile(Frozen):
    """Size of a run: its data, and what differs from the suite's own settings.

    A crossed suite names the data sets that are run in `datasets`, any other its one in `dataset`,
    which may be the path of one's own: a ``.npz`` file, or a folder with a "/".
    `training` and `backbone` override every table of that name, `classifiers`, `densities` and
    `methods` single entries; a table is merged key by key, unless it names another class. `ood` and
    `seeds` replace those of the suite; `shifted` are labelled test sets from elsewhere.
    `calibration` says which rows methods are calibrated on: a fifth of the training rows, or, for
    networks that have seen all of these, half of the test rows.
    """

    title: str = ""
    dataset: str = ""
    datasets: tuple[Name, ...] = ()
    ood: tuple[Name, ...] | None = None
    shifted: tuple[Name, ...] = ()
    calibration: Literal["train", "test"] = "train"
    seeds: tuple[int, ...] | None = None
    limit: Limits = {}
    resamples: int = Field(default=100, ge=0)
    training: Table = {}
    backbone: Table = {}
    classifiers: dict[Name, Table] = {}
    densities: dict[Name, Table] = {}
    methods: dict[Name, Table] = {}
    without: tuple[Name, ...] = ()


class PartEntry(Frozen):
    """A classifier or a density: its class, and its arguments, which are all keys not below.

    A `frozen` classifier of a crossed suite is a network, trained on the training rows alone and
    its weights stored; methods get it frozen, its features for the density, and the validation rows
    to calibrate with. Any other they get unfitted, with training and validation rows together. A
    density is trained on `features`: "pixels", "network", or a table that names a transformer.
    """

    estimator: str
    arguments: Table = {}
    title: str = ""
    features: str | Table = "pixels"
    frozen: bool = False
    standardise: bool = False
    limit: Limits = {}


class Method(Frozen):
    """A method: its class, its arguments, and how it is given data and trained parts.

    All keys that are not below are arguments of its class; in `arguments` stand those that share a
    name with a key.
    """

    title: str
    estimator: str
    arguments: Table = {}
    #: Kinds of its uncertainty; the first ranks, each other one of a crossed suite becomes a row
    #: ``method:kind``.
    kinds: tuple[str, ...] = ()

    # ---- in a suite with one data set a profile: the parts that the method is given
    #: Parts that are trained once a seed and shared: a name out of the suite's ``[classifiers]``
    #: or ``[densities]``, or such a table.
    classifier: str | Table | None = None
    density: str | Table | None = None
    #: What a method with a classifier is given: row numbers, and a classifier that looks its stored
    #: predictions up; or the pixels, and the trained network itself, frozen.
    sees: Literal["predictions", "pixels"] = "predictions"
    #: Rows from which DIPClassifier takes the statistics of its normaliser.
    statistics: Literal["train", "validation"] = "train"
    #: Default seeds of this method, where they differ from those of the others.
    seeds: tuple[int, ...] | None = None

    # ---- in a crossed suite: the method is given each of the classifiers
    #: "bare": what all are compared with. "candidate": a single density that a selection could have
    #: chosen.
    group: Literal[("", *GROUPS)] = ""  # type: ignore[valid-type]
    #: "paper" makes it with ``DIPClassifier.paper``.
    preset: Literal["", "paper"] = ""
    #: Where its probabilities come from; with "classifier_proba" one minus the largest ranks.
    answers: Literal["predict_proba", "classifier_proba"] = "predict_proba"
    #: Whether it is given the validation rows to calibrate on, where it takes some and the
    #: classifier is frozen.
    calibrate: bool = True
    #: Whether it trains the classifier anew, as an ensemble does, also where that is frozen; or a
    #: network of its own, with backbone and training of the classifier.
    trains: bool = False
    #: Share of the rows that the classifier is not fitted on: the method is given these alone, and
    #: the classifier frozen.
    held_out: float | None = Field(default=None, gt=0, lt=1)
    #: Whether a ValueError or a TypeError is an answer, kept as a row.
    may_refuse: bool = False
    #: Run with these only.
    classifiers: tuple[str, ...] | None = None


class Data(Frozen):
    """A data set of a suite that crosses several with classifiers."""

    title: str
    #: A loader of `dipedl.datasets`, a data set of scikit-learn such as ``sklearn:wine``, or a path
    #: of one's own.
    loader: str
    #: Of the loader; ``ood`` and the seed are added where it takes them.
    arguments: Table = {}
    #: A class that is taken out and becomes the OOD set of its name; data sets of scikit-learn need
    #: one.
    leave_out: int | None = Field(default=None, ge=0)
    ood: tuple[str, ...]
    classifiers: tuple[str, ...]
    limit: Limits = {}
    #: Whether the default was designed with a look at its OOD sets, or fixed before any was scored.
    looked_at: Literal["by design", "later", "never"] = "later"
    #: Whether inputs get mean 0 and standard deviation 1 over the training rows, for all methods.
    standardise: bool = False
    #: Share of the training rows of each class that is kept; a row then weighs one over it.
    selected: tuple[float, ...] = ()
    #: Bootstrap resamples of the test rows behind each interval; 0 for none.
    resamples: int = Field(default=0, ge=0)

    @field_validator("resamples")
    @classmethod
    def _enough(cls, resamples: int) -> int:
        if 0 < resamples < _FEWEST_RESAMPLES:
            raise ValueError(f"must be 0 or at least {_FEWEST_RESAMPLES}")
        return resamples


class MeasureEntry(Frozen):
    """One statement on the method of the group "ours", evaluated by `tables.measures`."""

    statement: str
    #: With "value": another method that the statement is on.
    method: Name = ""
    #: "compare": a metric with that of another method, where both have one. "value": the metric
    #: itself. "regret": AUROC of the best candidate, chosen with OOD labels, less ours.
    #: "baselines": mean metric with that of every baseline. "earlier": mean metric by classifier,
    #: less that of the table `earlier`.
    what: Literal["compare", "value", "regret", "baselines", "earlier"]
    #: One of an OOD set, such as "auroc", is looked at for every OOD set.
    metric: str = "auroc"
    against: str = "bare"
    #: Another method, for the number ``{beside}``.
    beside: str = ""
    #: Ours less theirs, or ours over theirs.
    by: Literal["difference", "share"] = "difference"
    #: Bounds of what is good.
    least: float | None = None
    most: float | None = None
    #: Met if this share of the lines is good, or if their mean or median is; the mean of shares is
    #: mean over mean.
    judged: Literal["each", "mean", "median"] = "each"
    good_share: float = Field(default=1.0, gt=0, le=1)
    #: Only lines with timid classifiers, which temperature scaling sharpens to T < 0.8, or those
    #: with all others; or only data sets that an earlier default was measured on.
    lines: Literal["all", "timid", "others", "earlier"] = "all"
    #: Mean metric of an earlier default, by classifier.
    earlier: dict[Name, float] = {}
    #: Only this data set, only this OOD set.
    dataset: str = ""
    ood: str = ""
    #: What is said of all numbers, by ``{min}``, ``{max}``, ``{mean}``, ``{median}``, and of a
    #: comparison ``{ours}``, ``{theirs}`` (means), ``{ratio}`` (ours over theirs) and ``{beside}``
    #: (ours over that method's); and of one, by ``{value}``.
    found: str
    miss: str = "{value:+.3f}"

    def good(self, value: float) -> bool:
        """Return whether a number is within the bounds."""
        low = self.least is None or value >= self.least
        return low and (self.most is None or value <= self.most)


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
    #: OOD sets that differ from the known classes in meaning alone, and those that differ in plain
    #: ways too, as OpenOOD has them; tables show means over each. No part of a configuration.
    near: tuple[Name, ...] = ()
    far: tuple[Name, ...] = ()
    seeds: tuple[int, ...] = Field(min_length=1)
    #: Suite whose published predictions `score` takes where this one has none.
    predictions: str = ""
    profiles: dict[Name, Profile]
    datasets: dict[Name, Data] = {}
    #: See `PartEntry`. Methods of a crossed suite are given every classifier of a data set; in
    #: another suite they are parts that several methods share.
    classifiers: dict[Name, Table] = {}
    densities: dict[Name, Table] = {}
    #: See `Method`; completed by a profile.
    methods: dict[Name, Table]
    #: Run these methods alone; () for all.
    only: tuple[Name, ...] = ()
    #: What a crossed suite is to show.
    measures: tuple[MeasureEntry, ...] = ()

    @field_validator("profiles", "datasets", "classifiers", "densities", "methods", mode="before")
    @classmethod
    def _extend_tables(cls, section: Any) -> Any:
        return _extend_each(section) if isinstance(section, Mapping) else section

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
        only = self.only or self.methods
        return tuple(name for name in self.methods if name in only and name not in without)

    def choose_methods(self, profile: str, only: Iterable[str] | None = None) -> tuple[str, ...]:
        """`only` once each and checked, in the order of the file; None or "all" gives all."""
        return choose("method", only, self.method_names(profile))


def choose(what: str, only: Iterable[str] | None, known: Iterable[str]) -> tuple[str, ...]:
    """`only` once each and checked, in the order of `known`; None or "all" gives all."""
    known = tuple(known)
    names = list(only) if only is not None else ["all"]
    if names == ["all"]:
        return known
    if not names:
        raise ValueError(f"{what}s must name at least one of {list(known)}, got none")
    refuse_unknown(what, names, known)
    return tuple(name for name in known if name in names)


_FOLDER = files(__package__) / "suites"


def suite_names() -> list[str]:
    """Names of the suites that come with the package."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


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
        suite = parse_suite(_read_text(path), str(path))
        if suite.name in suite_names():
            raise ValueError(
                f"{path}: suite.name: {suite.name!r} is a suite of the package, whose rows would "
                "lie in the same folder; choose another name"
            )
        return suite
    # Its tables can be changed, and the cached suite is everybody's.
    return _of_package(str(name)).model_copy(deep=True)


def _read_text(path: Path) -> str:
    """Return the text of a suite's file; ValueError if it is not in UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: must be a TOML file in UTF-8; save it as UTF-8") from error


@cache
def _of_package(name: str) -> Suite:
    refuse_unknown("suite", [name], suite_names())
    return parse_suite((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")


def parse_suite(text: str, where: str) -> Suite:
    """A suite from the text of its file; `where` names the file in errors.

    With the key ``extends``, the name of a suite of the package or the path of a TOML file, from
    the folder of `where`, it has the OOD sets and seeds of that suite unless it names its own, and
    its data sets, parts and methods, with its own beside them, which replace those of the same
    name; a profile that extends one of that suite's has its settings, with its own on top.
    """
    tables = _complete(read_tables(text, where), where)
    suite = read_model(Suite, {**tables.pop("suite", {}), **tables}, where, "suite")
    _check_names(suite, where)
    return suite


def _complete(tables: Table, where: str, above: tuple[str, ...] = ()) -> Table:
    """Return the tables of a file on top of those of the suite that it extends.

    `above` holds names and paths of the suites that led here.
    """
    head = tables.get("suite", {})
    if not (base := head.get("extends")):
        return tables
    is_file, path = str(base).endswith(".toml"), Path(where).parent / str(base)
    above = (*above, str(head.get("name")), os.path.abspath(where))
    if (os.path.abspath(path) if is_file else base) in above:
        raise ValueError(
            f"{where}: extends: suite {head.get('name')!r} extends itself, by {base!r}; extend "
            f"another suite, such as one of {suite_names()}"
        )
    if not is_file:
        refuse_unknown("suite", [base], suite_names(), f"{where}: extends")
        text = (_FOLDER / f"{base}.toml").read_text(encoding="utf-8")
        other = read_tables(text, f"{base}.toml")
    elif path.is_file():
        other = _complete(read_tables(_read_text(path), str(path)), str(path), above)
    else:
        raise FileNotFoundError(
            f"{where}: extends: no suite file {str(path)!r}; name a file, as seen from the folder "
            f"of this one, or one of {suite_names()}"
        )
    shared = {
        key: _extend_each(tables.get(key, {}), _extend_each(other.get(key, {})), f"{where}: {key}.")
        for key in ("profiles", "datasets", "classifiers", "densities", "methods")
    }
    own = tables.get("profiles", {})
    shared["profiles"] = {name: shared["profiles"][name] for name in own}
    theirs = other.get("suite", {})
    inherited = {key: theirs[key] for key in ("ood", "near", "far", "seeds") if key in theirs}
    own_head = {key: value for key, value in head.items() if key != "extends"}
    return {**tables, **shared, "suite": inherited | own_head}


def gather_arguments(table: Table, entry: type[Frozen]) -> Table:
    """Return the table of an entry with all keys that are not its own under "arguments"."""
    own = {k: v for k, v in table.items() if k in entry.model_fields}
    rest = {k: v for k, v in table.items() if k not in entry.model_fields}
    return {**own, "arguments": {**rest, **table.get("arguments", {})}}


def _extend_each(
    section: Mapping[str, Any], above: Mapping[str, Any] | None = None, place: str = ""
) -> Table:
    """The tables `above` and of a section, each with those keys of one above that it extends."""
    result: Table = dict(above or {})
    for name, table in section.items():
        if isinstance(table, Mapping) and "extends" in table:
            base = table["extends"]
            refuse_unknown("name above it", [base], result, f"{place}{name}.extends")
            table = {**result[base], **{k: v for k, v in table.items() if k != "extends"}}
        result[name] = table
    return result


def _check_names(suite: Suite, where: str) -> None:
    """Every name that a suite uses: of folders, data sets, classifiers, methods."""
    check_folder_name(f"{where}: suite.name:", suite.name)
    for section in ("profiles", "datasets", "classifiers", "densities", "methods"):
        for name in getattr(suite, section):
            check_folder_name(f"{where}: {section}: each name", name)
    _check_near_and_far(suite, where)
    stand_in = [suite.predictions] if suite.predictions else []
    refuse_unknown("suite", stand_in, suite_names(), f"{where}: predictions")
    refuse_unknown("method", suite.only, suite.methods, f"{where}: only")
    for name, profile in suite.profiles.items():
        place = f"{where}: profiles.{name}"
        for section in ("classifiers", "densities", "methods"):
            refuse_unknown(
                "name", getattr(profile, section), getattr(suite, section), f"{place}.{section}"
            )
        refuse_unknown("method", profile.without, suite.methods, f"{place}.without")
        if suite.crossed:
            refuse_unknown("data set", profile.datasets, suite.datasets, f"{place}.datasets")
            continue
        if not is_own(profile.dataset):
            known = (*OOD_SETS, "FILE.npz", "FOLDER/")
            refuse_unknown("data set", [profile.dataset], known, f"{place}.dataset")
        at = f"{where}: ood" if profile.ood is None else f"{place}.ood"
        refuse_unknown("OOD set", suite.ood_of(profile), ood_sets(profile.dataset), at)
        if profile.calibration == "test" and profile.dataset in SPECTRA:
            raise ValueError(
                f"{place}.calibration: spectra have no official test set to halve; leave it out"
            )
        known_shifts = shifted_sets(profile.dataset)
        refuse_unknown("shifted set", profile.shifted, known_shifts, f"{place}.shifted")
    if not suite.crossed:
        return
    for name, data in suite.datasets.items():
        place = f"{where}: datasets.{name}"
        refuse_unknown("classifier", data.classifiers, suite.classifiers, place)
    groups = []
    for name, table in suite.methods.items():
        place = f"{where}: methods.{name}"
        method = read_model(Method, gather_arguments(table, Method), place, "suite")
        if not method.group:
            raise ValueError(f"{place}: group: this key is missing")
        if method.classifier or method.density:
            raise ValueError(
                f"{place}: a crossed suite gives each method the classifiers of its data sets; "
                "write arguments.density for an argument"
            )
        refuse_unknown("classifier", method.classifiers or (), suite.classifiers, place)
        groups.append(method.group)
    if groups.count("bare") != 1:
        raise ValueError(f"{where}: one method must be of the group 'bare', got {groups}")
    named = [*suite.methods, *groups]
    for number, measure in enumerate(suite.measures):
        refuse_unknown("method", [measure.against], named, f"{where}: measures[{number}].against")


def _check_near_and_far(suite: Suite, where: str) -> None:
    of_suite = [suite.ood, *(profile.ood or () for profile in suite.profiles.values())]
    known = dict.fromkeys(name for sets in (*of_suite, *OOD_SETS.values()) for name in sets)
    for key in ("near", "far"):
        refuse_unknown("OOD set", getattr(suite, key), known, f"{where}: {key}")
    if both := sorted(set(suite.near) & set(suite.far)):
        raise ValueError(f"{where}: far: an OOD set must be near or far, got {both} as both")
