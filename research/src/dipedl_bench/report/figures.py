"""Figures of the pages of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.special import expit

from dipedl.plots import VacuityHistogramDisplay
from dipedl.plots.page import COLORS, LINES

from ..results.known_truth import LEVELS
from ..results.store import Arrays
from ..studies.price import PricePoint
from ..studies.sweeps import Parts
from ..tables.formatting import set_title
from ..tables.pairs import coverage_of, methods_with_intervals
from ..tables.table import BenchTable

#: Curves of the figure of prices: label and style.
_CURVES: dict[str, tuple[str, dict[str, Any]]] = {
    kind: (label, {"color": color, "ls": style, "marker": marker, "markersize": 4})
    for kind, label, color, style, marker in (
        ("default", "our default over its budget", COLORS[0], "-", "o"),
        ("temperature", "max softmax with a temperature", "gray", "", "*"),
        ("density", "budget on the density alone", COLORS[1], "--", "."),
        ("entropy", "budget on the softmax entropy", COLORS[4], "--", "."),
        ("gamma", "published recipe over gamma: ours", COLORS[2], "-.", "."),
        ("paper gamma", "published recipe over gamma: paper", "black", ":", "x"),
    )
}
#: Marks of methods in the figure of prices: those of the paper, and the bare network.
_SHAPES: dict[str, tuple[str, str]] = {
    "Max softmax": ("*", "black"),
    "DIP-EDL": ("o", COLORS[2]),
    "EDL": ("s", COLORS[3]),
    "R-EDL": ("D", COLORS[3]),
    "Re-EDL": ("^", COLORS[3]),
    "DAEDL": ("v", COLORS[3]),
    "PostNet": ("P", COLORS[3]),
    "MC Dropout": ("X", COLORS[1]),
    "Deep Ensemble": ("h", COLORS[1]),
}
_OTHER = "darkgray"
#: Curve of an evidential network, answered with several priors.
_BY_PRIOR: dict[str, Any] = {"color": COLORS[3], "lw": 0.8, "marker": ".", "markersize": 3}
_TEXT: dict[str, Any] = {"textcoords": "offset points", "color": COLORS[0]}


def coverage_figure(table: BenchTable) -> Figure:
    """Draw coverage against the level of the intervals, one line for each method."""
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    axes, levels = figure.subplots(), [level / 100 for level in LEVELS]
    axes.plot([0, 1], [0, 1], color="black", lw=0.8, ls=":")
    for i, name in enumerate(methods_with_intervals(table)):
        width = 2.6 if name == table.ours else 1.2
        style: Any = {"color": COLORS[i % 4], "ls": LINES[i // 4 % 4], "lw": width}
        label = table.methods["title"][name]
        axes.plot(levels, coverage_of(table, name), marker="o", ms=4, label=label, **style)
    axes.set(xlim=(0.45, 1), ylim=(0, 1), xlabel="level of the interval", ylabel="coverage")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8, handlelength=4)
    return figure


def price_figure(panels: Mapping[str, Sequence[PricePoint]], sets: Mapping[str, str]) -> Figure:
    """Draw the OOD Brier score against the ID Brier score that was paid for it; less is better.

    A panel for each title, on the OOD set of its title. Full marks are our rows, hollow ones of the
    same shape the paper's, dots our other rows but for those that answer as max softmax; lines are
    our default over its budget, a budget on the density alone and on the softmax entropy, the
    published recipe over gamma, ours and the paper's, and evidential networks over the prior that
    they are answered with.
    """
    rows = max(1, (len(panels) + 1) // 2)
    figure = Figure(figsize=(9.4, 4.1 * rows + 0.8), layout="constrained")
    grid = figure.subplots(rows, 2, squeeze=False).ravel()
    for ax, (title, points) in zip(grid, panels.items(), strict=False):
        there = [p for p in points if sets[title] in p.brier_ood]
        for kind, (_, style) in _CURVES.items():
            curve = [(p.brier_id, p.brier_ood[sets[title]]) for p in there if p.kind == kind]
            if curve:
                ax.plot(*zip(*curve, strict=True), **style)
        for name in dict.fromkeys(p.title for p in there if p.kind == "prior"):
            of = [p for p in there if p.kind == "prior" and p.title == name]
            curve = [(p.brier_id, p.brier_ood[sets[title]]) for p in of]
            ax.plot(*zip(*curve, strict=True), **_BY_PRIOR)
            style = _TEXT | {"color": COLORS[3], "fontsize": 6, "ha": "right"}
            ax.annotate(name, curve[-1], (-4, -8), **style)
        for point in there:
            x, y = point.brier_id, point.brier_ood[sets[title]]
            if point.kind == "default":
                ax.annotate(f"{point.setting:g}", (x, y), (-4, -3), fontsize=7, ha="right", **_TEXT)
            elif point.kind == "method" and point.title not in _SHAPES and point.price != 0:
                ax.scatter(x, y, 14, _OTHER, zorder=1)
            elif point.kind in ("method", "paper") and point.title in _SHAPES:
                marker, color = _SHAPES[point.title]
                face = color if point.kind == "method" else "none"
                ax.scatter(x, y, 42, face, marker=marker, edgecolors=color, zorder=3)
        ax.set(xscale="log", yscale="log", xlabel="ID Brier", title=title, xmargin=0.1)
        ax.set_ylabel(f"OOD Brier, {set_title(sets[title])}")
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            steps = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 6, 8)
            axis.set_major_locator(LogLocator(subs=steps))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        ax.spines[["top", "right"]].set_visible(False)
    for ax in grid[len(panels) :]:
        ax.remove()
    entries = [Line2D([], [], label=label, **style) for label, style in _CURVES.values()]
    entries += [
        Line2D([], [], color=color, marker=marker, ls="", label=title)
        for title, (marker, color) in _SHAPES.items()
    ]
    entries += [
        Line2D([], [], label="an evidential network over its prior", **_BY_PRIOR),
        Line2D([], [], color=_OTHER, marker=".", ls="", label="other methods and variants"),
        Line2D([], [], color="black", marker="o", mfc="none", ls="", label="hollow: paper"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def budget_figure(curves: Mapping[str, Sequence[PricePoint]], sets: Mapping[str, str]) -> Figure:
    """Draw what a budget buys and what it costs: OOD and ID Brier score, shares of max softmax's.

    A curve for each title and set, of our default; none where the bare classifier has no row.
    """
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    bought, paid = figure.subplots(1, 2)
    dots: dict[str, Any] = {"marker": "o", "markersize": 4}
    budgets: set[float] = set()
    for style, points in zip(LINES, curves.values(), strict=False):
        bare = next((p for p in points if p.title == "Max softmax"), None)
        if bare is None:
            continue
        curve = [p for p in points if p.kind == "default"]
        x = [100 * (p.setting or 0.0) for p in curve]
        budgets |= set(x)
        for color, name in zip(COLORS, sets, strict=False):
            y = [p.brier_ood[name] / bare.brier_ood[name] for p in curve]
            bought.plot(x, y, color=color, ls=style, **dots)
        paid.plot(x, [p.brier_id / bare.brier_id for p in curve], color="black", ls=style, **dots)
    for ax, what in ((bought, "OOD Brier score"), (paid, "ID Brier score")):
        ax.axhline(1, color="black", lw=0.6, ls=":")
        ax.set(xlabel="budget, %", title=what, ylabel="share of the bare classifier's")
        ax.set_xticks(sorted(budgets), [f"{value:g}" for value in sorted(budgets)])
        ax.spines[["top", "right"]].set_visible(False)
    bought.set_ylim(0, 1.05)
    entries = [
        Line2D([], [], color=c, label=of) for c, of in zip(COLORS, sets.values(), strict=False)
    ]
    entries += [
        Line2D([], [], color="black", ls=s, label=t) for s, t in zip(LINES, curves, strict=False)
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def arrays_from_parts(parts: Parts) -> Arrays:
    """Return arrays as DIP-EDL's, as far as `confidence` and `vacuity` read them."""
    return {
        split if split == parts.known else f"ood/{split}": {
            "probabilities": answers.mean,
            "log_evidence": answers.log_evidence,
        }
        for split, answers in parts.dirichlets().items()
    }


def confidence(runs: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Return the largest mean class probability by set, of all runs: "test", then each OOD set."""
    return _pool(runs, lambda named: np.asarray(named["probabilities"].max(axis=1)))


def vacuity(runs: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Return vacuity by set, of all runs together, for methods that keep their log-evidence.

    With the prior of ones it is ``k / (k + c) = sigmoid(log k - log c)``, c the evidence.
    """

    def of_split(named: Mapping[str, np.ndarray]) -> np.ndarray:
        k = named["probabilities"].shape[1]
        return np.asarray(expit(np.log(k) - named["log_evidence"]))

    return _pool(runs, of_split)


def _pool(
    runs: Iterable[Arrays], read: Callable[[Mapping[str, np.ndarray]], np.ndarray]
) -> dict[str, np.ndarray]:
    pools: dict[str, list[np.ndarray]] = {"test": []}
    for arrays in runs:
        for split, named in arrays.items():
            if split == "test" or split.startswith("ood/"):
                pools.setdefault(split.removeprefix("ood/"), []).append(read(named))
    return {name: np.concatenate(of_set) for name, of_set in pools.items()}


def histogram(sets: Mapping[str, np.ndarray], what: str, ax: Axes | None = None) -> Axes:
    """Draw a histogram of `confidence` or `vacuity`, an outline a set; both ends are stretched."""
    titled = {set_title("" if name == "test" else name): v for name, v in sets.items()}
    ax = VacuityHistogramDisplay(titled).plot(ax, legend=ax is None).ax_
    ax.set_xlabel(f"{what} (both ends stretched)")
    return ax
