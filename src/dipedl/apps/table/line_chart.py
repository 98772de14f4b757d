"""Line charts as SVG, for pages without a script."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

#: Width and height of a chart in pixels.
_CHART = 640, 180
_COLORS = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


def line_chart(caption: str, x: Sequence[float], lines: Mapping[str, Sequence[float]]) -> str:
    """Lines over the same x, with a dot for each value and a legend; NaN is a gap.

    Parameters
    ----------
    caption : str
        What is shown.
    x : sequence of float, length n
        Increasing.
    lines : mapping of str to sequence of float, length n
        By name, four at most.
    """
    known = [value for values in lines.values() for value in values if value == value]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    room = 0.1 * (high - low) or 0.05
    low, high = max(low - room, min(low, 0.0)), high + room
    span = (x[-1] - x[0]) or 1.0
    left, right, top, bottom = 52.0, _CHART[0] - 10.0, 10.0, _CHART[1] - 22.0

    def place(at: float, value: float) -> tuple[float, float]:
        y = bottom - (value - low) / (high - low) * (bottom - top)
        return left + (at - x[0]) / span * (right - left), y

    drawn = [f'<path d="M{left} {top}V{bottom}H{right}" stroke="currentColor" fill="none"/>']
    for value in _ticks(low, high):
        y = place(x[0], value)[1]
        drawn.append(_label(left - 6, y + 4, f"{value:.6g}", "end"))
        drawn.append(
            f'<path d="M{left} {y:.1f}H{right}" stroke="currentColor" stroke-opacity=".15"/>'
        )
    drawn.append(_label(left, _CHART[1] - 5, f"row {x[0]:,.0f}", "start"))
    if len(x) > 1:
        drawn.append(_label(right, _CHART[1] - 5, f"{x[-1]:,.0f}", "end"))
    legend = []
    for (name, values), color in zip(lines.items(), _COLORS, strict=False):
        points = [place(at, v) if v == v else None for at, v in zip(x, values, strict=True)]
        path, pen = "", "M"
        for point in points:
            path += "" if point is None else f"{pen}{point[0]:.1f} {point[1]:.1f}"
            pen = "M" if point is None else "L"
        drawn.append(f'<path d="{path}" stroke="{color}" stroke-width="2" fill="none"/>')
        drawn += [
            f'<circle cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="2.5" fill="{color}"/>'
            for point in points
            if point is not None
        ]
        legend.append(f'<span style="color:{color}">&#9679;</span> {escape(name)}')
    view = f'viewBox="0 0 {_CHART[0]} {_CHART[1]}" style="width:100%;max-width:{_CHART[0]}px"'
    return (
        f"<figure><figcaption>{escape(caption)}: {' &nbsp; '.join(legend)}</figcaption>"
        f'<svg role="img" aria-label="{escape(caption)}" {view}>{"".join(drawn)}</svg></figure>'
    )


def _ticks(low: float, high: float) -> Iterator[float]:
    """Round numbers from `low` to `high`, two to five of them."""
    power = 10.0 ** math.floor(math.log10((high - low) / 2))
    step = max(power * m for m in (1, 2, 5) if power * m <= (high - low) / 2)
    for i in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield i * step


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" fill="currentColor" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
