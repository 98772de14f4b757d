"""Writes `.ci/hashes/`: each package that demo, tests and docs need, with its SHA-256.

``python scripts/hashes.py`` after a change of `constraints.txt` or of the requirements in
`pyproject.toml`, on the platform of CI (Linux, x86-64, Python 3.11): pip resolves, nothing is
installed. With ``HASHES=.ci/hashes`` (as in `.ci/run`) make installs these files and no others.
PyTorch is the exception: its file depends on the index, which has builds with and without CUDA.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".ci" / "hashes"
#: What builds the package: with it there, nothing is fetched for a build on the side.
BUILD = ["hatchling", "editables"]
SETS = {
    "demo": ["-e", ".[tables]", *BUILD],
    "dev": [
        *("-e", ".[torch,flows,data,onnx,spectra,tables]", "-e", "research"),
        *("--group", "test", "--group", "lint", *BUILD),
    ],
    "docs": ["--group", "docs"],
}
#: Not by hash: PyTorch, and what only its builds with CUDA need.
APART = ("torch", "triton", "nvidia-", "cuda-")


def resolved(requirements: list[str]) -> dict[str, tuple[str, str]]:
    """Version and SHA-256 of the file of each package that pip would install, by name."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed"]
        options = ["--report", report.name, "-c", "constraints.txt"]
        subprocess.run([*pip, *options, *requirements], cwd=ROOT, check=True)
        found = json.loads(Path(report.name).read_text("utf-8"))["install"]
    packages = {}
    for entry in found:
        name, source = entry["metadata"]["name"], entry["download_info"]
        if "archive_info" in source and not name.lower().startswith(APART):
            digest = source["archive_info"]["hashes"]["sha256"]
            packages[name] = (entry["metadata"]["version"], digest)
    return packages


def main() -> None:
    """Resolve the sets and write them; what an earlier one installs stands in its file only."""
    installed: set[str] = set()
    for name, requirements in SETS.items():
        found = resolved(requirements)
        new = {package: of for package, of in found.items() if package not in installed}
        installed |= set(found)
        lines = [
            f"{package}=={version} --hash=sha256:{digest}"
            for package, (version, digest) in sorted(new.items(), key=lambda item: item[0].lower())
        ]
        head = "# By scripts/hashes.py, for Linux on x86-64 with Python 3.11."
        (FOLDER / f"{name}.txt").write_text("\n".join([head, *lines, ""]), "utf-8")
        print(f"{name}: {len(new)} packages")


if __name__ == "__main__":
    main()
