"""Progress: a line that changes in a terminal and in a notebook, or a line for each step."""

from __future__ import annotations

import os
import shutil
import sys
import time
from importlib import import_module
from typing import Any, TextIO

#: Seconds between two states of the line.
_TERMINAL, _NOTEBOOK, _LOG = 0.1, 0.5, 10.0


class LiveLine:
    """One line of text that changes as work goes on, on standard error if there is no `stream`.

    A terminal rewrites the line, and so does a notebook in the output of its cell. A log gets a
    plain line every ten seconds: a short task leaves its last line only.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self._text, self._width = "", 0
        self._cell: Any = None
        self._at = {_LOG: time.monotonic()}

    def show(self, text: str, *, last: bool = False) -> None:
        """Show `text`, unless the line has just changed; the `last` is shown always and stays."""
        self._text, pause, now = text, self._pause(), time.monotonic()
        if last or now - self._at.get(pause, -pause) >= pause:
            self._at[pause] = now
            self._draw(pause)
        if last:
            self.close()

    def close(self) -> None:
        """End the line with the latest text: what comes next stands below it."""
        if self._width or self._cell is not None:
            self._draw(self._pause())
        if self._width:
            print(file=self._out(), flush=True)
        self._width, self._cell = 0, None

    def _draw(self, pause: float) -> None:
        if pause == _NOTEBOOK:
            self._in_cell()
        elif pause == _TERMINAL:
            # A longer line than the window would leave its head behind.
            text = self._text[: shutil.get_terminal_size().columns - 1]
            print(f"\r{text:<{self._width}}", end="", file=self._out(), flush=True)
            self._width = len(text)
        else:
            print(self._text, file=self._out(), flush=True)

    def _out(self) -> TextIO:
        return self.stream or sys.stderr

    def _pause(self) -> float:
        if self.stream is None and _in_notebook():
            return _NOTEBOOK
        rewritten = self._out().isatty() and os.environ.get("TERM") != "dumb"
        return _TERMINAL if rewritten else _LOG

    def _in_cell(self) -> None:
        content = {"text/plain": self._text}
        if self._cell is None:
            display = import_module("IPython.display").display
            self._cell = display(content, raw=True, display_id=True)
        else:
            self._cell.update(content, raw=True)


def _in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, and not a terminal with IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class Stopwatch:
    """Print what was done and how long it took since the last line; silent if not `verbose`."""

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.last = time.perf_counter()

    def say(self, done: str) -> None:
        """Print one line, and count the seconds of the next one from now."""
        now = time.perf_counter()
        if self.verbose:
            print(f"[dipedl] {done}: {now - self.last:.2f} s", flush=True)
        self.last = now
