"""The sections of a report on one data set: every table and figure, from what a run has kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dipedl.writing.cells import error_text

from ..results.parts import Parts
from ..results.store import Arrays, Store
from ..spec.captions import captions_of
from ..spec.entries import Profile
from ..spec.suite import Suite, load_suite
from ..studies.ablation import CONFIGURATIONS
from ..studies.sweeps import ablation_lines, float32_lines, gamma_lines, sigma_lines, stored_parts
from ..studies.toys import load_toys
from ..tables.formatting import differences, metric_title, set_heading, set_title
from ..tables.headline import headline, is_higher_better, trivial_sentences
from ..tables.provenance import receipts
from ..tables.table import BenchTable, Line, bench_table, latest, paper_suite
from ..tables.trivial import with_trivial
from .figures import gamma_panels, histogram_panels, set_legend, sigma_panels, toy_panel
from .histograms import arrays_from_parts
from .spectra_section import SpectraSection, shows_spectra, spectra_section

#: Whose ablation, sweeps and histograms are shown.
_METHOD = "dip-edl"
#: Sections of the report, and their titles; "spectra" where rows are spectra.
_SECTIONS = {
    "short": "In short",
    "protocol": "Protocol",
    "table": "Methods",
    "differences": "How the protocol differs",
    "spectra": "Spectra",
    "ablation": "Component ablation",
    "gamma": "Scale of the evidence",
    "sigma": "A corrupted density",
    "histograms": "Confidence and vacuity",
    "toy": "Vacuity under interpolation",
    "moons": "Two moons",
    "costs": "What it costs",
    "limits": "Limits",
    "again": "Get these numbers again",
}
_BESIDE_PAPER = {
    "table": "Methods, ours and the paper's",
    "differences": "Where ours differs from the paper",
}


@dataclass(frozen=True)
class View:
    """A table of the page: titles of columns, and lines in groups."""

    heading: str
    titles: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Line, ...]], ...]
    best: Mapping[str, float]

    def is_best(self, line: Line, name: str) -> bool:
        """Return whether a cell is the best of its column, as printed, without trivial ones."""
        cell = line.cells.get(name)
        judged = line.cost is not None and cell is not None and name in self.best
        return bool(judged and cell and round(cell.mean, 4) == self.best[name])


def sections(values: Mapping[str, Any]) -> dict[str, str]:
    """Titles of the sections by name."""
    titles = _SECTIONS | (_BESIDE_PAPER if values["table"].beside_paper else {})
    if not values["spectra"] and not values["no_spectra"]:
        del titles["spectra"]
    return titles


def values(store: Store) -> dict[str, Any]:
    """Content of the templates of the sections.

    Experiments that were not run, and images or spectra that are not there, are left out, and the
    page says so.
    """
    rows = latest(store.rows())
    table, no_trivial = with_trivial(bench_table(rows), store)
    parts, no_sweeps = _parts(store, rows)
    runs = _runs(store, rows, table, parts)
    return {
        "table": table,
        "note": table.note,
        "seeds": sorted({row["seed"] for row in rows}),
        "headline": headline(table),
        "trivial": trivial_sentences(table),
        "no_trivial": no_trivial,
        "views": [_view(table, split) for split in table.columns()],
        "differences": list(differences(table)),
        "entries": set_legend(store.suite, table.ood),
        "sweeps": _sweeps(parts, table, paper_suite(rows)) if parts else None,
        "no_sweeps": no_sweeps,
        "histograms": list(histogram_panels(runs)),
        "no_histograms": [ln.title for ln in table.lines if ln.paper and ln.title not in runs],
        "toys": _toys(store),
        "receipts": receipts(rows),
        "sizes": _sizes(table),
        **_about(store, table),
        **_spectra(store, rows),
    }


def _parts(store: Store, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Parts], str]:
    """Return the parts of the sweeps, and why they are not there."""
    if all(row["method"] != _METHOD for row in rows):
        return [], "DIP-EDL was not run"
    try:
        return list(stored_parts(store, _METHOD).values()), ""
    except FileNotFoundError as error:
        return [], error_text(error)


def _sizes(table: BenchTable) -> dict[str, str]:
    """Return the sizes in the caption on the split."""
    ood = [f"{set_title(s, table.suite)}: {table.n[f'ood/{s}']:,}" for s in table.ood]
    rows = captions_of(table.suite).rows
    moved = [
        f"{set_title(s, table.suite)} ({table.n[f'shifted/{s}']:,} {rows})" for s in table.shifted
    ]
    shifted = (
        f"; known classes from elsewhere are in {', '.join(moved)}, which nothing was fitted on"
    )
    return {
        "test": f"{table.n['test']:,}",
        "ood": "; ".join(ood),
        "shifted": shifted if moved else "",
    }


def _spectra(store: Store, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The section of spectra, where rows are of spectra, or why it is not there."""
    found: SpectraSection | None = None
    missing = ""
    if shows_spectra(rows):
        try:
            found = spectra_section(store, rows)
        except (LookupError, OSError, ImportError, ValueError) as error:
            missing = error_text(error)
    return {"spectra": found, "no_spectra": missing}


def _view(table: BenchTable, split: str) -> View:
    names = (*table.columns()[split], *table.columns(extra=True).get(split, ()))
    groups = {
        "Methods of the paper": tuple(line for line in table.lines if line.paper),
        "References the paper lacks": tuple(line for line in table.lines if not line.paper),
        "Without any model": table.trivial if split in table.ood else (),
    }
    return View(
        heading=set_heading(table, split),
        titles=tuple(metric_title(name, classes=table.classes) for name in names),
        names=names,
        groups=tuple((title, lines) for title, lines in groups.items() if lines),
        best={name: _best(table, name) for name in names},
    )


def _best(table: BenchTable, name: str) -> float:
    """Best of a column; rows that were written before a metric was there have no cell."""
    cells = (line.cells[name] for line in table.lines if name in line.cells)
    return (max if is_higher_better(name) else min)(round(cell.mean, 4) for cell in cells)


def _sweeps(parts: Sequence[Parts], table: BenchTable, suite: str) -> dict[str, Any]:
    ablated, gamma = ablation_lines(parts, suite), gamma_lines(parts, suite)
    sigma = sigma_lines(parts, suite)
    printed = {name for line in gamma for name, cell in line.cells.items() if cell.paper}
    ood = [split for split in table.ood if f"auroc/{split}" in printed] or list(table.ood)
    columns = ["accuracy", "brier_id", *_each(("auroc", "aupr", "brier_ood"), ood)]
    return {
        "n": f"{parts[0].n:,.0f}",
        "seeds": len(parts),
        "titles": {c.name: c.title for c in CONFIGURATIONS},
        "ablation": ablated,
        "columns": columns,
        "confidence": _each(("auroc_confidence",), ood),
        "float32": float32_lines(parts, suite),
        "ranking": _each(("auroc", "aupr"), ood),
        "gamma": gamma,
        "gamma_panels": list(gamma_panels(gamma, table.ood)),
        "briers": ["brier_id", *_each(("brier_ood",), table.ood)],
        "sigma": sigma,
        "sigma_panels": list(sigma_panels(sigma, table.ood)),
    }


def _each(kinds: Sequence[str], ood: Sequence[str]) -> list[str]:
    return [f"{kind}/{split}" for split in ood for kind in kinds]


def _runs(
    store: Store, rows: Sequence[Mapping[str, Any]], table: BenchTable, parts: Sequence[Parts]
) -> dict[str, list[Arrays]]:
    """Arrays of the paper's methods by title, ours first; without those that were not kept."""
    found: dict[str, list[Arrays]] = {}
    shown = sorted((ln for ln in table.lines if ln.paper), key=lambda ln: ln.name != _METHOD)
    for line in shown:
        kept = [row for row in rows if row["method"] == line.name and _has_arrays(store, row)]
        if kept:
            found[line.title] = [store.arrays_of(row) for row in kept]
        elif line.name == _METHOD and parts:
            found[line.title] = [arrays_from_parts(one) for one in parts]
    return found


def _has_arrays(store: Store, row: Mapping[str, Any]) -> bool:
    return store.has_arrays(row["method"], row["config_hash"], row["seed"])


def _about(store: Store, table: BenchTable) -> dict[str, Any]:
    """Return profile and methods in the file of the suite, and what to write after --methods."""
    names = [line.name for line in table.lines]
    try:
        suite = load_suite(store.suite)
        profile = suite.profile(store.profile)
    except (ValueError, OSError):
        return {"about": {"profile": "", "methods": []}, "methods": ",".join(names)}
    told = [(line.title, _note(suite, profile, line.name)) for line in table.lines]
    every = set(names) == set(suite.method_names(store.profile))
    about = {"profile": profile.title, "methods": [(title, note) for title, note in told if note]}
    return {"about": about, "methods": "all" if every else ",".join(names)}


def _note(suite: Suite, profile: Profile, method: str) -> str:
    said = {**suite.methods.get(method, {}), **profile.methods.get(method, {})}
    return str(said.get("note", ""))


def _toys(store: Store) -> dict[str, Any]:
    toys = load_toys(Path(store.folder).parent.parent)
    return {
        "vacuity": toys.vacuity,
        "panel": toy_panel(toys.vacuity) if toys.vacuity else None,
        "moons": toys.moons,
        "drawing": Markup(toys.drawing),
    }
