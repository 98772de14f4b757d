"""The process of a step: trains one part and stores its arrays, or runs the methods of one cell.

A process for each: its peak memory is that of the step, and running out of memory ends the step,
not the run.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from ..results.receipt import receipt
from ..results.scores import score
from ..spec.build import accepts
from ..spec.plan import Part
from .clock import Say, epoch_text
from .inputs import inputs_of
from .machines import SoFar, precision
from .memo import Spent, rounded
from .predictions import Arrays, classifier_arrays, density_arrays, method_arrays
from .weights import weights_of
from .work import CellWork, DataError, PartStep, Step

#: Kinds of failure after which no other part can succeed either.
FATAL = ("data", "space")
#: A training that stopped in time, with a checkpoint to go on from.
PAUSED = "paused"


def run_job(step: Step, pipe: Connection) -> None:
    """Entry of the process: do the step, and say "done", or what went wrong.

    The message of a cell that is done is why methods have no row, as JSON.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        last = _done(step, lambda text: pipe.send(("progress", text)))
    except BaseException as error:
        pipe.send((_kind(error), _message(error)))
    else:
        pipe.send(("done", last))
    finally:
        pipe.close()


def _done(step: Step, say: Say) -> str:
    if step.place.data_dir is not None:
        os.environ["DIPEDL_DATA"] = step.place.data_dir
    if isinstance(step, CellWork):
        from .cells.cell import run_cell

        failed = run_cell(step, say)
        return json.dumps({f"{step.title}: {name}": why for name, why in failed.items()})
    train_part(step, say)
    return ""


def train_part(step: PartStep, say: Say = lambda text: None) -> None:
    """Train a part, apply it to every split, and store its arrays and its receipt."""
    start = time.perf_counter()
    part, store = step.unit, step.place.store
    X, y, given = inputs_of(step)
    train, scoring = Spent(), Spent()
    model = part.built(step.seed, **given)
    step.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    so_far = SoFar(step.checkpoint)

    def progress(report: Mapping[str, Any]) -> None:
        so_far.keep()
        say(epoch_text(report))

    with train.counted():
        _fit(model, step, X, y, progress)
    train = train + so_far.earlier
    arrays = _predictions(model, part, X, scoring)
    for split, labels in y.items():
        if split in arrays:
            arrays[split]["y"] = labels
    if part.role == "method":
        score(arrays)  # what cannot be scored must not be stored
    sizes = {split: len(rows) for split, rows in X.items()}
    elapsed = time.perf_counter() - start + so_far.earlier.wall
    receipt = _receipt(model, {"train": train, "score": scoring}, sizes, elapsed)
    network = weights_of(model) if part.role == "classifier" else None
    machines = {"machines": so_far.machines} if len(so_far.machines) > 1 else {}
    receipt |= {"resumed": so_far.resumed} | machines
    trained_in = precision(part.config)
    receipt |= {} if trained_in is None else {"precision": trained_in}
    store.save_arrays(part.name, part.digest, step.seed, arrays, receipt, network)
    step.forget()


def _fit(
    model: Any,
    step: PartStep,
    X: Mapping[str, np.ndarray],
    y: Mapping[str, np.ndarray],
    progress: Callable[[Mapping[str, Any]], object],
) -> None:
    held = (X["validation"], y["validation"])
    spec = step.unit.spec
    learned = spec is not None and spec.statistics == "validation"
    whole = learned and spec is not None and spec.sees == "pixels"
    options = {
        # a density has no labels to validate with
        "validation": X["validation"] if step.unit.role == "density" else held,
        "checkpoint": step.checkpoint,
        "deadline": step.deadline,
        "progress": progress,
    }
    # the density is fitted too: held-out rows say which
    options |= {"calibration": held} if whole else {}
    taken = {name: value for name, value in options.items() if accepts(model.fit, name)}
    model.fit(X["train"], y["train"], **taken)
    if learned and not whole:
        model.calibrate(X["validation"], y["validation"])


def _predictions(model: Any, part: Part, X: Mapping[str, np.ndarray], cost: Spent) -> Arrays:
    if part.role == "classifier":
        return classifier_arrays(model, X, cost)
    if part.role == "density":
        return density_arrays(model, X, cost)
    scored = {split: rows for split, rows in X.items() if split != "train"}
    return method_arrays(model, scored, cost, part.spec.uncertainty if part.spec else None)


def _receipt(
    model: Any, costs: Mapping[str, Spent], sizes: Mapping[str, int], elapsed: float
) -> dict[str, Any]:
    return {
        **rounded(costs, 6),
        "elapsed": round(elapsed, 3),
        "peak_memory_mb": round(_peak_memory_mb(), 1),
        **_gpu(),
        "forward_passes": _forward_passes(model),
        "n_parameters": _n_parameters(model),
        "n": dict(sizes),
        "load": round(os.getloadavg()[0], 2),
        **receipt(),
    }


def _peak_memory_mb() -> float:
    """Largest resident memory of this process, libraries and data set included."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _gpu() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return {}
    peak = torch.cuda.max_memory_allocated() / 2**20
    return {"gpu": torch.cuda.get_device_name(), "peak_gpu_memory_mb": round(peak, 1)}


def _forward_passes(model: Any) -> int:
    """How often a network runs for one prediction."""
    if hasattr(model, "members_"):
        return len(model.members_)
    return int(model.n_samples) if hasattr(model, "sample_proba") else 1


def _n_parameters(model: Any) -> int | None:
    """Trained numbers of the networks in it; None if it has none of its own."""
    if getattr(model, "network", None) is not None:
        # the part below it, which is counted there
        return None
    networks = [
        value
        for member in getattr(model, "members_", [model])
        for value in vars(member).values()
        if hasattr(value, "named_parameters")
    ]
    return sum(p.numel() for module in networks for p in module.parameters()) or None


def _kind(error: BaseException) -> str:
    if isinstance(error, DataError):
        return "data"
    # a TrainingPaused: the class comes with torch, which not every part needs
    if hasattr(error, "seconds_left"):
        return PAUSED
    space = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "space" if space else "failed"


def _message(error: BaseException) -> str:
    if _kind(error) == "space":
        return str(error.args[-1])
    plain = _kind(error) in ("data", PAUSED)
    return str(error) if plain else f"{type(error).__name__}: {error}"


def _die_with_parent() -> None:
    """End this process when the run that started it is gone, even if that was killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
