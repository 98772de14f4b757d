"""False alarms among rows of new persons or sites, with and without `groups` in the fit.

    python benchmarks/new_groups.py

Persons are simulated: each shifts what is measured of a class by a habit of some size, in standard
deviations of a person's own rows. Sites are those of Covertype: a wilderness area with a kind of
soil; the columns that say so are left out. A part of the groups is fitted to, the others are new.
"""

import warnings
from collections.abc import Callable
from functools import partial

import harness
import numpy as np
from pandas import DataFrame
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier
from dipedl_bench.datasets import load_covertype

RATE, REPEATS, TREES = 0.05, 8, 50
#: Persons that are fitted to, rows of each, columns, classes; persons that are new.
PERSONS, ROWS, COLUMNS, CLASSES, NEW = 30, 40, 12, 5, 300
HABITS = (0.5, 1.0, 2.0)
#: Share of the sites that are new, rows of a fit; numbers among the columns of Covertype.
NEW_SITES, SITE_ROWS, NUMBERS = 0.3, 3_000, 10

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def persons(habit: float, seed: int) -> tuple[Rows, np.ndarray]:
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=3.0, size=(CLASSES, COLUMNS))

    def draw(n: int, rows: int) -> Rows:
        person = np.repeat(np.arange(n), rows)
        y, shift = rng.integers(CLASSES, size=len(person)), rng.normal(size=(n, CLASSES, COLUMNS))
        noise = rng.normal(size=(len(y), COLUMNS))
        return means[y] + habit * shift[person, y] + noise, y, person

    return draw(PERSONS, ROWS), draw(NEW, 10)[0]


def sites(seed: int) -> tuple[Rows, np.ndarray]:
    data, rng = load_covertype(), np.random.default_rng(seed)
    X = np.concatenate([data.X_train, data.X_test]).astype(np.float64)
    y = np.concatenate([data.y_train, data.y_test])
    site = np.unique(X[:, NUMBERS:], axis=0, return_inverse=True)[1].ravel()
    names = rng.permutation(site.max() + 1)
    new = np.isin(site, names[: int(NEW_SITES * len(names))])
    some = rng.permutation(np.flatnonzero(~new))[:SITE_ROWS]
    return (X[some, :NUMBERS], y[some], site[some]), X[new, :NUMBERS]


DATA: dict[str, Callable[[int], tuple[Rows, np.ndarray]]] = {
    **{f"persons, habit {habit:g}": partial(persons, habit) for habit in HABITS},
    "sites of Covertype": sites,
}
CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "forest": RandomForestClassifier(TREES, random_state=0),
}


def false_alarms(data: str, classifier: str) -> dict[str, float]:
    """Mean share of rows of new groups that is flagged, and its standard error."""
    found = []
    for seed in range(REPEATS):
        (X, y, groups), new = DATA[data](seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = DIPClassifier(CLASSIFIERS[classifier], false_alarm_rate=RATE, random_state=0)
            shares = {
                name: float((clf.fit(X, y, groups=of).predict_ood(new) == -1).mean())
                for name, of in (("rows", None), ("groups", groups))
            }
        print(data, classifier, shares, flush=True)
        found.append(shares | {"groups_fitted": len(np.unique(groups))})
    table = DataFrame(found)
    errors = table[["rows", "groups"]].sem().add_prefix("error of ")
    return {name: round(value, 4) for name, value in {**table.mean(), **errors}.items()}


def measure() -> harness.Values:
    return {
        f"{data}, {classifier}": partial(false_alarms, data, classifier)
        for data in DATA
        for classifier in CLASSIFIERS
    }


if __name__ == "__main__":
    harness.main(__file__, measure)
