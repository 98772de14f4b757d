"""Runs a step in a process of its own and reports how it ended."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from .clock import Say
from .work import Step
from .worker import run_job

#: Imported once by the server that processes are forked from; those not installed are left out.
_PRELOADED = ("sklearn.ensemble", "sklearn.mixture", "sklearn.neighbors", __name__, "torch")


@dataclass(frozen=True)
class Outcome:
    """How a step ended: "done", "paused", "data", "space", "failed" or "killed"; and a message."""

    kind: str
    message: str = ""


def run_in_process(step: Step, say: Say) -> Outcome:
    """Run a step in a new process; `say` gets its progress.

    The process dies with this one, however that ends. In a script of your own, the call that leads
    here must stand below ``if __name__ == "__main__":``, as with every use of `multiprocessing`.
    """
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run_job, args=(step, theirs))
    process.start()
    theirs.close()
    try:
        last = _followed(ours, say)
        process.join()
    finally:
        if process.is_alive():
            process.kill()
            process.join()
        ours.close()
    return last or _killed(process.exitcode, step)


def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


def _followed(pipe: Connection, say: Say) -> Outcome | None:
    """Return the last message of the process; None if it ended without one."""
    while True:
        try:
            kind, message = pipe.recv()
        except (EOFError, OSError):
            return None
        if kind != "progress":
            return Outcome(kind, message)
        say(message)


def _killed(exitcode: int | None, step: Step) -> Outcome:
    if exitcode == -signal.SIGKILL:
        return Outcome(
            "killed",
            "its process was killed, most likely because the machine ran out of memory; lower "
            f"training.batch_size of {step.unit.where}, or the rows by the profile's limit",
        )
    return Outcome("killed", f"its process ended without a word, exit code {exitcode}")
