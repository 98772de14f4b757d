"""Plan of a training: methods of a suite, completed by a profile, and the parts below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..names import refuse_unknown
from ..results.receipt import config_hash
from .build import accepts, build, class_of, described, transformer_of
from .entries import Method, Profile
from .suite import Suite, chosen_ood, gathered
from .typed_toml import validated

#: Raised when stored arrays change their meaning, so that none of an older kind are taken for new.
_FORMAT = 1
#: Own key of a density: what it sees.
_SEES = ("pixels", "network")

Table = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Part:
    """Something that is trained once a seed: a classifier, a density or a method (its `role`).

    `name` is that of its folder, `table` holds its class and arguments, `config` everything that
    its arrays depend on, data and the parts `below` included; those have to be trained before it.
    """

    role: str
    name: str
    where: str
    table: Table
    config: Table
    below: Mapping[str, Part]
    spec: Method | None = None

    @property
    def can_pause(self) -> bool:
        """Return whether its training can stop at a deadline and go on later."""
        return accepts(class_of(self.table["estimator"], self.where).fit, "deadline")

    def built(self, seed: int, **given: Any) -> Any:
        """The estimator, unfitted; of `given`, what it does not take is left out."""
        table = self.table
        made = table["estimator"], table["arguments"]
        return build(*made, self.where, random_state=seed, **given)

    @property
    def digest(self) -> str:
        """Hash of the config: equal parts of two methods are trained once."""
        return config_hash(self.config)


@dataclass(frozen=True, eq=False)
class MethodPart(Part):
    """A method; `spec` is its entry in the suite."""

    spec: Method


def plan(
    suite: Suite,
    profile: str,
    methods: Iterable[str],
    where: str,
    ood: Sequence[str] | None = None,
) -> list[MethodPart]:
    """The chosen methods with all parts below them, checked: every class exists and takes its keys.

    `ood` says which sets are looked at; default: all of the profile, of alternatives the first. A
    ValueError names file and key.
    """
    setting = suite.profile(profile)
    planner = _Planner(suite, setting, data_config(suite, setting, ood))
    return [planner.method(name, where) for name in methods]


def data_config(suite: Suite, profile: Profile, ood: Sequence[str] | None = None) -> Table:
    """Arguments of `dipedl_bench.datasets.splits.make_splits`; plain values."""
    return {
        "dataset": profile.dataset,
        "ood": list(chosen_ood(suite, profile) if ood is None else ood),
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

    def method(self, name: str, where: str) -> MethodPart:
        place = f"{where}: methods.{name}"
        own, over = tuple(Method.model_fields), self.profile.methods.get(name, {})
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
        return MethodPart("method", name, place, made, config, below, spec)

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
