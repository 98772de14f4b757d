"""What tables must know of a suite: what its rows are, the names of its classes, what is ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..data.spectra import CLASSES

__all__ = ["SuiteFacts", "data_note", "is_ours", "suite_facts"]

#: Data that the paper has no numbers of.
_OURS = ("colour-digits", "toy-spectra", "semi-real")
#: Stars of the paper's LAMOST files: with another number they are other files.
_PAPER_STARS = 95_562
_NOTES = {
    "toy-spectra": "Made-up spectra: no number here says anything of the sky.",
    "semi-real": "Semi-real spectra: eigen-spectra of real galaxies and quasars at real redshifts, "
    "model atmospheres of stars, noise of the shape of real noise, on the paper's grid. They are "
    "not the paper's LAMOST spectra; the paper has no number of them.",
}


@dataclass(frozen=True)
class SuiteFacts:
    """What tables must know of a suite.

    Attributes
    ----------
    rows : str
        What one calls its inputs.
    classes : tuple of str
        Names of the classes by number; empty where tables do not name them.
    abroad : tuple of str
        Metrics of the main tables of OOD sets.
    methods_of : str
        The suite out of whose table in the paper its methods are, if that is another one.
    titles : mapping of str to str
        Titles of sets that have another one elsewhere.
    """

    rows: str = "images"
    classes: tuple[str, ...] = ()
    abroad: tuple[str, ...] = ("auroc", "aupr", "brier_ood")
    methods_of: str = ""
    titles: Mapping[str, str] | None = None


_WITH_FPR = ("auroc", "aupr", "fpr95", "brier_ood")
_FACTS = {
    "spectra": SuiteFacts("spectra", CLASSES, _WITH_FPR, methods_of="lamost"),
    "lamost": SuiteFacts("spectra", CLASSES, _WITH_FPR, titles={"stars": "Stars"}),
}


def suite_facts(suite: str) -> SuiteFacts:
    """The facts of a suite, by its name; a suite of images if nothing is said of it."""
    return _FACTS.get(suite, SuiteFacts())


def is_ours(row: Mapping[str, Any]) -> bool:
    """Whether a row is of data that the paper has no numbers of, whatever its suite is called."""
    stars = row.get("n", {}).get("ood/stars", _PAPER_STARS)
    others = row["suite"] == "lamost" and stars != _PAPER_STARS
    return others or _data(row).startswith(_OURS)


def data_note(row: Mapping[str, Any]) -> str:
    """A sentence on what the data of a row are, where a reader could take them for others."""
    return next((note for name, note in _NOTES.items() if _data(row).startswith(name)), "")


def _data(row: Mapping[str, Any]) -> str:
    found = row.get("config", {}).get("data", {}).get("dataset")
    # rows of the suite have nothing else, also where their configuration is not at hand
    return str(found or ("semi-real" if row["suite"] == "spectra" else ""))
