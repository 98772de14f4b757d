"""A number has a receipt: one JSON line with config, its hash, versions, device and seconds."""

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dipedl._writing import write_file

ROOT = Path(__file__).parent.parent
PACKAGES = ("dipedl", "numpy", "scipy", "scikit-learn", "torch")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def device() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = f"{len(names)} x {names[0].split(': ')[1]}" if names else model
    return model


def commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return found.stdout.strip() or "unknown"


def config_hash(config: Mapping[str, Any]) -> str:
    text = json.dumps(dict(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def begun(name: str, config: Mapping[str, Any], part: str = "") -> tuple[dict[str, Any], float]:
    """Values and seconds of the receipt, if it is of this configuration and this commit."""
    path = path_of(name, part)
    row = json.loads(path.read_text()) if path.exists() else {}
    if (row.get("config_hash"), row.get("commit")) != (config_hash(config), commit()):
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
        "versions": versions(),
        "device": device(),
        "commit": commit(),
        "seconds": round(seconds, 2),
    }
    path = path_of(name, part)
    path.parent.mkdir(exist_ok=True)
    write_file(path, json.dumps(row, indent=1, sort_keys=True) + "\n")
    print(json.dumps(row["values"], indent=1, sort_keys=True), file=sys.stdout)
