"""Figures of the report and of the pages of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit

from dipedl.plots import VacuityHistogramDisplay
from dipedl.plots.page import COLORS, LINES, Entry, Panel, panel, panel_axes

from ..results.known_truth import LEVELS
from ..results.store import Arrays
from ..studies.sweeps import Parts
from ..tables.formatting import metric_title, set_title
from ..tables.pairs import candidates, coverage_of, methods_with_intervals, pair_title, values
from ..tables.table import BenchTable, Line

#: Of SVG, as those of `LINES`.
_DASHES = ("", "7 3", "8 2 2 2", "2 3")
_MARKS = ("o", "s", "^", "D")
_INCHES = 0.19
#: Metrics that a sweep moves, and its axis.
_SWEPT: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "gamma": (("brier_id", "brier_ood"), {"xscale": "log", "xlabel": "gamma"}),
    "sigma": (
        ("auroc", "brier_id", "brier_ood"),
        {"xlabel": "sigma, standard deviations of the log-density"},
    ),
}
_TITLES = {"auroc": "AUROC", "brier_id": "Brier, known classes", "brier_ood": "Brier, OOD sets"}


def set_legend(suite: str, ood: Sequence[str]) -> list[Entry]:
    """Return which line stands for which set: known rows first."""
    titles = (set_title(name, suite) for name in ("", *ood))
    return [Entry(title, i % 4, _DASHES[i % 4]) for i, title in enumerate(titles)]


def sweep_panels(what: str, lines: Sequence[Line], ood: Sequence[str]) -> Iterator[Panel]:
    """Draw each metric against gamma or sigma, a curve for each set; crosses are the paper's."""
    metrics, axis = _SWEPT[what]
    logarithmic = "xscale" in axis
    x = np.array([float(line.name) for line in lines]) if logarithmic else np.arange(len(lines))
    for kind in metrics:
        ax = panel_axes()
        sets = (
            {0: kind} if kind == "brier_id" else {i + 1: f"{kind}/{s}" for i, s in enumerate(ood)}
        )
        for i, name in sets.items():
            cells, color = [line.cells[name] for line in lines], COLORS[i % 4]
            style: dict[str, Any] = {"linestyle": LINES[i % 4], "marker": _MARKS[i % 4]}
            means, sds = [c.mean for c in cells], [c.sd for c in cells]
            ax.errorbar(x, means, sds, markersize=4, linewidth=1.6, color=color, **style)
            there = [(a, c.paper.mean) for a, c in zip(x, cells, strict=True) if c.paper]
            if there:
                ax.plot(*zip(*there, strict=True), "x", color=color, markersize=8)
        ax.set(ylabel=metric_title(kind), **axis)
        ax.set_xticks(x, ["∞" if line.name == "inf" else line.name for line in lines])
        ax.minorticks_off()
        yield panel(_TITLES[kind], ax, f"{metric_title(kind)} against {what}", f"{what}-{kind}")


def histogram_panels(runs: Mapping[str, list[Arrays]]) -> Iterator[Panel]:
    """Draw confidence by method; of the first also vacuity, where it keeps its evidence."""
    for i, (title, of_method) in enumerate(runs.items()):
        if i == 0 and "log_evidence" in of_method[0]["test"]:
            ax = histogram(vacuity(of_method), "vacuity", panel_axes())
            yield panel(f"{title}: vacuity", ax, f"{title}: histogram of vacuity", f"vac-{i}")
        ax = histogram(confidence(of_method), "confidence", panel_axes())
        yield panel(f"{title}: confidence", ax, f"{title}: histogram of confidence", f"con-{i}")


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


def pairs_figure(table: BenchTable) -> Figure:
    """Draw AUROC of every pair: bare classifier, our default, and the best single candidate."""
    pairs = table.pairs
    bare, ours = (values(pairs, "auroc", method) for method in (table.bare, table.ours))
    figure = Figure(figsize=(7.4, 0.9 + _INCHES * len(pairs)), layout="constrained")
    ax = figure.subplots()
    y = -np.arange(len(pairs))
    ax.hlines(y, np.fmin(bare, ours), np.fmax(bare, ours), color=COLORS[0], lw=1, alpha=0.5)
    ax.plot(candidates(table, pairs).max(axis=1), y, "|", color=COLORS[1], ms=9, mew=1.5)
    ax.plot(bare, y, "o", mfc="none", mec="black", ms=4.5)
    ax.plot(ours, y, "o", color=COLORS[0], ms=5)
    ax.set_yticks(y, [pair_title(pair) for pair in pairs.index], fontsize=7)
    ax.set(xlabel="AUROC", ylim=(-len(pairs) + 0.3, 0.7))
    ax.axvline(0.5, color="black", lw=0.6, ls=":")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="x", labelsize=8)
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
    found: dict[str, list[np.ndarray]] = {"test": []}
    for arrays in runs:
        for split, named in arrays.items():
            if split == "test" or split.startswith("ood/"):
                found.setdefault(split.removeprefix("ood/"), []).append(read(named))
    return {name: np.concatenate(of_set) for name, of_set in found.items()}


def histogram(sets: Mapping[str, np.ndarray], what: str, ax: Axes | None = None) -> Axes:
    """Draw a histogram of `confidence` or `vacuity`, an outline a set; both ends are stretched."""
    titled = {set_title("" if name == "test" else name): v for name, v in sets.items()}
    ax = VacuityHistogramDisplay(titled).plot(ax, legend=ax is None).ax_
    ax.set_xlabel(f"{what} (both ends stretched)")
    return ax
