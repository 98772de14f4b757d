"""Fits of tables on disk: `dipedl fit FOLDER`, its memory, and sums against reading and a product.

    python benchmarks/fit_scale.py --rows 100000 1000000 --folder /data/scale

Options are those of score_scale.py. "fit" is the
whole command with one Gaussian a class: "megabytes" is the peak of the largest of its processes.
"sums" adds the moments of one covariance for all classes batch by batch, in one thread; "product"
reads the same batches and multiplies each by its transpose; their seconds are of the processor.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import harness
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from harness import paired_seconds
from score_scale import CLASSES, FOLDER, ROWS, WORKERS, cost, write_rows
from score_scale import FEATURES as FEATURES  # of the receipt
from score_scale import ROWS_PER_FILE as ROWS_PER_FILE
from threadpoolctl import threadpool_limits

from dipedl.density import GDADensity

WIDE, BATCH = (200_000, 256), 20_000


def fit_table(folder: Path, n: int) -> dict[str, float]:
    """Return the cost of the command on n rows."""
    new, out = folder / f"labelled-{n}", folder / "fitted.dipedl"
    write_rows(new, n, labelled=True)
    out.unlink(missing_ok=True)
    options = ["--target", "y", "--density", "gaussians", "--workers", WORKERS, "--quiet"]
    return cost(["-m", "dipedl", "fit", new, *options, "--out", out], n)


def batches(file: Path) -> Iterator[np.ndarray]:
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches(batch_size=BATCH, use_threads=False):
            yield np.column_stack([column.to_numpy() for column in batch.columns])


def sums(folder: Path) -> dict[str, float]:
    """Processor seconds of the sums of a wide table, and of a product in their place."""
    file = folder / "wide.parquet"
    if not file.exists():
        rng = np.random.default_rng(0)
        rows = rng.normal(size=WIDE).astype(np.float32)
        pd.DataFrame(rows, columns=[f"x{j}" for j in range(WIDE[1])]).to_parquet(file, index=False)
    y = np.arange(BATCH) % CLASSES

    def add_moments() -> None:
        density = GDADensity("tied")
        for X in batches(file):
            density.partial_fit(X, y[: len(X)], classes=np.arange(CLASSES))

    def multiply() -> None:
        total = np.zeros((WIDE[1], WIDE[1]))
        for X in batches(file):
            wide = X.astype(np.float64)
            total += wide.T @ wide

    with threadpool_limits(1):
        return paired_seconds({"sums": add_moments, "product": multiply}, 5, time.process_time)


def measure(rows: tuple[int, ...] = ROWS, folder: Path = FOLDER) -> harness.Values:
    folder.mkdir(parents=True, exist_ok=True)
    parts = {f"fit, {n} rows": partial(fit_table, folder, n) for n in rows}
    return parts | {"sums of a wide table": partial(sums, folder)}


if __name__ == "__main__":
    harness.main(__file__, measure)
