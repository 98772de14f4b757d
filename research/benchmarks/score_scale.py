"""Scoring of tables on disk: `dipedl score` in parts against the bare classifier, memory and Ray.

    python benchmarks/score_scale.py --rows 100000 1000000 --folder /data/scale

Without --rows all sizes are measured. What the receipt has of the same commit is kept, so the
measurement can be made in parts. The tables are written once, 2 GB at 1e7 rows; without --folder
below the folder of temporary files.

"bare" reads the same files, predicts by the same classifier with all cores, and writes the
probabilities. Seconds are wall seconds of a process with its start, "megabytes" the peak of the
largest of its processes.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

FEATURES, CLASSES, LEARNED, ROWS_PER_FILE, WORKERS = 20, 3, 100_000, 50_000, 2
ROWS = (100_000, 1_000_000, 10_000_000)
ENGINES = ("local", "ray")
FOLDER = Path(tempfile.gettempdir()) / "dipedl-scale"
_BARE = """
import sys
from pathlib import Path
import pandas as pd
import pyarrow.parquet as pq
import dipedl
clf, new, out = dipedl.load(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
out.mkdir()
for file in sorted(new.glob("*.parquet")):
    with pq.ParquetFile(file) as table:
        made = [clf.classifier_proba(b.to_pandas()) for b in table.iter_batches(batch_size=20_000)]
    names = [f"p_{name}" for name in clf.classes_]
    pd.concat([pd.DataFrame(P, columns=names) for P in made]).to_parquet(out / file.name)
"""


def base_rows() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        LEARNED, FEATURES, n_informative=10, n_classes=CLASSES, random_state=0
    )


def as_table(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(FEATURES)])


def write_rows(folder: Path, n: int, *, labelled: bool = False) -> None:
    """Files of rows drawn again from the learned ones, a tenth of a standard deviation off."""
    if folder.is_dir():
        return
    X, y = base_rows()
    beside = folder.with_suffix(".part")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for i in range(-(-n // ROWS_PER_FILE)):
        rng = np.random.default_rng(i)
        at = rng.integers(0, len(X), min(ROWS_PER_FILE, n - i * ROWS_PER_FILE))
        table = as_table(X[at] + 0.1 * X.std(axis=0) * rng.normal(size=(len(at), FEATURES)))
        labels = {"y": np.array(list("abc"))[y[at]]} if labelled else {}
        table.assign(**labels).to_parquet(beside / f"{i:05d}.parquet", index=False)
    beside.rename(folder)


def fit_model(folder: Path) -> Path:
    model = folder / "model.dipedl"
    if not model.exists():
        X, y = base_rows()
        as_table(X).assign(y=np.array(list("abc"))[y]).to_parquet(folder / "train.parquet")
        command = ["fit", folder / "train.parquet", "--target", "y", "--out", model, "--quiet"]
        subprocess.run([sys.executable, "-m", "dipedl", *command], check=True)
    return model


def cost(command: list[Any], n: int) -> dict[str, float]:
    """Wall seconds, rows per second and megabytes of a command."""
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command} ended with {child.returncode}")
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "rows_per_second": round(n / seconds),
        "megabytes": round(used.ru_maxrss / 1000, 1),
    }


def score_table(folder: Path, n: int, engine: str) -> dict[str, float]:
    """Return the cost of the bare classifier, or of `dipedl score` with an engine, on n rows."""
    model, new, out = fit_model(folder), folder / f"new-{n}", folder / "out"
    write_rows(new, n)
    shutil.rmtree(out, ignore_errors=True)
    if engine == "bare":
        return cost(["-c", _BARE, model, new, out], n)
    options = ["--engine", engine, "--workers", WORKERS, "--reasons", "none", "--quiet"]
    found = cost(["-m", "dipedl", "score", model, new, "--out", out, *options], n)
    rows = sum(len(pd.read_parquet(f, columns=["row"])) for f in out.glob("*.parquet"))
    if rows != n:
        raise SystemExit(f"{rows} answers to {n} rows")
    return found


def measure(rows: tuple[int, ...] = ROWS, folder: Path = FOLDER) -> harness.Values:
    folder.mkdir(parents=True, exist_ok=True)
    cases = itertools.product(rows, ("bare", *ENGINES))
    return {f"{engine}, {n} rows": partial(score_table, folder, n, engine) for n, engine in cases}


if __name__ == "__main__":
    harness.main(__file__, measure)
