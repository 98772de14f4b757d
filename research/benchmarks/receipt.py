"""A number has a receipt: one JSON line with config, its hash, versions, device and seconds."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dipedl.writing.files import write_file
from dipedl_bench.results.receipt import config_hash
from dipedl_bench.results.receipt import receipt as of_now

ROOT = Path(__file__).parent.parent


def commit() -> str:
    """Commit of this tree, with "-dirty" where anything but a result has changed."""
    head = _git("rev-parse", "--short=12", "HEAD") or "unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
    return f"{head}-dirty" if changed else head


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()


def begun(name: str, config: Mapping[str, Any], part: str = "") -> tuple[dict[str, Any], float]:
    """Values and seconds of the receipt, if it is of this configuration and this commit.

    None are kept of a tree with uncommitted changes.
    """
    path, now = path_of(name, part), commit()
    row = json.loads(path.read_text()) if path.exists() else {}
    same = (row.get("config_hash"), row.get("commit")) == (config_hash(config), now)
    if not same or now.endswith("-dirty"):
        return {}, 0.0
    return row["values"], row["seconds"]


def path_of(name: str, part: str = "") -> Path:
    """Of a benchmark, or of one part of it, which is its argument."""
    return ROOT / "results" / (f"{name}_{part}.json" if part else f"{name}.json")


def write(
    name: str,
    config: Mapping[str, Any],
    values: Mapping[str, Any],
    seconds: float,
    part: str = "",
) -> None:
    """Replace the receipt results/<name>.json, or that of a part, and print it."""
    row = {
        "benchmark": name,
        "command": f"python benchmarks/{name}.py {part}".strip(),
        "config": dict(config),
        "config_hash": config_hash(config),
        "values": dict(values),
        **of_now(),
        "commit": commit(),
        "seconds": round(seconds, 2),
    }
    path = path_of(name, part)
    path.parent.mkdir(exist_ok=True)
    write_file(path, json.dumps(row, indent=1, sort_keys=True) + "\n")
    print(json.dumps(row["values"], indent=1, sort_keys=True), file=sys.stdout)
