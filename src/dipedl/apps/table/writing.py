"""Answers as a file, in pieces: it appears once it is complete."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ...writing.files import check_is_no_input, whole_file, writable_target
from ...writing.text import cell, plain
from .errors import UsageError, UserError

_ENDINGS = ".csv, .csv.gz, .parquet, .feather, .arrow or .jsonl"
Write = Callable[[pd.DataFrame], None]


@contextmanager
def complete_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file open for writing that appears at `path` if nothing fails."""
    try:
        with whole_file(path) as file:
            yield file
    except OSError as error:
        raise UserError(f"{error.strerror}. Free space, or choose another place") from error


def check_writable(path: Path, inputs: Iterable[Path | None], argument: str = "out") -> None:
    """Refuse a file that cannot be written or is an input, before the long work starts."""
    try:
        writable_target(path)
        check_is_no_input(path, inputs)
    except OSError as error:
        raise UserError(f"`{argument}`: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"`{argument}`: {error}") from error


def check_page(path: Path, argument: str = "out") -> None:
    """Refuse a page whose name does not end in .html: it may be a table of the user."""
    if path.suffix.lower() != ".html":
        raise UsageError(f"`{argument}`: the page {path} must end in .html")


def check_no_table(path: Path) -> None:
    """Refuse a model whose name ends like a table: it may be one of the user."""
    if path.name.lower().endswith(tuple(_WRITERS)):
        raise UsageError(f"`out`: {path} ends like a table; name a model, as model.dipedl")


@contextmanager
def table_writer(path: Path) -> Iterator[Write]:
    """Yield a function that adds rows to a table, in the format that the ending of `path` names.

    All pieces must have the same columns, and there must be one.
    """
    make = _WRITERS[ending_of(path)]
    with complete_file(path) as file, make(file) as write:
        yield write


def ending_of(path: Path) -> str:
    """Return the ending that names the format to write; UserError for another."""
    for ending in _WRITERS:
        if path.name.lower().endswith(ending):
            return ending
    raise UsageError(f"{path} must end in {_ENDINGS}: the ending names the format")


@contextmanager
def _csv_writer(file: Any) -> Iterator[Write]:
    header = iter([True])

    def write(frame: pd.DataFrame) -> None:
        options = pa.csv.WriteOptions(include_header=next(header, False), quoting_style="needed")
        # Names and texts become such that no spreadsheet takes for formulas.
        texts = frame.select_dtypes(["object", "string", "category"])
        cells = {name: texts[name].map(_as_cell, na_action="ignore") for name in texts}
        frame = frame.assign(**cells).rename(columns=_as_cell)
        pa.csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), file, options)

    yield write


def _as_cell(value: Any) -> Any:
    # A list or an object of JSON has no column of Arrow that CSV takes.
    return cell(str(value)) if isinstance(value, str | list | dict) else value


@contextmanager
def _gz_writer(file: IO[bytes]) -> Iterator[Write]:
    with gzip.GzipFile(fileobj=file, mode="wb") as packed, _csv_writer(packed) as write:
        yield write


@contextmanager
def _arrow_writer(file: IO[bytes], open_file: Callable[..., Any]) -> Iterator[Write]:
    """Yield a writer whose schema is that of the first piece."""
    opened: list[tuple[Any, Any]] = []

    def write(frame: pd.DataFrame) -> None:
        schema = opened[0][1] if opened else None
        table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        if not opened:
            # A column without any entry so far may have texts later.
            fields = [f.with_type(pa.string()) if f.type == pa.null() else f for f in table.schema]
            opened.append((open_file(file, pa.schema(fields)), pa.schema(fields)))
        opened[0][0].write_table(table.cast(opened[0][1]))

    try:
        yield write
    finally:
        for writer, _ in opened:
            writer.close()


def _parquet(file: IO[bytes], schema: pa.Schema) -> Any:
    # Hardly a number comes twice: dictionaries of them take longer to make than to write the rows.
    numbers = pa.types.is_floating, pa.types.is_integer
    texts = [field.name for field in schema if not any(test(field.type) for test in numbers)]
    return pa.parquet.ParquetWriter(file, schema, use_dictionary=texts)


@contextmanager
def _lines_writer(file: IO[bytes]) -> Iterator[Write]:
    def write(frame: pd.DataFrame) -> None:
        # pandas would round to 15 digits, and JSON has no word for a gap but null.
        for record in frame.astype(object).where(frame.notna(), None).to_dict("records"):
            text = json.dumps(plain(record), ensure_ascii=False, allow_nan=False, default=str)
            file.write((text + "\n").encode())

    yield write


_WRITERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".csv": _csv_writer,
    ".csv.gz": _gz_writer,
    ".parquet": partial(_arrow_writer, open_file=_parquet),
    ".feather": partial(_arrow_writer, open_file=pa.ipc.new_file),
    ".arrow": partial(_arrow_writer, open_file=pa.ipc.new_file),
    ".jsonl": _lines_writer,
}
