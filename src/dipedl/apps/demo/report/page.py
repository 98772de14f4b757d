"""The report page: numbers from the rows, figures from the arrays, text from the template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....writing.files import write_file
from .. import DemoResult, ModelResult, Row
from ..rows import BARE, DIP, ID, NO_MODEL
from ..summary import SET_TITLES, cautions, findings, headline, of_hundred
from .figures import alarms, histograms, legends, moons, reliability, selection
from .gallery import first_look, reasons, shelves
from .inline import templates

_HIGHER = {"accuracy": True, "brier": False, "nll": False, "ece": False}
_OOD_HIGHER = {"auroc": True, "aupr": True, "fpr95": False, "brier": False}


def write(result: DemoResult, path: str | Path) -> None:
    """Write the report, one HTML file that loads nothing.

    Parameters
    ----------
    result : DemoResult
        From `dipedl.apps.demo.run`.
    path : path-like
        Where to write; an existing file is replaced.

    Examples
    --------
    >>> from dipedl.apps import demo
    >>> from dipedl.apps.demo import report
    >>> report.write(demo.run(), "report.html")  # doctest: +SKIP
    """
    write_file(path, render(result))


def render(result: DemoResult) -> str:
    """The report as HTML text; see `write`."""
    return templates().get_template("report.html.j2").render(_values(result))


def _values(result: DemoResult) -> dict[str, Any]:
    k = result.dataset.n_classes
    counts = result.receipt
    n_ood = sum(counts.n_ood.values())
    return {
        "receipt": counts,
        "models": result.models,
        "recipes": _recipes(result),
        "featured": result.models[-1],
        "headline": headline(result),
        "cautions": cautions(result),
        "findings": findings(result),
        "of_hundred": of_hundred,
        "limits": _limits(result),
        "looks": list(first_look(result, result.models[-1])),
        "alarms": list(alarms(result)),
        "known": list(_known(result)),
        "ood": list(_ood(result)),
        "k": k,
        "always_uniform": (k - 1) / k,
        "share_ood": n_ood / (n_ood + counts.n_test),
        "legends": legends(result),
        "reliability": list(reliability(result)),
        "histograms": list(histograms(result)),
        "selection": list(selection(result)),
        "shelves": list(shelves(result, result.models[-1])),
        "explained": list(reasons(result, result.models[0])),
        "moons": list(moons(result)),
        "moon_data": result.moons,
        "provenance": result.dataset.provenance,
    }


def _recipes(result: DemoResult) -> list[tuple[str, list[ModelResult]]]:
    """Classifiers grouped by density, in order."""
    shared: dict[str, list[ModelResult]] = {}
    for model in result.models:
        shared.setdefault(model.density, []).append(model)
    return list(shared.items())


def _known(result: DemoResult) -> Iterator[list[dict[str, Any]]]:
    for model in result.models:
        rows = [
            row for row in result.rows if row.model == model.name and row.method in (DIP, BARE[0])
        ]
        marks = {name: _best([getattr(r, name) for r in rows], up) for name, up in _HIGHER.items()}
        yield [
            {
                "title": model.title,
                "of": "dipedl" if row.method == DIP else "the classifier alone",
                "cells": [(getattr(row, name), marks[name][i]) for name in _HIGHER],
                "flagged": row.flagged,
            }
            for i, row in enumerate(rows)
        ]


def _ood(result: DemoResult) -> Iterator[dict[str, Any]]:
    titles = {model.name: model.title for model in result.models}
    for name, n in result.receipt.n_ood.items():
        groups = [
            _ood_lines(title, [row for row in result.rows if row.model == key], name)
            for key, title in {**titles, NO_MODEL: "no classifier"}.items()
        ]
        title, what = SET_TITLES[name]
        prevalence = result.rows[0].ood[name].aupr_prevalence
        yield {
            "title": title,
            "what": what,
            "n": n,
            "prevalence": prevalence,
            "groups": groups,
        }


def _ood_lines(title: str, rows: Sequence[Row], name: str) -> list[dict[str, Any]]:
    scores = [row.ood[name] for row in rows]
    marks = {
        column: _best([getattr(score, column) for score in scores], up)
        for column, up in _OOD_HIGHER.items()
    }
    compared = bool(rows) and rows[0].model != NO_MODEL
    return [
        {
            "title": title,
            "method": "dipedl: vacuity" if row.method == DIP else row.method,
            "score": score,
            "best": {c: compared and mark[i] for c, mark in marks.items()},
        }
        for i, (row, score) in enumerate(zip(rows, scores, strict=True))
    ]


def _best(values: Sequence[float | None], higher: bool) -> list[bool]:
    """Which of the values are best, as printed; none if all are equal."""
    printed = [None if value is None else round(value, 3) for value in values]
    numbers = {value for value in printed if value is not None}
    if len(numbers) < 2:
        return [False] * len(values)
    top = max(numbers) if higher else min(numbers)
    return [value == top for value in printed]


def _limits(result: DemoResult) -> list[str]:
    """Limits of the conclusions, with numbers from the result."""
    counts, k = result.receipt, result.dataset.n_classes
    brier = {(row.model, row.method): row.brier or 0 for row in result.rows}
    worse = [m.title for m in result.models if brier[m.name, DIP] > brier[m.name, BARE[0]]]
    return [
        f"A small data set: {counts.n_train:,} of MNIST's 60,000 training digits. Nothing here can "
        "be compared with numbers on full MNIST, or with those of the paper.",
        "One training seed. The intervals cover the choice of test images, not the seed.",
        "Caution has a cost: the evidence may cost two hundredths of the Brier score on held-out "
        "training digits, and half of the confidence is lost where the budget ends. The paper's "
        f"scale loses it at z = log({k}/n) = {np.log(k / counts.n_train):.1f} standard deviations "
        "of the log-density, where no digit is.",
        _brier_line(worse),
        "The alarm misses what its densities do not see, such as shape where pixels are typical.",
        _alarm_line(result),
    ]


def _brier_line(worse: Sequence[str]) -> str:
    if not worse:
        return (
            "On digits the Brier score with the density is here never worse than without; the "
            "differences are small and may be reversed on other data."
        )
    return (
        f"On digits the Brier score is better without the density for: {', '.join(worse)}. Pulling "
        "predictions towards the prior costs a little where they were right or underconfident."
    )


def _alarm_line(result: DemoResult) -> str:
    rates = ", ".join(f"{m.title} {100 * m.on[ID].flagged.mean():.1f} %" for m in result.models)
    asked = f"{100 * result.receipt.false_alarm_rate:.0f} %"
    return (
        f"The alarm was set for at most {asked} false alarms; on new digits it flags:  "
        f"{rates}. With cross-fitting it errs on the safe side: the final density has seen more "
        "rows than those the threshold was taken from."
    )
