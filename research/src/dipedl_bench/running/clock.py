"""How long things will take, going by how long they took with other seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..results.store import Store
from ..spec.cells import Cell
from ..spec.plan import Part

#: Takes a line of progress.
Say = Callable[[str], None]


class Clock:
    """The budget of a run, in seconds from now, and estimates from the receipts of its store."""

    def __init__(self, store: Store, budget: float | None) -> None:
        if budget is not None and not budget > 0:
            raise ValueError(f"budget must be > 0 seconds, got {budget!r}")
        self.store = store
        self.end = None if budget is None else time.monotonic() + budget

    def expected(self, part: Part | Cell) -> float | None:
        """Seconds that a part will probably take; None if no seed of it was timed."""
        receipts = self.store.receipts(part.name, part.digest)
        seconds = [receipt["elapsed"] for receipt in receipts if "elapsed" in receipt]
        return sum(seconds) / len(seconds) if seconds else None

    def too_late(self, part: Part | Cell) -> bool:
        """Return whether the part will probably not be finished within the budget.

        One that can pause need not be: it may begin while there is time.
        """
        if self.end is None:
            return False
        needed = 0.0 if part.can_pause else self.expected(part) or 0.0
        return time.monotonic() + needed > self.end

    def remaining(self, parts: Iterable[Part | Cell]) -> str:
        """A phrase on how long these parts will take."""
        seconds = [self.expected(part) for part in parts]
        known = [s for s in seconds if s is not None]
        if not seconds:
            return "nothing more to train"
        untimed = len(seconds) - len(known)
        words = [f"about {duration(sum(known))} to go"] * bool(known)
        return ", and ".join(words + [f"not yet timed: {untimed}"] * bool(untimed))


def silent(text: str) -> None:
    """Takes a line of progress where nobody asked for it."""


def epoch_text(report: Mapping[str, Any]) -> str:
    """A line of progress about an epoch of a training."""
    left = round(report["seconds_left"])
    return f"epoch {report['epoch']}/{report['epochs']}, loss {report['loss']:.4g}, {left} s left"


def seldom(say: Say, prefix: str, pause: float = 20.0) -> Say:
    """`say` with a prefix, that leaves out what comes less than `pause` seconds after the last."""
    last = time.monotonic()

    def spoken(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= pause:
            last = time.monotonic()
            say(prefix + text)

    return spoken


def duration(seconds: float) -> str:
    """Seconds for readers: 8.1 s, 4 min, 2 h 05 min."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
