"""Names that someone typed, against those that exist; and the command that runs a suite."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from importlib.resources import files


def refuse_unknown(what: str, names: Iterable[str], known: Iterable[str], where: str = "") -> None:
    """Raise ValueError on the first of `names` that is not known, with what was probably meant.

    `where`, such as a file and key, stands in front.
    """
    known, place = list(known), f"{where}: " if where else ""
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known)
            raise ValueError(f"{place}unknown {what} {name!r}{meant}; known: {known}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``", did you mean 'x'?"``, or nothing if no known name is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.55)
    return f", did you mean {close[0]!r}?" if close else ""


def is_folder_name(name: str) -> bool:
    """Return whether a suite or profile may have this name, which is that of a folder."""
    return re.fullmatch(r"[\w-][\w.-]*", name) is not None


def run_command(suite: str, profile: str, *options: str) -> str:
    """Return the command that runs a suite; of one of your own it names any file."""
    known = files(__package__) / "spec" / "suites" / f"{suite}.toml"
    name = suite if known.is_file() else "FILE.toml"
    return " ".join(["dipedl-bench run", name, "--profile", profile, *options])
