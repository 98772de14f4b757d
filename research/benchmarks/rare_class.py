"""How often prediction sets hold a class of 6 % of the rows, by all rows and by class.

    DIPEDL_DATA=... python benchmarks/rare_class.py

`tabular/caravan.csv` holds the 5,822 customers of the CoIL challenge 2000, of whom 348 bought a
caravan insurance, as the package ISLP on PyPI has them.
"""

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier

TREES, COVERAGE, SEEDS = 200, 0.9, (0, 1)


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(TREES, random_state=0)


def logistic() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def sets_of(classifier: Callable[[], Any], seed: int) -> dict[str, float]:
    """Sets of a third of the rows, by a model of the others: how many hold the true class."""
    table = pd.read_csv(Path(os.environ["DIPEDL_DATA"]) / "tabular" / "caravan.csv")
    y, X = table.pop("Purchase").to_numpy(), table.to_numpy(float)
    X, new, y, truth = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier(classifier(), random_state=0).fit(X, y)
        found: dict[str, float] = {"rare": int((truth == "Yes").sum()), "rows": len(truth)}
        for name, by_class in (("all rows", False), ("by class", True)):
            sets = clf.predict_set(new, COVERAGE, by_class=by_class)
            holds = sets[np.arange(len(truth)), np.searchsorted(clf.classes_, truth)]
            found |= {
                f"{name}: rare ones held": int(holds[truth == "Yes"].sum()),
                f"{name}: coverage": round(float(holds.mean()), 4),
                f"{name}: classes in a set": round(float(sets.sum(axis=1).mean()), 4),
            }
    return found


def measure() -> harness.Values:
    return {
        f"{classifier.__name__}, split {seed}": partial(sets_of, classifier, seed)
        for classifier in (forest, logistic)
        for seed in SEEDS
    }


if __name__ == "__main__":
    harness.main(__file__, measure)
