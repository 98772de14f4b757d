"""Rows of many requests, answered together: those that came during a pass go into the next one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ...answers import Answers
from ..table.score import ScoreRequest, answer_inputs
from .models import ServedModel

T = TypeVar("T")
#: Rows of one pass: it is not interrupted.
_PASS_ROWS = 1_000


@dataclass(eq=False)
class _Job:
    """Rows that wait for their answers."""

    served: ServedModel
    X: Any
    request: ScoreRequest
    future: Future[Answers] = field(default_factory=Future)


class Batcher:
    """One thread that answers rows, those of several requests in one pass of the model.

    `observe` is called with the model, inputs and answers of each pass, after its requests have
    them.
    """

    def __init__(self, observe: Callable[[ServedModel, Any, Answers], None]) -> None:
        self._observe = observe
        self._jobs: deque[_Job] = deque()
        self._thread = ThreadPoolExecutor(1, "dipedl-answers")

    async def answers(self, served: ServedModel, X: Any, request: ScoreRequest) -> Answers:
        """Return the answers to all rows of X; given up if the caller is cancelled."""
        pieces = [X[i : i + _PASS_ROWS] for i in range(0, len(X), _PASS_ROWS)]
        jobs = [_Job(served, piece, request) for piece in pieces]
        self._jobs.extend(jobs)
        for _ in jobs:
            self._thread.submit(self._answer_next)
        try:
            return Answers.concatenate([await asyncio.wrap_future(job.future) for job in jobs])
        finally:
            for job in jobs:
                job.future.cancel()

    async def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a function that runs in the thread of the answers."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answer_next(self) -> None:
        """Answer the oldest job with all that fit into its pass; nothing if none is left."""
        batch: list[_Job] = []
        others: list[_Job] = []
        rows = 0
        while self._jobs:
            job = self._jobs.popleft()
            alike = not batch or (
                (job.served, job.request) == (batch[0].served, batch[0].request)
                and rows + len(job.X) <= _PASS_ROWS
            )
            if not job.future.done():
                (batch if alike else others).append(job)
                rows += len(job.X) if alike else 0
        self._jobs.extendleft(reversed(others))
        if batch:
            self._answer(batch)

    def _answer(self, batch: Sequence[_Job]) -> None:
        """Answer jobs in one pass; if it fails, each job alone, so that none fails by another."""
        served = batch[0].served
        try:
            X = stack_inputs([job.X for job in batch])
            answers = answer_inputs(served.model.classifier, X, batch[0].request)
        except Exception as error:
            if len(batch) > 1:
                for job in batch:
                    self._answer([job])
            elif batch[0].future.set_running_or_notify_cancel():
                batch[0].future.set_exception(error)
            return
        ends = np.cumsum([len(job.X) for job in batch])
        for job, end in zip(batch, ends, strict=True):
            # Nobody waits for one that was cancelled.
            if job.future.set_running_or_notify_cancel():
                alone = len(batch) == 1  # a slice would take longer than all else here
                job.future.set_result(answers if alone else answers[end - len(job.X) : end])
        self._observe(served, X, answers)


def stack_inputs(parts: Sequence[Any]) -> Any:
    """Return inputs one below the other: arrays, or tables of the same columns."""
    if isinstance(parts[0], np.ndarray):
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    if len(parts) > 1:
        # A column of categories in which tables differ would become one of objects.
        parts = [table.copy(deep=False) for table in parts]
        for name in parts[0].select_dtypes("category"):
            levels = list(dict.fromkeys(x for table in parts for x in table[name].cat.categories))
            for table in parts:
                table[name] = table[name].cat.set_categories(levels)
    return pd.concat(parts, ignore_index=True)
