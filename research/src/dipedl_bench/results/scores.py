"""From per-sample predictions to the numbers of a row; nothing else than the arrays is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest

from dipedl.metrics import (
    accuracy,
    augrc,
    aupr_out,
    aurc,
    balanced_accuracy,
    brier_score,
    ece,
    fpr_at_tpr,
    nll,
    ood_auroc,
    risk_coverage_curve,
)

from .known_truth import known_truth_calls
from .metrics import WITH_OOD, adaptive_ece, aupr_in, caught_at_5, ood_brier

OOD_PREFIX = "ood/"
#: Labelled test rows from elsewhere.
SHIFTED_PREFIX = "shifted/"

_LABELLED: dict[str, Callable[..., float]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "brier_id": brier_score,
    "nll": nll,
    "ece": ece,
    "adaptive_ece": adaptive_ece,
}
#: Of a set from elsewhere, beside its shares.
_SHIFTED = ("brier_id", "nll", "ece")
#: Metrics of an OOD set by the uncertainty.
RANKED: dict[str, Any] = {
    "auroc": ood_auroc,
    "caught_5": caught_at_5,
    "aupr": aupr_out,
    "aupr_in": aupr_in,
    "fpr95": fpr_at_tpr,
}
#: Of the test set by its errors and the uncertainty.
_RISKS: dict[str, Callable[..., float]] = {"aurc": aurc, "augrc": augrc}
#: Metrics that came after the first rows were published, by the name before any ``/``.
LATER = (*_RISKS, "caught_5")
Named = Mapping[str, np.ndarray]
Call = tuple[str, Callable[..., float], tuple[np.ndarray, ...]]


def score(
    arrays: Mapping[str, Named], n_resamples: int = 0, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Metrics of a method from its predictions on the test set, the OOD sets and the shifted sets.

    `arrays` are as of `Store.arrays_of`; shifted sets, ``shifted/<name>``, hold "y",
    "probabilities" and "uncertainty" as the test set does. Where class probabilities are known, see
    `dipedl_bench.results.known_truth`. `n_resamples` bootstrap resamples are
    behind each interval; 0 leaves the intervals out.

    Returns
    -------
    dict
        "metrics" and "intervals" by name, and "baselines", the AUPR of guessing for both AUPRs.
        "errors_avoided_10" is the share of the errors among the 10 % of rows with the largest
        uncertainty (1 where there are none), "error_auroc" the AUROC of spotting the errors by the
        uncertainty. For an OOD set s "aupr/s" has OOD positive, as the paper, "aupr_in/s" ID, and
        "fpr95/s" is the share of ID inputs flagged where 95 % of the OOD inputs are, "caught_5/s"
        that of OOD inputs where 5 % of the ID inputs are; "aurc/s" and "augrc/s" are of test set
        and s together, where every OOD input is an error. Intervals are 95 % bootstrap intervals
        over the rows of the sets; they do not cover the seeds of training. Those of recall, and of
        accuracy and balanced accuracy on rows from elsewhere, are Wilson's: wide where there are
        few rows, also where all of them are right.
    """
    metrics, intervals = {}, {}
    for name, metric, data in _calls(arrays):
        metrics[name] = float(metric(*data))
        if n_resamples and metric in _EXACT:
            intervals[name] = list(_EXACT[metric](*data))
        elif n_resamples:
            intervals[name] = bootstrap_interval(metric, data, n_resamples, seed)
    baselines = {
        f"{name}/{key}": metric.baseline(arrays["test"]["uncertainty"], ood["uncertainty"])
        for key, ood in _sets(arrays, OOD_PREFIX)
        for name, metric in RANKED.items()
        if metric.baseline
    }
    return {"metrics": metrics, "intervals": intervals, "baselines": baselines}


def later_metrics(arrays: Mapping[str, Named]) -> dict[str, float]:
    """Return those metrics of `score` that older rows lack: "aurc", "augrc" and "caught_5"."""
    calls = (call for call in _calls(arrays) if call[0].partition("/")[0] in LATER)
    return {name: float(metric(*data)) for name, metric, data in calls}


def powers(arrays: Mapping[str, Named]) -> dict[str, float]:
    """Return "caught_5" of every OOD set, for which uncertainties, or their ranks, will do."""
    known = arrays["test"]["uncertainty"]
    return {
        f"caught_5/{key}": caught_at_5(known, ood["uncertainty"])
        for key, ood in _sets(arrays, OOD_PREFIX)
    }


def bootstrap_interval(
    metric: Callable[..., float], data: tuple[np.ndarray, ...], n_resamples: int, seed: int
) -> list[float]:
    """Return the ends of the 95 % percentile interval of a metric over resamples of the rows.

    The two samples of an OOD metric are drawn separately; all other arrays describe the same rows.
    The ends are values of resamples, rounded outwards, so that an infinite one gives no NaN.
    Efron, Tibshirani, *An Introduction to the Bootstrap*, 1993, sections 13.3 and 8.3.
    """
    rng = np.random.default_rng(seed)
    separate = getattr(metric.func if isinstance(metric, partial) else metric, "kind", "") == "ood"

    def resample() -> list[np.ndarray]:
        if separate:
            return [array[rng.integers(len(array), size=len(array))] for array in data]
        rows = rng.integers(len(data[0]), size=len(data[0]))
        return [array[rows] for array in data]

    values = np.sort([metric(*resample()) for _ in range(n_resamples)])
    beyond = int(round(0.025 * (n_resamples - 1), 9))
    return [float(values[beyond]), float(values[-1 - beyond])]


def errors_avoided(right: np.ndarray, uncertainty: np.ndarray, rejected: float = 0.1) -> float:
    """Return the share of all errors among the most uncertain share `rejected` of the rows.

    The last row counts in part; 1 where there is no error to avoid.
    """
    if right.all():
        return 1.0
    curve = risk_coverage_curve(right, uncertainty)
    errors = np.r_[0.0, curve.coverage * curve.risk]
    answered = np.interp(1 - rejected, np.r_[0.0, curve.coverage], errors)
    return float(1 - answered / errors[-1])


def _calls(arrays: Mapping[str, Named]) -> Iterator[Call]:
    test = arrays["test"]
    for name, metric in _LABELLED.items():
        yield name, metric, (test["y"], test["probabilities"])
    yield from _by_class(test)
    right = _right(test)
    for name, metric in _RISKS.items():
        yield name, metric, (right, test["uncertainty"])
    if right.any() and not right.all():
        yield "error_auroc", ood_auroc, (test["uncertainty"][right], test["uncertainty"][~right])
    for key, ood in _sets(arrays, OOD_PREFIX):
        for name, metric in RANKED.items():
            yield f"{name}/{key}", metric, (test["uncertainty"], ood["uncertainty"])
        yield f"brier_ood/{key}", ood_brier, (ood["probabilities"],)
        for name, metric in WITH_OOD.items():
            known = np.column_stack([right, test["uncertainty"]])
            yield f"{name}/{key}", metric, (known, ood["uncertainty"])
    yield from known_truth_calls(arrays, OOD_PREFIX)
    for key, shifted in _sets(arrays, SHIFTED_PREFIX):
        yield f"accuracy/{key}", _share, (_right(shifted),)
        yield f"balanced_accuracy/{key}", _mean_share, (shifted["y"], _right(shifted))
        for name in _SHIFTED:
            pair = (shifted["y"], shifted["probabilities"])
            yield f"{name}/{key}", _LABELLED[name], pair
        for name, metric, data in _by_class(shifted):
            yield f"{name}/{key}", metric, data


def _by_class(named: Named) -> Iterator[Call]:
    right = _right(named)
    for i in range(named["probabilities"].shape[1]):
        of_class = right[named["y"] == i]
        if len(of_class):
            yield f"recall_{i}", _share, (of_class,)
    yield "errors_avoided_10", errors_avoided, (right, named["uncertainty"])


def _right(named: Named) -> np.ndarray:
    return np.asarray(named["probabilities"].argmax(axis=1) == named["y"])


def _share(right: np.ndarray) -> float:
    return float(right.mean())


def _mean_share(y: np.ndarray, right: np.ndarray) -> float:
    return float(np.mean([right[y == k].mean() for k in np.unique(y)]))


def _wilson(right: np.ndarray) -> tuple[float, float]:
    """Of a share. A bootstrap of rows that are all right has no width, however few they are."""
    low, high = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    return float(low), float(high)


def _wilson_of_mean(y: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Of a mean of shares: distances to the ends add as the root of their squares (Newcombe)."""
    of_class = [right[y == k] for k in np.unique(y)]
    shares = np.array([hits.mean() for hits in of_class])
    low, high = np.array([_wilson(hits) for hits in of_class]).T
    below, above = (np.linalg.norm(gap) / len(shares) for gap in (shares - low, high - shares))
    return float(shares.mean() - below), float(shares.mean() + above)


#: Intervals that need no resamples.
_EXACT: dict[Callable[..., float], Callable[..., tuple[float, float]]] = {
    _share: _wilson,
    _mean_share: _wilson_of_mean,
}


def _sets(arrays: Mapping[str, Named], prefix: str) -> Iterator[tuple[str, Named]]:
    for split, named in arrays.items():
        if split.startswith(prefix):
            yield split.removeprefix(prefix), named
