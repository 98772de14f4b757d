"""Tables in pieces: every format as DataFrames, with the numbers of their rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from ...writing.cells import printable_name
from . import formats
from .csv_records import ENDS, Records, numbered
from .errors import UsageError, UserError, list_names
from .formats import Format, check_utf8, format_of, open_bytes
from .images import CLASS, FILE, class_of, extractor, feature_names, image_files
from .kinds import text_of_bytes
from .whole import bad_line, json_value, npz_frame, only_object

_ROWS, _IMAGES = 20_000, 500
#: Whole numbers up to this one are each a float64.
_EXACT = 1 << 53
#: The type for all entries of a column of JSON, by those of its pieces.
_ONE_TYPE = {"Int64": {"int64", "large"}, "float64": {"int64", "float64"},
             "boolean": {"bool", "boolean"}}  # fmt: skip
#: What pandas has for numbers and truths with gaps, by the type of Arrow.
_NULLABLE = {
    pa.from_numpy_dtype(dtype.numpy_dtype): dtype
    for dtype in (
        *(pd.Int8Dtype(), pd.Int16Dtype(), pd.Int32Dtype(), pd.Int64Dtype(), pd.BooleanDtype()),
        *(pd.UInt8Dtype(), pd.UInt16Dtype(), pd.UInt32Dtype(), pd.UInt64Dtype()),
    )
}
#: Tests of the types of Arrow that hold bytes.
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
#: Of a packed file some 100 kB more are unpacked than were asked for.
_SAMPLE = 1 << 24


class RejectedRow(NamedTuple):
    """A row that is left out: its number from 1, without the line of names; where, and why."""

    row: int
    column: str
    reason: str

    def told(self) -> str:
        """In words, for the output."""
        where = f", column {self.column!r}" if self.column else ""
        return f"row {self.row}{where}: {self.reason}"


@dataclass
class Piece:
    """Some rows of a table, their numbers from 1, and what was refused before or among them."""

    frame: pd.DataFrame
    rows: np.ndarray
    refused: list[RejectedRow] = field(default_factory=list)
    #: Share of the file that was read up to here.
    done: float = 1.0


@dataclass(frozen=True)
class Table:
    """A file that holds a table; `pieces` reads it from the start, each time it is asked.

    `gaps` are words for a missing value, whatever the column.
    """

    path: Path
    format: Format
    names: tuple[str, ...]
    gaps: tuple[str, ...] = ()

    def in_one_type(self, names: Sequence[str]) -> Callable[[pd.DataFrame], pd.DataFrame]:
        """Return what gives columns of each piece the type that they have in the whole table.

        A line of JSON has no type until the last one was read: what is not all numbers or all
        truths, or is numbers of which float64 would change one, becomes texts.
        """
        if self.format.kind != formats.LINES or not names:
            return lambda frame: frame
        kinds: dict[str, set[str]] = {name: set() for name in names}
        for piece in self.pieces():
            for name in names:
                entries = piece.frame[name].dropna()
                kind = "large" if _is_large(entries) else str(entries.dtype).lower()
                kinds[name] |= {kind} if len(entries) else set()
        dtypes = {
            name: next((to for to, these in _ONE_TYPE.items() if found and found <= these), "str")
            for name, found in kinds.items()
        }
        return lambda frame: frame.assign(
            **{
                name: frame[name].map(str, na_action="ignore")
                if to == "str"
                else frame[name].astype(to)
                for name, to in dtypes.items()
            }
        )

    @property
    def pixels(self) -> bool:
        """Return whether the columns are pixels of images."""
        return self.format.kind == formats.IMAGES and not self.format.packed

    def pieces(self) -> Iterator[Piece]:
        """The rows in order."""
        with _damage_told(self.path):
            for piece in _PIECES[self.format.kind](self):
                for name in piece.frame.select_dtypes(["object", "string"]) if self.gaps else ():
                    values = piece.frame[name]
                    piece.frame[name] = values.mask(values.isin(self.gaps), None)
                yield piece


def open_images(folder: Path | str, network: str = "") -> Table:
    """A folder of images as a table of files, classes and features.

    Parameters
    ----------
    folder : path-like
        Holds a folder for each class, or images alone.
    network : str
        Path of an ONNX network that gives features of an image; default: its grey pixels.

    Raises
    ------
    UserError
        If there is no image, or none that can be read.
    """
    folder = Path(folder)
    image_files(folder)
    table = Table(folder, Format(formats.IMAGES, network), ())
    first = next((piece for piece in table.pieces() if len(piece.frame)), None)
    if first is None:
        raise UserError(f"{folder}: no image can be read")
    return Table(folder, table.format, tuple(str(name) for name in first.frame.columns))


def open_table(
    path: Path | str,
    *,
    delimiter: str | None = None,
    gaps: Iterable[str] = (),
    numbers: bool = False,
) -> Table:
    """A table by its file.

    Parameters
    ----------
    path : path-like
        CSV (also compressed, UTF-16, with semicolons or tabs), Parquet, Feather, Arrow, JSON lines
        or NPZ; told by the content.
    delimiter : str, optional
        Of a CSV file; default: found by itself.
    gaps : iterable of str
        Words that stand for a missing value in every column, the target too.
    numbers : bool
        Whether numbers may be the names of all columns of a CSV file, as those of classes.

    Raises
    ------
    UserError
        If it holds no table, or one without rows or with two columns of one name.
    """
    path = Path(path)
    table = Table(path, format_of(path, delimiter), (), tuple(gaps))
    with _damage_told(path):
        first = next((p for p in table.pieces() if len(p.frame) or p.refused), None)
    if first is None or not len(first.frame):
        raise UserError(f"{path} has names of columns, but no rows below them{_all_bad(first)}")
    names = [str(name) for name in first.frame.columns]
    _check_names(path, names)
    if table.format.kind == formats.CSV and not numbers:
        _check_header(path, names)
    return Table(path, table.format, tuple(names), table.gaps)


def row_of_json(text: str) -> Table:
    """A row as JSON, an object of names and values, as a table."""
    try:
        row = json_value(text)
    except ValueError as error:
        raise UsageError(f"the row is no JSON: {error}; write names and values") from error
    return _Row(Path("the row"), Format(formats.LINES), tuple(row), values=row)


@dataclass(frozen=True)
class _Row(Table):
    values: dict[str, Any] = field(default_factory=dict)

    def pieces(self) -> Iterator[Piece]:
        yield Piece(pd.DataFrame([self.values]), np.array([1]))


def _all_bad(piece: Piece | None) -> str:
    if piece is None or not piece.refused:
        return "; add rows"
    row, _, reason = piece.refused[0]
    names = list(piece.frame)
    remedy = "; delete what stands above the line of names, such as a title, or name all columns"
    if len(names) > 1 and not names[-1]:
        remedy = "; the line of names ends in a delimiter: delete it"
    return f" that can be read: row {row}: {reason}{'' if ENDS in reason else remedy}"


def _check_names(path: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            f"{path} has two columns named {list_names(map(repr, twice))}: "
            "give each a name of its own"
        )
    bare = [name for name in names if not name.strip()]
    if bare:
        at = names.index(bare[0]) + 1
        raise UserError(f"{path} has no name for column {at}: write one into its first line")


def _check_header(path: Path, names: list[str]) -> None:
    """UserError if the first line of a CSV file is a row of numbers."""
    if all(_is_number(name) for name in names):
        raise UserError(
            f"{path} begins with numbers ({list_names(names)}), not with names of columns: "
            "write a line of names above them"
        )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _csv_pieces(table: Table) -> Iterator[Piece]:
    invalid: dict[int, str] = {}
    records = Records(table.path, table.format)
    names, expected = records.names(), _rows_expected(table)
    told, number, last = 0, 0, ""
    with records.open() as source:
        for batch in records.batches(source, len(names), invalid):
            rows, number = numbered(number, batch.num_rows, invalid)
            refused = [
                RejectedRow(r, "", invalid[r]) for r in sorted(invalid) if told < r <= number
            ]
            told = number
            frame = batch.to_pandas()
            frame.columns = names
            last = str(frame.iloc[-1, -1]) if len(frame) else last
            yield Piece(frame, rows, refused, min(number / expected, 1.0))
    records.check_closed(last, number)
    below = [RejectedRow(r, "", invalid[r]) for r in sorted(invalid) if r > told]
    if below:
        yield Piece(pd.DataFrame(columns=names), np.array([], dtype=int), below)


def _rows_expected(table: Table) -> float:
    """About how many rows a file of lines has, by the lines in its first bytes.

    How far a reader came does not say it: the readers are far ahead of the rows that they gave.
    """
    with open_bytes(table.path, table.format.packed) as stream:
        sample = stream.read(_SAMPLE)
        bare = sample.split(b'"')[::2] if table.format.kind == formats.CSV else [sample]
        lines = sum(part.count(b"\n") for part in bare)
        raw = getattr(stream, "fileobj", None) or getattr(stream, "_fp", None) or stream
        return max(lines * table.path.stat().st_size / max(raw.tell(), 1), 1.0)


def _parquet_pieces(table: Table) -> Iterator[Piece]:
    with pa.OSFile(os.fsencode(table.path)) as source, pa.parquet.ParquetFile(source) as file:
        yield from _of_batches(file.iter_batches(batch_size=_ROWS), file.metadata.num_rows or 1)


def _arrow_pieces(table: Table) -> Iterator[Piece]:
    with pa.memory_map(os.fsencode(table.path)) as source, pa.ipc.open_file(source) as reader:
        count = reader.num_record_batches
        yield from _of_batches(map(reader.get_batch, range(count)), np.inf)


def _stream_pieces(table: Table) -> Iterator[Piece]:
    with open(table.path, "rb") as source, pa.ipc.open_stream(source) as reader:
        yield from _of_batches(reader, np.inf)


def _feather_pieces(table: Table) -> Iterator[Piece]:
    whole = pa.feather.read_table(pa.OSFile(os.fsencode(table.path)))
    yield from _of_batches(whole.to_batches(_ROWS), whole.num_rows)


def _of_batches(batches: Iterable[Any], total: float) -> Iterator[Piece]:
    small = (b.slice(i, _ROWS) for b in batches for i in range(0, max(b.num_rows, 1), _ROWS))
    tables = (pa.Table.from_batches([batch]) for batch in small)
    return _of_frames(map(frame_of, tables), total)


def frame_of(table: Any) -> pd.DataFrame:
    """Return a table of Arrow as a frame, in which every piece of a file has the same types.

    Whole numbers and truths stay such beside gaps, dates and decimals keep their type, bytes that
    are UTF-8 become texts.
    """
    frame = table.to_pandas(ignore_metadata=True, types_mapper=_dtype_of)
    for j, column in enumerate(table.columns):
        if any(test(column.type) for test in _BYTES):
            frame.isetitem(j, text_of_bytes(frame.iloc[:, j]))
        if column.type in _NULLABLE and not column.null_count:
            frame.isetitem(j, frame.iloc[:, j].astype(_NULLABLE[column.type].numpy_dtype))
    return frame


def _dtype_of(kind: Any) -> Any:
    """Return the type of pandas for one of Arrow, where pandas would take another."""
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return pd.ArrowDtype(kind)
    return _NULLABLE.get(kind)


def join_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all frames; a whole number that no float64 is stays exact beside some."""
    kinds = [{name: dtype.kind for name, dtype in frame.dtypes.items()} for frame in frames]
    mixed = {name for some in kinds for name in some if len({k.get(name) for k in kinds}) > 1}
    exact = {name for f in frames for name in mixed.intersection(f) if _is_large(f[name])}
    kept = [f.astype(dict.fromkeys(exact.intersection(f), object)) for f in frames]
    return pd.concat(kept, ignore_index=True)


def _is_large(values: pd.Series) -> bool:
    whole = pd.api.types.is_integer_dtype(values.dtype)
    return whole and bool(((values > _EXACT) | (values < -_EXACT)).any())


def _of_frames(frames: Iterable[pd.DataFrame], total: float) -> Iterator[Piece]:
    """Pieces of a table of about `total` rows, infinite where that is not known."""
    number = 0
    for frame in frames:
        rows = np.arange(number + 1, number + len(frame) + 1)
        number += len(frame)
        yield Piece(frame, rows, [], min(number / total, 1.0))


def _line_pieces(table: Table) -> Iterator[Piece]:
    read = 0
    try:
        with open_bytes(table.path, table.format.packed) as stream:
            text = TextIOWrapper(stream, table.format.encoding.replace("utf-8", "utf-8-sig"))
            lines = filter(None, map(str.strip, text))
            parts = iter(lambda: list(islice(lines, _ROWS)), [])
            for piece in _of_frames(map(_frame_of_lines, parts), _rows_expected(table)):
                read += len(piece.frame)
                lacking = [name for name in table.names if name not in piece.frame]
                piece.frame = piece.frame.assign(**dict.fromkeys(lacking))
                yield piece
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, UnicodeDecodeError) and table.format.encoding == "utf-8":
            check_utf8(table.path, table.format.packed)
        only = only_object(table.path, table.format) if read == 0 else None
        if only is None:
            raise UserError(f"{table.path}{bad_line(table.path, table.format)}") from error
        yield Piece(pd.DataFrame([only]), np.array([1]))


def _frame_of_lines(lines: Iterable[str]) -> pd.DataFrame:
    records = list(map(json_value, lines))
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("a line is no object")
    return pd.DataFrame(records, dtype=object).apply(_of_one_type)


def _of_one_type(values: pd.Series) -> pd.Series:
    """Entries of JSON as numbers or truths, if they are such and can be without a change."""
    kind, gaps = pd.api.types.infer_dtype(values), values.isna().any()
    large = [v for v in values if isinstance(v, int) and abs(v) > _EXACT]
    if kind == "boolean":
        return values.astype("boolean" if gaps else bool)
    if kind == "integer" and all(abs(v) < 1 << 63 for v in large):
        return values.astype("Int64" if gaps else np.int64)
    if kind in ("floating", "mixed-integer-float") and not large:
        return values.astype(np.float64)
    return values


def _npz_pieces(table: Table) -> Iterator[Piece]:
    frame = npz_frame(table.path)
    parts = (frame.iloc[i : i + _ROWS] for i in range(0, len(frame), _ROWS))
    return _of_frames((part.reset_index(drop=True) for part in parts), len(frame))


def _image_pieces(table: Table) -> Iterator[Piece]:
    """A piece for some hundred images."""
    files, network = image_files(table.path), table.format.packed
    features = extractor(network)
    for first in range(0, len(files), _IMAGES):
        some = files[first : first + _IMAGES]
        records, rows, refused = [], [], []
        for number, file in enumerate(some, start=first + 1):
            try:
                values = features(file)
            except ImportError:
                raise
            except Exception as error:  # any decoder may fail in its own way on a damaged file
                reason = f"{printable_name(file.name)} cannot be read as an image: {error}"
                refused.append(RejectedRow(number, FILE, reason))
                continue
            named = dict(zip(feature_names(network, len(values)), values.tolist(), strict=True))
            image = {FILE: printable_name(str(file)), CLASS: class_of(file, table.path)}
            records.append(image | named)
            rows.append(number)
        frame, done = pd.DataFrame.from_records(records), (first + len(some)) / len(files)
        yield Piece(frame, np.array(rows, dtype=int), refused, done)


_PIECES = {
    formats.IMAGES: _image_pieces,
    formats.CSV: _csv_pieces,
    formats.PARQUET: _parquet_pieces,
    formats.ARROW: _arrow_pieces,
    formats.STREAM: _stream_pieces,
    formats.FEATHER: _feather_pieces,
    formats.LINES: _line_pieces,
    formats.NPZ: _npz_pieces,
}


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Errors of the readers with the name of the file and a remedy."""
    try:
        yield
    except (UserError, FileNotFoundError, PermissionError):
        raise
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is no text of one encoding: {error}; write it as UTF-8, or as Parquet"
        ) from error
    except (pa.ArrowException, ValueError, EOFError, OSError) as error:
        said = str(error).partition("\n")[0]
        raise UserError(f"{path} cannot be read: {said}; copy or write it again") from error
