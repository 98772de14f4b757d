"""The drift monitor, and the counts and sums that it consists of."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks as c
from .entry import Entry

_TESTS = {"p_values", "uncertainty", "flagged"}
_COUNTS = c.floats("*", least=0)


def _ranks_fit(ranks: Any, sizes: c.Sizes) -> None:
    c.need((np.diff(ranks.cuts) >= 0).all(), "have cuts that fall")
    c.need(len(ranks.sizes) == len(ranks.cuts) + 1, "have other ranges than cuts")
    c.need((ranks.sizes > 0).all(), "have empty ranges")


def _bins_fit(bins: Any, sizes: c.Sizes) -> None:
    c.need((np.diff(bins.cuts) > 0).all(), "have cuts that do not rise")
    ranges = len(bins.levels) or len(bins.cuts) + 1
    c.need(len(bins.counts) >= ranges, "have counts of fewer ranges")


def _monitor_fits(monitor: Any, sizes: c.Sizes) -> None:
    """Counts are of the ranges of the reference and of the columns, wealth of its bettors."""
    ranges = len(monitor.reference_.sizes)
    c.need(len(monitor.counts_) == ranges, "have counts of other ranges")
    c.need(len(monitor.open_.ranks) == ranges, "have an open window of other ranges")
    c.need(set(monitor.wealth_) == _TESTS, "have the wealth of other tests")
    c.need(set(monitor.usual_) == set(monitor.gains_) == _TESTS - {"p_values"}, "have other means")
    bettors = len(monitor.wealth_["p_values"].logs) - 1
    c.need(bettors == monitor.reference_.bettors, "have the wealth of other bettors")
    for name, gains in monitor.gains_.items():
        c.need(len(gains) == len(monitor.wealth_[name].logs) - 1, "have the gains of other bettors")
    found = [len(counts) for counts in monitor.open_.columns]
    c.need(found == [len(bins.counts) for bins in monitor.columns_], "have counts of other columns")


ENTRIES: dict[str, Entry] = {
    "monitoring.DriftMonitor": Entry(
        {
            "model_ source_": c.text,
            "classes_": c.labels(),
            "reference_": c.ours("monitoring.ReferenceRanks"),
            "usual_": c.mapping(c.text, c.SHARE),
            "bias_": c.fields(c.real(), c.real(0)),
            "columns_": c.each(c.ours("monitoring.ColumnBins"), kind=tuple),
            "rows_ batches_": c.count(),
            "batch_": c.count(least=-1),
            "counts_": _COUNTS,
            "gains_": c.mapping(c.text, c.floats("*")),
            "wealth_": c.mapping(c.text, c.ours("monitoring.Wealth")),
            "sums_": c.ours("monitoring.Sums"),
            "open_": c.ours("monitoring.OpenWindow"),
            "windows_": c.each(c.ours("monitoring.Window")),
        },
        parameters={"false_alarm_rate": c.RATE, "window": c.count(least=1)}
        | {"random_state": c.count()},
        where=(_monitor_fits,),
    ),
    "monitoring.ReferenceRanks": Entry(
        {"cuts": c.floats("c"), "ties": c.floats("c", least=0)}
        | {"sizes": c.floats("*"), "both": c.flag},
        where=(_ranks_fit,),
    ),
    "monitoring.Wealth": Entry(
        {"logs": c.floats("*", finite=False), "steps": c.count(), "highest": c.real()}
    ),
    "monitoring.ColumnBins": Entry(
        {"name": c.text, "cuts": c.floats("*"), "levels": c.each(c.text, kind=tuple)}
        | {"counts": _COUNTS},
        where=(_bins_fit,),
    ),
    "monitoring.Sums": Entry(
        {"confidence": c.floats(3, least=0), "labelled": c.floats(4, least=0)}
    ),
    "monitoring.OpenWindow": Entry(
        {"ranks": _COUNTS, "sums": c.floats(2, least=0), "columns": c.each(_COUNTS)}
        | {"accuracy": c.ours("monitoring.Sums")},
    ),
    "monitoring.Estimate": Entry({"value low high": c.real(), "rows": c.count()}),
    "monitoring.Window": Entry(
        {
            "first last": c.count(),
            "distance p_value uncertainty flagged": c.SHARE,
            "differs": c.flag,
            "changed": c.each(c.fields(c.text, c.number()), kind=tuple),
            "estimated_accuracy accuracy": c.maybe(c.ours("monitoring.Estimate")),
        },
    ),
}
