"""Measurements with receipts: calls timed in turn, values written with what makes them again.

A script has a function that returns its values, and ends with

    harness.main(__file__, measure)

`python benchmarks/NAME.py` then writes results/NAME.json; ``--dry`` prints the values only. Their
configuration is the script's constants in capitals, and options that are numbers. Where the values
are functions, one for each part, those parts are kept that the receipt has of the same
configuration and commit: a long measurement can be stopped and taken up again.
"""

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dipedl import __version__

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
Values = dict[str, Any]


def median_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median wall seconds of `repeats` calls after one warm-up."""
    return paired_seconds({"": call}, repeats)[""]


def paired_seconds(
    calls: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the median seconds of each call, run in turn: a drifting machine is fair to all."""
    seconds = seconds_in_turn(calls, repeats, clock)
    return {name: statistics.median(values) for name, values in seconds.items()}


def seconds_in_turn(
    calls: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return seconds of `repeats` runs of each call, run in turn after one warm-up of each."""
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return seconds


def in_new_process(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call in a process of its own, for peaks of memory."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()


def peak_kib() -> int:
    """Return the peak of this process's resident memory; ``ru_maxrss`` begins with the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def round_numbers(value: Any, digits: int = 4) -> Any:
    """Round every number of a nested dict to so many significant digits."""
    if isinstance(value, dict):
        return {name: round_numbers(part, digits) for name, part in value.items()}
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def main(file: str, measure: Callable[..., Values]) -> None:
    """Measure, print, and write results/NAME.json for the script NAME.py unless ``--dry``.

    `measure` returns values or a function for each part of them. Its arguments are options of the
    command; each has a default, of several values a tuple.
    """
    name, parser = Path(file).stem, argparse.ArgumentParser()
    for option, argument in signature(measure).parameters.items():
        default, many = argument.default, isinstance(argument.default, tuple)
        kind = type(default[0] if many and default else "" if many else default)
        parser.add_argument(f"--{option}", type=kind, nargs="+" if many else None, default=default)
    parser.add_argument("--dry", action="store_true", help="print, and write no receipt")
    options = vars(parser.parse_args())
    dry, start = options.pop("dry"), time.perf_counter()
    numbers = {key: value for key, value in options.items() if isinstance(value, int | float)}
    config = constants_of(measure) | numbers
    found = measure(**options)
    values, seconds = found, time.perf_counter() - start
    if found and all(map(callable, found.values())):
        values = {}
        for part in found:
            kept, _ = ({}, 0.0) if dry else parts_of_receipt(name, config)
            start = time.perf_counter()
            values[part] = kept[part] if part in kept else found[part]()
            if not dry and part not in kept:
                # read once more: another process may have written its part meanwhile
                kept, seconds = parts_of_receipt(name, config)
                seconds += time.perf_counter() - start
                write(name, config, kept | {part: values[part]}, seconds)
    elif not dry:
        write(name, config, values, seconds)
    print(json.dumps(values, indent=1, sort_keys=True))


def constants_of(measure: Callable[..., Values]) -> Values:
    """Return the constants in capitals of the script that holds a function, by name in small."""
    found = {
        name.lower(): value
        for name, value in measure.__globals__.items()
        if name.isupper() and name[0] != "_" and not isinstance(value, Path)
    }
    return json.loads(json.dumps(found, default=repr))


def commit() -> str:
    """Return the commit of this tree, with "-dirty" where anything but a result has changed."""
    head = _git("rev-parse", "--short=12", "HEAD") or "unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
    return f"{head}-dirty" if changed else head


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()


def parts_of_receipt(name: str, config: Mapping[str, Any]) -> tuple[Values, float]:
    """Return values and seconds of the receipt, if it is of this configuration and this commit.

    None are kept of a tree with uncommitted changes.
    """
    from dipedl_bench.results.receipt import config_hash

    path, now = ROOT / "results" / f"{name}.json", commit()
    row = json.loads(path.read_text()) if path.exists() else {}
    same = (row.get("config_hash"), row.get("commit")) == (config_hash(config), now)
    return (row["values"], row["seconds"]) if same and not now.endswith("-dirty") else ({}, 0.0)


def write(name: str, config: Mapping[str, Any], values: Mapping[str, Any], seconds: float) -> None:
    """Replace the receipt results/<name>.json."""
    from dipedl.writing import write_file
    from dipedl_bench.results.receipt import config_hash
    from dipedl_bench.results.receipt import receipt as of_now

    row = {
        "benchmark": name,
        "command": f"python benchmarks/{name}.py",
        "config": dict(config),
        "config_hash": config_hash(config),
        "values": dict(values),
        **of_now(),
        "commit": commit(),
        "seconds": round(seconds, 2),
    }
    path = ROOT / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    write_file(path, json.dumps(row, indent=1, sort_keys=True) + "\n")


def receipt(name: str) -> Values:
    """Return the receipt results/<name>.json."""
    path = ROOT / "results" / f"{name}.json"
    if not path.exists():
        raise SystemExit(f"no {path}: run python benchmarks/{name}.py")
    return json.loads(path.read_text())


def where(row: Mapping[str, Any]) -> str:
    """Return command, machine and configuration; the version too, where it is not that of today."""
    made = row["versions"]["dipedl"]
    older = "" if made == __version__ else f", dipedl {made}"
    return f"`{row['command']}` on {row['device']}, configuration {row['config_hash']}{older}."
