"""`dipedl score` of one CSV of 200,000 rows and 40 columns: seconds of the process, peak memory.

The model is boosting with the default density, fitted by `dipedl fit` on other rows of the same
kind; half of the columns are numbers with gaps, the others levels.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
import numpy as np
import pandas as pd
from score_scale import cost

ROWS, COLUMNS, LEARNED, LEVELS, RUNS = 200_000, 40, 20_000, 8, 3


def write_table(path: Path, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS // 2)).round(4)
    levels = rng.integers(0, LEVELS, (n, COLUMNS // 2))
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    table = table.mask(rng.random(table.shape) < 0.02)
    words = np.array([f"level {i}" for i in range(LEVELS)])
    more = {f"c{j}": words[levels[:, j]] for j in range(levels.shape[1])}
    y = X[:, 0] + X[:, 1] * (levels[:, 0] > 3) + rng.normal(size=n) > 0
    table.assign(**more, y=np.where(y, "yes", "no")).to_csv(path, index=False)


def measure() -> harness.Values:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, new, model = folder / "train.csv", folder / "new.csv", folder / "model.dipedl"
        write_table(train, LEARNED, 0)
        write_table(new, ROWS, 1)
        fit = ["fit", train, "--target", "y", "--out", model, "--quiet"]
        subprocess.run([sys.executable, "-m", "dipedl", *map(str, fit)], check=True)
        score = ["-m", "dipedl", "score", model, new, "--quiet", "--out"]
        runs = [cost([*score, folder / f"answers-{i}.csv"], ROWS) for i in range(RUNS)]
        values = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        return {"score": values, "csv_megabytes": round(new.stat().st_size / 1e6, 1)}


if __name__ == "__main__":
    harness.main(__file__, measure)
