"""Everything that a run has to do, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..spec.cells import plan_cell_methods, plan_cells
from ..spec.plan import plan
from ..spec.stand_in import first_there
from ..spec.suite import Suite, chosen_ood
from .cells.cell import rows_of
from .work import CellWork, MethodWork, Place, Work

__all__ = ["Plan"]

Say = Callable[[str], None]
Names = Iterable[str] | None


@dataclass(frozen=True)
class Plan:
    """What is chosen of a suite, and where it is run; `where` is the suite's file, for errors."""

    suite: Suite
    profile: str
    where: str
    place: Place
    seeds: tuple[int, ...] | None

    def works(self, methods: Names, datasets: Names, classifiers: Names, say: Say) -> list[Work]:
        """What is to be done, checked; None is all of the profile.

        All methods, and all data sets, get the first seed before any gets the second.
        """
        seeds = self.seeds
        if seeds is not None and (not seeds or min(seeds) < 0):
            raise ValueError(f"seeds must be integers >= 0, at least one, got {list(seeds)}")
        chosen = self.suite.chosen_methods(self.profile, methods)
        if self.suite.crossed:
            return self._cells(chosen, datasets, classifiers)
        _refuse_axes(self.suite, datasets=datasets, classifiers=classifiers)
        return self._methods(chosen, say)

    def _methods(self, chosen: Sequence[str], say: Say) -> list[Work]:
        """Methods with their seeds: all that have the first seed before any has the second."""
        setting = self.suite.profile(self.profile)
        ood = chosen_ood(
            self.suite, setting, lambda names: first_there(names, self.place.data_dir, say)
        )
        parts = plan(self.suite, self.profile, chosen, self.where, ood)
        own = [self.seeds or m.spec.seeds or setting.seeds or self.suite.seeds for m in parts]
        every = list(dict.fromkeys(seed for seeds in own for seed in seeds))
        pairs = list(zip(parts, own, strict=True))
        return [
            MethodWork(self.place, method, seed, setting.resamples)
            for seed in every
            for method, seeds in pairs
            if seed in seeds
        ]

    def _cells(
        self,
        chosen: Sequence[str],
        datasets: Names,
        classifiers: Names,
    ) -> list[Work]:
        """Cells: all data sets with the first seed before any gets the second."""
        suite, profile, where = self.suite, self.profile, self.where
        methods = tuple(plan_cell_methods(suite, profile, chosen, where))
        cells = plan_cells(suite, profile, datasets, classifiers, self.seeds, where)
        first = {cell.name: cell for cell in cells}  # cells of all seeds have the same configs
        rows = {name: rows_of(cell, methods) for name, cell in first.items()}
        return [CellWork(self.place, cell, methods, rows[cell.name]) for cell in cells]


def _refuse_axes(suite: Suite, **given: Names) -> None:
    """ValueError if an axis is given that the suite does not have."""
    for axis, names in given.items():
        if names is not None:
            raise ValueError(
                f"{axis} must be left out: suite {suite.name!r} has one data set per profile, and "
                "its classifiers are parts of its methods; a suite with [datasets], such as "
                "defaults, crosses them"
            )
