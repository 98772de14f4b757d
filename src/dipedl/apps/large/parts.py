"""A data set cut into parts that fit into memory, whatever holds it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd

from ..table.errors import UsageError, UserError
from ..table.reading import join_frames
from .engines import Engine
from .files import DataFile, Group, Rows, files_of, groups_or_trouble

#: How the names of the parts of a stream begin.
STREAMED = "batch"
_BYTES = 128 << 20
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


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
        """All rows: a frame, or arrays (X,) or (X, y); UserError if they cannot be read."""
        return _joined(list(self.batches(max(self.rows, 1))))

    def batches(self, size: int) -> Iterator[Rows]:
        """The rows in order, at most `size` at a time; an empty frame if there is none."""
        if self.trouble:
            raise UserError(self.trouble)
        yield from self.source.batches(self.rows, size)


def _joined(batches: list[Rows]) -> Rows:
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], pd.DataFrame):
        return join_frames(batches)
    return tuple(np.concatenate(arrays) for arrays in zip(*batches, strict=True))


class PartStream:
    """Parts that are there one after another, as batches of a PyTorch loader: iterated once."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self.loader = batches

    def __iter__(self) -> Iterator[Part]:
        first = 0
        for number, batch in enumerate(self.loader):
            arrays = tuple(np.asarray(array) for array in _as_tuple(batch))
            rows = len(arrays[0])
            yield Part(f"{STREAMED}-{number:05d}", rows, first, "", _InMemory(arrays))
            first += rows


def _as_tuple(batch: Any) -> Iterable[Any]:
    return batch if isinstance(batch, tuple | list) else (batch,)


def parts_of(data: Any, partitions: int | str | None = None) -> list[Part] | PartStream:
    """Cut a data set into parts, in a fixed order.

    Parameters
    ----------
    data : path-like, str, list of them, frame, array or iterable
        Folder of Parquet and Arrow files (Feather too), one of them, or an ``.npy`` file, as a path
        or as a URL of any file system that PyArrow or fsspec knows; a frame of pandas or polars; an
        array (n, d); or a PyTorch loader, whose batches are the parts of a `PartStream`. Folders
        called ``name=value`` become columns of texts.
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
        return _of_files(files_of(str(data)), size)
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | Path):
        return _of_files([file for path in data for file in files_of(str(path))], size)
    if hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if isinstance(data, pd.DataFrame | np.ndarray):
        return _of_memory(data, size)
    if hasattr(data, "__iter__"):
        return PartStream(data)
    raise TypeError(f"data must be a path, frame, array or loader, got {type(data).__name__}")


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
    groups = groups_or_trouble(file)
    if isinstance(groups, str):
        return [Part(file.name, 0, 0, file.origin, file, groups)]
    cuts = list(_cuts(groups, size)) or [_Cut(0, 0, 0, 0, 0)]
    names = [file.name] if len(cuts) == 1 else [f"{file.name}-{i:05d}" for i in range(len(cuts))]
    return [
        Part(name, cut.rows, cut.first, file.origin, file.at(cut.group, cut.skip))
        for name, cut in zip(names, cuts, strict=True)
    ]


class _Cut(NamedTuple):
    """Rows of a file from `skip` rows into a group, and about how much memory they take."""

    group: int
    skip: int
    first: int
    rows: int
    bytes: int


def _cuts(groups: Iterable[Group], size: Size) -> Iterator[_Cut]:
    """Whole groups as long as they fit; a group that is too large is cut into equal pieces."""
    open_cut: _Cut | None = None
    first = 0
    for number, (rows, nbytes) in enumerate(groups):
        pieces = -(-rows // size.most_rows(rows, nbytes))
        if open_cut and (pieces > 1 or not _fits(open_cut, rows, nbytes, size)):
            yield open_cut
            open_cut = None
        if pieces > 1:
            yield from _pieces(number, first, rows, nbytes, pieces)
        elif rows:
            at = open_cut or _Cut(number, 0, first, 0, 0)
            open_cut = at._replace(rows=at.rows + rows, bytes=at.bytes + nbytes)
        first += rows
    if open_cut:
        yield open_cut


def _fits(cut: _Cut, rows: int, nbytes: int, size: Size) -> bool:
    return cut.rows + rows <= size.most_rows(cut.rows + rows, cut.bytes + nbytes)


def _pieces(group: int, first: int, rows: int, nbytes: int, pieces: int) -> Iterator[_Cut]:
    ends = [rows * i // pieces for i in range(pieces + 1)]
    for skip, end in pairwise(ends):
        yield _Cut(group, skip, first + skip, end - skip, nbytes * (end - skip) // rows)


def _of_memory(data: Any, size: Size) -> list[Part]:
    rows: Rows = data if isinstance(data, pd.DataFrame) else (data,)
    whole, origin = _InMemory(rows), f"in memory {joblib.hash(data)}"
    return [
        Part(
            f"rows-{i:05d}", cut.rows, cut.first, origin, _InMemory(whole.some(cut.first, cut.rows))
        )
        for i, cut in enumerate(_cuts([Group(len(data), whole.nbytes)], size))
    ]


@dataclass(frozen=True, eq=False)
class _InMemory:
    """Rows in memory, which travel with the part."""

    rows: Rows

    @property
    def nbytes(self) -> int:
        if isinstance(self.rows, pd.DataFrame):
            return int(self.rows.memory_usage().sum())
        return sum(array.nbytes for array in self.rows)

    def some(self, first: int, rows: int) -> Rows:
        at = slice(first, first + rows)
        if isinstance(self.rows, pd.DataFrame):
            return self.rows.iloc[at].reset_index(drop=True)
        return tuple(array[at] for array in self.rows)

    def batches(self, rows: int, size: int) -> Iterator[Rows]:
        for first in range(0, max(rows, 1), size):
            yield self.some(first, size)


def with_checksums(parts: list[Part], engine: Engine) -> list[Part]:
    """The parts of files with the SHA-256 of these in `origin`: size and time may stay the same."""
    files = {part.source.path: part.source for part in parts if isinstance(part.source, DataFile)}
    sums = dict(engine.map(DataFile.checksum, list(files.values())))
    named = {path: sums[i] for i, path in enumerate(files)}
    return [
        replace(part, origin=f"{part.origin} {named[part.source.path]}")
        if isinstance(part.source, DataFile)
        else part
        for part in parts
    ]
