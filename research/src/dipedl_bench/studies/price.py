"""Price of a low OOD Brier score: the ID Brier score that is paid for it.

The *price* of an answer is how far its ID Brier score lies above that of max softmax on the same
network, relative to it. Every density-informed method can buy a lower OOD Brier score by doubting
more, so two OOD Brier scores compare at equal price alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np

from dipedl.calibration import Temperature
from dipedl.dirichlet import Dirichlet
from dipedl.evidence import CautionBudget, log_evidence
from dipedl.metrics import brier_score

from ..results.metrics import ood_brier
from ..results.paper import published_price, published_rows
from ..tables.provenance import older_rows
from ..tables.table import bench_table, keep_latest
from .sweeps import GAMMAS, Parts, Scores, brier_scores

__all__ = ["BUDGETS", "PricePoint", "budget_sweep", "price_points", "temperature_scores"]

#: Budgets of the curves; a page adds the paper's own price.
BUDGETS = (0.0, 0.02, 0.05, 0.1, 0.3)
#: The default settings of DIPClassifier; rows that differ in the budget alone are its curve.
_DEFAULT = "dip-edl-default"
Score = Literal["density", "entropy"]


class PricePoint(NamedTuple):
    """A method at one setting: its ID Brier score, and its OOD Brier scores by set.

    `kind` is "method" for a row as it is, "default" for our default at the budget `setting`,
    "density" and "entropy" for a caution budget on published predictions (see `budget_sweep`),
    "temperature" for max softmax with a temperature there, "prior" for an evidential network
    answered with the prior `setting`, "gamma" for the published recipe at the gamma `setting`, and
    "paper" and "paper gamma" for what the paper prints. `price` is None where no row of max softmax
    tells the ID Brier score of the bare network. `older` rows were made before the default changed
    its probabilities.
    """

    kind: str
    title: str
    setting: float | None
    brier_id: float
    price: float | None
    brier_ood: Mapping[str, float]
    seeds: int = 0
    older: bool = False


def budget_sweep(
    parts: Parts, budgets: Iterable[float], score: Score = "density"
) -> dict[float, Scores]:
    """Return the scores of a caution budget, as `judge_both_ways` has them, without a training.

    `score` tells typical inputs from others: the log-density, or the negative entropy of the class
    probabilities.
    """
    proba = parts.proba[parts.known]
    scores = parts.z if score == "density" else {s: -of for s, of in parts.entropy.items()}

    def answer(budget: float, rows: np.ndarray) -> dict[str, np.ndarray]:
        caution = CautionBudget(budget).fit(
            scores[parts.known][rows],
            proba=proba[rows],
            y=parts.y[rows],
            n=parts.n,
            prior=np.ones(proba.shape[1]),
        )
        evidence = {s: log_evidence(caution.transform(of), parts.n) for s, of in scores.items()}
        return {s: Dirichlet.from_evidence(e, parts.proba[s]).mean for s, e in evidence.items()}

    return {budget: judge_both_ways(parts, partial(answer, budget)) for budget in budgets}


def temperature_scores(parts: Parts) -> Scores:
    """Return the scores of max softmax with a temperature, as `judge_both_ways` has them."""

    def answer(rows: np.ndarray) -> dict[str, np.ndarray]:
        temperature = Temperature().fit(parts.proba[parts.known][rows], parts.y[rows], n=parts.n)
        return {s: temperature.transform(p) for s, p in parts.proba.items()}

    return judge_both_ways(parts, answer)


def judge_both_ways(
    parts: Parts, answer: Callable[[np.ndarray], Mapping[str, np.ndarray]]
) -> Scores:
    """Return "brier_id", "price" and "brier_ood/s" of class probabilities that test rows fit.

    `answer` is fitted on one half of the test rows and judged on the other half and on the OOD
    rows; the numbers are means over both directions. Nothing is judged on rows that it was fitted
    on.
    """
    ways = []
    for fitted_on, rows in parts.both_ways:
        proba, y = answer(fitted_on), parts.y[rows]
        paid, bare = (brier_score(y, of[parts.known][rows]) for of in (proba, parts.proba))
        price = {"brier_id": paid, "price": paid / bare - 1 if bare else np.nan}
        ways.append(price | {f"brier_ood/{s}": ood_brier(proba[s]) for s in parts.unknown})
    return {name: fmean(way[name] for way in ways) for name in ways[0]}


def price_points(
    rows: Sequence[Mapping[str, Any]], parts: Sequence[Parts], budgets: Iterable[float] = BUDGETS
) -> list[PricePoint]:
    """Return every method of a suite and a profile, its curves, and what the paper prints.

    `rows` are the published rows, `parts` the published predictions of DIP-EDL, a run each.
    """
    rows = keep_latest(rows)
    table, older, points = bench_table(rows), older_rows(rows), []
    curve = budgets_of_default(rows)
    for line in table.lines:
        if "brier_id" in line.cells:
            kind = "default" if line.name in curve else "method"
            means = {name: cell.mean for name, cell in line.cells.items()}
            setting = curve.get(line.name)
            point = _point(kind, line.title, setting, means, len(line.seeds))
            points.append(point._replace(older=line.name in older))
    points.sort(key=lambda point: (point.kind != "method", point.setting or 0.0))
    sweeps: dict[str, list[Mapping[Any, Scores]]] = {
        "temperature": [{None: temperature_scores(of)} for of in parts],
        "density": [budget_sweep(of, budgets, "density") for of in parts],
        "entropy": [budget_sweep(of, budgets, "entropy") for of in parts],
        "gamma": [{g: brier_scores(of, of.dirichlets(g)) for g in GAMMAS} for of in parts],
    }
    bare = [brier_score(of.y, of.proba[of.known]) for of in parts]
    for kind, runs in sweeps.items():
        for step in runs[0] if runs else ():
            means = {name: fmean(run[step][name] for run in runs) for name in runs[0][step]}
            if kind == "gamma":
                each = [run[step]["brier_id"] / of - 1 for run, of in zip(runs, bare, strict=True)]
                means["price"] = fmean(each)
            points.append(_point(kind, kind, step, means, len(runs)))
    return [*points, *paper_points(table.suite if table.beside_paper else "")]


def paper_points(suite: str) -> list[PricePoint]:
    """Return the paper's methods and its sweep over gamma; none of a suite that it lacks."""
    points = []
    for title, cells in published_rows(suite).items():
        means = {name: cell.mean for name, cell in cells.items()}
        if title == "DIP-EDL" and (price := published_price(suite)) is not None:
            means["price"] = price
        points.append(_point("paper", title, None, means))
    for gamma, cells in published_rows(f"gamma_{suite}").items():
        means = {name: cell.mean for name, cell in cells.items()}
        points.append(_point("paper gamma", "gamma", float(gamma), means))
    return points


def budgets_of_default(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the price of our default, and of each method that differs in `caution` or a budget."""
    others, budgets = {}, {}
    for row in rows:
        arguments = dict(row["config"].get("arguments", {}))
        normalizer, caution = (arguments.pop(name, None) for name in ("normalizer", "caution"))
        if normalizer is None or normalizer["class"] == "CautionBudget":
            others[row["method"]] = {**row["config"], "arguments": arguments}
            settings = (normalizer or {}).get("settings", {})
            budget = settings.get("budget", CautionBudget().budget)
            budgets[row["method"]] = float(budget if caution is None else caution)
    return {name: budgets[name] for name, of in others.items() if of == others.get(_DEFAULT)}


def _point(
    kind: str, title: str, setting: float | None, means: Mapping[str, float], seeds: int = 0
) -> PricePoint:
    of_ood = {n.partition("/")[2]: v for n, v in means.items() if n.startswith("brier_ood/")}
    return PricePoint(kind, title, setting, means["brier_id"], means.get("price"), of_ood, seeds)
