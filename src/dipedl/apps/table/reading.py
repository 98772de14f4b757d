"""Tables in pieces: every format as DataFrames, with the numbers of their rows.

CSV and JSON lines give texts; the kinds of the columns say what these mean. Formats with types of
their own keep them.
"""

from __future__ import annotations

import csv
import glob
import gzip
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .errors import UsageError, UserError, list_names

CSV, PARQUET, ARROW, STREAM = "CSV", "Parquet", "Arrow", "Arrow stream"
NPZ, LINES, IMAGES, ROWS = "NPZ", "JSON lines", "images", "rows"
_HEAD = 1 << 16
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
_ROWS, _BLOCK, _PAGES = 20_000, 1 << 22, 1 << 20
#: Of the files of a folder.
_ENDINGS = (".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet", ".feather", ".arrow")
#: Whole numbers up to this one are each a float64.
_EXACT = 1 << 53
#: Of a packed file some 100 kB more are unpacked than were asked for.
_SAMPLE = 1 << 24
#: What is wrong with a row whose last field is empty and has no name.
_ENDS = " ends in a delimiter: delete it, or give the last column a name in the first line"
_SWALLOWED = "lines were read as part of it. Close or delete that quote"


# Formats by the first bytes of a file: endings lie


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
            sample = stream.read(_HEAD)
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
        sample[: len(sample) - 3 if len(sample) == _HEAD else None].decode("utf-8")
    except UnicodeDecodeError as error:
        return "utf-8" if len(sample) == _HEAD and error.start > _HEAD - 8 else _WESTERN
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


# Rows


class RejectedRow(NamedTuple):
    """A row that is left out: its number from 1, without the line of names; where, and why."""

    row: int
    column: str
    reason: str

    def __str__(self) -> str:
        """Return a line for the output."""
        where = f", column {self.column!r}" if self.column else ""
        return f"row {self.row}{where}: {self.reason}"


@dataclass
class Piece:
    """Some rows of a table, their numbers from 1, and the rows refused before or among them."""

    frame: pd.DataFrame
    rows: np.ndarray
    refused: list[RejectedRow] = field(default_factory=list)
    #: Share of the file that was read up to here.
    done: float = 1.0


def mark_words(frame: pd.DataFrame, words: Collection[str]) -> pd.DataFrame:
    """Return the frame with a gap for each entry that is one of `words`, or the number of one.

    Whatever the column, and the blanks around a text.
    """
    if not words:
        return frame
    words = {word.strip() for word in words}
    numbers = set(pd.to_numeric(pd.Series([*words], dtype=object), errors="coerce").dropna())

    def is_word(entry: object) -> bool:
        if isinstance(entry, str):
            return entry.strip() in words
        return type(entry) is not bool and isinstance(entry, Real) and entry in numbers

    marked = frame.copy(deep=False)
    for j in range(frame.shape[1]):
        values = frame.iloc[:, j]
        if values.dtype.kind in "iuf":
            found = values.isin(numbers)
        else:
            found = pd.Series([is_word(entry) for entry in values], values.index, dtype=bool)
        if found.any():
            marked.isetitem(j, values.mask(found, None))
    return marked


@dataclass(frozen=True)
class Table:
    """A file that holds a table; `pieces` reads it from the start on each call.

    `gaps` are words for a missing value, see `mark_words`.
    """

    path: Path
    format: Format
    names: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows in order; UserError for a damaged file, with a remedy."""
        try:
            for piece in self.read():
                yield replace(piece, frame=mark_words(piece.frame, self.gaps))
        except (UserError, FileNotFoundError, PermissionError):
            raise
        except UnicodeDecodeError as error:
            if self.format.encoding == "utf-8":
                check_utf8(self.path, self.format.packed)
            raise UserError(
                f"{self.path} is no text of one encoding: {error}; write it as UTF-8, or as Parquet"
            ) from error
        except (pa.ArrowException, csv.Error, ValueError, EOFError, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise UserError(f"{self.path} cannot be read: {reason}; copy or write it again") from (
                error
            )

    def read(self) -> Iterator[Piece]:
        """Yield the rows as the file holds them."""
        if self.format.kind == CSV:
            return _csv_pieces(self)
        if self.format.kind == LINES:
            return _json_pieces(self)
        if self.format.kind == NPZ:
            whole = _npz_frame(self.path)
            parts = (whole.iloc[i : i + _ROWS] for i in range(0, len(whole), _ROWS))
            return _numbered_pieces(part.reset_index(drop=True) for part in parts)
        return _numbered_pieces(map(frame_of, _arrow_tables(self)), _rows_stated(self))


@dataclass(frozen=True)
class FrameTable(Table):
    """Rows in memory as a table."""

    frame: pd.DataFrame = field(default_factory=pd.DataFrame)

    def read(self) -> Iterator[Piece]:
        """Yield all rows at once."""
        yield Piece(self.frame, np.arange(1, len(self.frame) + 1))


@dataclass(frozen=True)
class TableFiles(Table):
    """Files with the same columns as one table: one after the other, with rows counted through."""

    parts: tuple[Table, ...] = ()

    def read(self) -> Iterator[Piece]:
        """Yield the pieces of each file; a refused row is named by its file too."""
        above = 0
        for i, part in enumerate(self.parts):
            last = 0
            for piece in part.pieces():
                refused = [
                    one._replace(
                        row=one.row + above,
                        reason=f"{one.reason} (row {one.row:,} of {part.path.name})",
                    )
                    for one in piece.refused
                ]
                last = max([last, *piece.rows.tolist(), *(one.row for one in piece.refused)])
                done = (i + piece.done) / len(self.parts)
                yield Piece(piece.frame[list(self.names)], piece.rows + above, refused, done)
            above += last


def row_of_json(text: str) -> Table:
    """Return a row, a JSON object of names and values, as a table."""
    try:
        row = _parse_json(text)
    except ValueError as error:
        raise UsageError(
            f"the row is no JSON: {error}; write names and values, each name once"
        ) from error
    return FrameTable(
        Path("the row"), Format(ROWS), tuple(row), frame=pd.DataFrame([row], dtype=object)
    )


def open_table(
    path: Path | str,
    *,
    delimiter: str | None = None,
    gaps: Iterable[str] = (),
    numbers: bool = False,
) -> Table:
    """Open the table in a file.

    Parameters
    ----------
    path : path-like
        CSV (also compressed, UTF-16, with semicolons or tabs), Parquet, Feather, Arrow, JSON lines
        or NPZ, recognised by the content; a folder of such files, or a pattern such as days/*.csv.
    delimiter : str, optional
        Of a CSV file; default: found by itself.
    gaps : iterable of str
        Words that stand for a missing value in every column, the target too, blanks around aside.
    numbers : bool
        Whether numbers may be the names of all columns of a CSV file, as those of classes.

    Raises
    ------
    UserError
        If it holds no table, or one without rows or with two columns of one name.
    """
    path = Path(path)
    files = table_files(path)
    if files != [path]:
        return _join_files(
            path, [open_table(f, delimiter=delimiter, gaps=gaps, numbers=numbers) for f in files]
        )
    table = Table(path, format_of(path, delimiter), (), tuple(gaps))
    first = next((p for p in table.pieces() if len(p.frame) or p.refused), None)
    if first is None or not len(first.frame):
        raise UserError(f"{path} has names of columns, but no rows below them{_no_row(first)}")
    names = [str(name) for name in first.frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            f"{path} has two columns named {list_names(map(repr, twice))}: "
            "give each a name of its own"
        )
    for at, name in enumerate(names, start=1):
        if not name.strip():
            index = "; an index of pandas is left out by to_csv(index=False)" if at == 1 else ""
            raise UserError(
                f"{path} has no name for column {at}: write one into its first line{index}"
            )
    if table.format.kind == CSV and not numbers and all(map(_is_number, names)):
        raise UserError(
            f"{path} begins with numbers ({list_names(names)}), not with names of columns: "
            "write a line of names above them"
        )
    return replace(table, names=tuple(names))


@dataclass(frozen=True)
class Sample:
    """Rows of a table with their numbers; how many it has, and which could not be read."""

    frame: pd.DataFrame
    rows: np.ndarray
    total: int
    refused: list[RejectedRow]


def sample_rows(table: Table, most: int | None = None, seed: int = 0) -> Sample:
    """Return all rows of a table, or `most` of them, each equally likely; in their order."""
    rng = np.random.default_rng(seed)
    frames: list[pd.DataFrame] = []
    keys: list[pd.Series] = []
    total, refused = 0, []
    for piece in table.pieces():
        # The rows with the smallest keys are a sample without replacement of all so far.
        frames.append(piece.frame.set_axis(piece.rows))
        keys.append(pd.Series(rng.random(len(piece.rows)), index=piece.rows))
        total += len(piece.rows) + len(piece.refused)
        refused += piece.refused
        if most is not None and sum(map(len, keys)) > 2 * most:
            smallest = pd.concat(keys).nsmallest(most).sort_index()
            frames, keys = [pd.concat(frames).loc[smallest.index]], [smallest]
    frame, key = pd.concat([f for f in frames if len(f)] or [pd.DataFrame()]), pd.concat(keys)
    if most is not None and len(frame) > most:
        frame = frame.loc[key.nsmallest(most).sort_index().index]
    return Sample(frame.reset_index(drop=True), frame.index.to_numpy(dtype=int), total, refused)


def table_files(path: Path) -> list[Path]:
    """Return the files of a table: the path itself, those in a folder, or those of a pattern."""
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.name.lower().endswith(_ENDINGS))
        if not found:
            raise UserError(
                f"{path} is a folder without a file that ends in {', '.join(_ENDINGS)}; "
                "write one of these"
            )
        return found
    if glob.has_magic(path.name) and not path.exists():
        found = sorted(path.parent.glob(path.name))
        if not found:
            raise UserError(f"there is no file {path}")
        return found
    return [path]


def _join_files(path: Path, parts: list[Table]) -> Table:
    """Return the tables of a folder as one; UserError unless all have the same columns."""
    first = parts[0]
    for part in parts[1:]:
        other = sorted({*part.names} ^ {*first.names})
        if other:
            raise UserError(
                f"{part.path} and {first.path} differ in the columns "
                f"{list_names(map(repr, other))}: give files with the same columns"
            )
    if len(parts) == 1:
        return first
    return TableFiles(path, first.format, first.names, parts=tuple(parts))


def _no_row(piece: Piece | None) -> str:
    """Return why no row of a file can be read, with a remedy."""
    if piece is None or not piece.refused:
        return "; add rows"
    row, _, reason = piece.refused[0]
    names = list(piece.frame)
    remedy = "; delete what stands above the line of names, such as a title, or name all columns"
    if len(names) > 1 and not names[-1]:
        remedy = "; the line of names ends in a delimiter: delete it"
    return f" that can be read: row {row}: {reason}{'' if _ENDS in reason else remedy}"


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _csv_pieces(table: Table) -> Iterator[Piece]:
    """Yield rows of texts; an empty field is a missing value, a row of another width refused."""
    with open_text(table.path, table.format) as stream:
        lines = csv.reader(stream, delimiter=table.format.delimiter)
        blank, names = next((i, line) for i, line in enumerate(lines) if line)
        if not stream.read(1):
            return
    names = [name.strip() for name in names]
    expected = _rows_expected(table)
    reasons: dict[int, str] = {}
    last, text = 0, ""
    try:
        # Arrow reads ahead in a thread, and at exit would abort the process if that needed Python.
        native, packed = pa.OSFile(os.fsencode(table.path)), table.format.packed
        with pa.CompressedInputStream(native, packed) if packed else native as source:
            for batch in _csv_batches(source, table.format, blank, len(names), reasons):
                first, last = last + 1, last + batch.num_rows
                for row in sorted(reasons):
                    last += row <= last
                rows = np.setdiff1d(np.arange(first, last + 1), list(reasons))
                frame = batch.to_pandas().set_axis(names, axis=1)
                text = str(frame.iloc[-1, -1]) if len(frame) else text
                refused = [
                    RejectedRow(row, "", reasons.pop(row)) for row in sorted(reasons) if row <= last
                ]
                yield Piece(frame, rows, refused, min(last / expected, 1.0))
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error) and table.format.encoding == "utf-8":
            check_utf8(table.path, table.format.packed)
        if "straddling" not in str(error):
            raise
        raise UserError(
            f"{table.path} has a row of more than {_BLOCK >> 20} MB, as where a quote is never "
            "closed. Close or delete that quote, or write the table as Parquet"
        ) from error
    _check_closed(table, text, last)
    if reasons:
        refused = [RejectedRow(row, "", reasons[row]) for row in sorted(reasons)]
        yield Piece(pd.DataFrame(columns=names), np.array([], dtype=int), refused)


def _csv_batches(
    source: Any, form: Format, blank: int, n: int, reasons: dict[int, str]
) -> Iterator[Any]:
    """Return batches of rows of n texts below `blank` empty lines and the line of names.

    `reasons` gets the numbers of the rows that have another width.
    """

    def refuse(row: Any) -> str:
        # Empty lines above the names are counted, and the line of names too.
        reasons[row.number - blank - 1] = _reason(row, form.delimiter)
        return "skip"

    positions = [f"f{i}" for i in range(n)]
    # With several threads the reader does not know the numbers of rows that it refuses.
    reading = pa.csv.ReadOptions(
        encoding=form.encoding,
        block_size=_BLOCK,
        column_names=positions,
        skip_rows=blank,
        skip_rows_after_names=1,
        use_threads=False,
    )
    parsing = pa.csv.ParseOptions(
        delimiter=form.delimiter, newlines_in_values=True, invalid_row_handler=refuse
    )
    as_text = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(positions, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
    )
    return iter(pa.csv.open_csv(source, reading, parsing, as_text))


def _reason(row: Any, delimiter: str) -> str:
    """Return why a row is refused, with the number of lines that an open quote takes with it."""
    text = str(row.text)
    below = _lines_below(text)
    if below and text.count('"') % 2:
        return f"a quote opens in this row and is never closed: the next {below:,} {_SWALLOWED}"
    found = f"{row.actual_columns} field{'s' * (row.actual_columns != 1)}"
    fields = f"{found}, where the first line has {row.expected_columns}"
    ends = text.endswith(delimiter) and row.actual_columns == row.expected_columns + 1
    return f"{fields}: {text[:60]!r}{_ENDS if ends else ''}"


def _lines_below(text: str) -> int:
    """Return how many lines of a file follow the first one in a text; U+2028 ends none."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return plain.count("\n") - plain.endswith("\n")


def _check_closed(table: Table, last: str, row: int) -> None:
    """Refuse a file whose last field, that of a `row`, has run to its end."""
    below = _lines_below(last)
    if not below:
        return
    end = b""
    with open_bytes(table.path, table.format.packed) as stream:
        while block := stream.read(_BLOCK):
            end = (end + block)[-2 * _BLOCK :]
    if end.decode(table.format.encoding, "ignore").endswith(last):
        raise UserError(
            f"{table.path}: a quote opens in the last field of row {row} and is never closed: "
            f"the next {below:,} {_SWALLOWED}"
        )


def _rows_expected(table: Table) -> float:
    """Return about how many rows a file of lines has, by the lines in its first bytes.

    How far a reader came does not say it: the readers are far ahead of the rows that they gave.
    """
    with open_bytes(table.path, table.format.packed) as stream:
        sample = stream.read(_SAMPLE)
        bare = sample.split(b'"')[::2] if table.format.kind == CSV else [sample]
        lines = sum(part.count(b"\n") for part in bare)
        raw = getattr(stream, "fileobj", None) or stream
        return max(float(lines * table.path.stat().st_size / max(raw.tell(), 1)), 1.0)


def _json_pieces(table: Table) -> Iterator[Piece]:
    """Yield records of texts, lacking names as gaps."""
    records = _json_records(table)
    frames = (
        pd.DataFrame(some, columns=table.names or None, dtype=object)
        for some in iter(lambda: list(islice(records, _ROWS)), [])
    )
    return _numbered_pieces(map(_as_texts, frames), _rows_expected(table))


def _json_records(table: Table) -> Iterator[dict[str, Any]]:
    """Yield an object for each line, or the only one where it is written over several lines."""
    with open_text(table.path, table.format) as text:
        found = False
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            try:
                record = _parse_json(line)
            except ValueError as error:
                whole = None if found else _whole_object(table)
                if whole is not None:
                    yield whole
                    return
                raise UserError(
                    f"{table.path}, line {number} is no JSON: {error}; write one object per line, "
                    "each name once"
                ) from error
            if not isinstance(record, dict):
                raise UserError(
                    f"{table.path}, line {number} is no object but {line.strip()[:30]!r}; "
                    "write names and values"
                )
            found = True
            yield record


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = sorted(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"{list_names(map(repr, twice))} is there twice")
    return found


class JsonNumber(str):
    """A number in JSON as it is written: its mark is a point, whatever that of its column."""


_JSON = json.JSONDecoder(
    parse_int=str, parse_float=JsonNumber, parse_constant=str, object_pairs_hook=_object_of
)


def _parse_json(text: str) -> Any:
    """Return the value of a text of JSON, with numbers and truths as they are written.

    ValueError if it is none, a name comes twice, or lists lie too deep in it.
    """
    try:
        return _JSON.decode(text)
    except RecursionError as error:
        raise ValueError("lists or objects are nested too deeply") from error


def _whole_object(table: Table) -> dict[str, Any] | None:
    with open_text(table.path, table.format) as text:
        try:
            found = _parse_json(text.read())
        except ValueError:
            return None
    return found if isinstance(found, dict) else None


def _as_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return columns of JSON as texts; lists and objects stay, to be refused by name."""
    words = {True: "true", False: "false"}
    for name in frame:
        entries = [words.get(v, v) if isinstance(v, bool) else v for v in frame[name]]
        texts = all(v is None or type(v) in (str, float) for v in entries)
        frame[name] = pd.Series(entries, dtype="str" if texts else object)
    return frame


def _arrow_tables(table: Table) -> Iterator[Any]:
    """Yield tables of `_ROWS` rows at most, with the types of the file."""
    for batch in _arrow_batches(table):
        for first in range(0, max(batch.num_rows, 1), _ROWS):
            yield pa.Table.from_batches([batch.slice(first, _ROWS)])


def _arrow_batches(table: Table) -> Iterator[Any]:
    name, kind = os.fsencode(table.path), table.format.kind
    if kind == PARQUET:
        with pa.OSFile(name) as source:
            yield from open_columnar(source).iter_batches(batch_size=_ROWS)
    elif kind == ARROW:
        with pa.memory_map(name) as source, open_columnar(source) as reader:
            yield from map(reader.get_batch, range(reader.num_record_batches))
    else:
        with open(table.path, "rb") as source, pa.ipc.open_stream(source) as reader:
            yield from reader


def _rows_stated(table: Table) -> float:
    """Return how many rows a file says to have; infinity if it does not."""
    if table.format.kind != PARQUET:
        return np.inf
    with pa.OSFile(os.fsencode(table.path)) as source:
        return float(open_columnar(source).metadata.num_rows or 1)


def open_columnar(file: Any) -> Any:
    """Return a reader of an open file of Parquet, Arrow or Feather; None of any other."""
    head = bytes(file.read(6))
    file.seek(0)
    if head.startswith(b"PAR1"):
        # Pages come one after another: a row group may be larger than memory.
        return pa.parquet.ParquetFile(file, buffer_size=_PAGES, pre_buffer=False)
    return pa.ipc.open_file(file) if head == b"ARROW1" else None


_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


def frame_of(table: Any) -> pd.DataFrame:
    """Return a table of Arrow as a frame, in which every piece of a file has the same types.

    Whole numbers, truths, dates and decimals keep their type beside gaps; bytes that are UTF-8
    become texts.
    """
    frame = table.to_pandas(ignore_metadata=True, types_mapper=_dtype_of)
    for j, column in enumerate(table.columns):
        if any(test(column.type) for test in _BYTES):
            texts = [
                one.decode() if isinstance(one, bytes) and is_utf8(one) else one
                for one in frame.iloc[:, j]
            ]
            frame.isetitem(j, pd.Series(texts, dtype=object))
    return frame


def _dtype_of(kind: Any) -> Any:
    """Return the type of pandas for one of Arrow, where pandas would change values beside gaps."""
    exact = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_decimal)
    return pd.ArrowDtype(kind) if any(test(kind) for test in exact) else None


def join_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all frames; a whole number that no float64 is stays exact beside some."""
    kinds = [{name: dtype.kind for name, dtype in frame.dtypes.items()} for frame in frames]
    mixed = {name for some in kinds for name in some if len({k.get(name) for k in kinds}) > 1}
    exact = {name for f in frames for name in mixed.intersection(f) if _is_large(f[name])}
    if exact:
        frames = [f.astype(dict.fromkeys(exact.intersection(f), object)) for f in frames]
    return pd.concat(frames, ignore_index=True)


def _is_large(values: pd.Series) -> bool:
    whole = pd.api.types.is_integer_dtype(values.dtype)
    return whole and bool(((values > _EXACT) | (values < -_EXACT)).any())


def _numbered_pieces(frames: Iterable[pd.DataFrame], total: float = np.inf) -> Iterator[Piece]:
    """Yield pieces of a table of about `total` rows, infinite where that is not known."""
    number = 0
    for frame in frames:
        rows = np.arange(number + 1, number + len(frame) + 1)
        number += len(frame)
        yield Piece(frame, rows, [], min(number / total, 1.0))


def _npz_frame(path: Path) -> pd.DataFrame:
    """Return a column for each array (n,) and each column of one (n, d), named "X0", "X1", ..."""
    columns: dict[str, np.ndarray] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            array = arrays[name]
            if array.ndim == 1:
                more = {name: array}
            elif array.ndim == 2:
                more = {f"{name}{j}": column for j, column in enumerate(array.T)}
            else:
                raise UserError(
                    f"{path} holds the array {name!r} of shape {array.shape}: "
                    "give rows by columns, (n, d)"
                )
            for twice in columns.keys() & more.keys():
                raise UserError(
                    f"{path}: the array {name!r} makes a column {twice!r}, and another array does "
                    "too: rename one"
                )
            columns |= more
    n = sorted({len(column) for column in columns.values()})
    if len(n) > 1:
        raise UserError(f"{path} holds arrays of {list_names(n)} rows: all must have as many")
    return pd.DataFrame(columns)
