"""The scripts of `research/benchmarks` as modules, for the tests of both projects."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "research" / "benchmarks"


@pytest.fixture(scope="session")
def benchmark():
    """A script of the benchmarks as a module, by its name."""

    def load(name):
        sys.path.insert(0, str(BENCHMARKS))
        try:
            spec = importlib.util.spec_from_file_location(f"its_{name}", BENCHMARKS / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(str(BENCHMARKS))
        return module

    return load
