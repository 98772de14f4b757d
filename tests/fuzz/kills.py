"""Processes killed while they write a model or rows: the old content or the new, no mixture."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris

from dipedl import DIPClassifier, load, save
from dipedl.density import GDADensity
from dipedl_bench.results.rows import append_row, parse_rows

X, Y = load_iris(return_X_y=True)
#: In memory where there is such a folder: a busy disk makes each write wait.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
#: Seconds within which a process is killed.
LONGEST = 0.03
BATCH = 10


@cache
def models() -> list[Any]:
    """Two models that answer differently."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [DIPClassifier(density=GDADensity(), prior=p).fit(X, Y) for p in (1.0, 50.0)]


def killed(work: Any, seconds: float) -> None:
    """Run `work` for ever in a child process, and kill it after so many seconds."""
    child = os.fork()
    if child == 0:
        try:
            while True:
                work()
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def saving(folder: Path, seconds: float) -> str:
    """A model is written over another one."""
    old, new = models()
    path = folder / "model"
    save(old, path)
    killed(lambda: save(new, path), seconds)
    P = load(path).predict_proba(X)
    whole = any(np.array_equal(P, model.predict_proba(X)) for model in (old, new))
    return "model whole" if whole else "wrong model"


def row(seed: int) -> dict[str, Any]:
    """A row of a benchmark."""
    key = {"suite": "s", "profile": "p", "method": "m", "config_hash": "c", "seed": seed}
    told = {"title": "x" * 5000, "config": {}, "versions": {}}
    cost = {"n": {}, "seconds": {}, "cpu_seconds": {}}
    return key | told | cost | {"metrics": {"auroc": float(seed)}, "intervals": {}}


def appending(folder: Path, seconds: float) -> str:
    """Rows are appended; a later process goes on after a torn one."""
    path = folder / "rows.jsonl"
    append_row(path, row(-1))
    numbers = iter(range(10**9))
    killed(lambda: append_row(path, row(next(numbers))), seconds)
    n = len(parse_rows(path)[0])
    append_row(path, row(-2))
    rows, damaged = parse_rows(path)
    expected = [row(seed) for seed in [-1, *range(n - 1), -2]]
    path.unlink()
    return "rows whole" if rows == expected and not damaged else "rows lost"


def run(seed: int, tries: int) -> Counter[str]:
    """Kills at random moments, of both kinds in turn."""
    rng, counts = np.random.default_rng(seed), Counter()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for i in range(tries):
            kind = (saving, appending)[i % 2]
            try:
                counts[kind(Path(folder), rng.uniform(0, LONGEST))] += 1
            except Exception as error:
                counts[f"fault: {type(error).__name__}: {str(error)[:300]}"] += 1
    return counts
