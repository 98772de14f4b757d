"""Plan of a suite: its cells, the rows that each gives, and the parts that are trained for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..datasets.splits import check_loader, own_config
from ..names import refuse_unknown
from ..results.receipt import CROSSED_FORMAT, FORMAT, config_hash
from .build import accepts, build, describe, requires, sources_of, transformer_of
from .suite import SPLITS, Data, Method, PartEntry, Profile, Suite, choose, gather_arguments
from .toml import Frozen, read_model

Table = dict[str, Any]
#: Share of the official training set that is held out for validation, another one each seed.
VALIDATION = 0.2
Names = Iterable[str] | None
#: Cells without their seed, and the seeds of their own that they have.
Seeded = Iterator[tuple["Cell", tuple[int, ...] | None]]


@dataclass(frozen=True, eq=False)
class Part:
    """Something that is made once a seed, after the parts `below`: what, is its `role`.

    "classifier", "density" and "method" are trained, and their arrays stored. "methods" are all
    methods of a crossed suite that are run with the classifier below. `name` is that of its folder,
    `table` holds its class and arguments, `config` everything that its arrays depend on, data and
    the parts below included. `spec` is the entry of a method in the suite.
    """

    role: str
    name: str
    where: str
    table: Table
    config: Table
    below: Mapping[str, Part]
    spec: Method | None = None

    def build(self, seed: int, **parts: Any) -> Any:
        """Return the estimator, unfitted; of `parts`, what it does not take is left out."""
        made = self.table["estimator"], self.table["arguments"]
        model = build(*made, self.where, random_state=seed, **parts)
        return make_pipeline(StandardScaler(), model) if self.table.get("standardise") else model

    @property
    def sees_pixels(self) -> bool:
        """Return whether a method is given the trained network itself, with the pixels."""
        return self.spec is not None and self.spec.sees == "pixels"

    @cached_property
    def digest(self) -> str:
        """Hash of the config: equal parts of two methods are trained once."""
        return config_hash(self.config)


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows that are made together: data, a classifier, a seed, and what is trained for them.

    `heads` are the first keys of each row: suite, profile, method, title, seed, config, hash and,
    in a crossed suite, data set, classifier and group. `parts` are made one after the other. In a
    suite with one data set a profile the last of them is the method, and its arrays give the row.
    In a crossed suite the last one runs `methods` with the classifier below it, which is another of
    the parts if it is a network, and is fitted on the way if it is not.
    """

    seed: int
    heads: tuple[Table, ...]
    parts: tuple[Part, ...]
    resamples: int
    methods: Mapping[str, Method] = field(default_factory=dict)

    def key(self, part: Part) -> tuple[str, str, int]:
        """Return name, hash and seed of a part, by which the store knows it."""
        return part.name, part.digest, self.seed

    def label(self, part: Part) -> str:
        """Return the work on a part, for readers."""
        return f"seed {self.seed}  {part.role} {part.name}"

    def title(self, method: str) -> str:
        """Return a method for readers, with data set and classifier of a crossed suite."""
        return f"{self.parts[-1].name}: {method}" if self.methods else method


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
    method, profile or suite. A ValueError names file and key.
    """
    if seeds is not None:
        seeds = tuple(dict.fromkeys(seeds))
        if not seeds or min(seeds) < 0:
            raise ValueError(f"seeds must be integers >= 0, at least one, got {list(seeds)}")
    names = suite.choose_methods(profile, methods)
    if suite.crossed:
        cells = _crossed_cells(suite, profile, where, names, datasets, classifiers)
    elif axes := [a for a, v in (("datasets", datasets), ("classifiers", classifiers)) if v]:
        raise ValueError(
            f"{axes[0]} must be left out: suite {suite.name!r} has one data set per profile, and "
            "its classifiers are parts of its methods; a suite with [datasets], such as "
            "defaults, crosses them"
        )
    else:
        cells = _method_cells(suite, profile, where, names)
    default = suite.profile(profile).seeds or suite.seeds
    seeded = [
        (i, replace(cell, seed=seed, heads=tuple({**head, "seed": seed} for head in cell.heads)))
        for cell, own in cells
        for i, seed in enumerate(seeds or own or default)
    ]
    return [cell for _, cell in sorted(seeded, key=itemgetter(0))]


def _method_of(suite: Suite, setting: Profile, name: str, place: str) -> tuple[Method, Any]:
    """Return the entry of a method, as a profile completes it, and the method, unfitted."""
    over = setting.methods.get(name, {})
    table = complete_table(suite.methods[name], over, Method, setting)
    method = read_model(Method, table, place, "suite")
    made = build_method(method, place)
    if method.kinds and not accepts(made.uncertainty, "kind"):
        raise ValueError(f"{place}.kinds: {type(made).__name__} has one kind only")
    return method, made


# ------------------------------------------------------------------- suites that cross data sets


def _crossed_cells(
    suite: Suite,
    profile: str,
    where: str,
    names: Iterable[str],
    datasets: Names,
    classifiers: Names,
) -> Seeded:
    setting = suite.profile(profile)
    methods, settings, sources = {}, {}, {}
    for name in names:
        methods[name], made = _method_of(suite, setting, name, f"{where}: methods.{name}")
        settings[name] = to_lists(describe(made))
        table = {"name": methods[name].estimator, "arguments": methods[name].arguments}
        sources[name] = _source_config(table)
    selection = choose("classifier", classifiers, suite.classifiers)
    for dataset in choose("data set", datasets, setting.datasets):
        data = suite.datasets[dataset]
        check_loader(data.loader, f"{where}: datasets.{dataset}")
        for classifier in (name for name in data.classifiers if name in selection):
            part = _crossed_part(suite, setting, dataset, classifier, where)
            mine = {
                key: method
                for key, method in methods.items()
                if method.classifiers is None or classifier in method.classifiers
            }
            first: Table = {"suite": suite.name, "profile": profile}
            first |= {"dataset": dataset, "classifier": classifier}
            heads = []
            for key, method in mine.items():
                for row, kind in kinds_of(key, method).items():
                    own: Table = {"answers": method.answers, "calibrate": method.calibrate}
                    own |= {} if method.held_out is None else {"held_out": method.held_out}
                    own |= {**settings[key], "kind": kind, "preset": method.preset}
                    own |= sources[key]
                    config = {**part.config, "method": own}
                    title = method.title + ("" if row == key else f", ranked by {kind}")
                    head = first | {"method": row, "title": title, "group": method.group}
                    digest = config_hash(config)
                    heads.append({**head, "seed": -1, "config": config, "config_hash": digest})
            if heads:
                run = replace(part, role="methods", below={"classifier": part})
                parts = (part, run) if part.table.get("frozen") else (run,)
                yield Cell(-1, tuple(heads), parts, data.resamples, mine), None


def build_method(method: Method, where: str, **parts: Any) -> Any:
    """Return a method, unfitted; of `parts`, what it does not take is left out."""
    return build(method.estimator, method.arguments, where, preset=method.preset, **parts)


def kinds_of(name: str, method: Method) -> dict[str, str | None]:
    """Name of each row of a method -> kind of uncertainty; None asks for the method's own."""
    first, *others = method.kinds or (None,)
    return {name: first, **{f"{name}:{kind}": kind for kind in others}}


def _crossed_part(suite: Suite, profile: Profile, dataset: str, name: str, where: str) -> Part:
    """Return the classifier of a cell, whose class and arguments are checked."""
    _, table, place = _part_table(suite, profile, "classifiers", name, where)
    data: Data = suite.datasets[dataset]
    limits = [data.limit, table.get("limit", {}), profile.limit]
    rows = {
        split: min((limit[split] for limit in limits if split in limit), default=None)
        for split in SPLITS
    }
    part = Part("classifier", f"{dataset}/{name}", place, table, {}, {})
    of_data = {
        "loader": data.loader,
        "arguments": to_lists(data.arguments),
        "leave_out": data.leave_out,
        "ood": list(data.ood),
        "validation_fraction": VALIDATION,
        "limit": rows,
        **({"standardise": True} if data.standardise else {}),
        **({"selected": list(data.selected)} if data.selected else {}),
        **own_config(data.loader),
    }
    model = part.build(0)
    made = {**to_lists(describe(model)), **_source_config({}, model, place)}
    return replace(part, config={"format": CROSSED_FORMAT, "data": of_data, "classifier": made})


# ------------------------------------------------------------ suites with one data set a profile


def _method_cells(suite: Suite, profile: str, where: str, names: Iterable[str]) -> Seeded:
    for part in method_parts(suite, profile, names, where):
        assert part.spec is not None
        head: Table = {"suite": suite.name, "profile": profile, "method": part.name}
        head |= {"title": part.spec.title, "seed": -1}
        head |= {"config": part.config, "config_hash": part.digest}
        resamples = suite.profile(profile).resamples
        yield Cell(-1, (head,), tuple(parts_of(part)), resamples), part.spec.seeds


def method_parts(suite: Suite, profile: str, methods: Iterable[str], where: str) -> list[Part]:
    """Methods with all parts below them, checked: every class exists and takes its keys."""
    setting = suite.profile(profile)
    return [_method(suite, setting, name, where) for name in methods]


def make_method_part(name: str, estimator: str, data: Table, below: Mapping[str, Part]) -> Part:
    """Return a class as a method on a classifier, outside any suite, checked."""
    where = f"method {estimator!r}"
    made = build(estimator, {}, where)
    if not (hasattr(made, "fit") and hasattr(made, "uncertainty")) or (
        not accepts(type(made), "estimator")
    ):
        raise ValueError(
            f"{where}: must have fit(features, logits, labels) and uncertainty(features, logits), "
            "with these names; or be a classifier with predict_proba and uncertainty whose "
            "constructor takes a fitted network as estimator"
        )
    return _part("method", name, {"estimator": estimator, "arguments": {}}, where, data, below)


def parts_of(part: Part) -> Iterator[Part]:
    """The part and all below it, each after what it needs."""
    for below in part.below.values():
        yield from parts_of(below)
    yield part


def data_config(suite: Suite, profile: Profile) -> Table:
    """Arguments of `dipedl_bench.datasets.splits.make_splits`; plain values."""
    return {
        "dataset": profile.dataset,
        "ood": list(suite.ood_of(profile)),
        "validation_fraction": VALIDATION,
        "limit": {split: profile.limit.get(split) for split in SPLITS},
        **({"shifted": list(profile.shifted)} if profile.shifted else {}),
        **({"calibration": profile.calibration} if profile.calibration != "train" else {}),
        **own_config(profile.dataset),
    }


def _method(suite: Suite, profile: Profile, name: str, where: str) -> Part:
    place, data = f"{where}: methods.{name}", data_config(suite, profile)
    spec, model = _method_of(suite, profile, name, place)
    below: dict[str, Part] = {}
    if spec.classifier is not None:
        entry = _part_table(suite, profile, "classifiers", spec.classifier, place)
        below["classifier"] = _part("classifier", *entry, data)
    if spec.density is not None:
        key, table, at = _part_table(suite, profile, "densities", spec.density, place)
        if "classifier" not in below:
            raise ValueError(f"{place}: a method with a density needs a classifier too; name one")
        network = {"classifier": below["classifier"]} if _sees_network(table, at) else {}
        below["density"] = _part("density", key, table, at, data, network)
    _check_method(spec, model, below, place)
    made = {"estimator": spec.estimator, "arguments": spec.arguments}
    part = _part("method", name, made, place, data, below)
    # own keys that its predictions depend on, where they differ from the defaults
    own = spec.model_dump(include={"sees", "statistics"}, exclude_defaults=True)
    own |= {"uncertainty": spec.kinds[0]} if spec.kinds else {}
    return replace(part, spec=spec, config=part.config | own)


def _part(
    role: str,
    name: str,
    table: Table,
    where: str,
    data: Table,
    below: Mapping[str, Part] | None = None,
) -> Part:
    """Return a part, with every setting in its config, those left at their defaults too."""
    made = build(table["estimator"], table["arguments"], where)
    own = {key: table[key] for key in ("features",) if key in table}
    described = describe(made)
    # a class outside scikit-learn tells no settings: those of the suite are all that is known
    known = described["settings"] if isinstance(described, dict) else describe(table["arguments"])
    own |= {"estimator": table["estimator"], "arguments": known}
    own |= _source_config(table, made, where)
    config = {"format": FORMAT, "data": data, **to_lists(own)}
    if below:
        config["below"] = {role: {"name": part.name, **part.config} for role, part in below.items()}
    return Part(role, name, where, table, config, below or {})


def _source_config(table: Table, made: Any = None, where: str = "") -> Table:
    """Key of a config with hashes of files outside this package, if there are any."""
    try:
        sources = sources_of(table, made)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    return {"sources": sources} if sources else {}


def _sees_network(table: Table, where: str) -> bool:
    """Return whether a density sees the network; of its features only a transformer stays."""
    sees = table.pop("features", "pixels")
    if isinstance(sees, Mapping):
        table["features"] = dict(sees)
        return accepts(type(transformer_of(sees, f"{where}.features", estimator=None)), "estimator")
    if sees not in ("pixels", "network"):
        raise ValueError(
            f"{where}.features: must be one of ['pixels', 'network'], or a table that names a "
            f'transformer of pixels, such as {{ name = "LogitPixels" }}; got {sees!r}'
        )
    return bool(sees == "network")


def _part_table(
    suite: Suite, profile: Profile, section: str, entry: str | Table, where: str
) -> tuple[str, Table, str]:
    """Return name, completed table and place of a part that is given by name or in place."""
    if isinstance(entry, str):
        refuse_unknown(section, [entry], getattr(suite, section), where)
        table, over = getattr(suite, section)[entry], getattr(profile, section).get(entry, {})
        place = f"{where.partition(':')[0]}: {section}.{entry}"
    else:
        table, over, place = entry, {}, f"{where}.{section}"
    whole = complete_table(dict(table), over, PartEntry, profile)
    read_model(PartEntry, whole, place)
    return entry if isinstance(entry, str) else whole["estimator"], whole, place


def _check_method(spec: Method, model: Any, below: Mapping[str, Part], where: str) -> None:
    if len(spec.kinds) > 1:
        raise ValueError(f"{where}.kinds: only a crossed suite has rows of several kinds")
    pixels = spec.sees == "pixels"
    if pixels and set(below) != {"classifier"}:
        raise ValueError(
            f"{where}.sees: 'pixels' needs a classifier, and no density; got {sorted(below)}"
        )
    if "classifier" not in below and requires(type(model), "estimator"):
        raise ValueError(f"{where}: {spec.estimator} needs a classifier; name one")
    taken = "network" if pixels and accepts(type(model), "network") else "estimator"
    for role, argument in (("classifier", taken), ("density", "density")):
        if role in below and not accepts(type(model), argument):
            raise ValueError(f"{where}.{role}: {spec.estimator} takes no {role}; leave the key out")
    learns = hasattr(model, "evidence_model") or (pixels and accepts(model.fit, "calibration"))
    if spec.statistics == "validation" and not learns:
        raise ValueError(f"{where}.statistics: {spec.estimator} takes no statistics")


# ------------------------------------------------------------------------------------- tables


def complete_table(table: Table, over: Table, entry: type[Frozen], profile: Profile) -> Table:
    """Return the suite's table with the profile's: what it sets everywhere, then for this one."""
    everywhere = {"training": profile.training, "backbone": profile.backbone}
    whole = _override_all(gather_arguments(table, entry), everywhere)
    return merge_tables(whole, gather_arguments(over, entry))


def _override_all(table: Table, over: Table) -> Table:
    """`table` with each table of `over` on top of all in it that have its name."""
    return {
        key: value
        if not isinstance(value, dict)
        else merge_tables(value, over[key])
        if key in over
        else _override_all(value, over)
        for key, value in table.items()
    }


def merge_tables(base: Table, over: Table) -> Table:
    """`over` on top of `base`, key by key; a table that names another class replaces the old."""
    if any(isinstance(over.get(k), str) and over[k] != base.get(k) for k in ("name", "estimator")):
        return {**{k: v for k, v in base.items() if k == "title"}, **over}
    result = dict(base)
    for key, value in over.items():
        both = isinstance(base.get(key), dict) and isinstance(value, dict)
        result[key] = merge_tables(base[key], value) if both else value
    return result


def to_lists(value: Any) -> Any:
    """Tuples as lists: what a config looks like after it was written as JSON and read again."""
    if isinstance(value, Mapping):
        return {key: to_lists(item) for key, item in value.items()}
    return [to_lists(item) for item in value] if isinstance(value, list | tuple) else value
