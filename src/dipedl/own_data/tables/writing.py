"""Answers as a file, in pieces: it appears once it is complete."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..._writing import cell, check_is_no_input, whole_file, writable_target
from .mistake import Mistake, WrongOption

_ENDINGS = ".csv, .csv.gz, .parquet, .feather, .arrow or .jsonl"
Write = Callable[[pd.DataFrame], None]


@contextmanager
def complete_file(path: Path) -> Iterator[IO[bytes]]:
    """A file open for writing that appears at `path` if nothing fails."""
    try:
        with whole_file(path) as file:
            yield file
    except OSError as error:
        raise Mistake(f"{error.strerror}. Free space, or choose another place by --out") from error


def check_writable(path: Path, inputs: Iterable[Path | None], option: str = "--out") -> None:
    """Mistake for a file that cannot be written or is an input, before the long work starts."""
    try:
        writable_target(path)
        check_is_no_input(path, inputs)
    except OSError as error:
        raise Mistake(f"{option}: {error.strerror}") from error
    except ValueError as error:
        raise Mistake(f"{option}: {error}") from error


def check_ending(path: Path) -> None:
    """Mistake for an ending that names no format to write."""
    _ending_of(path)


def without_ending(path: Path) -> str:
    """The name of a file to write without the ending that names its format."""
    return path.name[: -len(_ending_of(path))]


@contextmanager
def table_writer(path: Path) -> Iterator[Write]:
    """A function that adds rows to a table, in the format that the ending of `path` names.

    All pieces must have the same columns, and there must be one.
    """
    make = _WRITERS[_ending_of(path)]
    with complete_file(path) as file, make(file) as write:
        yield write


def _ending_of(path: Path) -> str:
    for ending in _WRITERS:
        if path.name.lower().endswith(ending):
            return ending
    raise WrongOption(f"{path} must end in {_ENDINGS}: the ending names the format")


@contextmanager
def _csv_writer(file: Any) -> Iterator[Write]:
    header = iter([True])

    def write(frame: pd.DataFrame) -> None:
        options = pa.csv.WriteOptions(include_header=next(header, False), quoting_style="needed")
        table = pa.Table.from_pandas(_as_cells(frame), preserve_index=False)
        pa.csv.write_csv(table, file, options)

    yield write


def _as_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with names and texts that no spreadsheet takes for formulas."""
    texts = frame.select_dtypes(["object", "string", "category"])
    cells = {name: texts[name].map(_as_cell, na_action="ignore") for name in texts}
    return frame.assign(**cells).rename(columns=_as_cell)


def _as_cell(value: Any) -> Any:
    return cell(value) if isinstance(value, str) else value


@contextmanager
def _gz_writer(file: IO[bytes]) -> Iterator[Write]:
    with gzip.GzipFile(fileobj=file, mode="wb") as packed, _csv_writer(packed) as write:
        yield write


@contextmanager
def _arrow_writer(file: IO[bytes], open_file: Callable[..., Any]) -> Iterator[Write]:
    """The schema is that of the first piece."""
    opened: list[tuple[Any, Any]] = []

    def write(frame: pd.DataFrame) -> None:
        schema = opened[0][1] if opened else None
        table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        if not opened:
            opened.append((open_file(file, table.schema), table.schema))
        opened[0][0].write_table(table)

    try:
        yield write
    finally:
        for writer, _ in opened:
            writer.close()


def _parquet_writer(file: IO[bytes]) -> Any:
    return _arrow_writer(file, pa.parquet.ParquetWriter)


def _feather_writer(file: IO[bytes]) -> Any:
    return _arrow_writer(file, pa.ipc.new_file)


@contextmanager
def _lines_writer(file: IO[bytes]) -> Iterator[Write]:
    yield lambda frame: _add_lines(frame, file)


def _add_lines(frame: pd.DataFrame, file: IO[bytes]) -> None:
    # pandas would round to 15 digits.
    for record in frame.to_dict("records"):
        file.write((json.dumps(record, ensure_ascii=False, default=str) + "\n").encode())


_WRITERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".csv": _csv_writer,
    ".csv.gz": _gz_writer,
    ".parquet": _parquet_writer,
    ".feather": _feather_writer,
    ".arrow": _feather_writer,
    ".jsonl": _lines_writer,
}
