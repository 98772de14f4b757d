"""Plant mutants in copies of the source, and run the tests that must kill them.

A worker process for each core, at most four, keeps a copy of its own and the expensive packages in
memory; each run is a fork of it that imports dipedl anew. Exit code 1 if a mutant survives, does
not apply, or if the tests are red without any.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import cache_from_source
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
WORKERS = min(os.cpu_count() or 1, 4)
#: Imported once in each worker, and by no run.
WARM = (
    "hypothesis matplotlib.figure mpmath onnxruntime pandas PIL.Image pydantic pytest rich.console "
    "scipy.optimize scipy.special scipy.stats sklearn.ensemble sklearn.linear_model "
    "sklearn.mixture sklearn.model_selection sklearn.naive_bayes sklearn.neighbors sklearn.svm "
    "sklearn.utils.estimator_checks torch typer"
).split()


class Mutant(NamedTuple):
    """Replace `old`, which must occur exactly once in `file`, by `new`; `tests` must turn red."""

    name: str
    file: str
    old: str
    new: str
    tests: str


class Run(NamedTuple):
    """What a selection of tests came to: pytest's exit code, the first failure, CPU seconds."""

    code: int
    failed: str
    seconds: float


class Verdict(NamedTuple):
    """ "caught", or what went wrong, by which test, after how many CPU seconds."""

    word: str
    by: str
    seconds: float


class Sandbox:
    """A copy of the source that this process and its children import as dipedl."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.package = self.folder / "src" / "dipedl"
        # Times are copied too, so that the bytecode beside the source stays valid.
        sources = [self.folder / "src", self.folder / "research" / "src"]
        for source in sources:
            shutil.copytree(REPOSITORY / source.relative_to(self.folder), source)
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, sources))
        sys.path[:0] = map(str, sources)
        os.chdir(REPOSITORY)
        for name in WARM:
            import_module(name)

    def run(self, tests: str) -> Run:
        """The tests, in a child process."""
        output = self.folder / "output"
        child = os.fork()
        if child == 0:
            in_child(lambda: self.pytest(tests), output)
        _, status, usage = os.wait4(child, 0)
        text = output.read_text(encoding="utf-8", errors="replace")
        failed = re.search(r"^(?:FAILED|ERROR) \S*?::(.*?)(?: - .*)?$", text, re.MULTILINE)
        found = failed.group(1) if failed else text[-200:].strip()
        return Run(os.waitstatus_to_exitcode(status), found, usage.ru_utime + usage.ru_stime)

    def pytest(self, tests: str) -> int:
        """Exit code of pytest (1: some test failed); 3 if it would test another copy."""
        import pytest

        import dipedl

        if Path(dipedl.__file__).parent != self.package:
            print(f"the tests would import {dipedl.__file__}, not the copy")
            return 3
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:cov"]
        return pytest.main([*options, *tests.split()])

    def verdict(self, mutant: Mutant) -> Verdict:
        """Plant the mutant and run its tests; the source is restored."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        if (places := original.count(mutant.old)) != 1:
            return Verdict("DOES NOT APPLY", f"{places} places in {mutant.file}", 0.0)
        write(path, original.replace(mutant.old, mutant.new))
        try:
            code, test, seconds = self.run(mutant.tests)
        finally:
            write(path, original)
        # Anything but 1 is no verdict of a test: 2 is a file that cannot even be imported.
        word = {0: "SURVIVED", 1: "caught"}.get(code, f"EXIT CODE {code}")
        return Verdict(word, "" if code == 0 else test, seconds)


def write(path: Path, text: str) -> None:
    """Cached bytecode is trusted by second and size: it could outlive a mutant."""
    path.write_text(text, encoding="utf-8")
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def in_child(work: Callable[[], int], output: Path) -> None:
    """Do the work with its output in a file, and leave without the parent's clean-up."""
    code = 3
    try:
        with output.open("wb") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        code = int(work())
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


# What a worker keeps between its tasks.
_sandbox: Sandbox


def start_worker(folder: str) -> None:
    """A copy of the source for this worker."""
    global _sandbox
    _sandbox = Sandbox(folder)


def run_green(tests: str) -> Run:
    """Selections without a mutant."""
    return _sandbox.run(tests)


def run_mutant(mutant: Mutant) -> Verdict:
    """The verdict on one mutant."""
    return _sandbox.verdict(mutant)


def named(mutants: list[Mutant], words: list[str]) -> list[Mutant]:
    """Those whose name holds one of the words; all without any."""
    return [m for m in mutants if not words or any(w in m.name for w in words)]


def main(mutants: list[Mutant], words: list[str]) -> int:
    """Print one line for each mutant; 0 if every one was caught."""
    chosen = named(mutants, words)
    if not chosen:
        sys.exit(f"no mutant is named like {words}")
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.perf_counter()
    spawn = get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        spawn.Pool(min(WORKERS, len(chosen)), start_worker, (folder,)) as pool,
    ):
        caught = 0
        selections = sorted({m.tests for m in chosen})
        shares = [" ".join(selections[i::WORKERS]) for i in range(min(WORKERS, len(selections)))]
        for run in pool.imap(run_green, shares):
            if run.code:
                print(f"the tests are red without a mutant: {run.failed}")
                return 1
        for mutant, (word, by, seconds) in zip(chosen, pool.imap(run_mutant, chosen), strict=True):
            caught += word == "caught"
            print(f"{word:8} {seconds:5.1f} s  {mutant.name:46}  {mutant.tests}: {by}", flush=True)
    print(f"{caught} of {len(chosen)} caught in {time.perf_counter() - start:.0f} s")
    return int(caught < len(chosen))
