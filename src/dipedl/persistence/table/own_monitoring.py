"""The drift monitor, and the counts and sums that it consists of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import (
    SHARE,
    Check,
    Sizes,
    count,
    each,
    fields,
    flag,
    floats,
    labels,
    mapping,
    maybe,
    need,
    number,
    real,
    text,
)
from ..objects import ours
from .entry import Entry

_TESTS = {"p_values", "uncertainty", "flagged"}
_ESTIMATE = maybe(ours("Estimate"))


def _counts(name: str | int = "*") -> Check:
    return floats(name, least=0)


def _ranks_fit(ranks: Any, sizes: Sizes) -> None:
    need((np.diff(ranks.cuts) >= 0).all(), "have cuts that fall")
    need(len(ranks.sizes) == len(ranks.cuts) + 1, "have other ranges than cuts")
    need((ranks.sizes > 0).all(), "have empty ranges")


def _bins_fit(bins: Any, sizes: Sizes) -> None:
    need((np.diff(bins.cuts) > 0).all(), "have cuts that do not rise")
    ranges = len(bins.levels) or len(bins.cuts) + 1
    need(len(bins.counts) >= ranges, "have counts of fewer ranges")


def _monitor_fits(monitor: Any, sizes: Sizes) -> None:
    """Counts are of the ranges of the reference and of the columns, wealth of its bettors."""
    ranges = len(monitor.reference_.sizes)
    need(len(monitor.counts_) == ranges, "have counts of other ranges")
    need(len(monitor.open_.ranks) == ranges, "have an open window of other ranges")
    need(set(monitor.wealth_) == _TESTS, "have the wealth of other tests")
    need(set(monitor.usual_) == set(monitor.gains_) == _TESTS - {"p_values"}, "have other means")
    bettors = len(monitor.wealth_["p_values"].logs) - 1
    need(bettors == monitor.reference_.bettors, "have the wealth of other bettors")
    for name, gains in monitor.gains_.items():
        need(len(gains) == len(monitor.wealth_[name].logs) - 1, "have the gains of other bettors")
    found = [len(counts) for counts in monitor.open_.columns]
    need(found == [len(bins.counts) for bins in monitor.columns_], "have counts of other columns")


ENTRIES: dict[str, Entry] = {
    "monitoring.DriftMonitor": Entry(
        {
            "model_": text,
            "classes_": labels(),
            "source_": text,
            "reference_": ours("ReferenceRanks"),
            "usual_": mapping(text, SHARE),
            "bias_": fields(real(), real(0)),
            "columns_": each(ours("ColumnBins"), kind=tuple),
            "rows_": count(),
            "batches_": count(),
            "batch_": count(least=-1),
            "counts_": _counts(),
            "gains_": mapping(text, floats("*")),
            "wealth_": mapping(text, ours("Wealth")),
            "sums_": ours("Sums"),
            "open_": ours("OpenWindow"),
            "windows_": each(ours("Window")),
        },
        parameters={
            "false_alarm_rate": SHARE,
            "window": count(least=1),
            "random_state": count(),
        },
        where=(_monitor_fits,),
    ),
    "monitoring.ReferenceRanks": Entry(
        {"cuts": floats("c"), "ties": floats("c", least=0), "sizes": floats("*"), "both": flag},
        where=(_ranks_fit,),
        bare=True,
    ),
    "monitoring.Wealth": Entry(
        {"logs": floats("*", finite=False), "steps": count(), "highest": real()}, bare=True
    ),
    "monitoring.ColumnBins": Entry(
        {"name": text, "cuts": floats("*"), "levels": each(text, kind=tuple), "counts": _counts()},
        where=(_bins_fit,),
        bare=True,
    ),
    "monitoring.Sums": Entry({"confidence": _counts(3), "labelled": _counts(4)}, bare=True),
    "monitoring.OpenWindow": Entry(
        {
            "ranks": _counts(),
            "sums": _counts(2),
            "columns": each(_counts()),
            "accuracy": ours("Sums"),
        },
        bare=True,
    ),
    "monitoring.Estimate": Entry(
        {"value": real(), "low": real(), "high": real(), "rows": count()}, bare=True
    ),
    "monitoring.Window": Entry(
        {
            "first": count(),
            "last": count(),
            "distance": SHARE,
            "p_value": SHARE,
            "differs": flag,
            "changed": each(fields(text, number()), kind=tuple),
            "uncertainty": SHARE,
            "flagged": SHARE,
            "estimated_accuracy": _ESTIMATE,
            "accuracy": _ESTIMATE,
        },
        bare=True,
    ),
}
