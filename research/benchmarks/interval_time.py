"""CPU time that the width of intervals adds to a fit: by default, beside spread=None.

    python benchmarks/interval_time.py

CPU seconds of one thread, medians of fits in turn. A frozen classifier is given held-out rows.
"""

import itertools
import time
import warnings
from functools import partial

import harness
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from dipedl import DIPClassifier

# Twenty epochs are few.
warnings.simplefilter("ignore", ConvergenceWarning)
FEATURES, CLASSES, HELD_OUT, REPEATS = 20, 3, 2000, 5
ROWS = (1_000, 10_000, 100_000)
CLASSIFIERS = {
    "LR": LogisticRegression(max_iter=1000),
    "RF": RandomForestClassifier(random_state=0),
    "HGB": HistGradientBoostingClassifier(random_state=0),
    "MLP": MLPClassifier(max_iter=20, random_state=0),
}


@threadpool_limits.wrap(limits=1)
def time_fit(name: str, n: int, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the seconds of a fit to n rows, and of one of the frozen classifier, both ways."""
    held = X[-HELD_OUT:], y[-HELD_OUT:]
    bare = FrozenEstimator(CLASSIFIERS[name].fit(X[:n], y[:n]))
    calls = {}
    for way, spread in (("without", None), ("with", "auto")):
        ours, frozen = (DIPClassifier(c, spread=spread) for c in (CLASSIFIERS[name], bare))
        calls[way] = partial(ours.fit, X[:n], y[:n])
        calls[f"frozen_{way}"] = partial(frozen.fit, X[:n], y[:n], calibration=held)
    start = time.process_time()
    calls["with"]()
    repeats = int(min(REPEATS, max(1, 20 / (time.process_time() - start))))
    seconds = harness.seconds_in_turn(calls, repeats, time.process_time)
    found = {f"{way}_s": round(float(np.median(s)), 3) for way, s in seconds.items()}
    above = np.median(np.subtract(seconds["with"], seconds["without"]))
    return found | {"above_s": round(float(above), 3)}


def measure(
    rows: tuple[int, ...] = ROWS, only: tuple[str, ...] = tuple(CLASSIFIERS)
) -> harness.Values:
    X, y = make_classification(
        max(ROWS) + HELD_OUT, FEATURES, n_informative=10, n_classes=CLASSES, random_state=0
    )
    cases = itertools.product(rows, only)
    return {f"{name}, {n} rows": partial(time_fit, name, n, X, y) for n, name in cases}


if __name__ == "__main__":
    harness.main(__file__, measure)
