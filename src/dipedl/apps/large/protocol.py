"""The work of every engine: a map over tasks, and a sum of their results in a fixed order."""

from __future__ import annotations

import hmac
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from operator import add
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import joblib

from ...writing.files import secret_key, write_file
from ..table.errors import UserError
from .files import DataFile
from .parts import Part

Result = TypeVar("Result")
#: Called with the rows that are done and those there are, of both passes.
Progress = Callable[[int, int], None]
#: Bytes of a checksum.
_CHECKSUM = 32


class Engine(Protocol):
    """Calls a function for each of many tasks, here or on other machines.

    The function and the tasks can be pickled. The function is unpickled once per worker, so what it
    loads at its first call and keeps on itself is loaded once per worker.

    Where a task kills its worker again and again, as one that needs more memory than there is, an
    engine that survives it asks the function for another: ``smaller()``, a function that needs less
    or None. A task that none can do has the result ``lost(task, why)``. Without these methods, and
    on an engine that does not survive it, that is an error.
    """

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        ...

    def map(
        self, function: Callable[[Any], Result], tasks: Iterable[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Number of each task, from 0, and its result, in the order in which they finish."""
        ...

    def reduce(
        self,
        function: Callable[[Any], Result],
        tasks: Iterable[Any],
        merge: Callable[[Result, Result], Result],
        finished: Callable[[int], None] | None = None,
    ) -> Result:
        """All results merged, by the tree of `Tree`: whatever finishes first, the same result.

        `merge` gives a new value and leaves its arguments as they are; `finished` is called with
        the number of each task that is done. ValueError if there is no task.
        """
        ...


class Tree(Generic[Result]):
    """Merges values by a binary tree over their numbers, in whatever order they come.

    Numbers 0 and 1 are merged, 2 and 3, then both sums, and so on: rounding does not depend on the
    order. Of n values that come in order at most log2(n) + 1 are held.
    """

    def __init__(self, merge: Callable[[Result, Result], Result]) -> None:
        self._merge = merge
        self._nodes: dict[tuple[int, int], Result] = {}

    def add(self, number: int, value: Result) -> None:
        """Take the value of a number, once per number."""
        level = 0
        while (level, number ^ 1) in self._nodes:
            other = self._nodes.pop((level, number ^ 1))
            value = self._merge(other, value) if number % 2 else self._merge(value, other)
            level, number = level + 1, number // 2
        self._nodes[level, number] = value

    def result(self) -> Result:
        """All values, merged; ValueError without any. Numbers must be those from 0 to n - 1."""
        if not self._nodes:
            raise ValueError("there is nothing to reduce: give at least one task")
        whole, *others = (self._nodes[at] for at in sorted(self._nodes))
        for left in others:
            whole = self._merge(left, whole)
        return whole


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


class Passes:
    """Both passes over the parts: on an engine, with what was done before taken from a folder.

    What is kept there is a pickle behind a checksum that takes the key of this user to make: what
    somebody else has put there, or was damaged, is not read but done again.
    """

    def __init__(
        self, engine: Engine, parts: list[Part], work: Path | None, progress: Progress | None
    ) -> None:
        self._engine, self._parts, self._work, self._progress = engine, parts, work, progress
        self._rows, self._done = 2 * sum(part.rows for part in parts), 0

    def run(self, function: Callable[[Part], Any]) -> Any:
        """The sum of what the function gives for the parts."""
        if self._work is None:
            return self._engine.reduce(function, self._parts, add, self._tell)
        self._work.mkdir(mode=0o700, parents=True, exist_ok=True)
        question, key = joblib.hash(function), secret_key()
        tree: Tree[Any] = Tree(add)
        files = [_Kept(self._work / _file_name(part, question), key) for part in self._parts]
        todo = []
        for i, file in enumerate(files):
            try:
                tree.add(i, file.read())
            except ValueError:
                todo.append(i)
            else:
                self._tell(i)
        for at, value in self._engine.map(function, [self._parts[i] for i in todo]):
            self._keep(files[todo[at]], value)
            tree.add(todo[at], value)
            self._tell(todo[at])
        return tree.result()

    def _keep(self, file: _Kept, value: Any) -> None:
        try:
            file.write(value)
        except OSError as error:
            raise UserError(
                f"{error.strerror}: what was read is kept in {self._work}. Free space there, and "
                "call fit again with the same work"
            ) from error

    def _tell(self, number: int) -> None:
        self._done += self._parts[number].rows
        if self._progress is not None and self._rows:
            self._progress(self._done, self._rows)


class _Kept(NamedTuple):
    """A value in a file, behind a checksum of both that nobody makes without the key."""

    path: Path
    key: bytes

    def write(self, value: Any) -> None:
        """Write the file whole or not at all."""
        data = pickle.dumps(value)
        write_file(self.path, self._checksum(data) + data)

    def read(self) -> Any:
        """The value; ValueError if there is none, or not as it was written."""
        content = self.path.read_bytes() if self.path.is_file() else b""
        checksum, data = content[:_CHECKSUM], content[_CHECKSUM:]
        if not hmac.compare_digest(checksum, self._checksum(data)):
            raise ValueError(f"{self.path} was not written with the key of this user")
        return pickle.loads(data)

    def _checksum(self, data: bytes) -> bytes:
        return hmac.digest(self.key, self.path.name.encode() + data, "sha256")


def _file_name(part: Part, question: str) -> str:
    """Where the result of a part is kept; another content or question is another file."""
    said = f"{question} {part.origin} {part.name} {part.first} {part.rows}"
    return f"{blake2b(said.encode(), digest_size=16).hexdigest()}.part"
