"""The row of a method in a cell: metrics, costs and receipt; or why there are none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...metrics import bootstrap_ci, ood_auroc
from ..results.receipt import receipt
from ..results.scores import OOD_PREFIX, score
from ..run.memo import Spent
from .methods import Answers
from .plan import Cell, Task

__all__ = ["answer_rows", "refusal_rows"]


def answer_rows(
    study: str,
    profile: str,
    cell: Cell,
    task: Task,
    y: np.ndarray,
    answers: Answers,
    n_fit: int,
) -> list[dict[str, Any]]:
    """One row for each kind of uncertainty.

    Parameters
    ----------
    study, profile : str
        Names.
    cell, task : Cell, Task
        Where, and which method.
    y : ndarray of int, shape (n,)
        Labels of the test rows.
    answers : Answers
        The method's.
    n_fit : int
        Rows it was fitted on.
    """
    sizes = {split: len(rows) for split, rows in answers.probabilities.items()}
    shared = {"n": {"fit": n_fit, **sizes}, **_costs(task, answers), **answers.about}
    rows = []
    for name, uncertainty in answers.uncertainty.items():
        arrays = {
            split: {"probabilities": answers.probabilities[split], "uncertainty": u}
            for split, u in uncertainty.items()
        }
        arrays["test"]["y"] = y
        numbers = _numbers(arrays, cell.resamples)
        rows.append(_row(study, profile, cell, task, name) | numbers | shared)
    return rows


def refusal_rows(
    study: str, profile: str, cell: Cell, task: Task, reason: str
) -> list[dict[str, Any]]:
    """Rows without numbers that say why."""
    empty: dict[str, Any] = {"metrics": {}, "intervals": {}, "refused": reason}
    return [_row(study, profile, cell, task, name) | empty for name in task.kinds]


def _row(study: str, profile: str, cell: Cell, task: Task, name: str) -> dict[str, Any]:
    kind = task.kinds[name]
    return {
        "suite": study,
        "profile": profile,
        "dataset": cell.dataset,
        "classifier": cell.classifier,
        "method": name,
        "title": task.entry.title + ("" if name == task.name else f", ranked by {kind}"),
        "group": task.entry.group,
        "seed": cell.seed,
        "config": task.config(cell, kind),
        "config_hash": task.digest(cell, kind),
        "load": round(os.getloadavg()[0], 2),
        **receipt(),
    }


def _numbers(arrays: Mapping[str, Mapping[str, np.ndarray]], resamples: int) -> dict[str, Any]:
    found = score(arrays)
    test = arrays["test"]
    wrong = test["probabilities"].argmax(axis=1) != test["y"]
    # Spotting the own errors is a question only where there are both.
    errors = (
        {"error_auroc": ood_auroc(test["uncertainty"][~wrong], test["uncertainty"][wrong])}
        if wrong.any() and not wrong.all()
        else {}
    )
    return {
        "metrics": {**found.metrics, **errors},
        "intervals": _intervals(arrays, resamples) if resamples else {},
    }


def _intervals(
    arrays: Mapping[str, Mapping[str, np.ndarray]], resamples: int
) -> dict[str, list[float]]:
    found = {}
    for split, named in arrays.items():
        if split.startswith(OOD_PREFIX):
            data = arrays["test"]["uncertainty"], named["uncertainty"]
            ends = bootstrap_ci(ood_auroc, *data, n_resamples=resamples, random_state=0)
            found[f"auroc/{split.removeprefix(OOD_PREFIX)}"] = [ends.low, ends.high]
    return found


def _costs(task: Task, answers: Answers) -> dict[str, Any]:
    spent = answers.spent
    steps = {
        "fit": spent["fit"],
        "classifier": spent["classifier"],
        "predict": spent["predict test"],
        "score": spent[f"score test {task.name}"],
    }
    return {
        "seconds": _rounded(steps, "wall"),
        "cpu_seconds": _rounded(steps, "processor"),
    }


def _rounded(steps: Mapping[str, Spent], which: str) -> dict[str, float]:
    return {name: round(getattr(spent, which), 4) for name, spent in steps.items()}
