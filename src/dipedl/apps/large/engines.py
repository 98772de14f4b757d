"""Engines that call a function for each of many tasks: this machine, or a Ray cluster."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from functools import cache, lru_cache
from itertools import islice
from threading import Thread
from typing import Any, Generic, Protocol, Self, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from ...protocols import optional
from ..table.errors import UserError

Result = TypeVar("Result")
_MEMORY = "if memory ran out, give smaller parts (partitions) or fewer workers"
#: Seconds after which a worker looks whether its parent lives.
_SECONDS = 0.5
#: How often Ray does a task again whose worker died.
_RETRIES = 2
#: Ray reports nothing to its makers, and gives up a task for which there is not enough memory.
_SETTINGS = {
    "USAGE_STATS_ENABLED": "0",
    "BACKEND_LOG_LEVEL": "fatal",
    "task_oom_retries": str(_RETRIES),
}
#: Bytes of shared memory of a Ray that is started here.
_STORE = 200_000_000
#: Seconds in which an address must take a connection, and a program of Ray one to its cluster.
_SOON, _LIMIT = 5.0, 30.0
_CONNECT = "import sys, ray; ray.init(sys.argv[1], log_to_driver=False, logging_level=40)"


class Engine(Protocol):
    """Calls a function for each of many tasks, here or on other machines.

    The function and the tasks can be pickled. The function is unpickled once per worker, so what it
    loads at its first call and keeps on itself is loaded once per worker.

    A task that kills its worker again and again, as one that needs more memory than there is, has
    the result ``function.lost(task, why)``. Without that method, and on an engine that does not
    survive it, it is an error.
    """

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        ...

    def map(
        self, function: Callable[[Any], Result], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Number of each task, from 0, and its result, in the order in which they finish."""
        ...


class Tree(Generic[Result]):
    """Merges values by a binary tree over their numbers, in whatever order they come.

    Numbers 0 and 1 are merged, 2 and 3, then both sums, and so on: rounding does not depend on the
    order. Of n values that come in order at most log2(n) + 1 are held.

    Parameters
    ----------
    merge : function of two values
        Gives a new value and leaves its arguments as they are.
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
            raise ValueError("there is nothing to merge: give at least one task")
        whole, *others = (self._nodes[at] for at in sorted(self._nodes))
        for left in others:
            whole = self._merge(left, whole)
        return whole


class LocalEngine:
    """Works on this machine; of the tasks a few are in memory at a time.

    Parameters
    ----------
    n_jobs : int, default=1
        Tasks at a time, in processes, as in joblib: -1 is one for each core. With 1 all runs in
        this process.
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.n_jobs = n_jobs

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        return int(effective_n_jobs(self.n_jobs))

    def map(
        self, function: Callable[[Any], Result], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield number and result of each task; see `Engine.map`."""
        if self.workers == 1 or len(tasks) <= 1:
            yield from enumerate(map(function, tasks))
            return
        pickled, parent = pickle.dumps(function), os.getpid()
        work = Parallel(
            self.n_jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        calls = (delayed(_call)(pickled, parent, *one) for one in enumerate(tasks))
        try:
            yield from work(calls)
        except BrokenExecutor as error:
            raise UserError(f"a worker process was killed: {_MEMORY}") from error


def _call(pickled: bytes, parent: int, number: int, task: Any) -> tuple[int, Any]:
    """Call the function on a worker process, which unpickles it at its first task."""
    _watch(parent)
    return number, _unpickled(pickled)(task)


@lru_cache(maxsize=1)
def _unpickled(pickled: bytes) -> Any:
    return pickle.loads(pickled)


@cache
def _watch(parent: int) -> None:
    """End this worker soon after its parent: one that is killed cannot tell."""

    def end_after() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS)
        # What the system shares among processes is freed by joblib's tracker once all have ended.
        os._exit(1)

    Thread(target=end_after, daemon=True).start()


class RayEngine:
    """Works on a Ray cluster: each worker holds the function, and a task of a dead one is repeated.

    Use it in a ``with`` block, or call `close`: a Ray that it started ends there, a Ray that was
    there goes on.

    Parameters
    ----------
    address : str, optional
        Of the cluster, as ``"10.0.0.1:6379"``, or ``"auto"`` for the one that runs on this machine;
        default: the Ray that this process has, else one is started here.
    workers : int, optional
        Tasks at a time, at most one for each CPU of the cluster, which is the default.

    Raises
    ------
    UserError
        If no Ray answers at the address: known after half a minute at most.
    ImportError
        Without the extra ``[ray]``.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._most = workers
        for name, value in _SETTINGS.items():
            os.environ.setdefault(f"RAY_{name}", value)
        if address is not None:
            _check_cluster(address)
        self._ray = optional("ray", "RayEngine")
        self._started = not self._ray.is_initialized()
        if not self._started:
            if address is not None:
                raise UserError(
                    "this process uses a Ray already: leave address out, or ray.shutdown()"
                )
            return
        options: dict[str, Any] = {"address": address}
        if address is None:
            options = {"address": "local", "num_cpus": workers, "object_store_memory": _STORE}
            options["include_dashboard"] = False
        try:
            self._ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"Ray cannot be used at {address or 'this machine'}: {error}"
            ) from error

    @property
    def workers(self) -> int:
        """Tasks at a time; UserError if there is no CPU."""
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        if cpus < 1:
            raise UserError(
                f"the Ray cluster has {cpus} CPUs, and each worker needs one: start its nodes with "
                "ray start --num-cpus"
            )
        # A worker that the cluster has no room for would be waited for without end.
        return min(self._most or cpus, cpus)

    def map(
        self, function: Callable[[Any], Result], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield number and result of each task; see `Engine.map`."""
        ray, workers = self._ray, self.workers if tasks else 0
        # In a tuple the reference comes itself, and a worker that has it takes it once.
        stored = (ray.put(function),)
        call = ray.remote(num_cpus=1, max_retries=_RETRIES)(_call_stored)
        waiting = iter(enumerate(tasks))
        running: dict[Any, tuple[int, Any]] = {}
        while True:
            for number, task in islice(waiting, workers - len(running)):
                running[call.remote(stored, task)] = number, task
            if not running:
                return
            (done,), _ = ray.wait(list(running), num_returns=1)
            number, task = running.pop(done)
            try:
                result = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                why = f"its worker died again and again: {_MEMORY}"
                if not hasattr(function, "lost"):
                    raise UserError(f"{getattr(task, 'name', 'a task')}: {why}") from error
                result = function.lost(task, why)
            yield number, result

    def close(self) -> None:
        """End the Ray that this engine started, if it did."""
        if self._started:
            self._ray.shutdown()
            self._started = False

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Call `close`."""
        self.close()


def _call_stored(stored: tuple[Any], task: Any) -> Any:
    return _function_of(stored[0])(task)


@lru_cache(maxsize=1)
def _function_of(reference: Any) -> Any:
    """Return the function behind a reference; UserError if this worker cannot load it."""
    try:
        return optional("ray", "RayEngine").get(reference)
    except Exception as error:
        why = str(error).strip().rpartition("\n")[2]
        raise UserError(
            f"Ray cannot make a worker: {why}; install on each machine of the cluster what this "
            "one has, in the same versions"
        ) from error


def _check_cluster(address: str) -> None:
    """Raise UserError if no Ray can be connected at an address, which Ray would try for minutes."""
    try:
        if address not in ("auto", "local"):
            host, colon, port = address.rpartition("://")[2].rpartition(":")
            if not colon or not port.isdigit():
                raise UserError(
                    f"address must be host:port, as 10.0.0.1:6379, or auto, got {address!r}"
                )
            socket.create_connection((host, int(port)), timeout=_SOON).close()
        command = [sys.executable, "-c", _CONNECT, address]
        subprocess.run(command, check=True, capture_output=True, timeout=_LIMIT)
    except (OSError, subprocess.SubprocessError) as error:
        why = {
            subprocess.TimeoutExpired: f"no answer in {_LIMIT:g} s",
            subprocess.CalledProcessError: "a Ray program cannot connect to it",
        }.get(type(error), error)
        raise UserError(
            f"no Ray cluster answers at {address}: check the address, or start one by ray start "
            f"--head ({why})"
        ) from error
