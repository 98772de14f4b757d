"""The figures of the report: from arrays of the result to panels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ....plots import (
    EvidenceMapDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    VacuityHistogramDisplay,
)
from ....plots.canvas import COLORS, LINES
from .. import DemoResult, ModelResult, SetPredictions
from ..rows import BARE, DIP, ID, flagged
from ..summary import ENTROPY, set_title
from .inline import svg

_BLUE, _ORANGE, _GREEN = COLORS[:3]
_RANKINGS = {
    "confidence of the classifier alone": _ORANGE,
    "dipedl confidence": _BLUE,
    "vacuity": _GREEN,
}
#: From the paper of the page to its ink: the page inverts it in its dark theme.
_INK = LinearSegmentedColormap.from_list("ink", [(0, 0, 0, 0), (0, 0, 0, 0.7)])
_DASHES = dict(zip(LINES, ("", "7 3", "8 2 2 2", "2 3"), strict=True))
_MOON_TITLES = {
    "entropy": ("Network alone: entropy", "nats"),
    "vacuity": ("Vacuity", "share of the prior"),
    "aleatoric": ("Aleatoric", "nats"),
    "epistemic": ("Epistemic", "nats"),
}


@dataclass(frozen=True)
class Panel:
    """One small figure; `title` stands above it as text."""

    title: str
    svg: Markup


@dataclass(frozen=True)
class Entry:
    """A line of a legend: `color` counts the page's colours, `dashes` is for SVG."""

    label: str
    color: int
    dashes: str


def legends(result: DemoResult) -> dict[str, list[Entry]]:
    """Legend of each group of panels."""
    sets = [ID, *result.dataset.ood]
    dashes = list(_DASHES.values())
    return {
        "pair": [Entry("the classifier alone", 1, ""), Entry("dipedl", 0, "")],
        "alarms": [Entry("the classifier alone, by its entropy", 1, ""), Entry("dipedl", 0, "")],
        "sets": [Entry(set_title(key), i, dashes[i % 4]) for i, key in enumerate(sets)],
        "rankings": [
            Entry(label, COLORS.index(color), dashes[i])
            for i, (label, color) in enumerate(_RANKINGS.items())
        ],
    }


def panel_axes(width: float = 4.2, height: float = 3.0) -> Axes:
    """Axes for one panel, transparent and without a box."""
    ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    ax.set_facecolor("none")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
    return ax


def alarms(result: DemoResult) -> Iterator[Panel]:
    """Share of each set that is flagged, by bare entropy and by dipedl; one panel each."""
    for model in result.models:
        ax = panel_axes(4.2, 2.5)
        for offset, method, color in ((-0.2, ENTROPY, _ORANGE), (0.2, DIP, _BLUE)):
            shares = [100 * flagged(model, method, key).mean() for key in model.on]
            at = np.arange(len(shares)) + offset
            ax.barh(at, shares, height=0.36, color=color)
            for y, share in zip(at, shares, strict=True):
                ax.text(share + 1, y, f"{share:.0f}", va="center", fontsize=8)
        ax.set_yticks(range(len(model.on)), [set_title(key) for key in model.on])
        ax.invert_yaxis()
        ax.set(xlabel="flagged, of 100", xlim=(0, 109))
        alt = f"{model.title}: share of each set flagged, by bare entropy and by dipedl"
        yield panel(model.title, ax, alt, f"alarms-{model.name}")


def reliability(result: DemoResult) -> Iterator[Panel]:
    """Reliability diagrams, before and after, one panel per classifier."""
    y = result.dataset.y_test
    for model in result.models:
        known = model.on[ID]
        ax = panel_axes()
        for P, color in ((known.bare, _ORANGE), (known.dirichlet.mean, _BLUE)):
            ReliabilityDisplay(y, P).plot(ax, color=color)
        alt = f"{model.title}: accuracy against confidence on digits, alone and with dipedl"
        yield panel(model.title, ax, alt, f"rel-{model.name}")


def histograms(result: DemoResult) -> Iterator[Panel]:
    """For each classifier: vacuity, and the confidence before and after."""
    for model in result.models:
        yield _histogram(
            model, "vacuity", "vac", lambda a: np.asarray(a.dirichlet.vacuity), model.alarm_vacuity
        )
        yield _histogram(
            model, "confidence, classifier alone", "bare", lambda a: a.bare.max(axis=1)
        )
        yield _histogram(model, "confidence, dipedl", "dip", lambda a: a.dirichlet.mean.max(axis=1))


def selection(result: DemoResult) -> Iterator[Panel]:
    """Risk-coverage curves: digits only, and digits mixed with everything else."""
    for model in result.models:
        for title, sets, name in (
            ("digits only", (ID,), "rc-id"),
            ("digits and all other images", tuple(model.on), "rc-all"),
        ):
            ax = _risk_coverage(model, result.dataset.y_test, sets)
            heading = f"{model.title}: {title}"
            alt = f"{heading}; error rate against the share of inputs answered, three uncertainties"
            yield panel(heading, ax, alt, f"{name}-{model.name}")


def moons(result: DemoResult) -> Iterator[Panel]:
    """Maps of uncertainty around two moons."""
    data = result.moons
    for kind, values in data.maps.items():
        title, unit = _MOON_TITLES[kind]
        top = 1.0 if kind == "vacuity" else float(np.log(2))
        if kind == "epistemic":
            top = float(values.max())
        ax, shown = (
            panel_axes(4.2, 3.2),
            EvidenceMapDisplay(values, data.extent, data.X, data.y, kind=""),
        )
        shown.plot(ax, top=top).image_.set_cmap(_INK)
        for drawn in ax.figure.axes:
            drawn.set_facecolor("none")
        alt = f"{title} over the plane around two moons"
        yield panel(f"{title} ({unit})", ax, alt, f"moons-{kind}")


def _risk_coverage(model: ModelResult, y: np.ndarray, sets: tuple[str, ...]) -> Axes:
    known = model.on[ID]
    # Only digits have a true class; every prediction for another image counts as an error.
    hits = known.bare.argmax(axis=1) == y
    others = sum(len(model.on[key].flagged) for key in sets if key != ID)
    correct = np.concatenate([hits, np.zeros(others, dtype=bool)])
    of_mean = [1 - model.on[key].dirichlet.mean.max(axis=1) for key in sets]
    bare = [model.on[key].scores[BARE[0]] for key in sets]
    vacuity = [model.on[key].scores[DIP] for key in sets]
    ax = panel_axes()
    for color, scores in zip(_RANKINGS.values(), (bare, of_mean, vacuity), strict=True):
        RiskCoverageDisplay(correct, np.concatenate(scores)).plot(ax, color=color)
    return ax


def _histogram(
    model: ModelResult,
    what: str,
    name: str,
    values: Callable[[SetPredictions], np.ndarray],
    threshold: float | None = None,
) -> Panel:
    sets = {set_title(key): values(predictions) for key, predictions in model.on.items()}
    ax = panel_axes()
    VacuityHistogramDisplay(sets).plot(ax, threshold=threshold, legend=False)
    ax.set_xlabel(f"{what} (both ends stretched)")
    alt = f"{model.title}: histogram of {what}, for digits and the other images"
    return panel(f"{model.title}: {what}", ax, alt, f"{name}-{model.name}")


def panel(title: str, ax: Axes, alt: str, name: str) -> Panel:
    """Axes as a panel; `alt` describes them, `name` is unique in the page."""
    return Panel(title, svg(ax.figure.get_figure(root=True), alt, name))
