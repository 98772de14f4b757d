"""The demo at a size for tests, computed once a process."""

from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from dipedl import demo


@lru_cache(maxsize=1)
def small_demo():
    """The result for two classifiers, and the stages it went through."""
    seen = []

    @contextmanager
    def progress(stage):
        seen.append(stage)
        yield

    sizes = {"n_train": 400, "n_resamples": 40, "grid": 15}
    return demo.run(("linear", "forest"), **sizes, progress=progress), seen


def linear_only():
    """The same, with the first classifier alone."""
    result, _ = small_demo()
    return replace(
        result,
        models=result.models[:1],
        rows=tuple(row for row in result.rows if row.model != "forest"),
        receipt=replace(result.receipt, models=("linear",)),
    )
