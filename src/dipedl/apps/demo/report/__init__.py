"""One self-contained HTML page about a result of the demo, and the parts that such pages share."""

from ....plots.canvas import COLORS, LINES
from .figures import Entry, Panel, panel, panel_axes
from .inline import svg, templates
from .page import render, write

__all__ = [
    "COLORS",
    "LINES",
    "Entry",
    "Panel",
    "panel",
    "panel_axes",
    "render",
    "svg",
    "templates",
    "write",
]
