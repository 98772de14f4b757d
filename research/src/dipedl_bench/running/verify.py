"""Trains published rows again, in a folder that is thrown away, and compares their metrics."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any

from dipedl import __version__

from ..names import refuse_unknown
from ..results.changed import changes
from ..results.receipt import machine_of
from ..results.rows import line_of, was_resumed
from ..results.store import Store, load_rows
from ..spec.plan import plan, refuse_axes
from ..spec.suite import file_of, load_suite
from .runner import run_cells
from .steps import Say

__all__ = ["ACROSS", "EXACT", "Comparison", "Verified", "verify"]

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
    "auroc": 0.02,
    "aupr": 0.02,
    "aupr_in": 0.02,
    "fpr95": 0.05,
    "brier_ood": 0.03,
    "coverage": 0.05,
    "width_95": 0.02,
    "interval_score_95": 0.05,
    "error_correlation": 0.05,
    "squared_error": 0.01,
}

Row = Mapping[str, Any]
#: What a receipt says of the machine of a training.
_CONDITIONS = ("device", "instructions", "threads")
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Comparison:
    """A metric as published and again, and how far apart they may be."""

    published: float
    again: float | None
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Return whether it is there again, and no further apart; infinite ones must be equal."""
        if self.again is None:
            return False
        return self.again == self.published or abs(self.again - self.published) <= self.tolerance


@dataclass(frozen=True)
class Verified:
    """A published row, trained again; `why` says why it could not be.

    `data` and `classifier` are those of a crossed suite. `same` says whether machine, number of
    threads and versions are those of then, so that tolerances are those of equal bits.
    """

    method: str
    seed: int
    data: str = ""
    classifier: str = ""
    then: str = ""
    now: str = ""
    same: bool = False
    why: str = ""
    metrics: Mapping[str, Comparison] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Return whether every metric does."""
        return not self.why and all(one.agrees for one in self.metrics.values())

    def as_json(self) -> dict[str, Any]:
        """All of it, as plain values."""
        metrics = {name: {**vars(one), "agrees": one.agrees} for name, one in self.metrics.items()}
        return {**vars(self), "agrees": self.agrees, "metrics": metrics}


def verify(
    suite: str | os.PathLike[str],
    *,
    profile: str | None = None,
    methods: Iterable[str] | None = None,
    datasets: Iterable[str] | None = None,
    classifiers: Iterable[str] | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    progress: Say | None = None,
) -> list[Verified]:
    """Train rows of a suite again and compare every metric; nothing is written to the results.

    Parameters are those of `run`; `out` holds the published rows. `profile` None takes the only one
    that has rows, `seed` None their smallest. Methods of the suite that have no row are left out.

    Raises
    ------
    ValueError
        If nothing chosen has a row, or a row was made by a newer version of dipedl.
    FileNotFoundError
        If there are no rows of this suite and profile.
    StoppedError
        If data is missing.
    """
    loaded = load_suite(suite)
    refuse_axes(loaded, datasets=datasets, classifiers=classifiers)
    if profile is not None:
        loaded.profile(profile)
    there = load_rows(loaded.name, profile, out)
    profile = profile or _profile(there)
    chosen = loaded.chosen_methods(profile, methods)
    axes: dict[str, Any] = {
        "datasets": None if datasets is None else list(datasets),
        "classifiers": None if classifiers is None else list(classifiers),
    }
    rows = _published(there, chosen, axes, seed)
    of_seed = next(iter(rows.values()))["seed"]
    say = progress or (lambda text: None)
    with TemporaryDirectory(prefix="dipedl-verify-") as folder:
        data = os.environ.get("DIPEDL_DATA") if data_dir is None else str(data_dir)
        store, names = Store(folder, loaded.name, profile), {_method(key) for key in rows}
        where, seeds = file_of(suite), [of_seed]
        cells = plan(loaded, profile, where, seeds=seeds, methods=names, **axes)
        today = {line_of(head): head for cell in cells for head in cell.heads}
        why = {key: _why_not(row, today.get(key)) for key, row in rows.items()}
        again = {key for key in rows if not why[key]}
        wanted = [
            replace(cell, heads=tuple(head for head in cell.heads if line_of(head) in again))
            for cell in cells
            if any(line_of(head) in again for head in cell.heads)
        ]
        failed: Mapping[tuple[str, int], str] = {}
        if wanted:
            failed = run_cells(wanted, store, data, None, say).failed
        made = {line_of(row): row for row in store.rows()}
    for key in again - made.keys():
        name = f"{key[0]}, {key[1]}: {_method(key)}" if key[0] else key[2]
        why[key] = failed.get((name, of_seed), "it gave no row")
    return [_compared(row, made.get(key), why[key]) for key, row in rows.items()]


def _profile(rows: Iterable[Row]) -> str:
    """The only profile that there are rows of; ValueError if there are several."""
    found = sorted({row["profile"] for row in rows})
    if len(found) != 1:
        raise ValueError(f"there are rows of the profiles {found}; choose one with --profile")
    return str(found[0])


def _method(key: Key) -> str:
    """Name of the method; rows of other kinds of its uncertainty are called ``method:kind``."""
    return key[2].partition(":")[0]


def _published(
    rows: Iterable[Row],
    methods: Iterable[str],
    axes: Mapping[str, list[str] | None],
    seed: int | None,
) -> dict[Key, Row]:
    """The latest row of each chosen method with a seed, by place and method."""
    methods, rows = tuple(methods), list(rows)
    found = [row for row in rows if _method(line_of(row)) in methods and row["metrics"]]
    for axis, name in (("datasets", "dataset"), ("classifiers", "classifier")):
        if (names := axes[axis]) is not None:
            refuse_unknown(name, names, sorted({row[name] for row in rows}))
            found = [row for row in found if row[name] in names]
    seeds = sorted({row["seed"] for row in found})
    if not found:
        raise ValueError(
            f"no row of {', '.join(methods)} to verify; there are rows of {_by_method(rows)}"
        )
    of_seed = [row for row in found if row["seed"] == (seeds[0] if seed is None else seed)]
    if not of_seed:
        raise ValueError(f"no row with seed {seed} to verify; those chosen have the seeds {seeds}")
    for row in of_seed:
        _refuse_newer(row)
    return {line_of(row): row for row in of_seed}


def _by_method(rows: Iterable[Row]) -> str:
    """Methods that have rows, and their seeds."""
    seeds: dict[str, set[int]] = {}
    for row in rows:
        seeds.setdefault(_method(line_of(row)), set()).add(row["seed"])
    return "; ".join(f"{name} (seeds {sorted(of)})" for name, of in seeds.items())


def _refuse_newer(row: Row) -> None:
    theirs = str(row.get("versions", {}).get("dipedl", "0"))
    # major, minor and patch: a candidate of a release counts as this release
    own, other = (
        [int(part) for part in re.findall(r"\d+", of)[:3]] for of in (__version__, theirs)
    )
    if other > own:
        raise ValueError(
            f"the row of {row['method']}, seed {row['seed']}, was made by dipedl {theirs}, newer "
            f"than this {__version__}; upgrade dipedl to verify it"
        )


def _why_not(row: Row, head: Row | None) -> str:
    """Return why a row cannot be made again: the suite no longer has its settings; or nothing."""
    if head is None:
        return "the suite no longer has it"
    if head["config_hash"] == row["config_hash"]:
        return ""
    said = "; ".join(changes(row["config"], head["config"])) or "another hash of the same settings"
    return f"its settings are not today's: {said}"


def _compared(then: Row, now: Row | None, why: str) -> Verified:
    data, classifier, method = line_of(then)
    head = Verified(method, then["seed"], data, classifier, then=machines_of(then), why=why)
    if now is None:
        return head
    kind = conditions_of(then)
    same = kind is not None and kind == conditions_of(now)
    metrics = {
        name: Comparison(value, now["metrics"].get(name), EXACT if same else tolerance_of(name))
        for name, value in then["metrics"].items()
    }
    return replace(head, now=machines_of(now), same=same, metrics=metrics)


def tolerance_of(metric: str) -> float:
    """Return how far a metric may be from the published one on another kind of machine."""
    kind = metric.partition("/")[0]
    family = kind.partition("_")[0]  # of every class, or of every level and third
    return ACROSS[family if family in ("recall", "coverage") else kind]


def machines_of(row: Row) -> str:
    """Where the parts of a row were trained."""
    made = set()
    for part in _trained(row):
        told = machine_of(part), part.get("gpu"), f"threads: {part.get('threads', 'unknown')}"
        made.add(", ".join(filter(None, told)))
    return "; ".join(sorted(made))


def conditions_of(row: Row) -> tuple[Any, ...] | None:
    """Conditions of equal bits; None if the row lacks them, was resumed or used a GPU."""
    parts = _trained(row)
    known = all(part.keys() >= set(_CONDITIONS) and "gpu" not in part for part in parts)
    if was_resumed(row) or not known:
        return None
    versions = {name: v for name, v in row.get("versions", {}).items() if name != "dipedl"}
    return {tuple(part.get(name) for name in _CONDITIONS) for part in parts}, versions


def _trained(row: Row) -> list[Row]:
    """Receipts of the parts that were trained for a row; the row's own in a crossed suite."""
    parts = [row.get("own", {}), *row.get("parts", {}).values()]
    return [part for part in parts if "device" in part] or [row]
