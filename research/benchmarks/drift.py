"""False alarms of `DriftMonitor` in simulated years, and how soon it notices a change.

    python benchmarks/drift.py

A year is 365 batches of 1,000 rows; the 1,900 in-distribution years, each stream with a reference
of its own, take two hours. Streams with a change run through `DriftMonitor`, ADWIN and Page-Hinkley
of river (their defaults, fed with the vacuity row by row; install river first) and a
Kolmogorov-Smirnov test of each window of 1,000 p-values at 1 %. Each part that is done is kept: run
it again to go on.
"""

import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import harness
import numpy as np
from river import drift as river_drift
from scipy import stats
from sklearn.datasets import load_digits

from dipedl import DIPClassifier, DriftMonitor
from dipedl.answers import Answers

RATE, SEED = 0.01, 0
YEAR, WINDOW, BATCH = 365_000, 1_000, 100
#: Name -> reference rows, streams, years of each.
NULLS = {
    "1,000 reference rows": (1_000, 1_000, 1),
    "200 reference rows": (200, 300, 1),
    "5,000 reference rows": (5_000, 300, 1),
    "1,000 reference rows, three years": (1_000, 100, 3),
}
CROSS_FITTED, CROSS_FITTED_ROWS = 20, 50_000
STREAMS, BEFORE, AFTER, QUIET = 10, 5_000, 10_000, 20_000
RAMP = 10_000
#: Rows that streams without a change are drawn from, with replacement, and those of a day.
DRAWN, DAY = 200_000, 1_000

Draw = Callable[[int, np.random.Generator], np.ndarray]


def null_alarms(n: int, streams: int, years: int) -> dict[str, Any]:
    """In-distribution streams with n reference rows each: how many ever raise an alarm."""
    rng = np.random.default_rng([SEED, n, years])
    clf, _, _, usual = table_streams()
    X = usual(DRAWN, rng)
    answers, alarms = clf.answers(X), []
    for _ in range(streams):
        monitor = DriftMonitor(RATE).fit(clf, X[rng.integers(DRAWN, size=n)], columns=())
        for _ in range(years * YEAR // DAY):
            report = monitor.update_answers(some(answers, rng.integers(DRAWN, size=DAY)))
        alarms.append(report.alarms)
    found = sum(map(bool, alarms))
    return {
        "streams": streams,
        "years_each": years,
        "alarms": found,
        "by_test": {name: sum(name in of for of in alarms) for name in report.evidence},
        "upper_95": upper_limit(found, streams),
    }


def upper_limit(alarms: int, streams: int) -> float:
    """One-sided 95 % limit of the probability of an alarm (Clopper and Pearson)."""
    return float(stats.beta.ppf(0.95, alarms + 1, max(streams - alarms, 1)))


CENTRES = np.random.default_rng(5).normal(size=(5, 8)) * 1.5


def table_rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 4, n)
    return CENTRES[y] + rng.normal(size=(n, 8)), y


def cross_fitted_alarms() -> dict[str, Any]:
    """Default models on tables of 1,000 rows, with their cross-fitted rows as the reference."""
    alarms = np.zeros(CROSS_FITTED, dtype=bool)
    for seed in range(CROSS_FITTED):
        rng = np.random.default_rng([SEED, 1, seed])
        clf = DIPClassifier(random_state=0).fit(*table_rows(1_000, rng))
        monitor = DriftMonitor(RATE).fit(clf)
        for _ in range(CROSS_FITTED_ROWS // 10_000):
            report = monitor.update(clf, table_rows(10_000, rng)[0])
        alarms[seed] = report.alarm
    n = int(alarms.sum())
    limit = upper_limit(n, len(alarms))
    return {"streams": len(alarms), "rows_each": CROSS_FITTED_ROWS, "alarms": n, "upper_95": limit}


def table_streams() -> tuple[DIPClassifier, np.ndarray, dict[str, Draw], Draw]:
    """Model, reference rows, streams after a change and the one before it."""

    def usual(n: int, rng: np.random.Generator) -> np.ndarray:
        return table_rows(n, rng)[0]

    def new_class(n: int, rng: np.random.Generator) -> np.ndarray:
        new = CENTRES[4] + rng.normal(size=(n, 8))
        return np.where(rng.random((n, 1)) < 0.05, new, usual(n, rng))

    def gradual(n: int, rng: np.random.Generator) -> np.ndarray:
        part = np.minimum(np.arange(n) / RAMP, 1)[:, None]
        return usual(n, rng) + part * np.eye(8)[0]

    rng = np.random.default_rng([SEED, 2])
    clf = DIPClassifier(random_state=0).fit(*table_rows(1_000, rng))
    return clf, usual(1_000, rng), {"new class": new_class, "gradual": gradual}, usual


def digit_streams() -> tuple[DIPClassifier, np.ndarray, dict[str, Draw], Draw]:
    """Digits 0 to 7 are known; rows are drawn, again and again, from those no fit has seen."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng([SEED, 3])
    known = rng.permutation(np.flatnonzero(y < 8))
    fit, pool, others = known[:700], X[known[700:]], X[y >= 8]

    def usual(n: int, rng: np.random.Generator) -> np.ndarray:
        return pool[rng.integers(0, len(pool), n)]

    def new_class(n: int, rng: np.random.Generator) -> np.ndarray:
        new = others[rng.integers(0, len(others), n)]
        return np.where(rng.random((n, 1)) < 0.05, new, usual(n, rng))

    def gradual(n: int, rng: np.random.Generator) -> np.ndarray:
        """Contrast falls to 85 %."""
        part = np.minimum(np.arange(n) / RAMP, 1)[:, None]
        return usual(n, rng) * (1 - 0.15 * part)

    clf = DIPClassifier(random_state=0).fit(X[fit], y[fit])
    return clf, usual(1_000, rng), {"new class": new_class, "gradual": gradual}, usual


def some(answers: Answers, rows: Any) -> Answers:
    return Answers(
        answers.labels[rows],
        answers.dirichlet[rows],
        answers.p_values[rows],
        answers.flagged[rows],
        answers.confidence[rows],
    )


def of_monitor(clf: DIPClassifier, reference: np.ndarray, answers: Answers) -> int | None:
    """Row of the first alarm."""
    monitor = DriftMonitor(RATE).fit(clf, reference, columns=())
    for first in range(0, len(answers.p_values), BATCH):
        if monitor.update_answers(some(answers, slice(first, first + BATCH))).alarm:
            return first + BATCH
    return None


def of_river(detector: Any, answers: Answers) -> int | None:
    for i, value in enumerate(np.asarray(answers.dirichlet.vacuity).tolist()):
        detector.update(value)
        if detector.drift_detected:
            return i + 1
    return None


def of_windows(reference: np.ndarray, answers: Answers) -> int | None:
    p = answers.p_values
    for first in range(0, len(p), WINDOW):
        if stats.ks_2samp(reference, p[first : first + WINDOW]).pvalue < RATE:
            return first + WINDOW
    return None


def first_alarms(
    clf: DIPClassifier, reference: np.ndarray, p: np.ndarray, X: np.ndarray
) -> dict[str, int | None]:
    answers = clf.answers(X)
    return {
        "DriftMonitor": of_monitor(clf, reference, answers),
        "ADWIN": of_river(river_drift.ADWIN(), answers),
        "Page-Hinkley": of_river(river_drift.PageHinkley(), answers),
        "KS per window": of_windows(p, answers),
    }


def summary(found: list[dict[str, int | None]], change: int | None) -> dict[str, Any]:
    """Count by detector the streams with an alarm before the change; median delay of the others."""
    made = {}
    for name in found[0]:
        at = np.array([np.inf if one[name] is None else one[name] for one in found])
        if change is None:
            made[name] = {"false_alarms": int(np.isfinite(at).sum()), "streams": len(at)}
            continue
        delays = at[at > change] - change
        caught = delays[np.isfinite(delays)]
        median = float(np.median(delays)) if len(delays) else np.inf
        made[name] = {
            "too_early": int((at <= change).sum()),
            "caught": len(caught),
            "streams": len(at),
            "median_delay": median if np.isfinite(median) else None,
        }
    return made


def detection(streams: Callable[[], Any], seed: int) -> Iterator[tuple[str, Any]]:
    clf, reference, changes, usual = streams()

    def replay(draw: Callable[[np.random.Generator], np.ndarray], kind: int) -> list[Any]:
        rngs = [np.random.default_rng([SEED, seed, kind, i]) for i in range(STREAMS)]
        # Each stream has a reference of its own: a false alarm is one over its draw too.
        references = [usual(len(reference), rng) for rng in rngs]
        return [
            first_alarms(clf, r, clf.p_value(r), draw(rng))
            for r, rng in zip(references, rngs, strict=True)
        ]

    yield "no change", summary(replay(lambda rng: usual(QUIET, rng), 0), None)
    for kind, (name, change) in enumerate(changes.items(), 1):
        after = replay(
            lambda rng, change=change: np.vstack([usual(BEFORE, rng), change(AFTER, rng)]), kind
        )
        yield name, summary(after, BEFORE)


def parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "no change, cross-fitted reference", cross_fitted_alarms
    for data, streams, seed in (("table", table_streams, 4), ("digits", digit_streams, 5)):
        yield data, lambda streams=streams, seed=seed: dict(detection(streams, seed))
    for name, setting in NULLS.items():
        yield f"no change, {name}", lambda setting=setting: null_alarms(*setting)


def measure() -> harness.Measured:
    config = {
        "rate": RATE,
        "seed": SEED,
        "nulls": {name: list(setting) for name, setting in NULLS.items()},
        "cross_fitted": [CROSS_FITTED, CROSS_FITTED_ROWS],
        "streams": [STREAMS, BEFORE, AFTER, QUIET, RAMP],
        "batch": BATCH,
        "window": WINDOW,
        "river": version("river"),
    }
    warnings.simplefilter("ignore", UserWarning)
    return config, dict(parts())


if __name__ == "__main__":
    harness.main(__file__, measure)
