"""Figures and images inside an HTML page, without external files."""

from __future__ import annotations

import io
import re
from base64 import b64encode

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.image import imsave

from ....plots.canvas import COLORS

#: Colours set by the page, in its light and dark themes.
_PAINT = {
    "#000000": "currentColor",
    **{color.lower(): f"var(--c{i})" for i, color in enumerate(COLORS[:4])},
}
_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def templates(*packages: str) -> Environment:
    """The templates of these packages, and behind them those of the demo's report."""
    loaders = [PackageLoader(name) for name in (*packages, "dipedl.apps.demo.report")]
    return Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


def svg(figure: Figure, alt: str, name: str) -> Markup:
    """A figure as inline SVG, with width and text colour of the page in place of black.

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
    text = re.sub(r' d="[^"]*"', _rounded, text)
    for color, paint in _PAINT.items():
        text = text.replace(color, paint)
    box = re.search(r'viewBox="[^"]*"', text)
    label = f'role="img" aria-label="{escape(alt)}"'
    # The original root has a fixed size and namespaces, which HTML does not need.
    return Markup(re.sub(r"<svg[^>]*>", f"<svg {box and box[0]} {label}>", text, count=1))


def _rounded(path: re.Match[str]) -> str:
    """A path with two decimals, hundredths of a point."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0])


def png_uri(image: np.ndarray) -> str:
    """A grey image (h, w) in [0, 1] as a data URI of a PNG."""
    buffer = io.BytesIO()
    imsave(buffer, image, cmap="gray", vmin=0, vmax=1, format="png")
    return "data:image/png;base64," + b64encode(buffer.getvalue()).decode("ascii")
