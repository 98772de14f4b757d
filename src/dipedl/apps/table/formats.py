"""Kinds of files by their first bytes: endings lie."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .errors import UsageError, UserError

CSV, PARQUET, ARROW, STREAM, FEATHER, NPZ, LINES, IMAGES = (
    "CSV",
    "Parquet",
    "Arrow",
    "Arrow stream",
    "Feather",
    "NPZ",
    "JSON lines",
    "images",
)
_SAMPLE = 1 << 16
_PACKED: dict[bytes, tuple[str, Callable[..., Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ": ("xz", lzma.open),
}
_MAGIC = {
    b"PAR1": PARQUET,
    b"ARROW1": ARROW,
    b"FEA1": FEATHER,
    b"\xff\xff\xff\xff": STREAM,
    b"PK": NPZ,
}
_REFUSED = {
    b"\x80": "a pickle, which could run code: write it as CSV or Parquet where it was made",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save the sheet as CSV",
    b"%PDF": "a PDF: give the table itself, as CSV",
    b"\x89PNG": "an image: give a folder of images by --images",
    b"\xff\xd8\xff": "an image: give a folder of images by --images",
    b"\x89HDF": "an HDF5 file: write the table as Parquet",
    b"SQLite": "a database: write the table as CSV",
    b"<": "a page of HTML or XML: download the table itself, as CSV",
    b"[": "one JSON list: write one object per line, as by: jq -c '.[]' old.json > new.jsonl",
}
_DELIMITERS = ",;\t|"
_WESTERN, _LOOK_ALIKE = "cp1252", 0.1
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True)
class Format:
    """How to read a file: its format and, of text, encoding and delimiter.

    `packed` is how a file is compressed, or the network that gives features of images.
    """

    kind: str
    packed: str = ""
    encoding: str = "utf-8"
    delimiter: str = ","

    def __str__(self) -> str:
        """In words, for the output."""
        if self.kind == IMAGES:
            features = f"features by {self.packed}" if self.packed else "16 x 16 grey pixels"
            return f"images, {features}"
        said = [self.kind]
        if self.kind == CSV:
            said.append(f"{_NAMES.get(self.delimiter, repr(self.delimiter))}-separated")
            said += [self.encoding] if self.encoding != "utf-8" else []
        return ", ".join(said + ([self.packed] if self.packed else []))


def open_bytes(path: Path, packed: str) -> IO[bytes]:
    """The file as bytes, unpacked."""
    stream: IO[bytes] = dict(_PACKED.values()).get(packed, open)(path, "rb")
    return stream


def blank_lines(path: Path, form: Format) -> int:
    """How many empty lines stand above the first line of a file of texts."""
    text = _sample(path, form.packed).decode(form.encoding, "ignore").lstrip("\ufeff")
    return len(text[: len(text) - len(text.lstrip("\r\n"))].splitlines())


def format_of(path: Path, delimiter: str | None = None) -> Format:
    """The format of a file; UserError if it is none that holds a table."""
    _check_readable(path)
    with open(path, "rb") as raw:
        head = raw.read(8)
    packed = next((name for magic, (name, _) in _PACKED.items() if head.startswith(magic)), "")
    sample = _sample(path, packed)
    if not sample.strip(b"\x00\t\r\n \xef\xbb\xbf\xff\xfe"):
        raise UserError(f"{path} is empty; give a table with a line of names and rows below it")
    for magic, kind in _MAGIC.items():
        if sample.startswith(magic):
            return Format(_checked(kind, sample, path), packed)
    encoding = _encoding(sample)
    if encoding == _WESTERN:
        _check_western(path, packed)
    text = sample.decode(encoding, "ignore").lstrip("\ufeff")
    if text.lstrip().startswith("{"):
        return Format(LINES, packed, encoding)
    for magic, what in _REFUSED.items():
        if sample.lstrip().startswith(magic):
            raise UserError(f"{path} is no table but {what}")
    found = _checked_delimiter(delimiter) or max(_DELIMITERS, key=lambda one: _fields(text, one))
    return Format(CSV, packed, encoding, found)


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file, or say --images")
    if not path.exists():
        near = sorted(p.name for p in path.parent.glob(f"*{path.suffix}"))[:5]
        there = f"; beside it: {', '.join(near)}" if near else ""
        raise UserError(f"there is no file {path}{there}")
    if not path.is_file():
        raise UserError(f"{path} is no ordinary file; copy what it gives to one first")


def _sample(path: Path, packed: str) -> bytes:
    try:
        with open_bytes(path, packed) as stream:
            return stream.read(_SAMPLE)
    except (EOFError, OSError, lzma.LZMAError) as error:
        if isinstance(error, PermissionError):
            raise
        raise UserError(
            f"{path} cannot be unpacked ({packed}): {error}; copy or download it again"
        ) from error


def _checked(kind: str, sample: bytes, path: Path) -> str:
    if kind == NPZ and b"[Content_Types]" in sample[:4096]:
        raise UserError(f"{path} is no table but an Excel workbook: save the sheet as CSV")
    if kind == NPZ and b".npy" not in sample[:4096]:
        raise UserError(f"{path} is a zip archive: unpack it, and give the table in it")
    return kind


def _encoding(sample: bytes) -> str:
    """By the mark at the start or by zero bytes; else UTF-8, or Western text that is none."""
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    zeros = [sample[:400][i::2].count(0) for i in (0, 1)]
    if max(zeros) > 0.3 * len(sample[:400][::2]):
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    try:
        # The last character may be cut.
        sample[: len(sample) - 3 if len(sample) == _SAMPLE else None].decode("utf-8")
    except UnicodeDecodeError as error:
        return "utf-8" if len(sample) == _SAMPLE and error.start > _SAMPLE - 8 else _WESTERN
    return "utf-8"


def _check_western(path: Path, packed: str) -> None:
    """Refuse a file of UTF-8 with some lines that are none: as Western text it is garbled."""
    lines: dict[bool, list[int]] = {True: [], False: []}
    with open_bytes(path, packed) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.isascii():
                lines[is_utf8(line)].append(number)
    # In Western text two letters may look like one of UTF-8, here and there.
    if len(lines[True]) > _LOOK_ALIKE * len(lines[False]):
        raise _not_utf8(path, lines[False][0])


def _not_utf8(path: Path, line: int) -> UserError:
    """The error of a file of UTF-8 with a line that is none."""
    return UserError(
        f"{path} cannot be read: line {line:,} holds bytes that are no UTF-8, as other lines are; "
        "mend that line, or write the whole file as UTF-8"
    )


def check_utf8(path: Path, packed: str) -> None:
    """UserError for a file with a line that is no UTF-8."""
    with open_bytes(path, packed) as stream:
        for number, line in enumerate(stream, start=1):
            if not is_utf8(line):
                raise _not_utf8(path, number)


def is_utf8(content: bytes) -> bool:
    """Return whether bytes are a text in UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _fields(text: str, delimiter: str) -> tuple[float, int]:
    """Share of the first lines with as many fields as the first, and how many these are."""
    lines = [row for row in csv.reader(text.splitlines(True)[:100], delimiter=delimiter) if row]
    width = len(lines[0]) if lines else 0
    same = Counter(map(len, lines))[width] / max(len(lines), 1)
    return (same if width > 1 else 0.0, width)


def _checked_delimiter(given: str | None) -> str:
    wanted = {"tab": "\t", "\\t": "\t"}.get(given or "", given or "")
    if len(wanted) > 1:
        raise UsageError(f"--delimiter must be one character or tab, got {given!r}")
    return wanted
