"""What a fit on many machines would cost: rates of one core, overheads of Ray, and a model of both.

The model is checked here: many small partitions, and 1, 2 and 4 workers.
"""

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import receipt
import torch
from threadpoolctl import threadpool_limits

from dipedl.apps.large import LocalEngine, RayEngine
from dipedl.density import GDADensity
from dipedl.pretrained import ClassGaussians

REPEATS = 5
CLASSES, FEATURES, ROWS = 10, 64, 20_000
PARTITIONS, TINY, WORKERS = 64, 200, (1, 2, 4)
WIDE, WIDE_ROWS, WIDE_CLASSES, SQUARE = 768, 8_000, 1_000, 1_500


def main() -> None:
    start = time.perf_counter()
    torch.set_num_threads(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        values = {"core": core(Path(folder)), "local": local(), "ray": {}}
        for workers in WORKERS:
            with RayEngine(workers=workers) as engine:
                values["ray"][str(workers)] = ray(engine)
    for workers, of in values["ray"].items():
        predicted = modelled(values, int(workers))
        of |= {"predicted_s": round(predicted, 2), "ratio": round(of["fit_s"] / predicted, 2)}
    config = {
        "classes": CLASSES,
        "features": FEATURES,
        "rows": ROWS,
        "partitions": PARTITIONS,
        "tiny_tasks": TINY,
        "cores": os.cpu_count(),
        "wide": [WIDE_ROWS, WIDE],
        "wide_classes": WIDE_CLASSES,
        "repeats": REPEATS,
    }
    receipt.write("scale_model", config, values, time.perf_counter() - start)


def core(folder: Path) -> dict[str, float]:
    """Rates of one thread: products, reading, moments, their sum."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(SQUARE, SQUARE))
    X = rng.normal(size=(WIDE_ROWS, WIDE)).astype(np.float32)
    y = np.arange(WIDE_ROWS) % WIDE_CLASSES
    pd.DataFrame(X, columns=[f"x{j}" for j in range(WIDE)]).to_parquet(folder / "rows.parquet")
    rows, labels = torch.tensor(X), torch.tensor(y)
    fitted = tied(rows, labels).finish()
    full = GDADensity(shrinkage=0.1).partial_fit(X, y % CLASSES)
    return {
        "product_gflops": 2e-9 * SQUARE**3 / seconds(lambda: A @ A),
        "parquet_mb_per_s": 1e-6 * X.nbytes / seconds(lambda: pd.read_parquet(folder)),
        "moments_rows_per_s": WIDE_ROWS / seconds(lambda: tied(rows, labels)),
        "score_rows_per_s": WIDE_ROWS / seconds(lambda: fitted(rows)),
        "merge_mb_per_s": 8e-6 * CLASSES * WIDE**2 / seconds(lambda: full + full),
    }


def tied(rows: torch.Tensor, labels: torch.Tensor) -> ClassGaussians:
    """Sums of one covariance for all classes."""
    density = ClassGaussians("tied")
    density.update(rows, labels, n_classes=WIDE_CLASSES)
    return density


def local() -> dict[str, float]:
    """Seconds of a partition in this process, and of all of them."""
    one = seconds(lambda: moments(0))
    whole = seconds(lambda: LocalEngine().reduce(moments, range(PARTITIONS), merged), 3)
    return {"partition_s": one, "fit_s": whole}


def ray(engine: RayEngine) -> dict[str, float]:
    """Seconds of the start of workers, of a task without work, and of a fit, after a warm-up."""
    run = partial(engine.reduce, merge=merged)
    first = seconds(lambda: run(nothing, range(1)), 1)
    tiny, whole = (
        seconds(lambda work=work, n=n: run(work, range(n)), 1, warm=False)
        for work, n in ((nothing, TINY), (moments, PARTITIONS))
    )
    return {"start_s": first, "task_ms": 1e3 * (tiny - first) / (TINY - 1), "fit_s": whole}


def modelled(values: dict[str, Any], workers: int) -> float:
    """Seconds of the fit: workers start, parts and their sums are tasks, parts share the cores."""
    of, busy = values["ray"][str(workers)], min(workers, os.cpu_count() or 1)
    work = PARTITIONS * values["local"]["partition_s"] / busy
    return of["start_s"] + 2 * PARTITIONS * of["task_ms"] / 1e3 + work


def moments(part: int) -> GDADensity | None:
    """The Gaussians of one made-up partition."""
    rng = np.random.default_rng(part)
    X = rng.normal(size=(ROWS, FEATURES))
    with threadpool_limits(1):
        return GDADensity("full", shrinkage=0.1).partial_fit(
            X, rng.integers(0, CLASSES, ROWS), np.arange(CLASSES)
        )


def nothing(_: int) -> None:
    """A task without work."""


def merged(a: Any, b: Any) -> Any:
    """The sum of two results."""
    return None if a is None else a + b


def seconds(work: Callable[[], Any], repeats: int = REPEATS, warm: bool = True) -> float:
    """Median seconds after a warm-up."""
    if warm:
        work()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return float(np.median(found))


if __name__ == "__main__":
    main()
