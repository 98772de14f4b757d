"""Fits of tables on disk: `dipedl fit FOLDER` with one Gaussian a class, and its memory.

    python benchmarks/fit_scale.py --rows 100000 1000000 --folder /data/scale

Options are those of score_scale.py; "megabytes" is the peak of the largest of its processes.
"""

from functools import partial
from pathlib import Path

import harness
from score_scale import CLASSES as CLASSES  # of the receipt
from score_scale import FEATURES as FEATURES
from score_scale import FOLDER, ROWS, WORKERS, cost, write_rows
from score_scale import ROWS_PER_FILE as ROWS_PER_FILE


def fit_table(folder: Path, n: int) -> dict[str, float]:
    """Return the cost of the command on n rows."""
    new, out = folder / f"labelled-{n}", folder / "fitted.dipedl"
    write_rows(new, n, labelled=True)
    out.unlink(missing_ok=True)
    options = ["--target", "y", "--density", "gaussians", "--workers", WORKERS, "--quiet"]
    return cost(["-m", "dipedl", "fit", new, *options, "--out", out], n)


def measure(rows: tuple[int, ...] = ROWS, folder: Path = FOLDER) -> harness.Values:
    folder.mkdir(parents=True, exist_ok=True)
    return {f"fit, {n} rows": partial(fit_table, folder, n) for n in rows}


if __name__ == "__main__":
    harness.main(__file__, measure)
