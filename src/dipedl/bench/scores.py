"""From per-sample answers to the numbers of a row; nothing else than the arrays is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..metrics import (
    accuracy,
    adaptive_ece,
    aupr_in,
    aupr_out,
    aupr_prevalence,
    bootstrap_ci,
    brier_score,
    ece,
    fpr_at_tpr,
    nll,
    ood_auroc,
    ood_brier,
)

__all__ = ["OOD_PREFIX", "SHIFTED_PREFIX", "Scores", "score"]

OOD_PREFIX = "ood/"
#: Labelled test rows from elsewhere.
SHIFTED_PREFIX = "shifted/"

_LABELLED: dict[str, Callable[..., float]] = {
    "accuracy": accuracy,
    "brier_id": brier_score,
    "nll": nll,
    "ece": ece,
    "adaptive_ece": adaptive_ece,
}
_RANKED: dict[str, Callable[..., float]] = {
    "auroc": ood_auroc,
    "aupr": aupr_out,
    "aupr_in": aupr_in,
    "fpr95": fpr_at_tpr,
}


@dataclass(frozen=True)
class Scores:
    """Metrics of one (method, seed).

    Attributes
    ----------
    metrics : dict of str to float
        "accuracy", "brier_id", "nll", "ece", "adaptive_ece"; and for each OOD set s "auroc/s",
        "aupr/s" (OOD positive, as the paper), "aupr_in/s" (ID positive), "fpr95/s" (ID inputs
        flagged where 95 % of the OOD inputs are), "brier_ood/s".
    intervals : dict of str to (low, high)
        95 % bootstrap intervals over the test rows; they do not cover the seeds of training.
    baselines : dict of str to float
        AUPR of guessing, for the two kinds of AUPR.
    """

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    baselines: dict[str, float]


def score(
    arrays: Mapping[str, Mapping[str, np.ndarray]], n_resamples: int = 0, seed: int = 0
) -> Scores:
    """Metrics of a method from its answers on the test set and on the OOD sets.

    Parameters
    ----------
    arrays : mapping of str to mapping of str to ndarray
        Split -> name -> array, see `dipedl.bench.load_arrays`.
    n_resamples : int, default=0
        Bootstrap resamples behind each interval; 0 leaves the intervals out.
    seed : int, default=0
        Seed of the resamples.
    """
    metrics, intervals = {}, {}
    for name, metric, data in _calls(arrays):
        if n_resamples:
            ci = bootstrap_ci(metric, *data, n_resamples=n_resamples, random_state=seed)
            intervals[name] = (ci.low, ci.high)
        metrics[name] = float(metric(*data))
    return Scores(metrics, intervals, dict(_guessing(arrays)))


def _calls(
    arrays: Mapping[str, Mapping[str, np.ndarray]],
) -> Iterator[tuple[str, Callable[..., float], tuple[np.ndarray, ...]]]:
    test = arrays["test"]
    for name, metric in _LABELLED.items():
        yield name, metric, (test["y"], test["probabilities"])
    for key, ood in _ood_sets(arrays):
        for name, metric in _RANKED.items():
            yield f"{name}/{key}", metric, (test["uncertainty"], ood["uncertainty"])
        yield f"brier_ood/{key}", ood_brier, (ood["probabilities"],)


def _guessing(arrays: Mapping[str, Mapping[str, np.ndarray]]) -> Iterator[tuple[str, float]]:
    n_in = len(arrays["test"]["uncertainty"])
    for key, ood in _ood_sets(arrays):
        n_out = len(ood["uncertainty"])
        yield f"aupr/{key}", aupr_prevalence(n_in, n_out)
        yield f"aupr_in/{key}", aupr_prevalence(n_in, n_out, positive="in")


def _ood_sets(
    arrays: Mapping[str, Mapping[str, np.ndarray]],
) -> Iterator[tuple[str, Mapping[str, np.ndarray]]]:
    for split, named in arrays.items():
        if split.startswith(OOD_PREFIX):
            yield split.removeprefix(OOD_PREFIX), named
