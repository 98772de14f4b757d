"""Files of a data set, on this machine or behind a URL: what is in them, and their rows."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.ipc
import pyarrow.parquet

from ...plugins import optional
from ...writing.cells import printable_name
from ..table.errors import UserError
from ..table.reading import frame_of

_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_PAGES = 1 << 20
#: Rows of a table, or arrays that belong together: (X,) or (X, y).
Rows: TypeAlias = "pd.DataFrame | tuple[np.ndarray, ...]"


class Unreadable(UserError):
    """A file whose rows cannot be read, though its head could."""


class Group(NamedTuple):
    """Rows that lie together in a file, and about how much memory they take."""

    rows: int
    bytes: int


@dataclass(frozen=True)
class DataFile:
    """A file of rows; `batches` begins `skip` rows into the group of number `group`.

    `url` is what the user gave, `path` the file on its file system, `origin` its path in the folder
    that was given, `name` the same without ``.parquet``, `hive` the columns that folders called
    ``name=value`` stand for.
    """

    url: str
    path: str
    name: str
    origin: str
    hive: tuple[tuple[str, str | None], ...] = ()
    group: int = 0
    skip: int = 0

    def at(self, group: int, skip: int) -> DataFile:
        """Return this file, to be read from other rows on."""
        return replace(self, group=group, skip=skip)

    def groups(self) -> list[Group]:
        """Groups of rows in their order: row groups, record batches, or all of an array."""
        with self._open() as file:
            return _reader(file).groups(file, self)

    def batches(self, rows: int, size: int) -> Iterator[Rows]:
        """The next `rows` rows, at most `size` at a time; an empty frame if there is none."""
        try:
            with self._open() as file:
                yield from _reader(file).batches(file, self, rows, size)
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, UserError | MemoryError):
                raise
            raise Unreadable(_describe_trouble(self.path, error)) from error

    def has_reader(self) -> bool:
        """Return whether a file that can be opened is of a format that is read in parts."""
        with self._open() as file:
            return bytes(file.read(6)).startswith(tuple(_READERS))

    def checksum(self) -> str:
        """Return the SHA-256 of the file, in hexadecimal, or "unreadable"."""
        try:
            with self._open() as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except (pa.ArrowException, OSError):
            return "unreadable"

    def with_hive(self, batch: pa.RecordBatch) -> pd.DataFrame:
        """Rows with the columns that the names of the folders give."""
        frame = frame_of(pa.Table.from_batches([batch]))
        more = {name: value for name, value in self.hive if name not in frame}
        return frame.assign(**more) if more else frame

    def _open(self) -> Any:
        system = _file_system(self.url)[0]
        if isinstance(system, pa.fs.LocalFileSystem):  # takes no name that is no UTF-8
            return pa.OSFile(os.fsencode(self.path))
        return system.open_input_file(self.path)


def files_of(url: str) -> list[DataFile]:
    """The file at a path or URL, or those of a folder of Parquet and Arrow files, by their paths.

    Names that begin with ``_`` or ``.`` are left out. UserError if there is none, or the one file
    is of another format.
    """
    # Workers, and a later call, may stand in another folder.
    url = url if "://" in url else str(Path(url).expanduser().absolute())
    system, path = _file_system(url)
    list_all = _local_files if isinstance(system, pa.fs.LocalFileSystem) else _remote_files
    found = list_all(system, path)
    if found is None:
        raise UserError(f"there is no file or folder {url}")
    if [one.path for one in found] == [path]:
        file = _data_file(url, found[0], posixpath.basename(path))
        if not file.has_reader():
            raise UserError(
                f"{url} is neither a Parquet, Arrow or Feather file nor an .npy array, and no "
                "other, such as CSV, is read in parts: write it as Parquet, or leave `workers`, "
                "`partitions` and other options of parts out"
            )
        return [file]
    named = sorted((one.path[len(path.rstrip("/")) + 1 :], one) for one in found)
    files = [_data_file(url, one, name) for name, one in named if _is_data(name)]
    if not files:
        raise UserError(
            f"{url} holds no file that ends in {', '.join(_ENDINGS)}; write one of these"
        )
    return files


class _Entry(NamedTuple):
    """A file as a file system lists it."""

    path: str
    size: int
    mtime_ns: int


def _local_files(_: Any, path: str) -> list[_Entry] | None:
    """The file at a path, or those of a folder and the folders in it; None if nothing is there.

    PyArrow would stop at a name that is no UTF-8.
    """
    if not os.path.isdir(path):
        return [_local_file(path)] if os.path.isfile(path) else None
    inside = (
        os.path.join(folder, name)
        for folder, _, names in os.walk(path, onerror=_raised, followlinks=True)
        for name in names
    )
    return [_local_file(name) for name in inside if os.path.isfile(name)]


def _raised(error: OSError) -> None:
    raise error


def _local_file(path: str) -> _Entry:
    found = os.stat(path)
    return _Entry(path, found.st_size, found.st_mtime_ns)


def _remote_files(system: Any, path: str) -> list[_Entry] | None:
    """Return the file at a path, or those of a folder; None if nothing is there."""
    info = system.get_file_info(path)
    if info.type == pa.fs.FileType.NotFound:
        return None
    some = [info]
    if info.type == pa.fs.FileType.Directory:
        some = system.get_file_info(pa.fs.FileSelector(path, recursive=True))
    return [_Entry(one.path, one.size, one.mtime_ns) for one in some if one.is_file]


def groups_or_trouble(file: DataFile) -> list[Group] | str:
    """The groups of a file, or why it cannot be read."""
    try:
        return file.groups()
    except (pa.ArrowException, OSError, ValueError) as error:
        return _describe_trouble(file.path, error)


def _describe_trouble(path: str, error: Exception) -> str:
    said = str(error).partition("\n")[0].rstrip(".")
    return f"{path} cannot be read: {said}; copy or write it again"


def _is_data(name: str) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in name.split("/"))
    return name.lower().endswith(_ENDINGS) and not hidden


def _data_file(url: str, info: _Entry, name: str) -> DataFile:
    name = printable_name(name)
    pairs = (folder.partition("=") for folder in name.split("/")[:-1] if "=" in folder)
    hive = tuple((key, None if value == _NO_VALUE else unquote(value)) for key, _, value in pairs)
    return DataFile(url, info.path, name.removesuffix(".parquet"), name, hive)


@lru_cache(maxsize=64)
def _file_system(url: str) -> tuple[Any, str]:
    """File system and path on it: PyArrow's own, else that of fsspec."""
    if "://" not in url:
        return pa.fs.LocalFileSystem(), url
    try:
        system, path = pa.fs.FileSystem.from_uri(url)
        return system, str(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        fsspec = optional("fsspec", f"the URL {url}")
        try:
            system, path = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise UserError(f"{url} cannot be opened: {error}") from error
        return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(system)), str(path)


class _Reader(NamedTuple):
    """Reader of files of a kind: its functions for `DataFile.groups` and `DataFile.batches`."""

    groups: Callable[[Any, DataFile], list[Group]]
    batches: Callable[[Any, DataFile, int, int], Iterator[Rows]]


def _reader(file: Any) -> _Reader:
    """Return the reader of a file, by its first bytes."""
    head = file.read(6)
    file.seek(0)
    found = next((reader for magic, reader in _READERS.items() if head.startswith(magic)), None)
    if found is None:
        raise ValueError("it is neither a Parquet, Arrow or Feather file nor an .npy array")
    return found


def _parquet(file: Any) -> Any:
    # Pages come one after another: a row group may be larger than memory.
    return pa.parquet.ParquetFile(file, buffer_size=_PAGES, pre_buffer=False)


def _parquet_groups(file: Any, _: DataFile) -> list[Group]:
    found = _parquet(file).metadata
    groups = (found.row_group(i) for i in range(found.num_row_groups))
    return [Group(group.num_rows, group.total_byte_size) for group in groups]


def _parquet_batches(file: Any, at: DataFile, rows: int, size: int) -> Iterator[Rows]:
    reader = _parquet(file)
    groups = list(range(at.group, reader.num_row_groups))
    batches = reader.iter_batches(batch_size=size, row_groups=groups) if rows else ()
    yield from map(at.with_hive, _take_rows(batches, at.skip, rows, size, reader.schema_arrow))


def _arrow_groups(file: Any, _: DataFile) -> list[Group]:
    whole = pa.ipc.open_file(file)
    width = max(len(whole.schema), 1)
    # The number of rows is known once a column of them is read: the first, alone.
    first = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[0]))
    batches = (first.get_batch(i) for i in range(first.num_record_batches))
    return [Group(batch.num_rows, batch.nbytes * width) for batch in batches]


def _arrow_batches(file: Any, at: DataFile, rows: int, size: int) -> Iterator[Rows]:
    reader = pa.ipc.open_file(file)
    batches = map(reader.get_batch, range(at.group, reader.num_record_batches) if rows else ())
    yield from map(at.with_hive, _take_rows(batches, at.skip, rows, size, reader.schema))


def _take_rows(
    batches: Iterable[Any], skip: int, rows: int, size: int, schema: Any
) -> Iterator[Any]:
    """Yield `rows` rows of record batches after the first `skip`, at most `size` at a time."""
    given = 0
    for batch in batches:
        start, skip = min(skip, batch.num_rows), max(skip - batch.num_rows, 0)
        end = min(batch.num_rows, start + rows - given)
        for at in range(start, end, size):
            yield batch.slice(at, min(size, end - at))
        given += max(end - start, 0)
        if given == rows:
            return
    if rows:
        raise ValueError(f"it ends after {given:,} of {rows:,} rows")
    arrays = [pa.array([], type=field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(file: DataFile) -> np.ndarray:
    if "://" in file.url:
        raise UserError(
            f"{file.url}: an .npy file must lie on this machine; copy it, or use Parquet"
        )
    array: np.ndarray = np.load(file.path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2:
        raise UserError(f"{file.path} has the shape {array.shape}: give rows by columns, (n, d)")
    return array


def _array_groups(_: Any, at: DataFile) -> list[Group]:
    array = _array(at)
    return [Group(len(array), array.nbytes)]


def _array_batches(_: Any, at: DataFile, rows: int, size: int) -> Iterator[Rows]:
    array = _array(at)
    end = at.skip + rows
    for start in range(at.skip, max(end, at.skip + 1), size):
        yield (np.array(array[start : min(start + size, end)]),)


_READERS = {
    b"PAR1": _Reader(_parquet_groups, _parquet_batches),
    b"ARROW1": _Reader(_arrow_groups, _arrow_batches),
    b"\x93NUMPY": _Reader(_array_groups, _array_batches),
}
