"""Rows of many requests, answered together: what came in during a pass goes into the next one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ...answers import Answers
from ..table.score import ScoreRequest
from .models import Served

T = TypeVar("T")
#: Called with a model, inputs and its answers to them, in the thread of the answers.
See = Callable[[Served, Any, Answers], None]
#: Rows of one pass: it is not interrupted.
_AT_ONCE = 1_000


@dataclass(eq=False)
class _Task:
    """Some rows of a request, and where their answers are waited for."""

    served: Served
    X: Any
    wanted: ScoreRequest
    future: asyncio.Future[Answers]

    def goes_with(self, other: _Task) -> bool:
        return self.served is other.served and self.wanted == other.wanted


class Batcher:
    """One thread that answers rows, those of several requests in one pass of the model.

    Parameters
    ----------
    see : callable
        Gets every pass once its requests have their answers.
    """

    def __init__(self, see: See) -> None:
        self._see = see
        self._tasks: deque[_Task] = deque()
        self._came = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "dipedl-answers")

    async def run(self) -> None:
        """Answer what comes, until cancelled."""
        while True:
            await self._came.wait()
            batch = self._next()
            if batch:
                await self.apart(_settle, batch, self._see)
            else:
                self._came.clear()

    async def answers(self, served: Served, X: Any, wanted: ScoreRequest) -> Answers:
        """Answers to all rows of X; given up if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        pieces = [X[i : i + _AT_ONCE] for i in range(0, len(X), _AT_ONCE)]
        tasks = [_Task(served, piece, wanted, loop.create_future()) for piece in pieces]
        self._tasks.extend(tasks)
        self._came.set()
        try:
            return Answers.concatenate([await task.future for task in tasks])
        finally:
            for task in tasks:
                task.future.cancel()

    async def apart(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of a function in the thread of the answers."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> list[_Task]:
        """The oldest task with all that can be answered in the same pass."""
        batch: list[_Task] = []
        others: deque[_Task] = deque()
        rows = 0
        for task in self._tasks:
            fits = not batch or (task.goes_with(batch[0]) and rows + len(task.X) <= _AT_ONCE)
            if task.future.done():
                continue
            if fits:
                batch.append(task)
                rows += len(task.X)
            else:
                others.append(task)
        self._tasks = others
        return batch


def _settle(batch: Sequence[_Task], see: See) -> None:
    """Answer a batch; if that fails, each of its tasks alone, so that none fails by another."""
    first = batch[0]
    try:
        X = merged([task.X for task in batch])
        found = first.served.answers(X, first.wanted)
    except Exception as error:
        if len(batch) == 1:
            _tell(first, first.future.set_exception, error)
        for task in batch if len(batch) > 1 else ():
            _settle([task], see)
        return
    start = 0
    for task in batch:
        stop = start + len(task.X)
        _tell(task, task.future.set_result, found[start:stop])
        start = stop
    see(first.served, X, found)


def _tell(task: _Task, tell: Callable[[T], None], what: T) -> None:
    """Settle a future in the thread of its loop, unless nobody waits for it any more."""

    def now() -> None:
        if not task.future.done():
            tell(what)

    task.future.get_loop().call_soon_threadsafe(now)


def merged(several: Sequence[Any]) -> Any:
    """Inputs one below the other: arrays, or tables of the same columns."""
    if len(several) == 1:
        return (
            several[0] if isinstance(several[0], np.ndarray) else several[0].reset_index(drop=True)
        )
    if isinstance(several[0], np.ndarray):
        return np.concatenate(several)
    return pd.concat(_of_same_levels(several), ignore_index=True)


def _of_same_levels(tables: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """Tables whose columns of categories all have the levels of all tables."""
    changed = [table.copy(deep=False) for table in tables]
    for name in tables[0].select_dtypes("category"):
        levels = list(dict.fromkeys(x for table in tables for x in table[name].cat.categories))
        for table in changed:
            table[name] = table[name].cat.set_categories(levels)
    return changed
