"""HTML for the output of a notebook: small bars, tables, and a frame that fits light and dark.

Text keeps the colour of the page. There is no script. Without its style, as on a page that does
not trust it, the numbers are still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_HEIGHT = 12
_STYLE = (
    ".dipedl{color:inherit;max-width:100%;overflow-x:auto}"
    ".dipedl table{border-collapse:collapse;margin:.3em 0}"
    ".dipedl th,.dipedl td{color:inherit;background:none;text-align:left;vertical-align:middle;"
    "padding:.15em .6em .15em 0;font-variant-numeric:tabular-nums}"
    ".dipedl caption{color:inherit;caption-side:top;text-align:left;white-space:nowrap}"
    ".dipedl svg{display:block}"
    ".dipedl figure{margin:.8em 0}"
    ".dipedl pre{color:inherit;background:none;white-space:pre-wrap;margin:.3em 0}"
    ".dipedl dd{margin:0 0 .6em 1.5em}"
    ".dipedl mark{color:inherit;background:none;border:1px solid;border-radius:.3em;padding:0 .3em}"
)


def frame(*parts: str) -> str:
    """Join pieces of HTML with the style that they share."""
    return f'<div class="dipedl"><style>{_STYLE}</style>{"".join(parts)}</div>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells of HTML, the first of each row its heading; the rest is text."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def bar(
    name: str, mean: float, low: float, high: float, width: int, mark: float | None = None
) -> str:
    """Draw a probability as a bar, its 95 % interval as a whisker, another value as a mark.

    Parameters
    ----------
    name : str
        Of the class, for those who hear the picture.
    mean, low, high : float
        In [0, 1].
    width : int
        Of the whole track in pixels.
    mark : float, optional
        In [0, 1].
    """
    title = f"{name}: {probability(mean)}, 95 % interval {probability(low)} to {probability(high)}"
    left, right = (f"{width * end:.2f}" for end in (low, high))
    middle = _HEIGHT / 2
    drawn = [
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{_HEIGHT}" fill="currentColor" fill-opacity=".1"/>',
        f'<rect width="{width * mean:.2f}" height="{_HEIGHT}" fill="#0072B2" fill-opacity=".6"/>',
        f'<path d="M{left} {middle}H{right}M{left} 2v8M{right} 2v8" stroke="currentColor"/>',
    ]
    if mark is not None:
        at = f"{width * mark:.2f}"
        drawn.append(f'<path d="M{at} 0v{_HEIGHT}" stroke="#D55E00" stroke-width="3"/>')
    size = f'width="{width}" height="{_HEIGHT}" overflow="visible"'
    return f'<svg role="img" {size}>{"".join(drawn)}</svg>'


def probability(p: float) -> str:
    """Return three decimals; what would be rounded to 0 or 1 and is not says so."""
    if 0 < p < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= p < 1 else f"{p:.3f}"


def dirichlet_table(
    caption: str,
    names: Sequence[str],
    bars: Sequence[Sequence[tuple[float, float, float]]],
    vacuity: Sequence[float],
) -> str:
    """Return a row for each input: its vacuity, and a bar for each class.

    Parameters
    ----------
    caption : str
        What the table shows.
    names : sequence of str, length k
        The classes.
    bars : nested sequence, shape (n, k, 3)
        Mean, lower and upper end of the interval.
    vacuity : sequence of float, length n
        Share of the prior.
    """
    width = max(44, min(110, 500 // len(names)))
    cells = ([_cell(*of, width) for of in zip(names, row, strict=True)] for row in bars)
    rows = ([str(i), f"{u:.3g}", *of] for i, (u, of) in enumerate(zip(vacuity, cells, strict=True)))
    return table(caption, ["input", "vacuity", *names], rows)


def _cell(name: str, ends: tuple[float, float, float], width: int) -> str:
    return bar(name, *ends, width) + escape(probability(ends[0]))
