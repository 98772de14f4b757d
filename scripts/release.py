"""What is checked before a release: files, clean installations, types, licences, SBOM.

``python scripts/release.py OUT`` (`make release`) builds the sdist and the wheel of it into OUT.
twine checks them; each is installed in a new environment for every Python at hand, and runs a
user's program there, which mypy and pyright check against the wheel. The licences of what was
installed and a software bill of materials (CycloneDX) are written beside them. Nothing is
published.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "typing" / "user_program.py"
PYTHONS = ["python3.11", "python3.12", "python3.13"]
#: CPU seconds that ``import dipedl`` may add to the interpreter's.
MAX_IMPORT = 0.05
LICENCES = """
import json, re
from importlib.metadata import distributions
def licence(facts):
    told = (facts.get("License-Expression") or facts.get("License") or " ").splitlines()[0].strip()
    kinds = [c.split(" :: ")[-1] for c in facts.get_all("Classifier", []) if "License ::" in c]
    kinds = [kind for kind in kinds if kind != "OSI Approved"]
    return told if 0 < len(told) < 60 else ", ".join(kinds) or "see its files"
print(json.dumps({d.metadata["Name"]: [d.version, licence(d.metadata)] for d in distributions()}))
"""
SECONDS = """
import os, subprocess, sys
def seconds(code):
    before = os.times()
    for _ in range(5):
        subprocess.run([sys.executable, "-I", "-c", code], check=True)
    after = os.times()
    return (after[2] - before[2] + after[3] - before[3]) / 5
print(seconds("import dipedl") - seconds("pass"))
"""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; it must succeed."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=plain, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def at_hand(python: str) -> bool:
    """Whether an interpreter runs: pyenv has commands that do not, but for PYENV_VERSION."""
    asked = [python, "--version"]
    return bool(shutil.which(python)) and not subprocess.run(asked, capture_output=True).returncode


def built(out: Path) -> list[Path]:
    """The sdist, and the wheel made of it."""
    run(sys.executable, "-m", "build", "--outdir", out, ROOT)
    files = sorted([*out.glob("dipedl-*.whl"), *out.glob("dipedl-*.tar.gz")])
    print(run(sys.executable, "-m", "twine", "check", "--strict", *files).strip())
    return files


def installed(file: Path, python: str, folder: Path) -> Path:
    """The interpreter of a new environment with nothing but a file and what it needs."""
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "install", "-q", f"{file}[save]")
    run(own, "-m", "pip", "check")
    run(own, "-I", PROGRAM, cwd=folder)
    seconds = float(run(own, "-c", SECONDS, cwd=folder))
    print(f"{python}, {file.name}: runs; import dipedl takes {1000 * seconds:.0f} ms of CPU")
    if seconds > MAX_IMPORT:
        sys.exit(f"import dipedl must take at most {1000 * MAX_IMPORT:.0f} ms")
    return own


def types(python: Path, folder: Path) -> None:
    """The program of a user, strict, against the installed package."""
    program = shutil.copy(PROGRAM, folder)
    tools = [sys.executable, "-m"]
    run(*tools, "mypy", "--strict", "--python-executable", python, program, cwd=folder)
    run(*tools, "pyright", "--pythonpath", python, program, cwd=folder)
    print(f"{PROGRAM.name}: mypy --strict and pyright find nothing")


def licences(python: Path) -> str:
    """A table of the packages in an environment."""
    found = json.loads(run(python, "-c", LICENCES))
    rows = [f"| {n} | {v} | {told} |" for n, (v, told) in sorted(found.items(), key=str)]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows]) + "\n"


def papers(python: Path, out: Path) -> None:
    """Licences of what was installed, and of what all extras bring; the bill of materials."""
    development = ROOT / ".venv" / "bin" / "python"
    told = f"## dipedl[save]\n\n{licences(python)}"
    if development.exists():
        told += f"\n## All extras, and what tests need\n\n{licences(development)}"
    (out / "LICENCES.md").write_text(told, "utf-8")
    bill = ["--pyproject", ROOT / "pyproject.toml", "--of", "JSON", "-o", out / "dipedl.cdx.json"]
    run(sys.executable, "-m", "cyclonedx_py", "environment", python, *bill)
    kept = json.loads((out / "dipedl.cdx.json").read_text("utf-8"))
    print(f"LICENCES.md written; SBOM: {len(kept['components'])} components")


def main(out: Path) -> None:
    """All of it; stops at the first thing that is wrong."""
    out.mkdir(parents=True, exist_ok=True)
    files = built(out)
    found = [python for python in PYTHONS if at_hand(python)]
    with tempfile.TemporaryDirectory() as temporary:
        for python in found:
            for file in files:
                own = installed(file, python, Path(temporary, python + file.suffix))
                if (python, file) == (found[0], files[0]):
                    types(own, Path(temporary))
                    papers(own, out)
    print(f"not at hand: {', '.join(sorted(set(PYTHONS) - set(found))) or 'none'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
