"""Figures of spectra on the benchmark's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from dipedl.apps.demo.report.figures import Entry, Panel, panel, panel_axes
from dipedl.apps.spectra import Spectra, spectrum_plot, spectrum_title
from dipedl.plots import (
    UnknownCounts,
    risk_coverage,
    unknown_counts,
    unknown_matrix,
    vacuity_against,
)
from dipedl.plots.canvas import COLORS, LINES

from ..datasets.spectra_splits import CLASSES, Looked
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from ..results.store import Arrays
from ..tables.formatting import set_title
from .figures import legend_entries

FALSE_ALARMS = 0.05
_REAL = "real"


@dataclass(frozen=True)
class Shown:
    """One spectrum: what is said of it in two lines, and its picture."""

    title: str
    facts: str
    svg: Markup


@dataclass(frozen=True)
class Shelf:
    """The most and the least trusted spectra of a set."""

    title: str
    most: tuple[Shown, ...]
    least: tuple[Shown, ...]


@dataclass(frozen=True)
class Trends:
    """Panels that share a legend."""

    title: str
    legend: tuple[Entry, ...]
    panels: tuple[Panel, ...]


def title_of(split: str, suite: str) -> str:
    """Return the name of the spectra of a split."""
    return "Test spectra" if split == "test" else set_title(_plain(split), suite)


def _plain(split: str) -> str:
    return split.removeprefix(OOD_PREFIX).removeprefix(SHIFTED_PREFIX)


def shelf(
    title: str,
    split: str,
    flux: Spectra,
    rows: np.ndarray,
    named: Mapping[str, np.ndarray],
    vacuity: np.ndarray,
) -> Shelf:
    """Spectra `flux` (2 m), which are the rows `rows` of a split: m most, then m least trusted."""
    shown = tuple(
        _spectrum(f"sp-{_plain(split)}-{i}", flux, i, row, named, vacuity)
        for i, row in enumerate(rows)
    )
    return Shelf(title, shown[: len(rows) // 2], shown[len(rows) // 2 :])


def _spectrum(
    name: str,
    flux: Spectra,
    i: int,
    row: int,
    named: Mapping[str, np.ndarray],
    vacuity: np.ndarray,
) -> Shown:
    snr, redshift = (
        np.nan if values is None else float(values[i]) for values in (flux.snr, flux.redshift)
    )
    said = spectrum_title(
        named["probabilities"][row],
        float(vacuity[row]),
        class_names=CLASSES,
        truth=CLASSES[int(named["y"][row])] if "y" in named else None,
        snr=snr,
        redshift=redshift,
    )
    title, _, facts = said.partition("\n")
    ax = panel_axes(4.2, 2.7)
    mask = None if flux.mask is None else flux.mask[i]
    spectrum_plot(flux.wavelength, flux.flux[i], redshift=redshift, mask=mask, ax=ax)
    alt = f"spectrum, flux against wavelength, with lines marked; {title}; {facts}"
    return Shown(title, facts, panel(title, ax, alt, name).svg)


def trends(
    sets: Arrays,
    looked: Mapping[str, Looked],
    vacuity: Mapping[str, np.ndarray],
    titles: Mapping[str, str],
) -> Iterator[Trends]:
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
            yield Trends(title, tuple(legend_entries([*parts, *unknown])), tuple(panels))


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


def rejection_panels(sets: Arrays, titles: Mapping[str, str]) -> Trends:
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
    return Trends("", tuple(legend_entries([f"ranked by {kind}" for kind in kinds])), tuple(panels))
