"""Error of `rehearse_unknown`: its share for a class against that of fresh rows of the class.

    python benchmarks/unknown_classes.py

Each data set is parted in two halves, stratified by class. The estimate is that of one half. It is
compared with what a model does that was fitted without the class, when fresh rows of the class
come: a model of the same half, and one of the other half, both asked about the class's rows of the
other half.
"""

import warnings
from functools import partial

import harness
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from dipedl import DIPClassifier
from dipedl_bench.datasets import load_covertype, load_segment

TREES, RATE, SEED = 100, 0.05, 0
#: Rows of both halves, at most.
ROWS = 4_000


def digits() -> Bunch:
    X, y = load_digits(return_X_y=True)
    return Bunch(X=X, y=y.astype(str))


def of_suite(data) -> Bunch:
    """All rows of a data set with a class left out, which is a class again here."""
    ((name, unknown),) = data.ood.items()
    X = np.concatenate([data.X_train, data.X_test, unknown]).astype(np.float64)
    names = np.array(data.target_names)[np.concatenate([data.y_train, data.y_test])]
    return Bunch(X=X, y=np.concatenate([names, np.full(len(unknown), name)]))


SETS = {
    "digits": digits,
    "covertype": lambda: of_suite(load_covertype()),
    "segment": lambda: of_suite(load_segment()),
}


def model() -> DIPClassifier:
    forest = RandomForestClassifier(TREES, random_state=SEED)
    return DIPClassifier(forest, false_alarm_rate=RATE, random_state=SEED)


def halves(data: Bunch) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(len(data.y))
    if len(rows) > ROWS:
        rows, _ = train_test_split(rows, train_size=ROWS, stratify=data.y, random_state=SEED)
    return train_test_split(rows, test_size=0.5, stratify=data.y[rows], random_state=SEED)


def compare(name: str) -> dict[str, dict[str, float]]:
    """Shares flagged of each class: as estimated, and of fresh rows by models of both halves."""
    data = SETS[name]()
    own, other = halves(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model().rehearse_unknown(data.X[own], data.y[own])
        shares = {}
        for c, label in enumerate(found.classes):
            fresh = data.X[other[data.y[other] == label]]
            shares[label] = {
                "rows": int(found.rows[c]),
                "fresh rows": len(fresh),
                **{
                    key: round(float((fit(data, rows, label).predict_ood(fresh) == -1).mean()), 4)
                    for key, rows in (("same half", own), ("other half", other))
                },
                **dict(zip(found.methods, found.shares[c].round(4).tolist(), strict=True)),
            }
            print(name, label, shares[label], flush=True)
    return shares


def fit(data: Bunch, rows: np.ndarray, label: str) -> DIPClassifier:
    known = rows[data.y[rows] != label]
    return model().fit(data.X[known], data.y[known])


def measure() -> harness.Values:
    return {name: partial(compare, name) for name in SETS}


if __name__ == "__main__":
    harness.main(__file__, measure)
