"""Confidence and vacuity of known and OOD rows, as histograms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from ..results.parts import Parts
from ..results.store import Arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def arrays_from_parts(parts: Parts) -> Arrays:
    """Arrays as DIP-EDL's, of what `confidence` and `vacuity` read, from published parts."""
    return {
        split if split == parts.known else f"ood/{split}": {
            "probabilities": answers.mean,
            "log_evidence": answers.log_evidence,
        }
        for split, answers in parts.dirichlets().items()
    }


def confidence(runs: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Largest mean class probability by set, of all runs together: "test", then each OOD set."""
    return _pooled(runs, lambda named: np.asarray(named["probabilities"].max(axis=1)))


def vacuity(runs: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Vacuity by set, of all runs together, for methods that keep their log-evidence.

    With the prior of ones it is ``k / (k + c) = sigmoid(log k - log c)``, c the evidence.
    """
    return _pooled(runs, vacuity_of)


def vacuity_of(named: Mapping[str, np.ndarray]) -> np.ndarray:
    """Vacuity of the rows of a set, see `vacuity`."""
    if "log_evidence" not in named:
        raise LookupError(
            f"arrays must hold log_evidence for a vacuity, got {sorted(named)}; use DIP-EDL"
        )
    k = named["probabilities"].shape[1]
    return np.asarray(expit(np.log(k) - named["log_evidence"]))


def _pooled(
    runs: Iterable[Arrays], read: Callable[[Mapping[str, np.ndarray]], np.ndarray]
) -> dict[str, np.ndarray]:
    found: dict[str, list[np.ndarray]] = {}
    for arrays in runs:
        for split, named in arrays.items():
            if split == "test" or split.startswith("ood/"):
                found.setdefault(split.removeprefix("ood/"), []).append(read(named))
    order = sorted(found, key=lambda name: name != "test")
    return {name: np.concatenate(found[name]) for name in order}


def histogram(sets: Mapping[str, np.ndarray], what: str, ax: Axes | None = None) -> Axes:
    """Histogram of `confidence` or `vacuity`, one outline a set; both ends are stretched."""
    from dipedl.plots import uncertainty_histogram

    from ..tables.formatting import set_title

    titled = {set_title("" if name == "test" else name): v for name, v in sets.items()}
    ax = uncertainty_histogram(titled, log_odds=True, legend=ax is None, ax=ax)
    ax.set_xlabel(f"{what} (both ends stretched)")
    return ax
