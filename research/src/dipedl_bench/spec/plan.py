"""Plan of a suite: its cells, the rows that each gives, and the parts that are trained for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..datasets.splits import check_loader
from ..names import refuse_unknown
from ..results.receipt import config_hash
from .build import accepts, build, class_of, described, transformer_of
from .entries import CrossedClassifier, CrossedData, Limit, Method, Profile
from .suite import Suite, chosen, gathered
from .typed_toml import validated

#: Raised when stored arrays, or rows of a crossed suite, change their meaning, so that none of an
#: older kind are taken for new.
_FORMAT, _CROSSED_FORMAT = 1, 3
#: Own key of a density: what it sees.
_SEES = ("pixels", "network")

Table = dict[str, Any]
Names = Iterable[str] | None


@dataclass(frozen=True, eq=False)
class Part:
    """Something that is trained once a seed: a classifier, a density or a method (its `role`).

    `name` is that of its folder, `table` holds its class and arguments, `config` everything that
    its arrays depend on, data and the parts `below` included; those have to be trained before it.
    `spec` is the entry of a method in the suite.
    """

    role: str
    name: str
    where: str
    table: Table
    config: Table
    below: Mapping[str, Part]
    spec: Method | None = None

    def built(self, seed: int, **given: Any) -> Any:
        """The estimator, unfitted; of `given`, what it does not take is left out."""
        made = self.table["estimator"], self.table["arguments"]
        model = build(*made, self.where, random_state=seed, **given)
        if self.table.get("standardise"):
            model = make_pipeline(StandardScaler(), model)
        return model

    @cached_property
    def digest(self) -> str:
        """Hash of the config: equal parts of two methods are trained once."""
        return config_hash(self.config)


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows that are made together: data, a classifier, a seed, and what is trained for them.

    `heads` are the first keys of each row: suite, profile, method, title, seed, config, hash and,
    in a crossed suite, data set, classifier and group. `parts` are trained and stored one after
    the other. In a suite with one data set a profile the last of them is the method, and its arrays
    give the row. In a crossed suite `methods` are run together afterwards, with the `classifier`,
    which is one of the parts if it is a network, and is fitted on the way if it is not.
    """

    seed: int
    heads: tuple[Table, ...]
    parts: tuple[Part, ...]
    resamples: int
    classifier: Part | None = None
    methods: Mapping[str, Method] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Data set and classifier of a crossed suite, for readers; "" in any other."""
        head = self.heads[0]
        return f"{head['dataset']}, {head['classifier']}" if "dataset" in head else ""

    @property
    def frozen(self) -> bool:
        """Return whether the methods of a crossed suite get the classifier trained, as it is."""
        return self.classifier in self.parts

    def title(self, method: str) -> str:
        """A method for readers, with data set and classifier of a crossed suite."""
        return f"{self.place}: {method}" if self.place else method


def plan(
    suite: Suite,
    profile: str,
    where: str,
    *,
    methods: Names = None,
    datasets: Names = None,
    classifiers: Names = None,
    seeds: Iterable[int] | None = None,
) -> list[Cell]:
    """The cells, all with their first seed before any gets its second; everything is checked.

    None stands for all methods, data sets and classifiers of the profile, and for the seeds of
    method, profile, data set or suite. A ValueError names file and key.
    """
    if seeds is not None:
        seeds = tuple(dict.fromkeys(seeds))
        if not seeds or min(seeds) < 0:
            raise ValueError(f"seeds must be integers >= 0, at least one, got {list(seeds)}")
    names = suite.chosen_methods(profile, methods)
    if suite.crossed:
        made = crossed_methods(suite, profile, names, where)
        found = _crossed_cells(suite, profile, where, made, datasets, classifiers, seeds)
    else:
        refuse_axes(suite, datasets=datasets, classifiers=classifiers)
        found = _cells(suite, profile, method_parts(suite, profile, names, where), seeds)
    return [cell for _, cell in sorted(found, key=lambda pair: pair[0])]


def refuse_axes(suite: Suite, **given: Names) -> None:
    """ValueError if an axis is given that the suite does not have."""
    for axis, names in given.items():
        if names is not None and not suite.crossed:
            raise ValueError(
                f"{axis} must be left out: suite {suite.name!r} has one data set per profile, and "
                "its classifiers are parts of its methods; a suite with [datasets], such as "
                "defaults, crosses them"
            )


def _with_seeds(cell: Cell, seeds: Iterable[int]) -> Iterator[tuple[int, Cell]]:
    for i, seed in enumerate(seeds):
        heads = tuple({**head, "seed": seed} for head in cell.heads)
        yield i, replace(cell, seed=seed, heads=heads)


# ------------------------------------------------------------------- suites that cross data sets


def crossed_methods(
    suite: Suite, profile: str, names: Iterable[str], where: str
) -> dict[str, Method]:
    """Methods of a crossed suite by name, checked: every class exists and takes its arguments."""
    setting, own = suite.profile(profile), Method.keys(crossed=True)
    found = {}
    for name in names:
        place = f"{where}: methods.{name}"
        table = completed(suite.methods[name], setting.methods.get(name, {}), own, setting)
        method = validated(Method, table, place, "suite")
        made = built_method(method, place)
        if method.kinds and not accepts(class_of(method.estimator, place).uncertainty, "kind"):
            raise ValueError(f"{place}.kinds: {type(made).__name__} has one kind only")
        found[name] = method
    return found


def built_method(method: Method, where: str, **given: Any) -> Any:
    """A method of a crossed suite, unfitted; of `given`, what it does not take is left out."""
    return build(method.estimator, method.arguments, where, preset=method.preset, **given)


def kinds_of(name: str, method: Method) -> dict[str, str | None]:
    """Name of each row of a method -> kind of uncertainty; None asks for the method's own."""
    first, *others = method.kinds or (None,)
    return {name: first, **{f"{name}:{kind}": kind for kind in others}}


def _crossed_cells(
    suite: Suite,
    profile: str,
    where: str,
    methods: Mapping[str, Method],
    datasets: Names,
    classifiers: Names,
    seeds: Iterable[int] | None,
) -> Iterator[tuple[int, Cell]]:
    setting = suite.profile(profile)
    wanted = chosen("classifier", classifiers, suite.classifiers)
    settings = {
        name: plain(described(built_method(method, f"{where}: methods.{name}")))
        for name, method in methods.items()
    }
    for dataset in suite.chosen_datasets(profile, datasets):
        data = suite.datasets[dataset]
        check_loader(data.loader, f"{where}: datasets.{dataset}")
        of_data = tuple(seeds or setting.seeds or data.seeds or suite.seeds)
        for name in (name for name in data.classifiers if name in wanted):
            part, entry = _recipe(suite, setting, dataset, name, where)
            given = {
                key: method
                for key, method in methods.items()
                if method.classifiers is None or name in method.classifiers
            }
            heads = []
            for key, method in given.items():
                for row, kind in kinds_of(key, method).items():
                    config = {**part.config, "method": _method_config(method, kind, settings[key])}
                    ranked = "" if row == key else f", ranked by {kind}"
                    place: Table = {"suite": suite.name, "profile": profile, "dataset": dataset}
                    place |= {"classifier": name, "method": row, "title": method.title + ranked}
                    place |= {"group": method.group, "seed": -1}
                    heads.append({**place, "config": config, "config_hash": config_hash(config)})
            if heads:
                parts = (part,) if entry.frozen else ()
                cell = Cell(-1, tuple(heads), parts, data.resamples, part, given)
                yield from _with_seeds(cell, of_data)


def _method_config(method: Method, kind: str | None, settings: Table) -> Table:
    """Everything that a row depends on beside data, classifier and seed."""
    own: Table = {"answers": method.answers, "calibrate": method.calibrate, "kind": kind}
    own |= {} if method.held_out is None else {"held_out": method.held_out}
    return {**settings, **own, "preset": method.preset}


def _recipe(
    suite: Suite, profile: Profile, dataset: str, name: str, where: str
) -> tuple[Part, CrossedClassifier]:
    """The classifier of a cell, whose class and arguments are checked, and its entry."""
    data, place = suite.datasets[dataset], f"{where}: classifiers.{name}"
    own = tuple(CrossedClassifier.model_fields)
    table = completed(suite.classifiers[name], profile.classifiers.get(name, {}), own, profile)
    entry = validated(CrossedClassifier, table, place, "suite")
    made = {key: getattr(entry, key) for key in ("estimator", "arguments", "standardise")}
    part = Part("classifier", f"{dataset}/{name}", place, made, {}, {})
    config = {
        "format": _CROSSED_FORMAT,
        "data": _crossed_data(data, [data.limit, entry.limit, profile.limit]),
        "classifier": plain(described(part.built(0))),
    }
    return replace(part, config=config), entry


def _crossed_data(data: CrossedData, limits: list[Limit]) -> Table:
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


# ------------------------------------------------------------ suites with one data set a profile


def method_parts(suite: Suite, profile: str, methods: Iterable[str], where: str) -> list[Part]:
    """Methods with all parts below them, checked: every class exists and takes its keys."""
    setting = suite.profile(profile)
    planner = _Planner(suite, setting, data_config(suite, setting))
    return [planner.method(name, where) for name in methods]


def _cells(
    suite: Suite, profile: str, parts: Iterable[Part], seeds: Iterable[int] | None
) -> Iterator[tuple[int, Cell]]:
    setting = suite.profile(profile)
    for part in parts:
        assert part.spec is not None
        head: Table = {"suite": suite.name, "profile": profile, "method": part.name}
        head |= {"title": part.spec.title, "seed": -1}
        head |= {"config": part.config, "config_hash": part.digest}
        cell = Cell(-1, (head,), tuple(trained_parts(part)), setting.resamples)
        yield from _with_seeds(cell, seeds or part.spec.seeds or setting.seeds or suite.seeds)


def data_config(suite: Suite, profile: Profile) -> Table:
    """Arguments of `dipedl_bench.datasets.splits.make_splits`; plain values."""
    return {
        "dataset": profile.dataset,
        "ood": list(suite.ood_of(profile)),
        "validation_fraction": suite.validation_fraction,
        "limit": profile.limit.model_dump(),
        **({"shifted": list(profile.shifted)} if profile.shifted else {}),
    }


@dataclass(frozen=True)
class _Planner:
    """Makes methods and parts of a suite with a profile, on its data."""

    suite: Suite
    profile: Profile
    data: Table

    def method(self, name: str, where: str) -> Part:
        place = f"{where}: methods.{name}"
        own, over = Method.keys(crossed=False), self.profile.methods.get(name, {})
        table = completed(self.suite.methods[name], over, own, self.profile)
        spec = validated(Method, table, place, "suite")
        below: dict[str, Part] = {}
        if spec.classifier is not None:
            below["classifier"] = self._classifier(spec.classifier, place)
        if spec.density is not None:
            below["density"] = self._density(spec.density, below, place)
        _check_method(spec, below, place)
        made = {"estimator": spec.estimator, "arguments": spec.arguments}
        config = _config(made, self.data, below, place) | _choices(spec)
        return Part("method", name, place, made, config, below, spec)

    def _classifier(self, given: str | Table, where: str) -> Part:
        name, table, place = self._found(given, "classifiers", ("estimator",), where)
        return Part("classifier", name, place, table, _config(table, self.data, {}, place), {})

    def _density(self, given: str | Table, below: Mapping[str, Part], where: str) -> Part:
        name, table, place = self._found(given, "densities", ("estimator", "features"), where)
        sees = table.pop("features", "pixels")
        if isinstance(sees, Mapping):
            transformer = transformer_of(sees, f"{place}.features", estimator=None)
            of_network = accepts(type(transformer), "estimator")
            table["features"] = dict(sees)
            sees = "network" if of_network else "pixels"
        elif sees not in _SEES:
            raise ValueError(
                f"{place}.features: must be one of {list(_SEES)}, or a table that names a "
                'transformer of pixels, such as { name = "LogitPixels" }; '
                f"got {sees!r}"
            )
        if sees == "network" and "classifier" not in below:
            raise ValueError(
                f"{place}.features: 'network' needs a classifier; give {where} one, or write "
                "'pixels'"
            )
        network = {"classifier": below["classifier"]} if sees == "network" else {}
        config = _config(table, self.data, network, place)
        return Part("density", name, place, table, config, network)

    def _found(
        self, given: str | Table, section: str, own: tuple[str, ...], where: str
    ) -> tuple[str, Table, str]:
        """Name, completed table and place of a part that is given by name or in place."""
        known: dict[str, Table] = getattr(self.suite, section)
        if isinstance(given, Mapping):
            name, table, over, place = "", dict(given), {}, f"{where}.{section}"
        else:
            refuse_unknown(section, [given], known, where)
            name, table, over = given, known[given], getattr(self.profile, section).get(given, {})
            place = f"{where.partition(':')[0]}: {section}.{given}"
        found = completed(table, over, own, self.profile)
        if not isinstance(found.get("estimator"), str):
            raise ValueError(
                f'{place}: a table must say its class, such as estimator = "GDADensity"'
            )
        return name or found["estimator"], found, place


def _check_method(spec: Method, below: Mapping[str, Part], where: str) -> None:
    model = build(spec.estimator, spec.arguments, where)
    if "density" in below and "classifier" not in below:
        raise ValueError(f"{where}: a method with a density needs a classifier too; name one")
    if spec.sees == "pixels" and set(below) != {"classifier"}:
        raise ValueError(
            f"{where}.sees: 'pixels' needs a classifier, and no density; got {sorted(below)}"
        )
    taken = "network" if spec.sees == "pixels" and accepts(type(model), "network") else "estimator"
    for role, argument in (("classifier", taken), ("density", "density")):
        if role in below and not accepts(type(model), argument):
            raise ValueError(f"{where}.{role}: {spec.estimator} takes no {role}; leave the key out")
    learns = accepts(model.fit, "calibration") if spec.sees == "pixels" else False
    if spec.statistics == "validation" and not (learns or hasattr(model, "evidence_model")):
        raise ValueError(f"{where}.statistics: {spec.estimator} takes no statistics")
    if spec.uncertainty is not None and not accepts(model.uncertainty, "kind"):
        raise ValueError(f"{where}.uncertainty: {spec.estimator} has one kind only")


def _choices(spec: Method) -> Table:
    """Own keys of a method that its predictions depend on, where they differ from the defaults."""
    names = ("sees", "statistics", "uncertainty")
    chosen = {name: getattr(spec, name) for name in names}
    return {k: v for k, v in chosen.items() if v != Method.model_fields[k].default}


def _config(table: Table, data: Table, below: Mapping[str, Part], where: str) -> Table:
    """Every setting, those that the suite leaves at their defaults too."""
    made = build(table["estimator"], table["arguments"], where)
    rest = {key: value for key, value in table.items() if key not in ("estimator", "arguments")}
    settings = {**rest, "estimator": table["estimator"], "arguments": described(made)["settings"]}
    parts = {role: {"name": part.name, **part.config} for role, part in below.items()}
    return {
        "format": _FORMAT,
        "data": data,
        **plain(settings),
        **({"below": parts} if parts else {}),
    }


def completed(table: Table, over: Table, own: tuple[str, ...], profile: Profile) -> Table:
    """The suite's table with the profile's: what it sets everywhere, then its own for this one."""
    everywhere = {"training": profile.training, "backbone": profile.backbone}
    return merged(_with_all(gathered(table, own), everywhere), gathered(over, own))


def _with_all(table: Table, over: Table) -> Table:
    """`table` with each table of `over` on top of all in it that have its name."""
    changed: Table = {}
    for key, value in table.items():
        if isinstance(value, dict) and key in over:
            changed[key] = merged(value, over[key])
        else:
            changed[key] = _with_all(value, over) if isinstance(value, dict) else value
    return changed


def merged(base: Table, over: Table) -> Table:
    """`over` on top of `base`, key by key; a table that names another class replaces the old."""
    if any(isinstance(over.get(k), str) and over[k] != base.get(k) for k in ("name", "estimator")):
        kept = {k: v for k, v in base.items() if k in ("title", "note")}
        return {**kept, **over}
    found = dict(base)
    for key, value in over.items():
        old = base.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        found[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return found


def plain(value: Any) -> Any:
    """Tuples as lists: what a config looks like after it was written as JSON and read again."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def trained_parts(part: Part) -> Iterator[Part]:
    """The part and all below it, each after what it needs."""
    for below in part.below.values():
        yield from trained_parts(below)
    yield part
