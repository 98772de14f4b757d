"""What a fit says: its progress in plain lines, and warnings in the name of the user's line."""

from __future__ import annotations

import re
import sys
import time
import warnings
from types import FrameType

#: What stands between a user's line and a warning: this package, and what calls it.
_OURS = {"dipedl", "sklearn", "joblib"}
#: Actions of the filters of `warnings` that show a warning of a line once.
_ONCE = {"default", "module", "once"}
#: What was shown `once`, with the file and the line it was said of.
_SHOWN: set[tuple[str, str, int]] = set()


def warn_caller(message: str | UserWarning, *, once: bool = False) -> None:
    """Warn in the name of the first line on the way here that is not of this package.

    Python shows a warning of a line once, but forgets that it did as soon as any code enters
    ``warnings.catch_warnings``, as every prediction of scikit-learn does. With `once` the line is
    remembered here, where the user's filters show the warning once.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    if once and _action(message, frame) in _ONCE:
        said = str(message), frame.f_code.co_filename, frame.f_lineno
        if said in _SHOWN:
            return
        _SHOWN.add(said)
    warnings.warn(message, stacklevel=level)


def _action(message: str | UserWarning, frame: FrameType) -> str:
    """What the filters of `warnings` do with a warning of a line."""
    kind = UserWarning if isinstance(message, str) else type(message)
    module = frame.f_globals.get("__name__", "<unknown>")
    for action, text, category, where, line in warnings.filters:
        named = re.match(text or "", str(message)) and re.match(where or "", module)
        if issubclass(kind, category) and named and line in (0, frame.f_lineno):
            return action
    return "default"


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
