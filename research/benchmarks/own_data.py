"""The commands for a user's own table: seconds of processor time and peak memory of each.

A run that was stopped goes on after the last table that is done.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import receipt

SMALL, LARGE = (1_300, 12), (200_000, 40)
FIRST = ("Anna", "Karl", "Maria", "John", "Ida", "Olaf", "Ruth", "Emil")


def passengers(n: int) -> pd.DataFrame:
    """A list like that of the Titanic's passengers, made up: text, categories, gaps, an id."""
    rng = np.random.default_rng(0)
    deck = rng.choice([1, 2, 3], n, p=[0.25, 0.21, 0.54])
    sex = rng.choice(["male", "female"], n, p=[0.64, 0.36])
    age = np.round(rng.normal(42 - 5 * deck, 13, n).clip(0.5, 78), 1)
    merit = 2.4 * (sex == "female") - 0.8 * (deck - 1) - 0.02 * age + rng.logistic(0, 0.6, n)
    made = pd.DataFrame(
        {
            "passenger": np.arange(1, n + 1),
            "y": np.where(merit > 0, "yes", "no"),
            "deck": deck,
            "name": [f"{FIRST[i % 8]}, no. {i}" for i in range(n)],
            "sex": sex,
            "age": np.where(rng.random(n) < 0.2, np.nan, age),
            "siblings": rng.poisson(0.5, n),
            "parents": rng.poisson(0.38, n),
            "ticket": [f"A/{i}" for i in rng.integers(10**5, size=n)],
            "fare": np.exp(rng.normal(4.6 - 0.75 * deck, 0.5, n)).round(2),
            "cabin": [f"C{i}" if i < 30 else None for i in rng.integers(130, size=n)],
            "port": rng.choice(["S", "C", "Q"], n, p=[0.7, 0.21, 0.09]),
        }
    )
    return made


def wide(n: int, d: int) -> pd.DataFrame:
    """Numbers, eight categories, truths, a date and gaps, with three classes by a rule."""
    rng = np.random.default_rng(0)
    made = {f"number{j}": rng.normal(size=n).round(5) for j in range(d - 11)}
    sides = ["north", "south", "east", "west", "up", "down"]
    made |= {f"side{j}": rng.choice(sides, n) for j in range(8)}
    made["sold"] = np.where(rng.random(n) < 0.3, "yes", "no")
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    made["day"] = days.strftime("%Y-%m-%d")
    table = pd.DataFrame(made)
    merit = table.number0 + table.number1 * table.number2 + 2 * (table.side0 == "north")
    merit += rng.logistic(0, 0.5, n)
    table.loc[rng.random(n) < 0.1, "number5"] = np.nan
    return table.assign(y=np.select([merit < -1, merit < 1], ["low", "mid"], "high"))


def measured(folder: Path, *arguments: str) -> dict[str, float]:
    """Run a command; seconds of all its threads, seconds on the clock, peak memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = f"{sys.executable} -m dipedl {' '.join(arguments)} --quiet"
    timed = (
        "import resource, subprocess, sys;"
        "code = subprocess.run(sys.argv[1].split(), stdout=subprocess.DEVNULL).returncode;"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", timed, command], cwd=folder, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "cpu_seconds": round(spent, 1),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_gib": round(int(done.stdout.split()[-1]) / 2**20, 2),
    }


def commands(size: str, table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Fit, score and report of one table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table.to_csv(folder / "data.csv", index=False)
        return {
            f"{size}_fit": measured(folder, "fit", "data.csv", "--target", "y"),
            f"{size}_score": measured(folder, "score", "model.dipedl", "data.csv"),
            f"{size}_report": measured(folder, "report", "model.dipedl", "data.csv"),
        }


def main() -> None:
    config = {"small": SMALL, "large": LARGE, "model": "boosting"}
    values, seconds = receipt.begun("own_data", config)
    for size, (n, d) in (("small", SMALL), ("large", LARGE)):
        if f"{size}_fit" in values:
            continue
        start = time.perf_counter()
        values |= commands(size, passengers(n) if size == "small" else wide(n, d))
        seconds += time.perf_counter() - start
        receipt.write("own_data", config, values, seconds)


if __name__ == "__main__":
    main()
