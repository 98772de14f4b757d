"""Figures of the benchmark's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from dipedl.apps.demo.report.figures import Entry, Panel, panel, panel_axes
from dipedl.plots.canvas import COLORS, LINES

from ..results.store import Arrays
from ..studies import toy_vacuity
from ..tables.formatting import metric_title, set_title
from ..tables.table import Line
from .histograms import confidence, histogram, vacuity

#: Of SVG, as those of `LINES`.
_DASHES = ("", "7 3", "8 2 2 2", "2 3")
_MARKS = ("o", "s", "^", "D")


def legend_entries(labels: Sequence[str]) -> list[Entry]:
    """Labels with the colours and dashes in which lines are drawn one after the other."""
    return [Entry(label, i % 4, _DASHES[i % 4]) for i, label in enumerate(labels)]


def set_legend(suite: str, ood: Sequence[str]) -> list[Entry]:
    """Which line stands for which set: known rows first."""
    return legend_entries([set_title(name, suite) for name in ("", *ood)])


def gamma_panels(lines: Sequence[Line], ood: Sequence[str]) -> Iterator[Panel]:
    """Brier of known and of OOD rows against gamma; crosses are the paper's."""
    x = np.array([float(line.name) for line in lines])
    for kind in ("brier_id", "brier_ood"):
        yield _against("gamma", x, lines, kind, ood, xscale="log", xlabel="gamma")


def sigma_panels(lines: Sequence[Line], ood: Sequence[str]) -> Iterator[Panel]:
    """AUROC and Brier against the noise on z; crosses are the paper's."""
    x, label = np.arange(len(lines)), "sigma, standard deviations of the log-density"
    for kind in ("auroc", "brier_id", "brier_ood"):
        yield _against("sigma", x, lines, kind, ood, xlabel=label)


def histogram_panels(runs: Mapping[str, list[Arrays]]) -> Iterator[Panel]:
    """Confidence by title of the method; of the first also vacuity, where it keeps its evidence."""
    for i, (title, of_method) in enumerate(runs.items()):
        if i == 0 and "log_evidence" in of_method[0]["test"]:
            ax = histogram(vacuity(of_method), "vacuity", panel_axes())
            yield panel(f"{title}: vacuity", ax, f"{title}: histogram of vacuity", f"vac-{i}")
        ax = histogram(confidence(of_method), "confidence", panel_axes())
        yield panel(f"{title}: confidence", ax, f"{title}: histogram of confidence", f"con-{i}")


def toy_panel(rows: Sequence[Mapping[str, Any]]) -> Panel:
    """Vacuity of training points against nu."""
    ax = toy_vacuity.plot(rows, panel_axes())
    return panel("Vacuity against nu", ax, "Vacuity at training points against nu", "toy")


_TITLES = {"auroc": "AUROC", "brier_id": "Brier, known classes", "brier_ood": "Brier, OOD sets"}


def _against(
    what: str, x: np.ndarray, lines: Sequence[Line], kind: str, ood: Sequence[str], **axis: str
) -> Panel:
    ax = panel_axes()
    _curves(ax, x, lines, kind, ood)
    ax.set(ylabel=metric_title(kind), **axis)
    ax.set_xticks(x, ["∞" if line.name == "inf" else line.name for line in lines])
    ax.minorticks_off()
    return panel(_TITLES[kind], ax, f"{metric_title(kind)} against {what}", f"{what}-{kind}")


def _curves(ax: Axes, x: np.ndarray, lines: Sequence[Line], kind: str, ood: Sequence[str]) -> None:
    """A curve for each set that the metric is measured on, the paper's points as crosses."""
    sets = {0: kind} if kind == "brier_id" else {i + 1: f"{kind}/{s}" for i, s in enumerate(ood)}
    for i, name in sets.items():
        cells = [line.cells[name] for line in lines]
        style: dict[str, Any] = {
            "color": COLORS[i % 4],
            "linestyle": LINES[i % 4],
            "marker": _MARKS[i % 4],
        }
        ax.errorbar(
            x, [c.mean for c in cells], [c.sd for c in cells], markersize=4, linewidth=1.6, **style
        )
        there = [(a, c.paper.mean) for a, c in zip(x, cells, strict=True) if c.paper]
        if there:
            ax.plot(*zip(*there, strict=True), "x", color=COLORS[i % 4], markersize=8)
