"""The section of the benchmark's page that shows spectra: what is trusted, and what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dipedl.apps.demo.report.figures import Panel
from dipedl.plots import UnknownCounts
from dipedl.writing.cells import error_text

from ..datasets import spectra_splits as spectra_data
from ..datasets.spectra_splits import SPECTRA, Looked
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from ..results.store import Arrays, Store
from .histograms import vacuity_of
from .spectra_figures import (
    Shelf,
    Trends,
    matrix_panel,
    rejection_panels,
    set_counts,
    shelf,
    title_of,
    trends,
)

#: Whose predictions are shown: the first of these that was run.
METHODS = ("dip-edl-default", "dip-edl")
#: How many of each end of the ranking.
SHOWN = 3
_NOT_THERE = (LookupError, OSError, ImportError)


@dataclass(frozen=True)
class SpectraSection:
    """All of the section, of the predictions of one method and seed.

    `matrices` are the confusion with "unknown" of the test and the OOD sets, then of each shifted
    set, and `threshold` that of the test set. `shelves` and `trends` need the spectra themselves;
    `left_out` says what could not be drawn, and why.
    """

    method: str
    seed: int
    matrices: tuple[Panel, ...]
    threshold: UnknownCounts
    rejection: Trends
    shelves: tuple[Shelf, ...] = ()
    trends: tuple[Trends, ...] = ()
    left_out: tuple[str, ...] = ()


def shows_spectra(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether rows are of spectra."""
    return any(_data(row).get("dataset") in SPECTRA for row in rows)


def spectra_section(store: Store, rows: Sequence[Mapping[str, Any]]) -> SpectraSection:
    """Everything to show of the spectra of a store, for one method and its first seed.

    A LookupError says that none of `METHODS` was run, a FileNotFoundError that its arrays are gone,
    a ValueError that there are too few validation rows for a threshold.
    """
    row = _chosen(rows)
    arrays = store.arrays_of(row)
    sets = {split: arrays[split] for split in _order(row) if split in arrays}
    titles = {split: title_of(split, store.suite) for split in sets}
    counts = set_counts(sets, arrays["validation"]["uncertainty"], titles)
    section = SpectraSection(
        method=row["title"],
        seed=row["seed"],
        matrices=tuple(
            matrix_panel(titles[split], split, found) for split, found in counts.items()
        ),
        threshold=counts["test"],
        rejection=rejection_panels(sets, titles),
    )
    try:
        return _with_spectra(section, row, sets, titles, store.root / "features")
    except _NOT_THERE as error:
        return replace(section, left_out=(f"The spectra themselves: {error_text(error)}",))


def _chosen(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for method in METHODS:
        of_method = [row for row in rows if row["method"] == method]
        if of_method:
            return min(of_method, key=lambda row: int(row["seed"]))
    raise LookupError(f"none of {', '.join(METHODS)} was run")


def _with_spectra(
    section: SpectraSection,
    row: Mapping[str, Any],
    sets: Arrays,
    titles: Mapping[str, str],
    keep: Path,
) -> SpectraSection:
    """The section with what needs the data, which may not be there."""
    config, seed = _data(row), row["seed"]
    looked = spectra_data.looked_at(config, seed, keep)
    _check_rows(sets, looked)
    vacuity = {split: vacuity_of(named) for split, named in sets.items()}
    shelves, left_out = [], []
    for split, named in sets.items():
        order = np.argsort(named["uncertainty"], kind="stable")
        n = min(SHOWN, len(order) // 2)
        shown = np.concatenate([order[:n], order[::-1][:n]])
        try:
            flux = spectra_data.flux_of(config, split, shown.tolist(), seed, keep)
        except _NOT_THERE as error:
            left_out.append(f"{titles[split]}: {error_text(error)}")
        else:
            shelves.append(shelf(titles[split], split, flux, shown, named, vacuity[split]))
    return replace(
        section,
        shelves=tuple(shelves),
        trends=tuple(trends(sets, looked, vacuity, titles)),
        left_out=tuple(left_out),
    )


def _data(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = row.get("config", {}).get("data", {})
    return found


def _order(row: Mapping[str, Any]) -> list[str]:
    """Known classes first: the test set, then the shifted sets, then the OOD sets."""
    config = _data(row)
    shifted = [f"{SHIFTED_PREFIX}{name}" for name in config.get("shifted", ())]
    return ["test", *shifted, *(f"{OOD_PREFIX}{name}" for name in config["ood"])]


def _check_rows(sets: Arrays, looked: Mapping[str, Looked]) -> None:
    sizes = {split: len(named["uncertainty"]) for split, named in sets.items()}
    there = {split: len(looked[split].row) for split in sizes if split in looked}
    if sizes != there:
        raise LookupError(f"the predictions are of {sizes} rows, but the data has {there}")
