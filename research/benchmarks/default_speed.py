"""Time that the default of DIPClassifier adds to fit and predictions of a bare classifier.

    python benchmarks/default_speed.py --rows 1000 10000 --only LR

Without arguments all is measured. What the receipt has of the same commit is kept, so the
measurement can be made in parts.

Seconds are CPU seconds of one thread: what the wall shows on an idle machine, and the same on a
busy one. "above" are ours less the bare classifier's, of calls run in turn; p50 and p99 are
percentiles of calls on one row and on 100.
"""

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import harness
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from dipedl import DIPClassifier

FEATURES, CLASSES, PREDICTED_ROWS, REPEATS = 20, 3, 2000, 7
#: Rows and repetitions of the calls whose percentiles are measured.
BATCHES, CALLS = (1, 100), 200
ROWS = (1_000, 10_000, 100_000)
CLASSIFIERS = {
    "LR": LogisticRegression(max_iter=1000),
    "RF": RandomForestClassifier(random_state=0),
    "HGB": HistGradientBoostingClassifier(random_state=0),
}


def cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def in_turn(bare: Callable[[], Any], ours: Callable[[], Any], repeats: int) -> np.ndarray:
    """CPU milliseconds of both calls, (2, repeats)."""
    calls = {"bare": bare, "ours": ours}
    seconds = harness.seconds_in_turn(calls, repeats, time.process_time)
    return 1000 * np.array(list(seconds.values()))


def medians(bare: Callable[[], Any], ours: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Median milliseconds of both calls, run in turn, and of what ours takes above."""
    times = in_turn(bare, ours, repeats)
    a, b, above = np.median([*times, times[1] - times[0]], axis=1).round(2)
    return {"bare_ms": a, "ours_ms": b, "above_ms": above}


def median_fits(bare: Callable[[], Any], ours: Callable[[], Any]) -> np.ndarray:
    """Return the median CPU seconds of both fits, run in turn as often as in ten seconds."""
    once, _ = cpu_seconds(ours)
    repeats = int(min(REPEATS, max(1, 10 / once)))
    return np.median(in_turn(bare, ours, repeats), axis=1) / 1000


def percentiles(bare: Callable[[], Any], ours: Callable[[], Any]) -> dict[str, float]:
    """Return the 50th and 99th percentile of the milliseconds of both calls, run in turn."""
    found = np.percentile(in_turn(bare, ours, CALLS), (50, 99), axis=1).round(2).ravel()
    names = ("bare_p50_ms", "ours_p50_ms", "bare_p99_ms", "ours_p99_ms")
    return dict(zip(names, found.tolist(), strict=True))


@threadpool_limits.wrap(limits=1)
def time_classifier(name: str, n: int, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """One classifier on the first n rows, in one thread; the last rows are new to it."""
    new, labels = X[-PREDICTED_ROWS:], y[-PREDICTED_ROWS:]
    bare, ours = CLASSIFIERS[name].fit(X[:n], y[:n]), DIPClassifier(CLASSIFIERS[name])
    bare_s, fit_s = median_fits(lambda: bare.fit(X[:n], y[:n]), lambda: ours.fit(X[:n], y[:n]))
    frozen = DIPClassifier(FrozenEstimator(bare))
    frozen_s, _ = cpu_seconds(lambda: frozen.fit(X[:n], y[:n], calibration=(new, labels)))
    return {
        "fit": {
            "bare_s": round(bare_s, 3),
            "ours_s": round(fit_s, 3),
            "frozen_s": round(frozen_s, 3),
        },
        "rows": medians(lambda: bare.predict_proba(new), lambda: ours.predict_proba(new), REPEATS),
        "batches": {
            str(n): percentiles(
                partial(bare.predict_proba, new[:n]), partial(ours.predict_proba, new[:n])
            )
            for n in BATCHES
        },
    }


def measure(
    rows: tuple[int, ...] = ROWS, only: tuple[str, ...] = tuple(CLASSIFIERS)
) -> harness.Values:
    X, y = make_classification(
        max(ROWS) + PREDICTED_ROWS, FEATURES, n_informative=10, n_classes=CLASSES, random_state=0
    )
    cases = itertools.product(rows, only)
    return {f"{name}, {n} rows": partial(time_classifier, name, n, X, y) for n, name in cases}


if __name__ == "__main__":
    harness.main(__file__, measure)
