"""Formats of files by their first bytes: endings lie."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from .errors import UsageError, UserError

CSV, PARQUET, ARROW, STREAM, NPZ, LINES, IMAGES, ROWS = (
    "CSV",
    "Parquet",
    "Arrow",
    "Arrow stream",
    "NPZ",
    "JSON lines",
    "images",
    "rows",
)
_SAMPLE = 1 << 16
_MAGIC = {
    b"PAR1": PARQUET,
    b"ARROW1": ARROW,
    b"\xff\xff\xff\xff": STREAM,
    b"PK": NPZ,
}
_REFUSED = {
    b"\x80": "a pickle, which could run code: write it as CSV or Parquet where it was made",
    b"BZh": "packed by bzip2: unpack it, or pack it by gzip",
    b"\xfd7zXZ": "packed by xz: unpack it, or pack it by gzip",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save the sheet as CSV",
    b"%PDF": "a PDF: give the table itself, as CSV",
    b"FEA1": "a file of Feather 1: write it as Feather 2 or Parquet",
    b"\x89PNG": "an image: give a folder of images",
    b"\xff\xd8\xff": "an image: give a folder of images",
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
    """Format of a file and, of text, its encoding and delimiter.

    `packed` is how a file is compressed, or the network that gives features of images.
    """

    kind: str
    packed: str = ""
    encoding: str = "utf-8"
    delimiter: str = ","

    def __str__(self) -> str:
        """Return a description for the output."""
        if self.kind == IMAGES:
            features = f"features by {self.packed}" if self.packed else "16 x 16 grey pixels"
            return f"images, {features}"
        parts = [self.kind]
        if self.kind == CSV:
            parts.append(f"{_NAMES.get(self.delimiter, repr(self.delimiter))}-separated")
            parts += [self.encoding] if self.encoding != "utf-8" else []
        return ", ".join(parts + ([self.packed] if self.packed else []))


def open_bytes(path: Path, packed: str) -> Any:
    """Open a file as bytes, unpacked."""
    return gzip.open(path, "rb") if packed == "gzip" else open(path, "rb")


def open_text(path: Path, form: Format) -> TextIOWrapper:
    """Open a file as text, unpacked, without a mark at its start; line ends stay as they are."""
    encoding = form.encoding.replace("utf-8", "utf-8-sig")
    return TextIOWrapper(open_bytes(path, form.packed), encoding, newline="")


def format_of(path: Path, delimiter: str | None = None) -> Format:
    """Return the format of a file; UserError if it holds no table."""
    _check_readable(path)
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter or "")
    if len(delimiter) > 1:
        raise UsageError(f"`delimiter` must be one character or tab, got {delimiter!r}")
    with open(path, "rb") as raw:
        packed = "gzip" if raw.read(2) == b"\x1f\x8b" else ""
    try:
        with open_bytes(path, packed) as stream:
            sample = stream.read(_SAMPLE)
    except (EOFError, OSError) as error:
        if isinstance(error, PermissionError):
            raise
        raise UserError(
            f"{path} cannot be unpacked ({packed}): {error}; copy or download it again"
        ) from error
    if not sample.strip(b"\x00\t\r\n \xef\xbb\xbf\xff\xfe"):
        raise UserError(f"{path} is empty; give a table with a line of names and rows below it")
    if _is_model(sample):
        raise UserError(f"{path} is no table but a file that dipedl saved: give the table itself")
    for magic, kind in _MAGIC.items():
        if sample.startswith(magic):
            if kind == NPZ and b"[Content_Types]" in sample[:4096]:
                raise UserError(f"{path} is no table but an Excel workbook: save the sheet as CSV")
            if kind == NPZ and b".npy" not in sample[:4096]:
                raise UserError(f"{path} is a zip archive: unpack it, and give the table in it")
            return Format(kind, packed)
    encoding = _encoding(sample)
    if encoding == _WESTERN:
        _check_western(path, packed)
    text = sample.decode(encoding, "ignore").lstrip("\ufeff")
    if text.lstrip().startswith("{"):
        return Format(LINES, packed, encoding)
    for magic, what in _REFUSED.items():
        if sample.lstrip().startswith(magic):
            raise UserError(f"{path} is no table but {what}")
    if text[:4].lower() == "sep=":
        line = text.splitlines()[0]
        raise UserError(f"{path} begins with the line {line!r}, which is for Excel: delete it")
    delimiter = delimiter or max(_DELIMITERS, key=lambda one: _fields(text, one))
    return Format(CSV, packed, encoding, delimiter)


def is_model(path: Path) -> bool:
    """Return whether a file is one that dipedl saved, by its first bytes."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return _is_model(file.read(64))


def _is_model(head: bytes) -> bool:
    return head[8:].startswith(b'{"__metadata__":{"dipedl"')


def _check_readable(path: Path) -> None:
    if not path.exists():
        near = sorted(p.name for p in path.parent.glob(f"*{path.suffix}"))[:5]
        there = f"; beside it: {', '.join(near)}" if near else ""
        raise UserError(f"there is no file {path}{there}")
    if not path.is_file():
        raise UserError(f"{path} is no ordinary file; copy what it gives to one first")


def _encoding(sample: bytes) -> str:
    """Return the encoding by the mark at the start or by zero bytes; else UTF-8 or Western."""
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
    utf8, broken, first = 0, 0, 0
    with open_bytes(path, packed) as stream:
        for number, line in enumerate(stream, start=1):
            if line.isascii():
                continue
            if is_utf8(line):
                utf8 += 1
            else:
                broken, first = broken + 1, first or number
    # In Western text two letters may look like one of UTF-8, here and there.
    if utf8 > _LOOK_ALIKE * broken:
        raise _not_utf8(path, first)


def check_utf8(path: Path, packed: str) -> None:
    """Refuse a file with a line that is no UTF-8."""
    with open_bytes(path, packed) as stream:
        for number, line in enumerate(stream, start=1):
            if not is_utf8(line):
                raise _not_utf8(path, number)


def _not_utf8(path: Path, line: int) -> UserError:
    return UserError(
        f"{path} cannot be read: line {line:,} holds bytes that are no UTF-8, as other lines are; "
        "mend that line, or write the whole file as UTF-8"
    )


def is_utf8(content: bytes) -> bool:
    """Return whether bytes are a text in UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _fields(text: str, delimiter: str) -> tuple[float, int]:
    """Return the share of the first lines with as many fields as the first, and their number."""
    lines = [row for row in csv.reader(text.splitlines(True)[:100], delimiter=delimiter) if row]
    width = len(lines[0]) if lines else 0
    same = Counter(map(len, lines))[width] / max(len(lines), 1)
    return (same if width > 1 else 0.0, width)
