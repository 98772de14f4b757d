"""The benchmark: suites in TOML, a runner that survives being killed, rows with receipts.

`run` trains what is missing and appends rows; `read_rows` and `Store` read what is there, so that
tables, sweeps and figures never train anything again. `score` makes rows of other methods
from published predictions, and of arrays of your own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .results.rows import load_rows, read_rows
    from .results.store import Store
    from .running.runner import RunResult, run
    from .running.scoring import score
    from .spec.suite import Suite, load_suite, suite_names

__all__ = [
    "RunResult",
    "Store",
    "Suite",
    "load_rows",
    "load_suite",
    "read_rows",
    "run",
    "score",
    "suite_names",
]

_HOME = {
    "RunResult": "running.runner",
    "run": "running.runner",
    "score": "running.scoring",
    "Store": "results.store",
    "load_rows": "results.rows",
    "read_rows": "results.rows",
    "Suite": "spec.suite",
    "load_suite": "spec.suite",
    "suite_names": "spec.suite",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {sorted(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
