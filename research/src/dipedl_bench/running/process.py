"""A process for each step: its peak memory is that of the step, and a kill ends the step alone."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import threading
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from .methods import run_methods
from .steps import DataError, Say, Step
from .training import train_part

#: Imported once by the server that processes are forked from; those not installed are left out.
_PRELOADED = ("sklearn.ensemble", "sklearn.mixture", "sklearn.neighbors", __name__, "torch")
#: Kinds of failure after which no other part can succeed either.
FATAL = ("data", "space")
#: A training that stopped in time, with a checkpoint to go on from.
PAUSED = "paused"


@dataclass(frozen=True)
class Outcome:
    """How a step ended: "done", "paused", "data", "space", "failed" or "killed"; and a message.

    The message of methods that are done is why some have no row, as JSON.
    """

    kind: str
    message: str = ""


def run_in_process(step: Step, say: Say) -> Outcome:
    """Run a step in a new process; `say` gets its progress.

    The process dies with this one, however that ends. In a script of your own, the call that leads
    here must stand below ``if __name__ == "__main__":``, as with every use of `multiprocessing`.
    """
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(list(_PRELOADED))
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run_step, args=(step, theirs))
    process.start()
    theirs.close()
    try:
        last = _last_message(ours, say)
        process.join()
    finally:
        if process.is_alive():
            process.kill()
            process.join()
        ours.close()
    if last is not None:
        return last
    if process.exitcode == -signal.SIGKILL:
        return Outcome(
            "killed",
            "its process was killed, most likely because the machine ran out of memory; lower "
            f"training.batch_size of {step.unit.where}, or the rows by the profile's limit",
        )
    return Outcome("killed", f"its process ended without a word, exit code {process.exitcode}")


def _last_message(pipe: Connection, say: Say) -> Outcome | None:
    """Return the last message of the process; None if it ended without one."""
    while True:
        try:
            kind, message = pipe.recv()
        except (EOFError, OSError):
            return None
        if kind != "progress":
            return Outcome(kind, message)
        say(message)


def _run_step(step: Step, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if step.data_dir is not None:
        os.environ["DIPEDL_DATA"] = step.data_dir

    def say(text: str) -> None:
        pipe.send(("progress", text))

    try:
        failed: dict[str, str] = {}
        if step.part is None:
            failed = run_methods(step, say)
        else:
            train_part(step, say)
    except BaseException as error:
        pipe.send(failure(error))
    else:
        pipe.send(("done", json.dumps(failed)))
    finally:
        pipe.close()


def failure(error: BaseException) -> tuple[str, str]:
    """Return the kind of a failure, and what is said of it."""
    if isinstance(error, DataError):
        return "data", str(error)
    # a TrainingPaused: the class comes with torch, which not every part needs
    if hasattr(error, "seconds_left"):
        return PAUSED, str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "space", str(error.args[-1])
    return "failed", f"{type(error).__name__}: {error}"


def _die_with_parent() -> None:
    """End this process when the run that started it is gone, even if that was killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
