"""Rows: what one method did with one seed, what it cost, and the receipt; one JSON line each.

A file of rows holds a line for each, written at once to the end. A line that is damaged, as a kill
tears the last one, is left out with a warning; it is cut out before the next write, so that the
next run makes its row again. Rows of a crossed suite say "dataset" and "classifier" too.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Container, Iterable, Mapping
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from dipedl.writing import plain, warn_caller, write_file

from ..names import check_folder_name, run_command
from .receipt import CROSSED_FORMAT

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "Row",
    "append_row",
    "as_line",
    "key_of",
    "line_of",
    "load_rows",
    "read_rows",
    "replace_row",
    "rows_in",
]

Row = dict[str, Any]
#: Types that readers of a row rely on; those that follow only where it has metrics.
_TYPES = {"title": str, "seed": int, "config": dict, "versions": dict}
_TYPES_OF_METRICS = {"n": dict, "seconds": dict, "cpu_seconds": dict}


def default_root() -> Path:
    """Folder of results: the environment variable ``DIPEDL_BENCH``, else ``./bench-results``."""
    return Path(os.environ.get("DIPEDL_BENCH") or "bench-results")


def make_root(root: Path) -> None:
    """Make the folder of all results if it is missing; an OSError names --out if it cannot be."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not os.access(root, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise OSError(
            errno.EACCES,
            f"--out must be a folder that can be written to, got {str(root)!r}: {error.strerror}",
        ) from error


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values that no two rows share."""
    return tuple(row[name] for name in ("suite", "profile", "method", "config_hash", "seed"))


def line_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return data set, classifier and method; "" where a suite has one data set."""
    return row.get("dataset", ""), row.get("classifier", ""), row["method"]


def method_of(row: Mapping[str, Any]) -> str:
    """Name of the method; rows of other kinds of its uncertainty are called ``method:kind``."""
    return str(row["method"]).partition(":")[0]


def trained_parts_of(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the receipts of the method itself and of each part below it, as far as there."""
    return [row.get("own", {}), *row.get("parts", {}).values()]


def was_resumed(row: Mapping[str, Any]) -> bool:
    """Return whether a part of a row was trained by more than one process."""
    return any(part.get("resumed") for part in trained_parts_of(row))


# ------------------------------------------------------------------------------- files of rows


def as_line(row: Mapping[str, Any]) -> bytes:
    """Write a row as one line of JSON; numbers that are not finite, which JSON lacks, as text."""
    return json.dumps(plain(row), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def parse_rows(path: Path) -> tuple[list[Row], dict[int, str]]:
    """Return the rows of a file, and what is wrong with each damaged line, by its number.

    A file that does not exist has none. ValueError if a row was made by a newer version.
    """
    rows: list[Row] = []
    damaged = {}
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        try:
            row = _parse_row(line)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            damaged[number] = f"{type(error).__name__}: {error}"
            continue
        if row["config"].get("format", 0) > CROSSED_FORMAT:
            raise ValueError(
                f"{str(path)!r}, line {number}: a row of format {row['config']['format']}, this "
                f"version reads up to {CROSSED_FORMAT}; upgrade dipedl-bench"
            )
        rows.append(row)
    return rows, damaged


def _parse_row(line: bytes) -> Row:
    if not line.endswith(b"\n"):
        raise ValueError("its end is missing, as after a run that was killed while it wrote")
    row = json.loads(line)
    metrics = {name: float(value) for name, value in row["metrics"].items()}
    intervals = {name: [float(a), float(b)] for name, (a, b) in row["intervals"].items()}
    key_of(row)
    for name, kind in (_TYPES | (_TYPES_OF_METRICS if metrics else {})).items():
        if not isinstance(row[name], kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {row[name]!r}")
    return {**row, "metrics": metrics, "intervals": intervals}


def append_row(path: Path, row: Mapping[str, Any]) -> bool:
    """Write one row to the end of a file, safe against a kill; False if its key is there already.

    Damaged lines are cut out.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        rows, damaged = parse_rows(path)
        if key_of(row) in set(map(key_of, rows)):
            return False
        if damaged:
            write_file(path, b"".join(_whole_lines(path, damaged)))
        line = as_line(row)
        with open(path, "ab") as file:
            # the disk may fill up in the middle
            if os.write(file.fileno(), line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
    return True


def replace_row(path: Path, row: Mapping[str, Any]) -> list[Row]:
    """Write one row in place of those of its line and seed, of any config, which are returned.

    Damaged lines are cut out.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        rows, damaged = parse_rows(path)
        stays = [(line_of(old), old["seed"]) != (line_of(row), row["seed"]) for old in rows]
        kept = compress(_whole_lines(path, damaged), stays)
        write_file(path, b"".join([*kept, as_line(row)]))
    return [old for old, stay in zip(rows, stays, strict=True) if not stay]


def _whole_lines(path: Path, damaged: Container[int]) -> list[bytes]:
    """Return the lines of a file, if it is there, without those of the damaged numbers."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for number, line in enumerate(lines, start=1) if number not in damaged]


def rows_in(folder: Path) -> list[Row]:
    """Return the rows in the folder of a profile; a warning names each damaged line.

    ValueError if a row is of another suite or profile than the folder.
    """
    path = folder / "rows.jsonl"
    rows, damaged = parse_rows(path)
    for number, why in damaged.items():
        warn_caller(
            f"{str(path)!r}, line {number}, is damaged ({why}); it is left out, and the next run "
            "makes this row again, and no other"
        )
    for row in rows:
        if (row["suite"], row["profile"]) != (folder.parent.name, folder.name):
            raise ValueError(
                f"{str(path)!r} holds a row of suite {row['suite']!r}, profile {row['profile']!r}; "
                "to put rows where they belong, move the file and run: dipedl-bench merge FILE"
            )
    return rows


def load_rows(
    suite: str, profile: str | None = None, out: str | os.PathLike[str] | None = None
) -> list[Row]:
    """Rows of a suite, in the order in which they were written.

    `profile` None gives those of all profiles; `out` is the root of the results, by default
    ``DIPEDL_BENCH``, else ``./bench-results``. FileNotFoundError if there are none of this suite
    (or profile), with the command that makes some; a UserWarning names each damaged line, which is
    left out.

    Returns
    -------
    list of dict
        One dict per row: "suite", "profile", "method", "title", "seed", "config", "config_hash",
        "metrics" (name to float), "intervals" (name to [low, high], bootstrap over the test rows),
        "baselines" (name to the AUPR of guessing), "n" (rows of each split), "seconds" ({"train",
        "score"}, with all parts below the method), "cpu_seconds", "peak_memory_mb",
        "forward_passes", "n_parameters", "parts" (name, hash and cost of each trained part), and
        the receipt: "versions", "commit", "device", "instructions", "blas", "threads", "time"; of
        rows from predictions "sha256", the hash of the arrays that they were scored on. The
        latest config of a (method, seed) comes last.
    """
    folder = Path(out or default_root()) / suite
    files = sorted(folder.glob(f"{profile or '*'}/rows.jsonl"))
    rows = [row for file in files for row in rows_in(file.parent)]
    if not rows:
        command = run_command(suite, profile or "PROFILE", *(["--out", str(out)] if out else []))
        raise FileNotFoundError(
            f"no results of suite {suite!r}{f', profile {profile!r},' if profile else ''} in "
            f"{str(folder)!r}; make some with: {command}, or name "
            "their folder with --out"
        )
    return rows


def read_rows(folder: str | os.PathLike[str] | None = None) -> DataFrame:
    """Return all rows below a folder as a frame, in the order in which they were written.

    `folder` is the root of all results, the folder of a suite, or that of a suite and profile;
    default: ``DIPEDL_BENCH``, else ``./bench-results``. FileNotFoundError if there are no rows.

    Returns
    -------
    DataFrame
        One line for each row, whatever its suite: "suite", "profile", "dataset", "classifier",
        "method", "title", "group", "seed", "config_hash", the receipt, and one column for each
        number: "metrics.accuracy", "metrics.auroc/kmnist", "low.auroc/kmnist" and
        "high.auroc/kmnist" (ends of the interval over test rows), "baselines.aupr/kmnist",
        "n.test", "seconds.train", "cpu_seconds.train"; NaN where a row does not have it. "config",
        "own", "parts" and "versions" hold a dict, `row` the whole row as a dict. In a suite with
        one data set a profile, "dataset" is that of the profile, "classifier" the trained part
        below the method, or "", and "group" is "".

    Examples
    --------
    >>> from dipedl_bench import read_rows
    >>> rows = read_rows("research/results/bench/mnist")  # doctest: +SKIP
    >>> rows.groupby("method")["metrics.accuracy"].mean()  # doctest: +SKIP
    """
    from pandas import DataFrame

    root = Path(folder or default_root())
    rows = [row for file in sorted(root.rglob("rows.jsonl")) for row in rows_in(file.parent)]
    if not rows:
        raise FileNotFoundError(f"no rows in {str(root)!r}; name the folder of results of a run")
    return DataFrame([_as_columns(row) for row in rows])


def _as_columns(row: Row) -> Row:
    columns = {
        "suite": row["suite"],
        "profile": row["profile"],
        "dataset": row["config"].get("data", {}).get("dataset", ""),
        "classifier": row.get("parts", {}).get("classifier", {}).get("name", ""),
        **{name: row.get(name, "") for name in ("method", "title", "group", "refused")},
    }
    tables = ("metrics", "baselines", "n", "seconds", "cpu_seconds")
    columns |= {k: v for k, v in row.items() if k not in (*tables, "intervals")}
    for table in tables:
        columns |= {f"{table}.{name}": value for name, value in row.get(table, {}).items()}
    for name, (low, high) in row["intervals"].items():
        columns |= {f"low.{name}": low, f"high.{name}": high}
    return columns | {"row": row}


def merge(
    files: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str] | None = None
) -> tuple[int, int]:
    """Append the rows of ``rows.jsonl`` files; returns how many were new, and how many were there.

    Rows without their arrays are enough for every table, but for no sweep. FileNotFoundError if a
    file is missing, ValueError if a line is no row.
    """
    root, added = Path(out or default_root()), []
    for file in map(Path, files):
        if not file.is_file():
            raise FileNotFoundError(f"no file {str(file)!r}; name a rows.jsonl of a run")
        rows, damaged = parse_rows(file)
        for number, why in damaged.items():
            raise ValueError(
                f"{str(file)!r} must hold the row of a run in each line, but line {number} is none "
                f"({why}); delete that line"
            )
        for row in rows:
            for key in ("suite", "profile"):  # else the row would lie in a folder elsewhere
                check_folder_name(f"{str(file)!r}: {key} of each row", row[key])
            make_root(root)
            added.append(append_row(root / row["suite"] / row["profile"] / "rows.jsonl", row))
    return sum(added), len(added) - sum(added)
