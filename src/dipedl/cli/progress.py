"""Progress of stages on stderr: a line for each, which is live on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

from .._writing import LiveLine
from ..demo.runner import Progress


def stage_display(names: Sequence[str], quiet: bool) -> Progress:
    """The `progress` argument of `dipedl.demo.run`, for stages of these names."""
    return nullcontext if quiet else partial(_told, list(names))


@contextmanager
def _told(names: list[str], stage: str) -> Iterator[None]:
    line, start = LiveLine(), time.perf_counter()
    name = f"[{names.index(stage) + 1}/{len(names)}] {stage}"
    line.show(f"{name} ...")
    yield
    line.show(f"{name:<24}{time.perf_counter() - start:6.1f} s", last=True)
