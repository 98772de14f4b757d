"""One machine: tasks in this process, in threads or in processes, through joblib."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import BrokenExecutor
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from ...writing.files import write_file
from ..table.errors import UserError
from .protocol import Tree

Result = TypeVar("Result")
#: Seconds after which a worker looks whether its parent lives.
_SECONDS = 0.5
#: Folders of the functions that this worker was given.
_FOLDERS: set[str] = set()


class LocalEngine:
    """Works on this machine; of the tasks a few are in memory at a time.

    Parameters
    ----------
    n_jobs : int, default=1
        Tasks at a time, as in joblib: -1 is one for each core. With 1 all runs in this process.
    threads : bool, default=False
        Threads of this process in place of processes: for functions that spend their time outside
        of Python, as in NumPy, or that cannot be pickled.
    """

    def __init__(self, n_jobs: int = 1, threads: bool = False) -> None:
        self.n_jobs = n_jobs
        self.threads = threads

    @property
    def workers(self) -> int:
        """As `Engine.workers`."""
        return int(effective_n_jobs(self.n_jobs))

    def map(
        self, function: Callable[[Any], Result], tasks: Iterable[Any]
    ) -> Iterator[tuple[int, Result]]:
        """As `Engine.map`."""
        if self.workers == 1 or (isinstance(tasks, Sized) and len(tasks) <= 1):
            yield from enumerate(map(function, tasks))
        elif self.threads:
            yield from self._parallel("threading", function, tasks)
        else:
            with TemporaryDirectory() as folder:
                held = Path(folder, "function")
                write_file(held, pickle.dumps(function))
                yield from self._parallel("loky", _Held(str(held), os.getpid()), tasks)

    def reduce(
        self,
        function: Callable[[Any], Result],
        tasks: Iterable[Any],
        merge: Callable[[Result, Result], Result],
        finished: Callable[[int], None] | None = None,
    ) -> Result:
        """As `Engine.reduce`."""
        tree = Tree(merge)
        for number, value in self.map(function, tasks):
            tree.add(number, value)
            if finished is not None:
                finished(number)
        return tree.result()

    def _parallel(
        self, backend: str, function: Callable[[Any], Result], tasks: Iterable[Any]
    ) -> Iterator[tuple[int, Result]]:
        work = Parallel(
            self.n_jobs,
            backend=backend,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        done: Iterator[tuple[int, Result]] = work(
            delayed(_numbered)(function, number, task) for number, task in enumerate(tasks)
        )
        try:
            yield from done
        except BrokenExecutor as error:
            raise UserError(
                "a worker process was killed, perhaps because memory ran out: give smaller parts "
                "(partitions) or fewer workers"
            ) from error


def _numbered(function: Callable[[Any], Result], number: int, task: Any) -> tuple[int, Result]:
    return number, function(task)


class _Held:
    """A function that each worker reads from a file at its first task."""

    def __init__(self, path: str, parent: int) -> None:
        self.path = path
        self.parent = parent

    def __call__(self, task: Any) -> Any:
        _FOLDERS.add(os.path.dirname(self.path))
        _watch(self.parent)
        return _read(self.path)(task)


@lru_cache(maxsize=1)
def _read(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


@cache
def _watch(parent: int) -> None:
    """End this worker soon after its parent: one that is killed cannot tell, nor clean up."""
    Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    for folder in list(_FOLDERS):
        shutil.rmtree(folder, ignore_errors=True)
    # What the system shares among processes is freed by joblib's tracker once all have ended.
    os._exit(1)
