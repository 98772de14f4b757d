"""Size of a fresh environment with the core, and with the core and the report."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness

INSTALLS = {"core": ".", "core_report": ".[report]", "core_report_cli": ".[report,cli]"}


def megabytes(folder: Path) -> float:
    return sum(f.lstat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def measure() -> harness.Values:
    values = {}
    for name, what in INSTALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
            python = Path(folder) / "bin" / "python"
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
            began = time.perf_counter()
            subprocess.run(
                [*pip, "-c", "constraints.txt", what], check=True, cwd=harness.ROOT.parent
            )
            values[f"{name}_install_s"] = round(time.perf_counter() - began, 1)
            values[f"{name}_mb"] = round(megabytes(Path(folder)), 1)
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
