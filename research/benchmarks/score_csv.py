"""`dipedl score` of one CSV of 200,000 rows and 40 columns: seconds of the process, peak memory.

The model is boosting with the default density, fitted by `dipedl fit` on other rows of the same
kind. The columns are numbers, some with gaps; or half of them are levels, each of which is a
feature.
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import harness
import numpy as np
import pandas as pd
from score_scale import cost

ROWS, COLUMNS, LEARNED, LEVELS = 200_000, 40, 20_000, 8


def write_table(path: Path, n: int, of_levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS - of_levels)).round(4)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    table = table.mask(rng.random(table.shape) < 0.02)
    words = np.array([f"level {i}" for i in range(LEVELS)])
    more = {f"c{j}": rng.choice(words, n) for j in range(of_levels)}
    y = X[:, 0] + X[:, 1] * (X[:, 2] > 0) + rng.normal(size=n) > 0
    table.assign(**more, y=np.where(y, "yes", "no")).to_csv(path, index=False)


def score_table(of_levels: int) -> dict[str, float]:
    """Return the cost of `dipedl score`, with the size of the CSV."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, new, model = folder / "train.csv", folder / "new.csv", folder / "model.dipedl"
        write_table(train, LEARNED, of_levels, 0)
        write_table(new, ROWS, of_levels, 1)
        fit = ["fit", train, "--target", "y", "--out", model, "--quiet"]
        subprocess.run([sys.executable, "-m", "dipedl", *map(str, fit)], check=True)
        score = ["-m", "dipedl", "score", model, new, "--quiet", "--out", folder / "answers.csv"]
        return cost(score, ROWS) | {"csv_megabytes": round(new.stat().st_size / 1e6, 1)}


def measure() -> harness.Values:
    cases = {"numbers": 0, "numbers and levels": COLUMNS // 2}
    return {name: partial(score_table, of_levels) for name, of_levels in cases.items()}


if __name__ == "__main__":
    harness.main(__file__, measure)
