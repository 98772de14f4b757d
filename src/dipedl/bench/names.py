"""Names that someone typed, against those that exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "refuse_unknown"]


def refuse_unknown(what: str, found: Iterable[str], known: Iterable[str]) -> None:
    """Raise ValueError on the first of `found` that is not known, with what was probably meant."""
    known = list(known)
    for name in found:
        if name not in known:
            raise ValueError(f"unknown {what} {name!r}{did_you_mean(name, known)}; known: {known}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``", did you mean 'x'?"``, or nothing if no known name is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""
