"""Figures, images and templates of HTML pages that load nothing."""

from __future__ import annotations

import io
import re
from base64 import b64encode
from dataclasses import dataclass

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave

from .canvas import COLORS, LINES

__all__ = [
    "COLORS",
    "DASHES",
    "LINES",
    "Entry",
    "Panel",
    "panel",
    "panel_axes",
    "png_uri",
    "svg",
    "templates",
]

#: `LINES` as SVG has them.
DASHES = ("", "7 3", "8 2 2 2", "2 3")
#: Colours set by the page, in its light and dark themes.
_PAINT = {
    "#000000": "currentColor",
    **{color.lower(): f"var(--c{i})" for i, color in enumerate(COLORS[:4])},
}
_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


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


def templates(package: str) -> Environment:
    """Return the templates of a package, and behind them the style and macros of all pages."""
    loaders = [PackageLoader(package), PackageLoader("dipedl.plots")]
    return Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


def panel_axes(width: float = 4.2, height: float = 3.0) -> Axes:
    """Return axes for one panel, transparent and without a box."""
    ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    ax.set_facecolor("none")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
    return ax


def panel(title: str, ax: Axes, alt: str, name: str) -> Panel:
    """Return axes as a panel; `alt` describes them, `name` is unique in the page."""
    return Panel(title, svg(ax.figure.get_figure(root=True), alt, name))


def svg(figure: Figure, alt: str, name: str) -> Markup:
    """Return a figure as inline SVG, with width and text colour of the page in place of black.

    `alt` is its description for screen readers; `name` is unique in the page and keeps the ids
    of figures apart.
    """
    buffer = io.StringIO()
    figure.savefig(
        buffer, format="svg", metadata=_METADATA, facecolor="none", edgecolor="none", dpi=150
    )
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    # Paths with two decimals, hundredths of a point.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)
    for color, paint in _PAINT.items():
        text = text.replace(color, paint)
    box = re.search(r'viewBox="[^"]*"', text)
    label = f'role="img" aria-label="{escape(alt)}"'
    # The original root has a fixed size and namespaces, which HTML does not need.
    return Markup(re.sub(r"<svg[^>]*>", f"<svg {box and box[0]} {label}>", text, count=1))


def png_uri(image: np.ndarray) -> str:
    """Return a grey image (h, w) in [0, 1] as a data URI of a PNG."""
    buffer = io.BytesIO()
    imsave(buffer, image, cmap="gray", vmin=0, vmax=1, format="png")
    return "data:image/png;base64," + b64encode(buffer.getvalue()).decode("ascii")
