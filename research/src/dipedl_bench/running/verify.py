"""Trains published rows again, in a folder that is thrown away, and compares their metrics."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from ..results.receipt import machine_of
from ..results.rows import Row, line_of, load_rows, method_of, trained_parts_of, was_resumed
from ..results.store import Store
from ..spec.plan import plan
from ..spec.suite import file_of, load_suite
from .runner import run_cells
from .training import Say

__all__ = ["ACROSS", "EXACT", "changes", "verify"]

#: On the same kind of machine with the same versions and threads: float64 of the same bits, up to
#: the order of sums over rows.
EXACT = 1e-9
#: How far the metric of a training in float32 may be from the published one on another kind of
#: machine or with other versions of the libraries, by the name of the metric before any ``/``.
ACROSS = {
    "accuracy": 0.01,
    "balanced_accuracy": 0.02,
    "recall": 0.03,
    "brier_id": 0.01,
    "nll": 0.03,
    "ece": 0.02,
    "adaptive_ece": 0.02,
    "errors_avoided_10": 0.15,
    "error_auroc": 0.05,
    "aurc": 0.01,
    "augrc": 0.01,
    "auroc": 0.02,
    "aupr": 0.02,
    "aupr_in": 0.02,
    "fpr95": 0.05,
    "caught_5": 0.05,
    "brier_ood": 0.03,
    "coverage": 0.05,
    "width_95": 0.02,
    "interval_score_95": 0.05,
    "error_correlation": 0.05,
    "squared_error": 0.01,
}

#: What a receipt says of the machine of a training.
_CONDITIONS = ("device", "instructions", "threads")
#: Of younger receipts alone: the kernels of OpenBLAS, which need not be those of the processor.
_BLAS = "blas"


def verify(
    suite: str | os.PathLike[str],
    *,
    profile: str | None = None,
    methods: Iterable[str] | None = None,
    datasets: Iterable[str] | None = None,
    classifiers: Iterable[str] | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Say | None = None,
) -> list[dict[str, Any]]:
    """Train rows of a suite again and compare every metric; nothing is written to the results.

    Parameters are those of `run`; `out` holds the published rows. `profile` None takes the only one
    that has rows, `seed` None their smallest. Methods of the suite that have no row are left out.

    Returns
    -------
    list of dict
        For each row "method", "seed", "data" and "classifier" (of a crossed suite); "then" and
        "now", the machines of both trainings; "same", whether machine, number of threads and
        versions are those of then, so that equal bits are expected; "why" it could not be made
        again; "metrics", by name {"published", "again", "tolerance", "agrees"}; and whether all of
        it "agrees".

    Raises
    ------
    ValueError
        If nothing chosen has a row, or a row was made by a newer version.
    FileNotFoundError
        If there are no rows of this suite and profile.
    StoppedError
        If data is missing.
    """
    loaded = load_suite(suite)
    there = load_rows(loaded.name, profile, out)
    profiles = sorted({row["profile"] for row in there})
    if len(profiles) != 1:
        raise ValueError(f"there are rows of the profiles {profiles}; choose one with --profile")
    axes: dict[str, Any] = {"methods": methods, "datasets": datasets, "classifiers": classifiers}
    cells = plan(loaded, profiles[0], file_of(suite), seeds=[seed or 0], **axes)
    today = {line_of(head): head for cell in cells for head in cell.heads}
    rows = _rows_to_verify(there, today, seed)
    seed = next(iter(rows.values()))["seed"]
    why = {line: _why_not(row, today[line]) for line, row in rows.items()}
    todo = []
    for cell in cells:
        heads = [{**head, "seed": seed} for head in cell.heads if why.get(line_of(head)) == ""]
        if heads:
            todo.append(replace(cell, heads=tuple(heads), seed=seed))
    made: dict[Any, Row] = {}
    if todo:
        with TemporaryDirectory(prefix="dipedl-verify-") as folder:
            store = Store(folder, loaded.name, profiles[0])
            failed = run_cells(todo, store, None, progress or (lambda text: None)).failed
            made = {line_of(row): row for row in store.rows()}
        for cell in todo:
            for head in cell.heads:
                if line_of(head) not in made:
                    title = cell.title(method_of(head))
                    why[line_of(head)] = failed.get((title, seed), "it gave no row")
    return [_compare(row, made.get(line), why[line]) for line, row in rows.items()]


def _rows_to_verify(rows: list[Row], lines: Iterable[Any], seed: int | None) -> dict[Any, Row]:
    """The latest row of each line with a seed, None for the smallest that there is."""
    candidates = [row for row in rows if line_of(row) in lines and row["metrics"]]
    if not candidates:
        of: dict[str, set[int]] = {}
        for row in rows:
            of.setdefault(method_of(row), set()).add(row["seed"])
        known = "; ".join(f"{name} (seeds {sorted(seeds)})" for name, seeds in of.items())
        names = ", ".join(dict.fromkeys(method for _, _, method in lines))
        raise ValueError(f"no row of {names} to verify; there are rows of {known}")
    seeds = sorted({row["seed"] for row in candidates})
    seed = seeds[0] if seed is None else seed
    if seed not in seeds:
        raise ValueError(f"no row with seed {seed} to verify; those chosen have the seeds {seeds}")
    return {line_of(row): row for row in candidates if row["seed"] == seed}


def _why_not(row: Row, head: Row) -> str:
    """Return why a row cannot be made again: the suite no longer has its settings; or nothing."""
    if head["config_hash"] == row["config_hash"]:
        return ""
    why = "; ".join(changes(row["config"], head["config"])) or "another hash of the same settings"
    return f"its settings are not today's: {why}"


def _compare(then: Row, now: Row | None, why: str) -> dict[str, Any]:
    data, classifier, method = line_of(then)
    kind, metrics = conditions_of(then), {}
    same = now is not None and kind is not None and kind == conditions_of(now)
    for name, value in then["metrics"].items() if now else ():
        again = now["metrics"].get(name) if now else None
        tolerance = EXACT if same else tolerance_of(name)
        # infinite ones must be equal
        agrees = again is not None and (again == value or abs(again - value) <= tolerance)
        metrics[name] = {"published": value, "again": again, "tolerance": tolerance}
        metrics[name]["agrees"] = agrees
    return {
        "method": method,
        "seed": then["seed"],
        "data": data,
        "classifier": classifier,
        "then": machines_of(then),
        "now": "" if now is None else machines_of(now),
        "same": same,
        "why": why,
        "metrics": metrics,
        "agrees": not why and all(of["agrees"] for of in metrics.values()),
    }


def tolerance_of(metric: str) -> float:
    """Return how far a metric may be from the published one on another kind of machine."""
    kind = metric.partition("/")[0]
    family = kind.partition("_")[0]  # of every class, or of every level and third
    return ACROSS[family if family in ("recall", "coverage") else kind]


def machines_of(row: Row) -> str:
    """Return where the parts of a row were trained."""
    made = set()
    for part in _trainings(row):
        facts = [machine_of(part), part.get("gpu"), f"threads: {part.get('threads', 'unknown')}"]
        facts += [f"BLAS: {part[_BLAS]}"] if part.get(_BLAS) else []
        made.add(", ".join(filter(None, facts)))
    return "; ".join(sorted(made))


def conditions_of(row: Row) -> tuple[Any, ...] | None:
    """Conditions of equal bits; None if the row lacks them, was resumed or used a GPU."""
    parts = _trainings(row)
    known = all(part.keys() >= set(_CONDITIONS) and "gpu" not in part for part in parts)
    if was_resumed(row) or not known:
        return None
    versions = {name: v for name, v in row.get("versions", {}).items() if name != "dipedl"}
    names = (*_CONDITIONS, _BLAS)
    return {tuple(part.get(name) for name in names) for part in parts}, versions


def _trainings(row: Row) -> list[Mapping[str, Any]]:
    """Receipts of the parts that were trained for a row; the row's own in a crossed suite."""
    return [part for part in trained_parts_of(row) if "device" in part] or [row]


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return settings that differ, as ``training.amp was true and is false now``; [] if none does.

    The same change in several parts is told once.
    """
    before, now = dict(_settings(old)), dict(_settings(new))
    lines = []
    for path in dict.fromkeys([*before, *now]):
        was, is_now = before.get(path, "not there"), now.get(path, "not there")
        # keys that lead to settings and are none
        keys = [key for key in path if key not in ("arguments", "settings", "below")]
        if was != is_now:
            lines.append(f"`{'.'.join(keys[-2:])}` was {was} and is {is_now} now")
    return list(dict.fromkeys(lines))


def _settings(table: Mapping[str, Any], *above: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every setting by its path, as TOML has it."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _settings(value, *above, key)
        else:
            yield (*above, key), json.dumps(value, sort_keys=True)
