"""What a fit says: its progress in plain lines, and warnings in the name of the user's line."""

from __future__ import annotations

import sys
import time
import warnings

#: What stands between a user's line and a warning: this package, and what calls it.
_OURS = {"dipedl", "sklearn", "joblib"}


def warn_caller(message: str | UserWarning) -> None:
    """Warn in the name of the first line on the way here that is not of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


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
