"""Answers as a file, in pieces: it appears once it is complete."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .mistake import Mistake, WrongOption

_ENDINGS = ".csv, .csv.gz, .parquet, .feather, .arrow or .jsonl"
Write = Callable[[pd.DataFrame], None]


@contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes its place if nothing fails, else it is removed."""
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        os.replace(partial, target)
    except OSError as error:
        said = error.strerror or str(error)
        raise Mistake(
            f"{path} cannot be written: {said}; what was there is unchanged. Free space, or choose "
            "another place by --out"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: Path, option: str = "--out") -> None:
    """Mistake for a file that cannot be written, before the long work starts."""
    folder = path.parent
    if path.is_dir():
        raise Mistake(f"{option} {path} is a folder; give the name of a file")
    if not folder.is_dir():
        raise Mistake(f"{option} {path}: there is no folder {folder}; make it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise Mistake(f"{option} {path} is not yours to write; choose another place")


def check_ending(path: Path) -> None:
    """Mistake for an ending that names no format to write."""
    _writer_of(path)


@contextmanager
def table_writer(path: Path) -> Iterator[Write]:
    """A function that adds rows to a table, in the format that the ending of `path` names.

    All pieces must have the same columns, and there must be one.
    """
    make = _writer_of(path)
    with complete_file(path) as partial, make(partial) as write:
        yield write


def _writer_of(path: Path) -> Callable[[Path], Any]:
    name = path.name.lower()
    for ending, make in _WRITERS.items():
        if name.endswith(ending):
            return make
    raise WrongOption(f"{path} must end in {_ENDINGS}: the ending names the format")


@contextmanager
def _csv_writer(path: Path, packed: str | None = None) -> Iterator[Write]:
    header = iter([True])

    def write(frame: pd.DataFrame) -> None:
        options = pa.csv.WriteOptions(include_header=next(header, False), quoting_style="needed")
        pa.csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), stream, options)

    with pa.output_stream(str(path), compression=packed) as stream:
        yield write


@contextmanager
def _gz_writer(path: Path) -> Iterator[Write]:
    with _csv_writer(path, "gzip") as write:
        yield write


@contextmanager
def _arrow_writer(path: Path, open_file: Callable[[str, Any], Any]) -> Iterator[Write]:
    """The schema is that of the first piece."""
    opened: list[tuple[Any, Any]] = []

    def write(frame: pd.DataFrame) -> None:
        schema = opened[0][1] if opened else None
        table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        if not opened:
            opened.append((open_file(str(path), table.schema), table.schema))
        opened[0][0].write_table(table)

    try:
        yield write
    finally:
        for writer, _ in opened:
            writer.close()


def _parquet_writer(path: Path) -> Any:
    return _arrow_writer(path, pa.parquet.ParquetWriter)


def _feather_writer(path: Path) -> Any:
    return _arrow_writer(path, pa.ipc.new_file)


@contextmanager
def _lines_writer(path: Path) -> Iterator[Write]:
    with open(path, "w", encoding="utf-8") as stream:
        yield lambda frame: _add_lines(frame, stream)


def _add_lines(frame: pd.DataFrame, stream: Any) -> None:
    # pandas would round to 15 digits.
    for record in frame.to_dict("records"):
        stream.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")


_WRITERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _csv_writer,
    ".csv.gz": _gz_writer,
    ".parquet": _parquet_writer,
    ".feather": _feather_writer,
    ".arrow": _feather_writer,
    ".jsonl": _lines_writer,
}
