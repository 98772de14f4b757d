"""``dipedl fit`` of data larger than memory, and ``dipedl merge``: models of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from ...classifier import DIPClassifier
from ...density import GDADensity
from ...writing.text import printable_name
from ..table.errors import UsageError, UserError, list_names
from ..table.fit import (
    FitRequest,
    FitResult,
    build_classifier,
    check_model,
    choose_prior,
    fit_with_warnings,
    held_out_scores,
    measure_speed,
    notes_of_warnings,
    title,
)
from ..table.table_model import TableModel
from .engines import Engine
from .fitting import LargeFit, ModelOfRows, fit, like

_DENSITIES: dict[str, Any] = {"default": None, "gaussians": GDADensity()}


@dataclass(frozen=True)
class OrderInParts(FitRequest):
    """Options of a fit in two passes; see ``dipedl fit --help``."""

    density: str = "default"
    key: str | None = None
    reservoir: int = 100_000
    calibration: int = 10_000
    like: TableModel | None = None


def learn_parts(data: Any, order: OrderInParts, engine: Engine, **options: Any) -> FitResult:
    """Fit the model that `order` asks for on data of any size; the order's `rows` is not read.

    `options` are partitions, work and progress of `fit`.
    """
    model = _model(order)
    columns = None if order.like is None else order.like.columns
    options |= {"drop": order.drop, "key": order.key, "types": dict(order.types)}
    options["group_column"] = order.group_column
    options |= {"reservoir": order.reservoir, "calibration": order.calibration}
    fitted, caught, seconds = fit_with_warnings(
        lambda: fit(model, data, order.target, columns=columns, engine=engine, **options)
    )
    clf = fitted.classifier
    held_out = held_out_scores(clf)
    facts = _facts(data, order, fitted, held_out)
    made = TableModel(clf, fitted.columns, order.target, facts, fitted.numbers)
    notes = [*fitted.notes, *notes_of_warnings(caught, fitted.numbers)]
    named = [
        one._replace(reason=f"{one.reason} (part {part})") if part else one
        for part, one in fitted.refused.first
    ]
    numbers = held_out | measure_speed(clf, fitted.inputs, seconds)
    refused = (named, fitted.refused.rows)
    return FitResult(made, numbers, clf.diagnose(), *refused, notes, failed=fitted.troubles)


def merge(a: TableModel, b: TableModel) -> TableModel:
    """The model that has seen the rows of both; UserError with the reason if there is none."""
    if a.target != b.target:
        raise UserError(f"they predict different columns, {a.target!r} and {b.target!r}")
    classes = dict(Counter(a.facts["classes"]) + Counter(b.facts["classes"]))
    first = copy(a.classifier)
    first.prior = choose_prior(a.facts["prior"], classes)
    try:
        both = first + b.classifier
    except ValueError as error:
        raise UserError(str(error)) from error
    facts = a.facts | {
        "file": f"{a.facts['file']} and {b.facts['file']}",
        "rows": a.facts["rows"] + b.facts["rows"],
        "learned": int(both.evidence_.n_),
        "classes": classes,
        "held_out": held_out_scores(both),
    }
    return replace(a, classifier=both, facts=facts)


def _model(order: OrderInParts) -> DIPClassifier | ModelOfRows:
    check_model(order.model, order.prior)
    if order.density not in _DENSITIES:
        raise UsageError(
            f"`density` must be one of {list_names(_DENSITIES)}, got {order.density!r}"
        )
    if order.like is not None:
        if order.target != order.like.target:
            raise UsageError(
                f"`target` {order.target!r} with `like`: that model predicts "
                f"{order.like.target!r}, and only models of one target can be merged; leave "
                "`target` out"
            )
        return like(order.like.classifier)

    def build(X: Any, rows: Mapping[str, int]) -> DIPClassifier:
        return build_classifier(order, X, rows, _DENSITIES[order.density])

    return build


def _facts(
    data: Any, order: OrderInParts, fitted: LargeFit, held_out: dict[str, float]
) -> dict[str, Any]:
    name = data if isinstance(data, str) else "rows in memory"
    own = {
        "file": printable_name(name.rstrip("/").rpartition("/")[2]),
        "format": "in parts",
        "rows": fitted.rows,
        "learned": fitted.learned,
        "classifier_rows": min(fitted.drawn, fitted.learned),
        "classes": fitted.classes,
        "held_out": held_out,
        "seed": order.seed,
        "dropped": list(order.drop),
        "held_out_how": "by what they hold" if order.group_column is None else "by groups",
        "group_column": order.group_column,
    }
    if order.like is not None:
        known = order.like.facts
        return known | own | {"classifier_rows": known.get("classifier_rows", known["learned"])}
    rest: dict[str, Any] = {"time_column": None, "gaps": [], "images": None, "images_sha256": ""}
    named = "the default density" if order.density == "default" else f"the density {order.density}"
    rest |= {"model": order.model, "model_title": title(order.model), "density": named}
    return own | rest | {"prior": order.prior}
