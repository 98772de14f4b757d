"""What a file holds of a `DIPModule` beside its settings and its network: arrays by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Check, Sizes, either, floats, ints, logs, need, positive
from .entry import Entry

_NONE = floats(0)
_DISTANCES: dict[str, Check] = {
    "whiteners": floats("*"),
    "whitened_means": floats("*"),
    "whitener": floats("d", "d"),
    "tied_means": floats("k", "d"),
    "precision": positive("k", "d"),
    "diagonal_means": floats("k", "d"),
    "basis": floats("k", "r", "d"),
    "projected_means": floats("k", "r"),
    "inner": positive("k", "r"),
    "outer": positive("k"),
    "low_rank_means": floats("k", "d"),
    "between": floats("k", "k"),
}
_NUMBERS = ("location", "log_odds", "log_full", "offset", "sharp_from", "sharp_in_full")


def _rows_fit(state: Any, sizes: Sizes) -> None:
    """Kept rows have scores; log-densities, logits and labels as many, or none."""
    rows = {name.removeprefix("kept/"): v for name, v in vars(state).items() if "kept/" in name}
    scores, source = rows.pop("scores"), rows.pop("source")
    need(not (np.isnan(scores) | (scores == np.inf)).any(), "have scores that are NaN or infinite")
    lengths = {len(array) for array in rows.values()}
    need(lengths <= {0, len(scores)}, "have parts of other rows")
    need(len(rows["labels"]) == len(rows["logits"]), "have labels of other rows")
    need(source.ndim == 0 or not len(scores), "have rows without a source")


def _knots_rise(state: Any, sizes: Sizes) -> None:
    for name in ("fusion/knots", "fusion/values"):
        table = vars(state).get(name)
        if table is not None:
            need(table.shape[1] > 1 and (np.diff(table) >= 0).all(), "have knots that fall")


MODULE = Entry(
    {
        "density_/origin": floats("d"),
        "density_/log_constant": floats("k"),
        "density_/log_weights": logs("k"),
        "density_/counts": ints("k", least=1),
        "head/prior": positive("k"),
        "head/temperature": positive(),
        "head/scale": positive(),
        **{f"head/{name}": floats() for name in _NUMBERS},
        "source/layer": ints(least=-1),
        "kept/scores": floats("*", finite=False),
        "kept/log_density": floats("*", finite=False),
        "kept/logits": either(floats("*", "k"), _NONE),
        "kept/labels": either(ints("*", least=0, below="k"), _NONE),
        "kept/source": either(ints(least=0, below=4), _NONE),
    },
    {f"density_/distance.{name}": check for name, check in _DISTANCES.items()}
    | {"fusion/scales": positive(2)}
    | {f"fusion/{name}": floats(2, "t") for name in ("knots", "values")},
    where=(_rows_fit, _knots_rise),
    bare=True,
)
