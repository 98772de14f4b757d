"""Which OOD set is looked at where a suite names alternatives: the first whose file is there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["first_there"]

#: A file of each set that may have a stand-in, or be one.
_FILES = {"svhn": "svhn/test_32x32.mat", "gtsrb": "gtsrb/gtsrb_test_32x32.webp"}
#: Sets that are downloaded where no folder of data is named.
_DOWNLOADED = ("svhn",)


def first_there(
    names: tuple[str, ...],
    data_dir: str | os.PathLike[str] | None,
    say: Callable[[str], None],
) -> str:
    """The first of the sets that can be had, and a word on those that stand in for another.

    The first of all if none can be had: its loader says what is missing. `data_dir` is None where
    sets are downloaded.
    """
    for name in names:
        if _there(name, data_dir):
            if name != names[0]:
                missing = ", ".join(_FILES[other] for other in names[: names.index(name)])
                say(f"{missing} is not in {str(data_dir)!r}: {name} stands in, under its own name")
            return name
    return names[0]


def _there(name: str, data_dir: str | os.PathLike[str] | None) -> bool:
    if data_dir is None:
        return name in _DOWNLOADED
    return (Path(data_dir).expanduser() / _FILES[name]).is_file()
