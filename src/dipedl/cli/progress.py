"""Progress: a live list of stages on a terminal, one plain line per stage elsewhere; on stderr."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

from rich.console import Console
from rich.progress import Progress as Display
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from ..demo.runner import Progress


@contextmanager
def stage_display(names: Sequence[str], quiet: bool) -> Iterator[Progress]:
    """A display of the stages; yields the `progress` argument of `dipedl.demo.run`."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield nullcontext
    elif console.is_terminal and not console.is_dumb_terminal:
        with _display(console) as display:
            yield partial(_live, display, list(names))
    else:
        yield partial(_plain, console, list(names))


def _display(console: Console) -> Display:
    columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"))
    return Display(*columns, TimeElapsedColumn(), console=console)


@contextmanager
def _live(display: Display, names: list[str], stage: str) -> Iterator[None]:
    task = display.add_task(_numbered(names, stage), total=1)
    yield
    display.update(task, completed=1)


@contextmanager
def _plain(console: Console, names: list[str], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    console.print(f"{_numbered(names, stage):<24}{seconds:6.1f} s", markup=False)


def _numbered(names: list[str], stage: str) -> str:
    return f"[{names.index(stage) + 1}/{len(names)}] {stage}"
