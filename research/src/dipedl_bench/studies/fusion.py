"""Density and entropy fused by the classifier's own errors: a rule by known data alone, tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dipedl.metrics import ood_auroc

from .sweeps import Parts

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["WEIGHTS", "fuse_by_errors", "fusion_frame"]

#: Weights of the entropy that are tried, beside one minus it of the density.
WEIGHTS = tuple(i / 10 for i in range(11))
_SCORES = ("density", "entropy", "fused")


def fuse_by_errors(parts: Parts) -> dict[str, dict[str, float]]:
    """Return AUROC by OOD set of "density", "entropy" and "fused", and its "weight" of the entropy.

    Both scores are set to median 0 and the same lower tail on one half of the test rows, and the
    weight is the one of `WEIGHTS` whose sum ranks the classifier's errors on that half best. It is
    judged on the other half and the OOD rows; all numbers are means over both directions.
    ValueError where a half has no error.
    """
    known = parts.known
    # a density of zero is as far as a float goes
    strange = {s: np.minimum(-z, 1e6) for s, z in parts.z.items()}
    wrong = parts.proba[known].argmax(axis=1) != parts.y
    aurocs_of: dict[str, list[list[float]]] = {name: [] for name in _SCORES}
    weights = []
    for fitted_on, rows in parts.both_ways:
        entropy, density = (scale(of, of[known][fitted_on]) for of in (parts.entropy, strange))
        fused = {w: {s: w * entropy[s] + (1 - w) * density[s] for s in entropy} for w in WEIGHTS}
        right, errors = fitted_on[~wrong[fitted_on]], fitted_on[wrong[fitted_on]]
        if not (len(right) and len(errors)):
            raise ValueError(
                f"parts must hold right and wrong answers of the classifier in each half of the "
                f"test rows, got {len(errors)} wrong of {len(fitted_on)}: no weight can be fitted"
            )
        ranked = {w: ood_auroc(of[known][right], of[known][errors]) for w, of in fused.items()}
        weights.append(max(ranked, key=ranked.__getitem__))
        for name, of in zip(_SCORES, (density, entropy, fused[weights[-1]]), strict=True):
            aurocs_of[name].append([ood_auroc(of[known][rows], of[s]) for s in parts.unknown])
    means = {name: np.mean(of, axis=0) for name, of in aurocs_of.items()}
    aurocs = {n: dict(zip(parts.unknown, map(float, of), strict=True)) for n, of in means.items()}
    return {**aurocs, "weight": {"entropy": float(np.mean(weights))}}


def scale(scores: Mapping[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return scores, higher for stranger inputs, in units of the upper tail of `rows`."""
    median, tail = np.quantile(rows, (0.5, 0.99))
    return {split: (of - median) / (tail - median) for split, of in scores.items()}


def fusion_frame(runs: Sequence[Parts], titles: Mapping[str, str]) -> DataFrame:
    """Return AUROCs of the three scores as text, means over runs; `titles` are of the sets."""
    from pandas import DataFrame

    scores = [fuse_by_errors(parts) for parts in runs]
    weight = np.mean([of["weight"]["entropy"] for of in scores])
    rows = [
        {
            "score": f"fused, entropy's weight {weight:.2f}" if name == "fused" else name,
            **{
                f"AUROC, {title}": f"{np.mean([of[name][s] for of in scores]):.3f}"
                for s, title in titles.items()
            },
        }
        for name in _SCORES
    ]
    return DataFrame(rows)
