"""Arrays of a `DIPModule` by name, beside its settings and its network."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks as c
from .entry import Entry

_NONE = c.floats(0)
_DISTANCES: dict[str, c.Check] = {
    "whiteners whitened_means": c.floats("*"),
    "whitener": c.floats("d", "d"),
    "tied_means diagonal_means low_rank_means": c.floats("k", "d"),
    "precision": c.positive("k", "d"),
    "basis": c.floats("k", "r", "d"),
    "projected_means": c.floats("k", "r"),
    "inner": c.positive("k", "r"),
    "outer": c.positive("k"),
    "between": c.floats("k", "k"),
}
_NUMBERS = ("location", "log_odds", "log_full", "offset", "sharp_from", "sharp_in_full")


def _rows_fit(state: Any, sizes: c.Sizes) -> None:
    """Held-out rows have scores; log-densities, logits and labels as many, or none."""
    rows = {
        name.removeprefix("held_out/"): v for name, v in vars(state).items() if "held_out/" in name
    }
    scores, source, _ = rows.pop("scores"), rows.pop("source"), rows.pop("memorised", None)
    lengths = {len(array) for array in rows.values()}
    c.need(lengths <= {0, len(scores)}, "have parts of other rows")
    c.need(len(rows["labels"]) == len(rows["logits"]), "have labels of other rows")
    c.need(source.ndim == 0 or not len(scores), "have rows without a source")


def _knots_rise(state: Any, sizes: c.Sizes) -> None:
    for name in ("fusion/knots", "fusion/values"):
        table = vars(state).get(name)
        if table is not None:
            c.need(table.shape[1] > 1 and (np.diff(table) >= 0).all(), "have knots that fall")


def _strength_counts(state: Any, sizes: c.Sizes) -> None:
    numbers = vars(state).get("head/strength.numbers")
    positive = numbers is None or ((numbers[:1] > 0).any() and (np.delete(numbers, 1) >= 0).all())
    c.need(positive, "have a strength that is not positive, or a negative share")


MODULE = Entry(
    {
        "density_/origin": c.floats("d"),
        "density_/log_constant": c.floats("k"),
        "density_/log_weights": c.logs("k"),
        "density_/counts": c.ints("k", least=1),
        "head/prior": c.positive("k"),
        "head/temperature head/scale": c.positive(),
        " ".join(f"head/{name}" for name in _NUMBERS): c.floats(),
        "source/layer": c.ints(least=-1),
        "held_out/scores": c.scores("*"),
        "held_out/log_density": c.floats("*", finite=False),
        "held_out/logits": c.either(c.floats("*", "k"), _NONE),
        "held_out/labels": c.either(c.ints("*", least=0, below="k"), _NONE),
        "held_out/source": c.either(c.ints(least=0, below=4), _NONE),
    },
    {f"density_/distance.{n}": check for ns, check in _DISTANCES.items() for n in ns.split()}
    | {"head/strength.numbers": c.floats("*")}
    | {"held_out/memorised": c.either(c.ints(least=0, below=2), _NONE)}
    | {"fusion/scales": c.positive(2), "fusion/knots fusion/values": c.floats(2, "t")},
    where=(_rows_fit, _knots_rise, _strength_counts),
)
