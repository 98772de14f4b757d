"""Receipt of a number: what it depends on, written beside it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from dipedl import __version__

#: Numbers in every configuration, of suites with one data set a profile and of crossed ones: raised
#: when stored arrays or rows change their meaning, so that none of an older kind are taken for new.
FORMAT, CROSSED_FORMAT = 1, 3
#: Vector instructions that change the rounding of a training, the widest last.
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def config_hash(config: Mapping[str, Any]) -> str:
    """Twelve hex digits of the SHA-256 of a configuration; the order of its keys is no matter."""
    text = json.dumps(config, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def receipt() -> dict[str, Any]:
    """Versions, commit, device with its widest instructions, threads, and the time of now."""
    # threads of PyTorch, where it is loaded, else the cores that this process may use
    torch, affinity = sys.modules.get("torch"), getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return {
        **_machine(),
        "threads": torch.get_num_threads() if torch else cores,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def machine_of(receipt: Mapping[str, Any]) -> str:
    """The kind of machine of a receipt, or of a row; older ones do not say the instructions."""
    known = receipt.get("instructions")
    return f"{receipt['device']} ({known})" if known else str(receipt["device"])


@cache
def _machine() -> dict[str, Any]:
    """Versions, commit, CPU and cores, its widest instructions, the kernels of OpenBLAS in use.

    The GPU stands in the receipt of what ran on it.
    """
    versions = {"dipedl": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "torch", "zuko"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    cpus = _cpuinfo("model name")
    device = f"{len(cpus)} x {cpus[0]}" if cpus else platform.processor() or platform.machine()
    flags = set(" ".join(_cpuinfo("flags")[:1]).split())
    known = [name for name in _INSTRUCTIONS if name in flags]
    blas = {of["architecture"] for of in threadpool_info() if of["internal_api"] == "openblas"}
    return {
        "versions": versions,
        "commit": _commit(),
        "device": device,
        "instructions": known[-1] if known else platform.machine(),
        "blas": ", ".join(sorted(blas)),
    }


def _cpuinfo(key: str) -> list[str]:
    """Return the values of a key that Linux has for each core."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.partition(": ")[2] for line in lines if line.startswith(key)]


def _commit() -> str | None:
    """Commit of the source tree that runs, with a mark if it was changed; None if installed."""
    described = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    tracked = ("ls-files", "--error-unmatch", Path(__file__).name)
    folder, answers = Path(__file__).parent, []
    for command in (described, tracked):
        try:
            done = subprocess.run(
                ["git", *command], cwd=folder, capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        answers.append(done.stdout.strip() if done.returncode == 0 else "")
    return answers[0] if all(answers) else None
