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
from pandas import DataFrame
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
#: Streams, and rows of each.
CROSS_FITTED = (20, 50_000)
#: How many; rows before a change, after it, without one; and until it is whole.
STREAMS = (10, 5_000, 10_000, 20_000, 10_000)
RIVER = version("river")
#: Rows that streams without a change are drawn from, with replacement, and those of a day.
DRAWN, DAY = 200_000, 1_000

Draw = Callable[[int, np.random.Generator], np.ndarray]


def null_alarms(n: int, streams: int, years: int) -> dict[str, Any]:
    """In-distribution streams with n reference rows each: how many ever raise an alarm."""
    rng = np.random.default_rng([SEED, n, years])
    clf, _, _, usual = table_streams()
    X = usual(DRAWN, rng)
    answers, alarms = clf.answers(X), 0
    for _ in range(streams):
        monitor = DriftMonitor(RATE).fit(clf, X[rng.integers(DRAWN, size=n)], columns=())
        for _ in range(years * YEAR // DAY):
            report = monitor.update_answers(answers[rng.integers(DRAWN, size=DAY)])
        alarms += bool(report.alarms)
    limit = upper_limit(alarms, streams)
    return {"streams": streams, "years_each": years, "alarms": alarms, "upper_95": limit}


def upper_limit(alarms: int, streams: int) -> float:
    """One-sided 95 % limit of the probability of an alarm (Clopper and Pearson)."""
    return float(stats.beta.ppf(0.95, alarms + 1, max(streams - alarms, 1)))


_CENTRES = np.random.default_rng(5).normal(size=(5, 8)) * 1.5


def table_rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 4, n)
    return _CENTRES[y] + rng.normal(size=(n, 8)), y


def cross_fitted_alarms() -> dict[str, Any]:
    """Default models on tables of 1,000 rows, with their cross-fitted rows as the reference."""
    streams, rows = CROSS_FITTED
    alarms = 0
    for seed in range(streams):
        rng = np.random.default_rng([SEED, 1, seed])
        clf = DIPClassifier(random_state=0).fit(*table_rows(1_000, rng))
        monitor = DriftMonitor(RATE).fit(clf)
        for _ in range(rows // 10_000):
            report = monitor.update(clf, table_rows(10_000, rng)[0])
        alarms += report.alarm
    limit = upper_limit(alarms, streams)
    return {"streams": streams, "rows_each": rows, "alarms": alarms, "upper_95": limit}


def table_streams() -> tuple[DIPClassifier, np.ndarray, dict[str, Draw], Draw]:
    """Return a model, reference rows, streams after a change and the one before it."""

    def usual(n: int, rng: np.random.Generator) -> np.ndarray:
        return table_rows(n, rng)[0]

    rng = np.random.default_rng([SEED, 2])
    clf = DIPClassifier(random_state=0).fit(*table_rows(1_000, rng))
    return (
        clf,
        usual(1_000, rng),
        changes(
            usual,
            new=lambda n, rng: _CENTRES[4] + rng.normal(size=(n, 8)),
            moved=lambda X, part: X + part * np.eye(8)[0],
        ),
        usual,
    )


def digit_streams() -> tuple[DIPClassifier, np.ndarray, dict[str, Draw], Draw]:
    """Digits 0 to 7 are known; rows are drawn, again and again, from those no fit has seen."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng([SEED, 3])
    known = rng.permutation(np.flatnonzero(y < 8))
    fit, pool, others = known[:700], X[known[700:]], X[y >= 8]

    def usual(n: int, rng: np.random.Generator) -> np.ndarray:
        return pool[rng.integers(0, len(pool), n)]

    clf = DIPClassifier(random_state=0).fit(X[fit], y[fit])
    return (
        clf,
        usual(1_000, rng),
        changes(
            usual,
            new=lambda n, rng: others[rng.integers(0, len(others), n)],
            moved=lambda X, part: X * (1 - 0.15 * part),  # contrast falls to 85 %
        ),
        usual,
    )


def changes(usual: Draw, new: Draw, moved: Callable[..., np.ndarray]) -> dict[str, Draw]:
    """Return streams in which a new class makes up 5 % of the rows, or rows move step by step."""

    def new_class(n: int, rng: np.random.Generator) -> np.ndarray:
        unknown = new(n, rng)
        return np.where(rng.random((n, 1)) < 0.05, unknown, usual(n, rng))

    def gradual(n: int, rng: np.random.Generator) -> np.ndarray:
        return moved(usual(n, rng), np.minimum(np.arange(n) / STREAMS[4], 1)[:, None])

    return {"new class": new_class, "gradual": gradual}


def of_monitor(clf: DIPClassifier, reference: np.ndarray, answers: Answers) -> int | None:
    """Row of the first alarm."""
    monitor = DriftMonitor(RATE).fit(clf, reference, columns=())
    for first in range(0, len(answers.p_values), BATCH):
        if monitor.update_answers(answers[first : first + BATCH]).alarm:
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


def summary(found: list[dict[str, int | None]], change: int | None) -> dict[str, Any]:
    """Count by detector the streams with an alarm before the change; median delay of the others."""
    made = {}
    for name, at in DataFrame(found, dtype=float).items():
        if change is None:
            made[name] = {"false_alarms": int(at.notna().sum()), "streams": len(at)}
            continue
        delays = at.fillna(np.inf)[~(at <= change)] - change
        median = delays.median()
        made[name] = {
            "too_early": int((at <= change).sum()),
            "caught": int(np.isfinite(delays).sum()),
            "streams": len(at),
            "median_delay": median if np.isfinite(median) else None,
        }
    return made


def detection(streams: Callable[[], Any], seed: int) -> Iterator[tuple[str, Any]]:
    clf, reference, changes, usual = streams()

    def replay(draw: Callable[[np.random.Generator], np.ndarray], kind: int) -> list[Any]:
        rngs = [np.random.default_rng([SEED, seed, kind, i]) for i in range(STREAMS[0])]
        # Each stream has a reference of its own: a false alarm is one over its draw too.
        references = [usual(len(reference), rng) for rng in rngs]
        found = []
        for r, rng in zip(references, rngs, strict=True):
            answers = clf.answers(draw(rng))
            found.append(
                {
                    "DriftMonitor": of_monitor(clf, r, answers),
                    "ADWIN": of_river(river_drift.ADWIN(), answers),
                    "Page-Hinkley": of_river(river_drift.PageHinkley(), answers),
                    "KS per window": of_windows(clf.p_value(r), answers),
                }
            )
        return found

    yield "no change", summary(replay(lambda rng: usual(STREAMS[3], rng), 0), None)
    for kind, (name, change) in enumerate(changes.items(), 1):
        after = replay(
            lambda rng, change=change: np.vstack([usual(STREAMS[1], rng), change(STREAMS[2], rng)]),
            kind,
        )
        yield name, summary(after, STREAMS[1])


def parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "no change, cross-fitted reference", cross_fitted_alarms
    for data, streams, seed in (("table", table_streams, 4), ("digits", digit_streams, 5)):
        yield data, lambda streams=streams, seed=seed: dict(detection(streams, seed))
    for name, setting in NULLS.items():
        yield f"no change, {name}", lambda setting=setting: null_alarms(*setting)


def measure() -> harness.Values:
    warnings.simplefilter("ignore", UserWarning)
    return dict(parts())


if __name__ == "__main__":
    harness.main(__file__, measure)
