"""The section of the report that shows spectra: what is trusted, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from dipedl.apps.demo.report import COLORS, LINES, Entry, Panel, panel, panel_axes
from dipedl.apps.spectra import Spectra, spectrum_plot, spectrum_title
from dipedl.plots import (
    UnknownCounts,
    risk_coverage,
    unknown_counts,
    unknown_matrix,
    vacuity_against,
)

from ..datasets import spectra_splits as spectra_data
from ..datasets.spectra_splits import CLASSES, SPECTRA, Looked
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from ..results.store import Arrays, Store
from ..tables.formatting import set_title
from ..writing import error_text
from .figures import legend_entries, vacuity_of

#: Whose predictions are shown: the first of these that was run.
METHODS = ("dip-edl-default", "dip-edl")
#: How many of each end of the ranking.
SHOWN = 3
FALSE_ALARMS = 0.05
_REAL = "real"
_NOT_THERE = (LookupError, OSError, ImportError)


class Drawn(NamedTuple):
    """One spectrum: two lines on it, and its picture."""

    title: str
    facts: str
    svg: Markup


class Shelf(NamedTuple):
    """The most and the least trusted spectra of a set."""

    title: str
    most: Sequence[Drawn]
    least: Sequence[Drawn]


class Panels(NamedTuple):
    """Panels that share a legend."""

    legend: Sequence[Entry]
    panels: Sequence[Panel]


class SpectraSection(NamedTuple):
    """All of the section, of the predictions of one method and seed.

    `matrices` are the confusion with "unknown" of the test and the OOD sets, then of each shifted
    set, and `threshold` that of the test set. `shelves` and `trends` need the spectra themselves;
    `left_out` says what could not be drawn, and why.
    """

    method: str
    seed: int
    matrices: tuple[Panel, ...]
    threshold: UnknownCounts
    rejection: Panels
    shelves: tuple[Shelf, ...] = ()
    trends: tuple[Panels, ...] = ()
    left_out: tuple[str, ...] = ()


def shows_spectra(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether rows are of spectra."""
    return any(_data(row).get("dataset") in SPECTRA for row in rows)


def spectra_section(store: Store, rows: Sequence[Mapping[str, Any]]) -> SpectraSection:
    """Everything to show of the spectra of a store, for one method and its first seed.

    A LookupError says that none of `METHODS` was run, a FileNotFoundError that its arrays are gone,
    a ValueError that there are too few validation rows for a threshold.
    """
    run = [
        (METHODS.index(r["method"]), r["seed"], i)
        for i, r in enumerate(rows)
        if r["method"] in METHODS
    ]
    if not run:
        raise LookupError(f"none of {', '.join(METHODS)} was run")
    row = rows[min(run)[-1]]
    arrays = store.arrays_of(row)
    # known classes first: the test set, then the shifted sets, then the OOD sets
    config = _data(row)
    shifted = [f"{SHIFTED_PREFIX}{name}" for name in config.get("shifted", ())]
    order = ["test", *shifted, *(f"{OOD_PREFIX}{name}" for name in config["ood"])]
    sets = {split: arrays[split] for split in order if split in arrays}
    titles = {s: set_title(_plain(s), store.suite) for s in sets} | {"test": "Test spectra"}
    counts = set_counts(sets, arrays["validation"]["uncertainty"], titles)
    section = SpectraSection(
        method=row["title"],
        seed=row["seed"],
        matrices=tuple(matrix_panel(titles[s], s, found) for s, found in counts.items()),
        threshold=counts["test"],
        rejection=rejection_panels(sets, titles),
    )
    try:
        return _with_spectra(section, row, sets, titles, store.root / "features")
    except _NOT_THERE as error:
        return section._replace(left_out=(f"The spectra themselves: {error_text(error)}",))


def _data(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = row.get("config", {}).get("data", {})
    return found


def _plain(split: str) -> str:
    return split.removeprefix(OOD_PREFIX).removeprefix(SHIFTED_PREFIX)


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
    sizes = {split: len(named["uncertainty"]) for split, named in sets.items()}
    there = {split: len(looked[split].row) for split in sizes if split in looked}
    if sizes != there:
        raise LookupError(f"the predictions are of {sizes} rows, but the data has {there}")
    vacuity = {split: vacuity_of(named) for split, named in sets.items()}
    shelves, left_out = [], []
    for split, named in sets.items():
        order = np.argsort(named["uncertainty"], kind="stable")
        n = min(SHOWN, len(order) // 2)
        ends = np.concatenate([order[:n], order[::-1][:n]])
        try:
            flux = spectra_data.flux_of(config, split, ends.tolist(), seed, keep)
        except _NOT_THERE as error:
            left_out.append(f"{titles[split]}: {error_text(error)}")
        else:
            shelves.append(shelf(titles[split], split, flux, ends, named, vacuity[split]))
    return section._replace(
        shelves=tuple(shelves),
        trends=tuple(trends(sets, looked, vacuity, titles)),
        left_out=tuple(left_out),
    )


def shelf(
    title: str,
    split: str,
    flux: Spectra,
    rows: np.ndarray,
    named: Mapping[str, np.ndarray],
    vacuity: np.ndarray,
) -> Shelf:
    """Spectra `flux` (2 m), which are the rows `rows` of a split: m most, then m least trusted."""
    found = []
    for i, row in enumerate(rows):
        snr, redshift = (np.nan if v is None else float(v[i]) for v in (flux.snr, flux.redshift))
        text = spectrum_title(
            named["probabilities"][row],
            float(vacuity[row]),
            class_names=CLASSES,
            truth=CLASSES[int(named["y"][row])] if "y" in named else None,
            snr=snr,
            redshift=redshift,
        )
        of_one, _, facts = text.partition("\n")
        ax = panel_axes(4.2, 2.7)
        mask = None if flux.mask is None else flux.mask[i]
        spectrum_plot(flux.wavelength, flux.flux[i], redshift=redshift, mask=mask, ax=ax)
        alt = f"spectrum, flux against wavelength, with lines marked; {of_one}; {facts}"
        drawing = panel(of_one, ax, alt, f"sp-{_plain(split)}-{i}").svg
        found.append(Drawn(of_one, facts, drawing))
    return Shelf(title, found[: len(rows) // 2], found[len(rows) // 2 :])


def trends(
    sets: Arrays,
    looked: Mapping[str, Looked],
    vacuity: Mapping[str, np.ndarray],
    titles: Mapping[str, str],
) -> Iterator[Panels]:
    """Made spectra and real ones, each against S/N, and those with classes against redshift."""
    real = [split for split in sets if _plain(split).startswith(_REAL)]
    for group in ([split for split in sets if split not in real], real):
        labelled = [split for split in group if "y" in sets[split]]
        if not labelled:
            continue
        of = labelled[0]
        parts = {name: (of, sets[of]["y"] == i) for i, name in enumerate(CLASSES)}
        unknown = {titles[s]: (s, slice(None)) for s in group if s not in labelled}
        title = titles[labelled[0]]
        panels = [
            *_trend(f"{title}: S/N", "snr", parts | unknown, looked, vacuity),
            *_trend(f"{title}: redshift", "redshift", parts, looked, vacuity),
        ]
        if panels:
            yield Panels(legend_entries([*parts, *unknown]), panels)


def _trend(
    title: str,
    what: str,
    parts: Mapping[str, tuple[str, Any]],
    looked: Mapping[str, Looked],
    vacuity: Mapping[str, np.ndarray],
) -> Iterator[Panel]:
    """One panel, if any of its rows has a value."""
    pairs = {
        name: (getattr(looked[split], what)[rows], vacuity[split][rows])
        for name, (split, rows) in parts.items()
    }
    if not any((np.isfinite(x) & (x > 0)).any() for x, _ in pairs.values()):
        return
    label = {"snr": "S/N per pixel", "redshift": "redshift"}[what]
    ax = panel_axes(4.4, 3.2)
    vacuity_against(pairs, log=what == "snr", xlabel=label, legend=False, ax=ax)
    medians = [f"{name} {np.median(u):.2g}" for name, (_, u) in pairs.items() if len(u)]
    alt = f"vacuity against {label}; median vacuity: {', '.join(medians)}"
    name = f"trend-{what}-{next(iter(parts.values()))[0].replace('/', '-')}"
    yield panel(title, ax, alt, name)


def set_counts(
    sets: Arrays, held_out: np.ndarray, titles: Mapping[str, str]
) -> dict[str, UnknownCounts]:
    """Of the test set with the OOD sets, and of each shifted set, by one threshold."""
    unknown = {
        titles[split]: (named["probabilities"], named["uncertainty"])
        for split, named in sets.items()
        if split.startswith(OOD_PREFIX)
    }
    return {
        split: unknown_counts(
            named["y"],
            named["probabilities"],
            named["uncertainty"],
            held_out=held_out,
            false_alarm_rate=FALSE_ALARMS,
            ood=unknown if split == "test" else None,
            class_names=CLASSES,
        )
        for split, named in sets.items()
        if split == "test" or split.startswith(SHIFTED_PREFIX)
    }


def matrix_panel(title: str, split: str, found: UnknownCounts) -> Panel:
    """Confusion with "unknown"; all its numbers are in its description too."""
    ax = unknown_matrix(found, title=False, ax=panel_axes(4.6, 0.9 + 0.55 * len(found.rows)))
    lines = [
        f"{name}: "
        + ", ".join(
            f"{count:,} called {called}"
            for count, called in zip(counts, [*found.classes, "unknown"], strict=True)
        )
        for name, counts in zip(found.rows, found.counts, strict=True)
    ]
    return panel(title, ax, "; ".join(lines), f"unknown-{split.replace('/', '-')}")


def rejection_panels(sets: Arrays, titles: Mapping[str, str]) -> Panels:
    """Error rate of the spectra that are not rejected, ranked in two ways."""
    kinds = ("uncertainty", "confidence")
    panels = []
    for split in (s for s in sets if "y" in sets[s]):
        ax, named = panel_axes(4.4, 3.0), sets[split]
        hit = named["probabilities"].argmax(axis=1) == named["y"]
        doubt = 1 - named["probabilities"].max(axis=1)
        for color, u in zip(COLORS, (named["uncertainty"], doubt), strict=False):
            risk_coverage(hit, u, color=color, ax=ax)
        ax.axvline(0.9, color="black", alpha=0.4, linewidth=0.8, linestyle=LINES[3])
        ax.set_xlabel("share of spectra kept")
        title, wrong = titles[split], 1 - hit.mean()
        alt = f"{title}: error rate against the share kept; {wrong:.4f} of all"
        panels.append(panel(title, ax, alt, f"reject-{split.replace('/', '-')}"))
    return Panels(legend_entries([f"ranked by {kind}" for kind in kinds]), panels)
