"""A Ray cluster, or Ray on one machine: workers may die, and the result is the same."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Self, TypeVar

from ...plugins import optional
from ..table.errors import UserError
from .address import check_answers
from .protocol import Tree

Result = TypeVar("Result")
_MEMORY = "if memory ran out, give smaller parts (partitions) or fewer workers"
_INSTALL = "install on each machine of the cluster what this one has, in the same versions"
#: How often a task is done again whose worker died; of a sum, which needs every task, more often.
_RETRIES, _RETRIES_OF_SUM = 2, 5


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
    gpus_per_worker : float, default=0
        GPUs, or the share of one, that Ray reserves for each worker.
    object_store_bytes : int, default=200_000_000
        Shared memory of a Ray that is started here.

    Raises
    ------
    UserError
        If no Ray answers at the address: known after 15 s at most.
    ImportError
        Without the extra ``[ray]``.
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        gpus_per_worker: float = 0,
        object_store_bytes: int = 200_000_000,
    ) -> None:
        self.address = address
        self._asked = workers
        self.gpus_per_worker = gpus_per_worker
        self.object_store_bytes = object_store_bytes
        if address is not None:
            check_answers(address)
            # Ray reads it when it is imported; by itself it asks 20 times, a second apart.
            os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "5")
        self._ray = optional("ray", "RayEngine")
        self._started = False
        if not self._ray.is_initialized():
            self._start()
        elif address is not None:
            raise UserError("this process uses a Ray already: leave address out, or ray.shutdown()")

    def map(
        self, function: Callable[[Any], Result], tasks: Iterable[Any]
    ) -> Iterator[tuple[int, Result]]:
        """As `Engine.map`."""
        left = dict(enumerate(_known(tasks)))
        work: Callable[[Any], Result] | None = function
        while left and work is not None:
            for number, result in self._survived(work, left):
                del left[number]
                yield number, result
            work = getattr(work, "smaller", lambda: None)()
        for number, task in left.items():
            yield number, _lost(function, task)

    def _survived(
        self, function: Callable[[Any], Result], tasks: dict[int, Any]
    ) -> Iterator[tuple[int, Result]]:
        """Number and result of the tasks whose workers do not die again and again."""
        known = self._ray.exceptions
        with self._errors():
            for number, value in self._values(function, dict(tasks), _RETRIES):
                try:
                    result = self._ray.get(value)
                except known.RayError as error:
                    if isinstance(error, known.RayTaskError) or _never_began(error):
                        raise
                else:
                    yield number, result

    def reduce(
        self,
        function: Callable[[Any], Result],
        tasks: Iterable[Any],
        merge: Callable[[Result, Result], Result],
        finished: Callable[[int], None] | None = None,
    ) -> Result:
        """As `Engine.reduce`; what is merged stays on the workers."""
        remote = self._ray.remote
        # The workers have all CPUs while they live.
        merged = remote(_merged).options(num_cpus=0, max_retries=-1)
        kept_merge = self._ray.put(merge)
        tree: Tree[Any] = Tree(lambda a, b: merged.remote(kept_merge, a, b))
        with self._errors():
            numbered = dict(enumerate(_known(tasks)))
            for number, value in self._values(function, numbered, _RETRIES_OF_SUM):
                tree.add(number, value)
                if finished is not None:
                    finished(number)
            result: Result = self._ray.get(tree.result())
        return result

    def close(self) -> None:
        """End the Ray that this engine started, if it did."""
        if self._started:
            self._ray.shutdown()
            self._started = False

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """As `close`."""
        self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of a function as they were raised, and those of Ray with a remedy."""
        known = self._ray.exceptions
        try:
            yield
        except known.RayError as error:
            cause = error.cause if isinstance(error, known.RayTaskError) else error
            if not isinstance(cause, known.RayError):
                raise cause from error
            if _never_began(cause):
                why = str(cause).rpartition("\n")[2]
                raise UserError(f"Ray cannot make a worker: {why}; {_INSTALL}") from error
            said = str(cause).partition("\n")[0]
            raise UserError(f"Ray gave a task up: {said}; {_MEMORY}") from error

    def _start(self) -> None:
        # Ray would report its use to its makers, and warns of its own way to start actors.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address is None:
            options |= {"num_cpus": self._asked, "object_store_memory": self.object_store_bytes}
            options |= {"address": "local", "include_dashboard": False}
        else:
            options["address"] = self.address
        try:
            self._ray.init(**options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"Ray cannot be used at {self.address or 'this machine'}: {error}"
            ) from error
        self._started = True

    @property
    def workers(self) -> int:
        """As `Engine.workers`; UserError if there is no CPU, or too few GPUs."""
        found = self._ray.cluster_resources()
        cpus, gpus = found.get("CPU", 0), found.get("GPU", 0)
        if cpus < 1:
            raise UserError(
                f"the Ray cluster has {cpus:g} CPUs, and each worker needs one: start its nodes "
                "with ray start --num-cpus"
            )
        by_gpu = gpus / self.gpus_per_worker if self.gpus_per_worker else cpus
        if by_gpu < 1:
            raise UserError(
                f"gpus_per_worker={self.gpus_per_worker:g}: the cluster has {gpus:g} GPUs; "
                "give fewer, or 0"
            )
        # A worker that the cluster has no room for would be waited for without end.
        most = int(min(cpus, by_gpu))
        return min(self._asked or most, most)

    def _values(
        self, function: Callable[[Any], Any], tasks: dict[int, Any], retries: int
    ) -> Iterator[tuple[int, Any]]:
        """Number of each task and the reference to its result, as they finish."""
        kept, gpus = self._ray.put(function), self.gpus_per_worker or None
        # One task at a time: a task that waits behind another does not die with it.
        make = self._ray.remote(_Actor).options(
            num_cpus=1, num_gpus=gpus, max_restarts=-1, max_task_retries=retries
        )
        count = min(self.workers, max(len(tasks), 1))
        idle = [make.remote((kept,)) for _ in range(count)]
        waiting, running = iter(tasks.items()), {}
        while True:
            for number, task in islice(waiting, len(idle)):
                worker = idle.pop()
                running[worker.result.remote(task)] = number, worker
            if not running:
                return
            (done,), _ = self._ray.wait(list(running), num_returns=1)
            number, worker = running.pop(done)
            idle.append(worker)
            yield number, done


class _Actor:
    """A worker: holds the function from its first task on."""

    def __init__(self, kept: tuple[Any]) -> None:
        # In a tuple the reference comes itself, and a worker that is started again can use it.
        self._function = optional("ray", "RayEngine").get(kept[0])

    def result(self, task: Any) -> Any:
        """The result of a task, which stays in Ray's store."""
        return self._function(task)


def _never_began(error: Exception) -> bool:
    """Return whether a worker could not be made, as one that cannot load the function.

    Ray does not try again to make it.
    """
    return bool(getattr(error, "actor_init_failed", False))


def _lost(function: Callable[[Any], Any], task: Any) -> Any:
    """Return the result of a task that no worker survives; UserError if the function gives none."""
    few = ", the last time with few rows at once" if hasattr(function, "smaller") else ""
    why = f"its worker died again and again{few}: {_MEMORY}"
    if hasattr(function, "lost"):
        return function.lost(task, why)
    raise UserError(f"{getattr(task, 'name', 'a task')}: {why}")


def _merged(merge: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return merge(a, b)


def _known(tasks: Iterable[Any]) -> list[Any]:
    if not hasattr(tasks, "__len__"):
        raise UserError(
            "a stream, as the batches of a PyTorch loader, is read in this process: "
            "use LocalEngine, or write it as Parquet"
        )
    return list(tasks)
