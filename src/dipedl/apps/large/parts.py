"""A data set cut into parts that fit into memory: files here or behind a URL, frames, arrays."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.ipc
import pyarrow.parquet

from ...protocols import optional
from ...writing.text import printable_name
from ..table.errors import UsageError, UserError
from ..table.reading import frame_of, join_frames, open_columnar
from .engines import Engine

_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
#: Formats by their first bytes.
_PARQUET, _ARROW, _ARRAY = b"PAR1", b"ARROW1", b"\x93NUMPY"
_BYTES = 128 << 20
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
#: Rows of a table, or of an array (n, d).
Rows: TypeAlias = "pd.DataFrame | np.ndarray"


class Unreadable(UserError):
    """A file whose rows cannot be read."""


class Size(NamedTuple):
    """Largest size of a part: in rows if there is a number, else in bytes in memory."""

    rows: int | None
    bytes: int = _BYTES

    @classmethod
    def of(cls, partitions: int | str | None) -> Size:
        """From rows (100_000, "100000") or bytes ("64MB"); None is 128 MiB."""
        if partitions is None:
            return cls(None)
        found = re.fullmatch(r"([\d_]*[1-9][\d_]*)\s*([KMG]?B)?", str(partitions).strip().upper())
        if found is None:
            raise UsageError(
                f"partitions must be rows, as 100000, or bytes, as 64MB, got {partitions!r}"
            )
        number = int(found[1]) * _UNITS[found[2] or ""]
        return cls(None, number) if found[2] else cls(number)

    def most_rows(self, rows: int, nbytes: int) -> int:
        """Rows of a part of a group that has so many rows and bytes."""
        return self.rows or max(1, int(self.bytes * rows / max(nbytes, 1)))


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a data set, read when they are asked for.

    Attributes
    ----------
    name : str
        One of its own: the path of the file in its folder, without ``.parquet``, and a number if a
        file has several parts: ``"year=2020/a-00003"``.
    rows : int
        How many; 0 where a file cannot be read.
    first : int
        Number of its first row in its file or frame, from 0.
    origin : str
        The name of the file; with a checksum, as of a frame and after `with_checksums`, another
        text means another content.
    trouble : str
        Why the file cannot be read; empty if it can.
    """

    name: str
    rows: int
    first: int
    origin: str
    source: Any
    trouble: str = ""

    def read(self) -> Rows:
        """All rows: a frame or an array; UserError if they cannot be read."""
        batches = list(self.batches(max(self.rows, 1)))
        if len(batches) == 1:
            return batches[0]
        if isinstance(batches[0], pd.DataFrame):
            return join_frames(batches)
        return np.concatenate(batches)

    def batches(self, size: int) -> Iterator[Rows]:
        """The rows in order, at most `size` at a time; an empty frame if there is none."""
        if self.trouble:
            raise Unreadable(self.trouble)
        yield from self.source.batches(self.rows, size)


def parts_of(data: Any, partitions: int | str | None = None) -> list[Part]:
    """Cut a data set into parts, in a fixed order.

    Parameters
    ----------
    data : path-like, str, list of them, frame or array
        Folder of Parquet and Arrow files (Feather too), one of them, or an ``.npy`` file, as a path
        or as a URL of any file system that PyArrow or fsspec knows; a frame of pandas or polars; or
        an array (n, d). Folders called ``name=value`` become columns of texts.
    partitions : int or str, optional
        Most rows of a part, or bytes in memory such as ``"64MB"``; default: 128 MiB. A part never
        spans two files.

    Raises
    ------
    UserError
        If there is no such file, or none in the folder. One that cannot be read becomes a part with
        `trouble`.
    """
    size = Size.of(partitions)
    if isinstance(data, str | Path):
        data = [data]
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | Path):
        return _of_files([file for path in data for file in files_of(str(path))], size)
    if hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if isinstance(data, pd.DataFrame):
        # As in a file: a name is a text, and comes once.
        data = data.rename(columns=str)
        for name in data.columns[data.columns.duplicated()]:
            raise UserError(
                f"data has more than one column {name!r}: drop or rename all others of that name"
            )
    if isinstance(data, pd.DataFrame | np.ndarray):
        origin, nbytes = f"in memory {joblib.hash(data)}", getattr(data, "nbytes", 0)
        if isinstance(data, pd.DataFrame):
            nbytes = int(data.memory_usage().sum())
        return [
            Part(f"rows-{i:05d}", n, first, origin, _InMemory(_some(data, first, n)))
            for i, (*_, first, n, _) in enumerate(_pieces([Group(len(data), nbytes)], size))
        ]
    raise TypeError(
        f"data must be a path, frame or array, got {type(data).__name__}; batches that come one "
        "after another go to partial_fit, or into Parquet files"
    )


def _of_files(files: list[DataFile], size: Size) -> list[Part]:
    with ThreadPoolExecutor(8) as pool:
        parts = [p for some in pool.map(lambda file: _of_file(file, size), files) for p in some]
    name, times = Counter(part.name for part in parts).most_common(1)[0]
    if times > 1:
        raise UserError(
            f"{times} parts would be called {name!r}: rename all but one of these files"
        )
    return parts


def _of_file(file: DataFile, size: Size) -> list[Part]:
    try:
        cuts = _pieces(file.groups(), size)
    except (pa.ArrowException, OSError, ValueError) as error:
        return [Part(file.name, 0, 0, file.origin, file, _describe_trouble(file.path, error))]
    names = [file.name] if len(cuts) == 1 else [f"{file.name}-{i:05d}" for i in range(len(cuts))]
    return [
        Part(name, at.rows, at.first, file.origin, replace(file, group=at.group, skip=at.skip))
        for name, at in zip(names, cuts, strict=True)
    ]


class Group(NamedTuple):
    """Rows that lie together in a file, and about how much memory they take."""

    rows: int
    bytes: int


class _Cut(NamedTuple):
    """Rows of a file from `skip` rows into a group, and about how much memory they take."""

    group: int
    skip: int
    first: int
    rows: int
    bytes: int = 0


def _pieces(groups: Iterable[Group], size: Size) -> list[_Cut]:
    """Return the cuts of groups; one without rows where there are none."""
    return list(_cuts(groups, size)) or [_Cut(0, 0, 0, 0)]


def _cuts(groups: Iterable[Group], size: Size) -> Iterator[_Cut]:
    """Whole groups as long as they fit; a group that is too large is cut into equal pieces."""
    begun = _Cut(0, 0, 0, 0)
    first = 0
    for number, (rows, nbytes) in enumerate(groups):
        pieces = -(-rows // size.most_rows(rows, nbytes))
        both = begun._replace(rows=begun.rows + rows, bytes=begun.bytes + nbytes)
        if begun.rows and (pieces > 1 or both.rows > size.most_rows(both.rows, both.bytes)):
            yield begun
            begun = _Cut(0, 0, 0, 0)
        if pieces > 1:
            for skip, end in pairwise(rows * i // pieces for i in range(pieces + 1)):
                yield _Cut(number, skip, first + skip, end - skip)
        elif rows:
            at = begun if begun.rows else _Cut(number, 0, first, 0)
            begun = at._replace(rows=at.rows + rows, bytes=at.bytes + nbytes)
        first += rows
    if begun.rows:
        yield begun


@dataclass(frozen=True, eq=False)
class _InMemory:
    """Rows in memory, which travel with the part."""

    rows: Rows

    def batches(self, rows: int, size: int) -> Iterator[Rows]:
        for first in range(0, max(rows, 1), size):
            yield _some(self.rows, first, size)


def _some(rows: Rows, first: int, n: int) -> Rows:
    """Return a copy of up to n rows from the `first`."""
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[first : first + n].reset_index(drop=True)
    return np.array(rows[first : first + n])


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

    def groups(self) -> list[Group]:
        """Groups of rows in their order: row groups, record batches, or all of an array."""
        with self._reader() as (kind, reader):
            if kind == _PARQUET:
                found = (reader.metadata.row_group(i) for i in range(reader.num_row_groups))
                return [Group(group.num_rows, group.total_byte_size) for group in found]
            if kind == _ARRAY:
                return [Group(len(reader), reader.nbytes)]
            width = max(len(reader.schema), 1)
        # The number of rows is known once a column of them is read: the first, alone.
        first = pa.ipc.IpcReadOptions(included_fields=[0])
        with self._open() as file, pa.ipc.open_file(file, options=first) as reader:
            batches = map(reader.get_batch, range(reader.num_record_batches))
            return [Group(batch.num_rows, batch.nbytes * width) for batch in batches]

    def batches(self, rows: int, size: int) -> Iterator[Rows]:
        """The next `rows` rows, at most `size` at a time; an empty frame if there is none."""
        try:
            with self._reader() as (kind, reader):
                if kind == _ARRAY:
                    whole = _InMemory(reader[self.skip : self.skip + rows])
                    yield from whole.batches(rows, size)
                elif kind == _ARROW:
                    batches = map(reader.get_batch, range(self.group, reader.num_record_batches))
                    yield from self._frames(batches, rows, size, reader.schema)
                else:
                    groups = list(range(self.group, reader.num_row_groups))
                    batches = reader.iter_batches(batch_size=size, row_groups=groups)
                    yield from self._frames(batches, rows, size, reader.schema_arrow)
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, UserError | MemoryError):
                raise
            raise Unreadable(_describe_trouble(self.path, error)) from error

    def has_reader(self) -> bool:
        """Return whether a file that can be opened is of a format that is read in parts."""
        with self._open() as file:
            return bytes(file.read(6)).startswith((_PARQUET, _ARROW, _ARRAY))

    def checksum(self) -> str:
        """Return the SHA-256 of the file, in hexadecimal, or "unreadable"."""
        try:
            with self._open() as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except (pa.ArrowException, OSError):
            return "unreadable"

    def _frames(
        self, batches: Iterator[Any], rows: int, size: int, schema: pa.Schema
    ) -> Iterator[pd.DataFrame]:
        """Yield `rows` rows of record batches after the first `skip`, at most `size` at a time."""
        left, skip = rows, self.skip
        while left:
            batch = next(batches, None)
            if batch is None:
                raise ValueError(f"it ends after {rows - left:,} of {rows:,} rows")
            start, skip = min(skip, batch.num_rows), max(skip - batch.num_rows, 0)
            end = min(batch.num_rows, start + left)
            for at in range(start, end, size):
                yield self._frame(pa.Table.from_batches([batch.slice(at, min(size, end - at))]))
            left -= end - start
        if not rows:
            yield self._frame(schema.empty_table())

    def _frame(self, table: pa.Table) -> pd.DataFrame:
        """Rows with the columns that the names of the folders give."""
        frame = frame_of(table)
        more = {name: value for name, value in self.hive if name not in frame}
        return frame.assign(**more) if more else frame

    @contextmanager
    def _reader(self) -> Iterator[tuple[bytes, Any]]:
        """Yield the format of the file, by its first bytes, and a reader of it."""
        with self._open() as file:
            reader = open_columnar(file)
            if reader is not None:
                yield _PARQUET if isinstance(reader, pa.parquet.ParquetFile) else _ARROW, reader
            elif bytes(file.read(6)) == _ARRAY:
                yield _ARRAY, self._array()
            else:
                raise ValueError("it is neither a Parquet, Arrow or Feather file nor an .npy array")

    def _array(self) -> np.ndarray:
        if "://" in self.url:
            raise UserError(
                f"{self.url}: an .npy file must lie on this machine; copy it, or use Parquet"
            )
        array: np.ndarray = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if array.ndim != 2:
            raise UserError(
                f"{self.path} has the shape {array.shape}: give rows by columns, (n, d)"
            )
        return array

    def _open(self) -> Any:
        system = _file_system(self.url)[0]
        if isinstance(system, pa.fs.LocalFileSystem):  # takes no name that is no UTF-8
            return pa.OSFile(os.fsencode(self.path))
        return system.open_input_file(self.path)


def _describe_trouble(path: str, error: Exception) -> str:
    reason = str(error).partition("\n")[0].rstrip(".")
    return f"{path} cannot be read: {reason}; copy or write it again"


def files_of(url: str) -> list[DataFile]:
    """The file at a path or URL, or those of a folder of Parquet and Arrow files, by their paths.

    Names that begin with ``_`` or ``.`` are left out. UserError if there is none, or the one file
    is of another format.
    """
    # Workers, and a later call, may stand in another folder.
    url = url if "://" in url else str(Path(url).expanduser().absolute())
    system, path = _file_system(url)
    local = isinstance(system, pa.fs.LocalFileSystem)
    found = _local_paths(path) if local else _remote_paths(system, path)
    if found is None:
        raise UserError(f"there is no file or folder {url}")
    if found == [path]:
        file = _data_file(url, path, posixpath.basename(path))
        if not file.has_reader():
            raise UserError(
                f"{url} is neither a Parquet, Arrow or Feather file nor an .npy array, and no "
                "other, such as CSV, is read in parts: write it as Parquet, or leave `workers`, "
                "`partitions` and other options of parts out"
            )
        return [file]
    named = sorted((one[len(path.rstrip("/")) + 1 :], one) for one in found)
    files = [_data_file(url, one, name) for name, one in named if _is_data(name)]
    if not files:
        raise UserError(
            f"{url} holds no file that ends in {', '.join(_ENDINGS)}; write one of these"
        )
    return files


def _local_paths(path: str) -> list[str] | None:
    """The file at a path, or those of a folder and the folders in it; None if nothing is there.

    PyArrow would stop at a name that is no UTF-8.
    """
    if not os.path.isdir(path):
        return [path] if os.path.isfile(path) else None

    def refuse(error: OSError) -> None:
        raise error

    inside = (
        os.path.join(folder, name)
        for folder, _, names in os.walk(path, onerror=refuse, followlinks=True)
        for name in names
    )
    return list(filter(os.path.isfile, inside))


def _remote_paths(system: Any, path: str) -> list[str] | None:
    """Return the file at a path, or those of a folder; None if nothing is there."""
    info = system.get_file_info(path)
    if info.type == pa.fs.FileType.NotFound:
        return None
    some = [info]
    if info.type == pa.fs.FileType.Directory:
        some = system.get_file_info(pa.fs.FileSelector(path, recursive=True))
    return [one.path for one in some if one.is_file]


def _is_data(name: str) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in name.split("/"))
    return name.lower().endswith(_ENDINGS) and not hidden


def _data_file(url: str, path: str, name: str) -> DataFile:
    name = printable_name(name)
    pairs = (folder.partition("=") for folder in name.split("/")[:-1] if "=" in folder)
    hive = tuple((key, None if value == _NO_VALUE else unquote(value)) for key, _, value in pairs)
    return DataFile(url, path, name.removesuffix(".parquet"), name, hive)


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


def with_checksums(parts: list[Part], engine: Engine) -> list[Part]:
    """The parts of files with the SHA-256 of these in `origin`: size and time may stay the same."""
    files = {part.source.path: part.source for part in parts if isinstance(part.source, DataFile)}
    sums = dict(engine.map(DataFile.checksum, list(files.values())))
    named = dict(zip(files, (sums[i] for i in range(len(files))), strict=True))
    return [
        replace(part, origin=f"{part.origin} {named[part.source.path]}")
        if isinstance(part.source, DataFile)
        else part
        for part in parts
    ]
