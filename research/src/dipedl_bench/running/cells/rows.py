"""Rows of a method in a cell: metrics, costs and receipt; or why there are none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...datasets.splits import Splits
from ...results.known_truth import distances
from ...results.receipt import receipt
from ...results.rows import numbers
from ...results.scores import score
from ...spec.cells import CellMethod
from ..memo import rounded
from ..work import CellWork
from .method import Predictions


def method_rows(
    work: CellWork,
    method: CellMethod,
    answers: Mapping[str, Mapping[str, np.ndarray]],
    found: Predictions,
    n_fit: int,
) -> list[dict[str, Any]]:
    """One row for each kind of uncertainty.

    `answers` are those of `answers_of`, `n_fit` is the number of rows that the method was fitted
    on.
    """
    sizes = {split: len(rows) for split, rows in found.probabilities.items()}
    shared = {"n": {"train": n_fit, **sizes}, **_costs(method, found), **found.about}
    rows = []
    for name, uncertainty in found.uncertainty.items():
        arrays = {
            split: {
                "probabilities": found.probabilities[split],
                "uncertainty": u,
                **answers.get(split, {}),
            }
            for split, u in uncertainty.items()
        }
        for split, alpha in found.concentration.items():
            arrays[split]["concentration"] = alpha
        measured = numbers(score(arrays, work.unit.resamples))
        rows.append(_row(work, method, name) | measured | shared)
    return rows


def answers_of(
    splits: Splits, train: np.ndarray, X: Mapping[str, np.ndarray]
) -> dict[str, dict[str, np.ndarray]]:
    """Return the targets of the scores by split of X: labels, or class probabilities if known."""
    far = distances(train, {split: X[split] for split in splits.truth}) if splits.truth else {}
    found = {s: {"truth": P, "distance": far[s]} for s, P in splits.truth.items()}
    found["test"] = {**found.get("test", {}), "y": splits.y["test"]}
    return found


def refusal_rows(work: CellWork, method: CellMethod, reason: str) -> list[dict[str, Any]]:
    """Rows without numbers that say why."""
    empty: dict[str, Any] = {"metrics": {}, "intervals": {}, "refused": reason}
    return [_row(work, method, name) | empty for name in method.kinds]


def _row(work: CellWork, method: CellMethod, name: str) -> dict[str, Any]:
    kind, cell, store = method.kinds[name], work.unit, work.place.store
    return {
        "suite": store.suite,
        "profile": store.profile,
        "dataset": cell.dataset,
        "classifier": cell.classifier,
        "method": name,
        "title": method.entry.title + ("" if name == method.name else f", ranked by {kind}"),
        "group": method.entry.group,
        "seed": cell.seed,
        "config": method.config(cell, kind),
        "config_hash": method.digests(cell)[name],
        "load": round(os.getloadavg()[0], 2),
        **receipt(),
    }


def _costs(method: CellMethod, found: Predictions) -> dict[str, Any]:
    steps = {"predict": "predict test", "score": f"score test {method.name}"}
    steps = {"train": "train", "classifier": "classifier", **steps}
    return rounded({name: found.spent[step] for name, step in steps.items()}, 4)
