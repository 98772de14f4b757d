"""Time and memory of scoring a data set, or of a fit in two passes, before it runs."""

from __future__ import annotations

import math
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from ...classifier import DIPClassifier
from ..table.errors import UserError
from ..table.score import ScoreRequest
from ..table.table_model import TableModel
from .engines import LocalEngine
from .fitting import BATCH, EACH, OrderInParts, Reading, learn_parts
from .parts import Part, Unreadable, parts_of
from .scoring import AT_SCALE, AnswersFolder, PartFails, Scorer, fitted_table
from .scoring import BATCH as SCORED

#: Rows of the sample that is fitted to measure, and the most parts that it is drawn from.
_SAMPLE, _FROM = 24_000, 8
#: Seconds of a fit that are enough to measure.
_LONG = 4.0
#: Copies of a batch, and of a sample, that a pass holds; of both samples that a fit holds.
_OF_BATCH, _OF_SAMPLE, _OF_BOTH = 6, 3, 8
_FLOAT = 8


@dataclass(frozen=True)
class Plan:
    """Time and memory of scoring, or of a fit, measured on some of the rows.

    Attributes
    ----------
    parts, rows, unreadable : int
        Parts, their rows, and files that cannot be read.
    driver, worker, workers : int
        Bytes that the driver of a fit holds, 0 of a scoring, and each of so many workers.
    sample : int
        Rows that were answered, or learned from, to measure.
    seconds : float or None
        Of all workers, and of the fit between the passes; None where a fit of the sample fails,
        with the reason in `why`.
    """

    parts: int
    rows: int
    unreadable: int
    driver: int
    worker: int
    workers: int
    sample: int
    seconds: float | None
    why: str = ""

    def __str__(self) -> str:
        """The plan in lines."""
        bad = f"; {self.unreadable:,} files cannot be read" if self.unreadable else ""
        took = (
            f"not known: {self.why}"
            if self.seconds is None
            else f"about {self.seconds:,.0f} s, measured on {self.sample:,} rows"
        )
        driver = f"{self.driver / 1e6:,.0f} MB for this process, and " if self.driver else ""
        return (
            f"Parts:    {self.parts:,}, with {self.rows:,} rows{bad}"
            f"{', read twice' if self.driver else ''}\n"
            f"Memory:   about {driver}{self.worker / 1e6:,.0f} MB for each of {self.workers} "
            f"workers\n"
            f"Time:     {took}"
        )


def plan(
    model: str | Path | TableModel | DIPClassifier,
    data: Any,
    *,
    partitions: int | str | None = None,
    wanted: ScoreRequest = AT_SCALE,
    workers: int = 1,
) -> Plan:
    """Estimate time and memory of `score` by `workers` that share the cores of this machine.

    Some rows are answered, and nothing is written. Arguments as of `score`.
    """
    parts = parts_of(data, partitions)
    work = Scorer(fitted_table(model), AnswersFolder(Path()), wanted)
    full = sorted((part for part in parts if part.rows), key=lambda part: -part.rows)
    bad = sum(bool(part.trouble) for part in parts)
    why = "there is no row to answer"
    for corrupt, part in enumerate(full):
        sample, each = min(part.rows, SCORED), max(1, effective_n_jobs(-1) // workers)
        try:
            with threadpool_limits(each):
                for _ in range(2):  # the first prepares the search of neighbours
                    start = time.perf_counter()
                    next(work.pieces(part))
                rate = sample / (time.perf_counter() - start)
        except PartFails as error:
            why = str(error)
            continue
        rows, workers = sum(part.rows for part in full), min(workers, len(parts))
        seconds = rows / (rate * workers)
        return Plan(len(parts), rows, bad + corrupt, 0, _peak(), workers, sample, seconds)
    raise UserError(why)


def plan_fit(data: Any, order: OrderInParts, partitions: str | None, workers: int) -> Plan:
    """The plan of a fit, by fits of some rows of the data."""
    # A worker of several imports what this process has.
    start = time.process_time() if workers > 1 else 0.0
    parts = parts_of(data, partitions)
    full = [part for part in parts if part.rows]
    if not full:
        trouble = next((p.trouble for p in parts), "")
        raise UserError(f"there is no row to fit on{': ' * bool(trouble)}{trouble}")
    reading = Reading(order.target, tuple(order.drop), order.key, order.group_column)
    sample, corrupt = _draw_rows(full, reading)
    rows, base = sum(part.rows for part in full), _peak()
    seconds, why, measured = None, "", len(sample)
    try:
        seconds, measured = _measure(sample, order, rows, workers)
        seconds = max(seconds + start, 1.0)
    except (ValueError, TypeError) as error:
        why = f"a fit of {len(sample):,} of these rows fails: {error}"
    driver, worker = _memory(sample, order, full, workers)
    bad = sum(bool(one.trouble) for one in parts) + corrupt
    return Plan(
        parts=len(parts),
        rows=rows,
        unreadable=bad,
        driver=int(base + driver),
        worker=int(base + worker),
        workers=workers,
        sample=measured,
        seconds=seconds,
        why=why,
    )


def _draw_rows(parts: list[Part], reading: Reading) -> tuple[pd.DataFrame, int]:
    """Labelled rows of some of the parts, and how many of the others were found corrupt."""
    step, most = max(1, len(parts) // _FROM), min(_FROM, len(parts))
    frames, corrupt = [], 0
    for i in sorted(range(len(parts)), key=lambda i: i % step):
        some = replace(parts[i], rows=min(parts[i].rows, _SAMPLE // most))
        try:
            batch = next(reading.batches(some))
        except Unreadable:
            corrupt += 1
            continue
        frames.append(batch.frame.assign(**{reading.target: batch.labels}))
        if len(frames) == most:
            break
    if not frames:
        raise UserError(f"none of the {len(parts):,} parts can be read")
    return pd.concat(frames, ignore_index=True), corrupt


class _Clock(LocalEngine):
    """Takes the time of the passes, as one of several workers of this machine."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.threads_each = max(1, effective_n_jobs(-1) // workers)
        self.seconds = 0.0

    def map(self, function: Any, tasks: Any) -> Any:
        start = time.perf_counter()
        with threadpool_limits(self.threads_each):
            results = list(super().map(function, tasks))
        self.seconds += time.perf_counter() - start
        return iter(results)


def _measure(
    sample: pd.DataFrame, order: OrderInParts, rows: int, workers: int
) -> tuple[float, int]:
    """Seconds of a fit of all rows, by fits of more and more of some; and how many the last had.

    They end once one takes `_LONG`, so that a plan takes a part of the time of its fit.
    """
    steps = (4, 4, 2, 1) if len(sample) >= _SAMPLE // 2 else (1, 1)
    costs: list[tuple[int, float, float]] = []
    for step in steps:
        some, clock, start = sample.iloc[::step], _Clock(workers), time.perf_counter()
        try:
            learned = learn_parts(some, replace(order, drop=()), clock)
        except (ValueError, TypeError):
            if step == 1:  # a class may be missing in fewer rows
                raise
            continue
        seconds = time.perf_counter() - start
        costs.append((len(learned.model.rows), seconds - clock.seconds, clock.seconds))
        if len(costs) > 2 and seconds > _LONG:
            break
    # The first fit imports what it needs.
    (n_half, half, _), (n, fit, passes) = costs[-2:] if len(costs) > 1 else 2 * costs
    if n > n_half:
        drawn = min(0.9 * rows, order.reservoir)
        slope, power = (fit - half) / (n - n_half), math.log(fit / half) / math.log(n / n_half)
        # A search of neighbours grows faster than the rows, and all have some costs but once.
        linear = fit + max(0.0, slope) * (drawn - n)
        fit = max(linear, fit * (drawn / n) ** min(max(power, 0.0), 1.5))
    return fit + passes * rows / len(some) / workers, len(some)


def _memory(
    sample: pd.DataFrame, order: OrderInParts, parts: list[Part], workers: int
) -> tuple[float, float]:
    """Bytes beyond the libraries, of the driver and of a worker."""
    rows, p = sum(part.rows for part in parts), sample.shape[1] - 1
    classes = sample[order.target].nunique()
    row = sample.drop(columns=order.target).memory_usage(deep=True).sum() / len(sample)
    drawn = min(rows, order.reservoir + EACH * classes)
    held = min(rows // 10, order.calibration)
    sums = 2 * classes * p * p * _FLOAT
    part = max(part.rows for part in parts)
    in_pass = row * (_OF_BATCH * min(part, BATCH) + _OF_SAMPLE * (min(part, drawn) + held))
    in_fit = _OF_BOTH * (drawn + held) * row
    worker = max(in_pass, 3 * sums + _OF_BATCH * min(part, BATCH) * p * _FLOAT)
    merging = sums * (math.log2(len(parts)) + 2)
    return max(in_fit, merging, worker if workers == 1 else 0), worker


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
