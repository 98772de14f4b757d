"""Checksums of the files of a folder, in the format of ``sha256sum``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .writing import write_file

SUMS = "SHA256SUMS"


def write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Record checksums by file name."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    write_file(folder / SUMS, text.encode("utf-8", "surrogateescape"))


def read_sums(folder: Path) -> dict[str, str]:
    """Checksums by file name that were recorded in a folder; none if there is no record."""
    path = folder / SUMS
    if not path.is_file():
        return {}
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    lines = (line.split(maxsplit=1) for line in text.split("\n"))
    return {line[1].removeprefix("*"): line[0] for line in lines if len(line) == 2}
