"""Progress of a fit, in plain lines."""

from __future__ import annotations

import time


class Stopwatch:
    """Prints what was done and how long it took since the last line; silent if not `verbose`."""

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.last = time.perf_counter()

    def say(self, done: str) -> None:
        """Print one line, and count the seconds of the next one from now."""
        now = time.perf_counter()
        if self.verbose:
            print(f"[dipedl] {done}: {now - self.last:.2f} s", flush=True)
        self.last = now
