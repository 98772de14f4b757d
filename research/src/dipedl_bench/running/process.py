"""A process for each part: its peak memory is that of the part, and a kill ends the part alone."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait

from ..results.store import Store
from ..spec.plan import Cell, Part
from .methods import run_methods
from .training import DataError, Say, describe_failure, make_part

#: How a part ended, and a message: "done", with why some methods have no row, as JSON; "paused",
#: with a checkpoint to go on from; "failed" or "killed"; "data" or "space".
Outcome = tuple[str, str]
PAUSED = "paused"
#: Imported once by the server that processes are forked from; those not installed are left out.
_PRELOADED = ("sklearn.ensemble", "sklearn.mixture", "sklearn.neighbors", __name__, "torch")


def run_in_process(
    cell: Cell, part: Part, store: Store, deadline: float | None, say: Say
) -> Outcome:
    """Make a part of a cell in a new process; `say` gets its progress.

    `deadline` is a time of ``time.monotonic()``, which processes share. The process dies with this
    one, however that ends. In a script of your own, the call that leads here must stand below
    ``if __name__ == "__main__":``, as with every use of `multiprocessing`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    ours, theirs = context.Pipe(duplex=False)
    data = os.environ.get("DIPEDL_DATA")  # of now: a server of processes has that of its start
    process = context.Process(target=_work, args=(cell, part, store, data, deadline, theirs))
    process.start()
    theirs.close()
    kind, message = "progress", ""
    try:
        while kind == "progress":
            kind, message = ours.recv()
            if kind == "progress":
                say(message)
    except (EOFError, OSError):  # it ended without a last word
        kind = "killed"
    finally:
        if kind == "progress":  # interrupted
            process.kill()
        process.join()
        ours.close()
    if kind == "killed":
        message = f"its process ended without a word, exit code {process.exitcode}"
        if process.exitcode == -signal.SIGKILL:
            message = (
                "its process was killed, most likely because the machine ran out of memory; lower "
                f"training.batch_size of {part.where}, or the rows by the profile's limit"
            )
    return kind, message


def _work(
    cell: Cell,
    part: Part,
    store: Store,
    data: str | None,
    deadline: float | None,
    pipe: Connection,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.environ.pop("DIPEDL_DATA", None)
    os.environ |= {} if data is None else {"DIPEDL_DATA": data}

    def say(text: str) -> None:
        pipe.send(("progress", text))

    try:
        failed: dict[str, str] = {}
        if part.role == "methods":
            failed = run_methods(cell, store, deadline, say)
        else:
            make_part(cell, part, store, deadline, say)
    except BaseException as error:
        pipe.send(failure(error, str(part.table.get("estimator", ""))))
    else:
        pipe.send(("done", json.dumps(failed)))
    finally:
        pipe.close()


def failure(error: BaseException, estimator: str = "") -> Outcome:
    """Return the kind of a failure, and its message."""
    if isinstance(error, DataError):
        return "data", str(error)
    # a TrainingPaused: the class comes with torch, which not every part needs
    if hasattr(error, "seconds_left"):
        return PAUSED, str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "space", str(error.args[-1])
    return "failed", describe_failure(error, estimator)


def _die_with_parent() -> None:
    """End this process when the run that started it is gone, even if that was killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
