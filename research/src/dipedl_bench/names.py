"""Names that someone typed, against those that exist; and the command that runs a suite."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any


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


def check_folder_name(what: str, name: Any) -> None:
    """Raise ValueError unless a name, such as that of a suite, can be that of a folder."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.-]*", name):
        raise ValueError(
            f"{what} must be of letters, digits, '-', '_' and '.', for it names a folder, got "
            f"{name!r}"
        )


def run_command(suite: str, profile: str, *options: str) -> str:
    """Return the command that runs a suite; of one of your own it names any file."""
    known = files(__package__) / "spec" / "suites" / f"{suite}.toml"
    name = suite if known.is_file() or suite.endswith(".toml") else "FILE.toml"
    return " ".join(["dipedl-bench run", name, "--profile", profile, *options])
