"""What `--dry-run` says of memory and time, against what `dipedl fit` and `score` take then.

    python benchmarks/scale_plan.py --folder /data/plan --only "score, 100000 x 20, 1 worker"

Without --only all cases are measured. What the receipt has of the same commit is kept, so the
measurement can be made in parts. The tables are written into the folder once.

Megabytes are the peak of the largest of a command's processes, as Linux keeps it for each (VmHWM);
they do not depend on what else the machine does. Seconds do.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
import pandas as pd

CLASSES, FILE = 3, 50_000


class Case(NamedTuple):
    """A command on so many rows and columns, by so many workers."""

    command: str
    rows: int
    columns: int
    workers: int

    def __str__(self) -> str:
        many = "s" * (self.workers > 1)
        return f"{self.command}, {self.rows} x {self.columns}, {self.workers} worker{many}"


CASES = [
    Case(command, rows, columns, workers)
    for command in ("score", "fit")
    for columns in (20, 300)
    for rows in (100_000, 1_000_000)
    for workers in (1, 2)
]


def rows_of(folder: Path, n: int, columns: int) -> Path:
    """A folder of files of normal classes with the column y, written once."""
    at = folder / f"{n}x{columns}"
    if at.is_dir():
        return at
    beside = at.with_suffix(".part")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for i in range(-(-n // FILE)):
        rng = np.random.default_rng(i)
        y = rng.integers(0, CLASSES, min(FILE, n - i * FILE))
        X = rng.normal(size=(len(y), columns)) + 0.5 * np.eye(CLASSES, columns)[y]
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
        frame.assign(y=y).to_parquet(beside / f"{i:05d}.parquet", index=False)
    beside.rename(at)
    return at


def words(folder: Path, case: Case) -> list[Any]:
    """The command of a case; what it writes is deleted."""
    data, model = rows_of(folder, case.rows, case.columns), folder / f"{case.columns}.dipedl"
    shutil.rmtree(folder / "answers", ignore_errors=True)
    more = ["--workers", case.workers, "--quiet"]
    if case.command == "fit":
        return ["fit", data, "--target", "y", "--out", folder / "new.dipedl", *more]
    if not model.exists():
        train = rows_of(folder, 100_000, case.columns)
        ran(["fit", train, "--target", "y", "--out", model, "--workers", 1, "--quiet"])
    return ["score", model, data, "--out", folder / "answers", "--reasons", "none", *more]


def ran(arguments: list[Any]) -> dict[str, float]:
    """Seconds of a command, and megabytes of the largest of its processes."""
    start, peaks = time.perf_counter(), [0]
    command = [sys.executable, "-m", "dipedl", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        while child.poll() is None:
            peaks += [peak for pid in family(child.pid) if (peak := high_water(pid))]
            time.sleep(0.1)
    if child.returncode:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "megabytes": round(max(peaks) / 1e6, 1),
    }


def family(pid: int) -> list[int]:
    """A process and all its children."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [one for child in task.read_text().split() for one in family(int(child))]
        except OSError:
            continue
    return found


def high_water(pid: int) -> int:
    """Most bytes that a process has had in memory; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return 1024 * sum(kilobytes)


def said(arguments: list[Any]) -> dict[str, float]:
    """Megabytes and seconds that the plan names, and the seconds that it takes itself."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "dipedl", *map(str, arguments), "--dry-run", "--json"]
    plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    memory = max(plan[name] for name in ("memory", "driver", "worker") if name in plan)
    return {
        "said_seconds": round(plan["seconds"], 1),
        "said_megabytes": round(memory / 1e6, 1),
        "plan_seconds": round(time.perf_counter() - start, 1),
    }


def compared(folder: Path, case: Case) -> dict[str, float]:
    """What the plan of a case names, and what the command takes."""
    arguments = words(folder, case)
    found = said(arguments) | ran(arguments)
    return found | {"ratio": round(found["said_megabytes"] / found["megabytes"], 3)}


def measure(options: argparse.Namespace) -> harness.Measured:
    config = {"classes": CLASSES, "rows_per_file": FILE, "cases": [str(case) for case in CASES]}
    options.folder.mkdir(parents=True, exist_ok=True)
    return config, {
        str(case): partial(compared, options.folder, case)
        for case in CASES
        if str(case) in options.only
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="for tables: 6 GB")
    parser.add_argument("--only", nargs="+", default=[str(case) for case in CASES])
    harness.main(__file__, measure, parser)
