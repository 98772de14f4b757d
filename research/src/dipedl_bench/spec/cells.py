"""Cells of a crossed suite (data set, classifier, seed), and the methods in each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..datasets.splits import check_loader
from ..results.receipt import config_hash
from .build import accepts, build, class_of, described
from .entries import CrossedClassifier, CrossedData, CrossedMethod, Limit
from .plan import completed, plain
from .suite import Suite, chosen
from .typed_toml import validated

#: Raised when rows change their meaning, so that none of an older kind are taken for new.
_FORMAT = 3

Table = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Cell:
    """A classifier on a data set with a seed; all methods are compared within one.

    `data` is what `dipedl_bench.datasets.splits.make_splits` is given, `entry` the classifier,
    completed by the profile, and `where` its file and key, for errors.
    """

    dataset: str
    classifier: str
    seed: int
    data: Table
    entry: CrossedClassifier
    resamples: int
    where: str
    #: It stops between two methods, and the training of a network at an epoch.
    can_pause: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Name of the folder of the trained classifier."""
        return f"{self.dataset}/{self.classifier}"

    @property
    def place(self) -> str:
        """Data set and classifier, for readers."""
        return f"{self.dataset}, {self.classifier}"

    @property
    def table(self) -> Table:
        """Arguments of the classifier."""
        return self.entry.arguments

    @cached_property
    def config(self) -> Table:
        """Everything the trained classifier depends on but the seed."""
        made = unfitted(self.entry, self.where)
        return {"format": _FORMAT, "data": self.data, "classifier": plain(described(made))}

    @cached_property
    def digest(self) -> str:
        """Hash of the config."""
        return config_hash(self.config)

    def __str__(self) -> str:
        return f"{self.place}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class CellMethod:
    """A method, and the rows it gives: one for each kind of uncertainty."""

    name: str
    entry: CrossedMethod
    where: str

    @property
    def kinds(self) -> dict[str, str | None]:
        """Name of each row -> kind of uncertainty; None asks for the method's own."""
        first, *others = self.entry.kinds or (None,)
        return {self.name: first, **{f"{self.name}:{kind}": kind for kind in others}}

    def made(self, **given: Any) -> Any:
        """The method, unfitted; ValueError if a class or an argument does not exist."""
        entry = self.entry
        return build(entry.estimator, entry.arguments, self.where, preset=entry.preset, **given)

    def config(self, cell: Cell, kind: str | None) -> Table:
        """Everything a row depends on but the seed."""
        entry = self.entry
        chosen: Table = {"answers": entry.answers, "calibrate": entry.calibrate, "kind": kind}
        chosen |= {} if entry.held_out is None else {"held_out": entry.held_out}
        return {**cell.config, "method": self.settings | chosen | {"preset": entry.preset}}

    @cached_property
    def settings(self) -> Table:
        """Class and all settings, plain."""
        return dict(plain(described(self.made())))

    def digests(self, cell: Cell) -> dict[str, str]:
        """Hash of the config of each row, by its name."""
        return {row: config_hash(self.config(cell, kind)) for row, kind in self.kinds.items()}

    def runs_in(self, cell: Cell) -> bool:
        """Return whether the method is run with the classifier of a cell."""
        return self.entry.classifiers is None or cell.classifier in self.entry.classifiers


def plan_cells(
    suite: Suite,
    profile: str,
    datasets: Iterable[str] | None,
    classifiers: Iterable[str] | None,
    seeds: Iterable[int] | None,
    where: str,
) -> list[Cell]:
    """The cells, all data sets with the first seed before any gets the second; all checked."""
    setting = suite.profile(profile)
    wanted = chosen("classifier", classifiers, suite.classifiers)
    found = []
    for name in suite.chosen_datasets(profile, datasets):
        data = suite.datasets[name]
        check_loader(data.loader, f"{where}: datasets.{name}")
        of_data = tuple(seeds or setting.seeds or data.seeds or suite.seeds)
        for classifier in data.classifiers:
            if classifier in wanted:
                cells = _cells(suite, profile, name, classifier, of_data, where)
                found += list(enumerate(cells))
    return [cell for _, cell in sorted(found, key=lambda pair: pair[0])]


def plan_cell_methods(
    suite: Suite, profile: str, methods: Iterable[str], where: str
) -> list[CellMethod]:
    """The methods, checked: every class exists and takes its arguments."""
    setting, own = suite.profile(profile), tuple(CrossedMethod.model_fields)
    found = []
    for name in methods:
        place = f"{where}: methods.{name}"
        table = completed(suite.methods[name], setting.methods.get(name, {}), own, setting)
        method = CellMethod(name, validated(CrossedMethod, table, place, "suite"), place)
        made = method.made()
        uncertainty = class_of(method.entry.estimator, place).uncertainty
        if method.entry.kinds and not accepts(uncertainty, "kind"):
            raise ValueError(f"{place}.kinds: {type(made).__name__} has one kind only")
        found.append(method)
    return found


def unfitted(entry: CrossedClassifier, where: str, seed: int = 0) -> Any:
    """The classifier of an entry; ValueError if a class or an argument does not exist."""
    made = build(entry.estimator, entry.arguments, where, random_state=seed)
    return make_pipeline(StandardScaler(), made) if entry.standardise else made


def _cells(
    suite: Suite, profile: str, dataset: str, classifier: str, seeds: Iterable[int], where: str
) -> list[Cell]:
    setting, data = suite.profile(profile), suite.datasets[dataset]
    place, own = f"{where}: classifiers.{classifier}", tuple(CrossedClassifier.model_fields)
    over = setting.classifiers.get(classifier, {})
    table = completed(suite.classifiers[classifier], over, own, setting)
    entry = validated(CrossedClassifier, table, place, "suite")
    unfitted(entry, place)  # a class or an argument that does not exist is said before anything
    config = _data_config(data, [data.limit, entry.limit, setting.limit])
    return [Cell(dataset, classifier, seed, config, entry, data.resamples, place) for seed in seeds]


def _data_config(data: CrossedData, limits: list[Limit]) -> Table:
    rows = {
        split: min((n for n in (getattr(limit, split) for limit in limits) if n), default=None)
        for split in Limit.model_fields
    }
    return {
        "loader": data.loader,
        "arguments": plain(data.arguments),
        "leave_out": data.leave_out,
        "ood": list(data.ood),
        "validation_fraction": data.validation_fraction,
        "limit": rows,
        **({"standardise": True} if data.standardise else {}),
        **({"selected": list(data.selected)} if data.selected else {}),
    }
