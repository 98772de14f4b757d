"""Captions of a suite: what tables and pages call its data, and what they say of it.

Captions are TOML in ``suites/captions``, apart from the suite's own file: no sentence is part of a
configuration, so that a better sentence changes no hash of a published row.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from .toml import Frozen, read_model, read_tables

_FOLDER = files(__package__) / "suites" / "captions"
#: Captions that hold for every suite, unless its own say otherwise.
_BASE = "every_suite"
#: Stands for every metric of a method that has no sentence of its own.
_ANY = "*"


class Released(Frozen):
    """A training of the released code: multiplications per image of a network, epochs, members."""

    network: str
    multiplications: float
    epochs: int
    members: int = 1


class Collapse(Frozen):
    """Weakness of a method as published, and what the healthy configuration does instead."""

    cause: str
    cure: str


class Section(Frozen):
    """A section of a page of results: heading, prose, and what is computed from the rows."""

    kind: Literal[
        "text",
        "summary",
        "findings",
        "ablation",
        "gamma",
        "sigma",
        "fusion",
        "histograms",
        "collapse",
        "time",
        "shortfalls",
        "measures",
        "intervals",
        "compared",
    ]
    title: str
    text: str = ""
    #: Whose rows; () for those of the page.
    profiles: tuple[str, ...] = ()
    #: Metrics of a summary, such as "auroc/kmnist".
    columns: tuple[str, ...] = ()
    #: Methods of a summary, in order; () for all.
    methods: tuple[str, ...] = ()


class Page(Frozen):
    """The page of results of a suite: title, introduction, profiles that count, sections.

    Prose is a template of Jinja: ``m("gpu ddu auroc/cifar100", 2)`` is a mean of the published rows
    with two decimals, with ``of="paper"`` the paper's number in its place, with ``of="difference"``
    how far they are apart, with ``less=CELL`` the difference to another cell and with ``over=CELL``
    by how many percent it is above that; ``value("gpu ddu nll")`` is the number;
    ``seconds("gpu")`` are the wall seconds of training DIP-EDL's network, by seed,
    ``of("cpu default auroc")`` the Series over all lines of a crossed suite,
    ``with_standard_z("brier_id")`` a metric of DIP-EDL with another scale of z, ``moved.auroc`` by
    how much AUROCs of rows trained again moved at most, ``again`` the titles of their methods,
    ``apart()`` how far AUROCs of two seeds and of two kinds of CPU are apart,
    ``receipt(NAME)`` a measurement of ``results``.
    """

    title: str
    text: str
    profiles: tuple[str, ...]
    sections: tuple[Section, ...]


class Captions(Frozen):
    """Texts of tables and pages on a suite."""

    #: What its inputs are called.
    rows: str
    #: By number; empty where tables do not name them.
    classes: tuple[str, ...] = ()
    #: Metrics of the main tables of OOD sets.
    ood_metrics: tuple[str, ...]
    #: The suite whose table in the paper names the methods, if that is another one.
    methods_of: str = ""
    #: Titles of OOD sets and of shifted sets.
    sets: dict[str, str]
    #: A limit of what the OOD sets of the suite say.
    limit: str
    #: The data set of rows that do not name theirs.
    dataset: str = ""
    #: Data that the paper has no numbers of: how its name begins, and what tables say of it.
    own_data: dict[str, str]
    #: Profiles that only show that a suite runs; no number of the paper stands beside theirs.
    trial_profiles: tuple[str, ...] = ()
    #: Rows of the paper's splits; rows of other sizes are of other data.
    paper_rows: dict[str, int] = {}
    #: Titles of methods in place of those that rows carry: profile, method.
    titles: dict[str, dict[str, str]] = {}
    #: Why a number is not the paper's: profiles ("cpu gpu"), method, metric (or "*"), one sentence.
    differences: dict[str, dict[str, dict[str, str]]] = {}
    #: The released training of a method of the paper.
    released: dict[str, Released] = {}
    #: Why a method of the paper predicts a single class.
    collapse: dict[str, Collapse] = {}
    page: Page | None = None

    def why(self, profile: str, method: str, metric: str) -> str | None:
        """The sentence that explains a difference from the paper, or None."""
        for profiles, methods in self.differences.items():
            if profile in profiles.split() and method in methods:
                return methods[method].get(metric, methods[method].get(_ANY))
        return None


@cache
def captions_of(suite: str) -> Captions:
    """Captions of a suite by its name; those of every suite where it has none of its own."""
    tables = _tables(suite if (_FOLDER / f"{suite}.toml").is_file() else _BASE)
    whole = {**_unwrap(tables), "page": tables.get("page")}
    return read_model(Captions, whole, f"captions of {suite}", "captions")


def is_beside_paper(row: Mapping[str, Any]) -> bool:
    """Return whether numbers of the paper may stand beside those of a row.

    They may not where the data are others than the paper's, whatever the suite, nor beside a
    profile that is too short to say anything.
    """
    captions = captions_of(row["suite"])
    if row.get("profile") in captions.trial_profiles:
        return False
    sizes = row.get("n", {})
    other = any(sizes.get(split, n) != n for split, n in captions.paper_rows.items())
    return not (other or _dataset(row).startswith(tuple(captions.own_data)))


def data_note(row: Mapping[str, Any]) -> str:
    """A sentence on what the data of a row are, where a reader could take them for others."""
    notes = captions_of(row["suite"]).own_data.items()
    return next((note for name, note in notes if _dataset(row).startswith(name)), "")


def _dataset(row: Mapping[str, Any]) -> str:
    name = row.get("config", {}).get("data", {}).get("dataset")
    return str(name or captions_of(row["suite"]).dataset)


def _tables(suite: str) -> dict[str, Any]:
    """Tables of a suite on top of those that it extends: another suite's, or every suite's."""
    text = (_FOLDER / f"{suite}.toml").read_text(encoding="utf-8")
    own = read_tables(text, f"captions of {suite}")
    base = own.pop("extends", None if suite == _BASE else _BASE)
    below = {} if base is None else {**_tables(base), "page": None}
    return {**below, **own, "sets": {**below.get("sets", {}), **own.get("sets", {})}}


def _unwrap(value: Any) -> Any:
    """Sentences without the line breaks of their file."""
    if isinstance(value, dict):
        return {key: _unwrap(item) for key, item in value.items()}
    return " ".join(value.split()) if isinstance(value, str) else value
