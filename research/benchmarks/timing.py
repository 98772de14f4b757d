"""Seconds of calls, without any import but the standard library's."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any


def median_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Median wall seconds of `repeats` calls after one warm-up."""
    return paired_seconds({"": call}, repeats)[""]


def paired_seconds(
    calls: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each call, run in turn: a drifting machine is fair to all."""
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}
