"""One self-contained HTML page about a result of the demo."""

from .page import render, write

__all__ = ["render", "write"]
