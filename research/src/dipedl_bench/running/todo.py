"""Everything that a run has to do, in order, and whether this machine has the devices for it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..spec.build import settings_named
from ..spec.cells import plan_cell_methods, plan_cells
from ..spec.plan import plan
from ..spec.suite import Suite, chosen_ood, first_there
from .clock import Say
from .work import CellWork, MethodWork, Place, Work, rows_of

Names = Iterable[str] | None


def planned_work(
    suite: Suite,
    where: str,
    place: Place,
    seeds: tuple[int, ...] | None = None,
    *,
    methods: Names = None,
    datasets: Names = None,
    classifiers: Names = None,
    rows: Sequence[Mapping[str, Any]] | None = None,
    say: Say = lambda text: None,
) -> list[Work]:
    """Return the work that is left of the profile of a place, checked; None is all of it.

    All methods, and all data sets, get the first seed before any gets the second. Where the suite
    names alternatives of an OOD set, that of `rows` is taken; None stands for those of the place.
    `where` is the suite's file, for errors.
    """
    if seeds is not None and (not seeds or min(seeds) < 0):
        raise ValueError(f"seeds must be integers >= 0, at least one, got {list(seeds)}")
    chosen = suite.chosen_methods(place.store.profile, methods)
    if suite.crossed:
        profile = place.store.profile
        made = tuple(plan_cell_methods(suite, profile, chosen, where))
        cells = plan_cells(suite, profile, datasets, classifiers, seeds, where)
        first = {cell.name: cell for cell in cells}  # cells of all seeds have the same configs
        named = {name: rows_of(cell, made) for name, cell in first.items()}
        return [CellWork(place, cell, made, named[cell.name]) for cell in cells]
    refuse_axes(suite, datasets=datasets, classifiers=classifiers)
    return _methods(suite, where, place, seeds, chosen, rows, say)


def _methods(
    suite: Suite,
    where: str,
    place: Place,
    seeds: tuple[int, ...] | None,
    chosen: Sequence[str],
    rows: Sequence[Mapping[str, Any]] | None,
    say: Say,
) -> list[Work]:
    profile = place.store.profile
    setting = suite.profile(profile)
    ood = chosen_ood(suite, setting, lambda names: _alternative(names, rows, place, say))
    parts = plan(suite, profile, chosen, where, ood)
    own = [seeds or m.spec.seeds or setting.seeds or suite.seeds for m in parts]
    return [
        MethodWork(place, method, seed, setting.resamples)
        for seed in dict.fromkeys(seed for of_method in own for seed in of_method)
        for method, of_method in zip(parts, own, strict=True)
        if seed in of_method
    ]


def _alternative(
    names: tuple[str, ...], rows: Sequence[Mapping[str, Any]] | None, place: Place, say: Say
) -> str:
    """The set that rows were scored on, else the first that can be had."""
    if rows is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a torn line is told by what reads the results
            rows = place.store.rows()
    used = {name for row in rows for name in row["config"]["data"]["ood"]}
    there = tuple(name for name in names if name in used)
    found = first_there(there or names, place.data_dir, say)
    if there and names[0] not in there:
        say(
            f"{found} stands in for {names[0]}, as in the rows that are there; a run in another "
            f"folder, --out, takes {names[0]} if it can be had"
        )
    return found


def refuse_axes(suite: Suite, **given: Names) -> None:
    """ValueError if an axis is given that the suite does not have."""
    for axis, names in given.items():
        if names is not None and not suite.crossed:
            raise ValueError(
                f"{axis} must be left out: suite {suite.name!r} has one data set per profile, and "
                "its classifiers are parts of its methods; a suite with [datasets], such as "
                "defaults, crosses them"
            )


def check_devices(todo: Iterable[Work]) -> None:
    """Where nothing can have the device it asks for, say so once and before anything begins."""
    missing = [_missing_device(work) for work in todo]
    if missing and all(missing):
        raise ValueError(missing[0])


def _missing_device(work: Work) -> str:
    """Why a step cannot have its device, or nothing."""
    for unit in (step.unit for step in work.steps):
        for name in sorted({*settings_named("device", unit.table)} - {"auto", "cpu"}):
            from dipedl.networks.device import resolve_device

            try:
                resolve_device(name)
            except ValueError as error:
                return f"{unit.where}: {error}"
    return ""
