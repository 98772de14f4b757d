"""What a study is made of: cells (data set, classifier, seed), and the methods run in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..results.receipt import config_hash
from ..spec.build import accepts, class_of, described
from ..spec.plan import merged
from ..spec.suite import Limit
from .classifiers import unfitted
from .data import check_loader
from .methods import unfitted_method
from .study import ClassifierEntry, DataEntry, MethodEntry, Study, StudyProfile

__all__ = ["Cell", "Task", "plan_cells", "plan_tasks"]

#: Raised when rows change their meaning, so that none of an older kind are taken for new.
_FORMAT = 1

Table = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Cell:
    """A classifier on a data set with a seed; all methods are compared within one.

    Attributes
    ----------
    dataset, classifier : str
        Names.
    seed : int
        Of the split, of the classifier and of every method.
    data : dict
        What `dipedl.bench.honest.data.study_splits` is given.
    entry : ClassifierEntry
        The classifier, completed by the profile.
    resamples : int
        Bootstrap resamples behind each interval.
    where : str
        File and key of the classifier, for errors.
    """

    dataset: str
    classifier: str
    seed: int
    data: Table
    entry: ClassifierEntry
    resamples: int
    where: str

    @property
    def part(self) -> str:
        """Name of the folder of the trained classifier."""
        return f"{self.dataset}/{self.classifier}"

    @property
    def config(self) -> Table:
        """Everything the trained classifier depends on but the seed."""
        made = unfitted(self.entry, self.where)
        return {"format": _FORMAT, "data": self.data, "classifier": plain(described(made))}

    @property
    def digest(self) -> str:
        """Hash of the config."""
        return config_hash(self.config)

    def __str__(self) -> str:
        return f"{self.dataset}, {self.classifier}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Task:
    """A method, and the rows it gives: one for each kind of uncertainty.

    Attributes
    ----------
    name : str
        Name of the method.
    entry : MethodEntry
        Its entry in the study.
    where : str
        File and key, for errors.
    """

    name: str
    entry: MethodEntry
    where: str

    @property
    def kinds(self) -> dict[str, str | None]:
        """Name of each row -> kind of uncertainty; None asks for the method's own."""
        first, *others = self.entry.kinds or (None,)
        return {self.name: first, **{f"{self.name}:{kind}": kind for kind in others}}

    def config(self, cell: Cell, kind: str | None) -> Table:
        """Everything a row depends on but the seed."""
        entry = self.entry
        made = described(unfitted_method(entry, self.where))
        chosen = {"answers": entry.answers, "calibrate": entry.calibrate, "kind": kind}
        return {**cell.config, "method": plain(made) | chosen | {"preset": entry.preset}}

    def digest(self, cell: Cell, kind: str | None) -> str:
        """Hash of the config."""
        return config_hash(self.config(cell, kind))

    def runs_in(self, cell: Cell) -> bool:
        """Whether the method is run with the classifier of a cell."""
        return self.entry.classifiers is None or cell.classifier in self.entry.classifiers


def plan_cells(
    study: Study,
    profile: str,
    datasets: Iterable[str],
    classifiers: Iterable[str] | None,
    seeds: Iterable[int] | None,
    where: str,
) -> list[Cell]:
    """The cells, all data sets with the first seed before any gets the second; all checked."""
    setting = study.profile(profile)
    found = []
    for name in datasets:
        data = study.datasets[name]
        check_loader(data.loader, f"{where}: datasets.{name}")
        chosen = tuple(seeds or setting.seeds or data.seeds or study.seeds)
        for classifier in data.classifiers:
            if classifiers is None or classifier in classifiers:
                cells = _cells(study, setting, name, classifier, chosen, where)
                found += list(enumerate(cells))
    return [cell for _, cell in sorted(found, key=lambda pair: pair[0])]


def plan_tasks(study: Study, methods: Iterable[str], where: str) -> list[Task]:
    """The methods, checked: every class exists and takes its arguments."""
    tasks = [Task(name, study.methods[name], f"{where}: methods.{name}") for name in methods]
    for task in tasks:
        made = unfitted_method(task.entry, task.where)
        uncertainty = class_of(task.entry.estimator, task.where).uncertainty
        if task.entry.kinds and not accepts(uncertainty, "kind"):
            raise ValueError(f"{task.where}.kinds: {type(made).__name__} has one kind only")
    return tasks


def plain(value: Any) -> Any:
    """Tuples as lists: what a config looks like after it was written as JSON and read again."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def _cells(
    study: Study,
    setting: StudyProfile,
    dataset: str,
    classifier: str,
    seeds: Iterable[int],
    where: str,
) -> list[Cell]:
    data, entry = study.datasets[dataset], study.classifiers[classifier]
    place = f"{where}: classifiers.{classifier}"
    over = setting.classifiers.get(classifier, {})
    entry = entry.model_copy(update={"arguments": merged(entry.arguments, over)})
    unfitted(entry, place)  # a class or an argument that does not exist is said before anything
    config = _data_config(data, [data.limit, entry.limit, setting.limit])
    return [Cell(dataset, classifier, seed, config, entry, data.resamples, place) for seed in seeds]


def _data_config(data: DataEntry, limits: list[Limit]) -> Table:
    rows = {
        split: min((n for n in (getattr(limit, split) for limit in limits) if n), default=None)
        for split in Limit.model_fields
    }
    return {
        "loader": data.loader,
        "arguments": plain(data.arguments),
        "leave_out": data.leave_out,
        "ood": list(data.ood),
        "validation": data.validation,
        "limit": rows,
    }
