"""Share of flagged rows with a planted fault whose reason names the faulty column first.

    DIPEDL_DATA=... python benchmarks/planted_faults.py

Test rows of three tables of the package ISLP on PyPI (`tabular/oj.csv`, `college.csv`, `wage.csv`)
get one fault each: a number in a unit a thousand times smaller, two numbers swapped, a level that
the fit never saw. Rows that the model does not flag have no reason and are not counted.
"""

import os
import warnings
from functools import partial
from pathlib import Path

import harness
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from dipedl import DIPClassifier

ROWS, FACTOR, ITERATIONS, LEARNED = 60, 1000, 40, 0.75
#: Target of each table, and columns that are left out.
TABLES = {
    "oj": ("Purchase", ["StoreID", "SpecialCH", "SpecialMM", "SalePriceMM", "SalePriceCH"]),
    "college": ("Private", []),
    "wage": ("health_ins", ["logwage", "wage", "region"]),
}
FAULTS = ("unit", "swap", "level")


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.read_csv(Path(os.environ["DIPEDL_DATA"]) / "tabular" / f"{name}.csv")
    target, drop = TABLES[name]
    y, table = table[target].astype(str).to_numpy(), table.drop(columns=[target, *drop])
    for column in table.select_dtypes(exclude="number"):
        table[column] = table[column].astype("category")
    return table, y


def plant(row: pd.DataFrame, fault: str, rng: np.random.Generator) -> list[str]:
    """Plant a fault in a frame of one row; return its columns, none if it cannot be planted."""
    numbers = list(row.select_dtypes("number"))
    levels = [name for name in row if name not in numbers]
    if fault == "level" and not levels:
        return []
    if fault == "level":
        changed = [str(rng.choice(levels))]
        row[changed[0]] = pd.Categorical(["never seen"])
        return changed
    changed = list(map(str, rng.choice(numbers, 1 if fault == "unit" else 2, replace=False)))
    values = row[changed].to_numpy(float)[0]
    for name, value in zip(
        changed, FACTOR * values if fault == "unit" else values[::-1], strict=True
    ):
        row[name] = value
    return changed


def one_table(name: str) -> dict[str, dict[str, int]]:
    table, y = read(name)
    rng = np.random.default_rng(0)
    order, m = rng.permutation(len(table)), int(LEARNED * len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees = HistGradientBoostingClassifier(
            max_iter=ITERATIONS, categorical_features="from_dtype", random_state=0
        )
        clf = DIPClassifier(trees, random_state=0).fit(table.iloc[order[:m]], y[order[:m]])
    found = {fault: {"flagged": 0, "named first": 0} for fault in FAULTS}
    for fault in FAULTS:
        for i in order[m : m + ROWS]:
            row = table.iloc[[i]].copy()
            changed = plant(row, fault, rng)
            answers = clf.answers(row, reasons="flagged")
            if changed and answers.flagged[0]:
                reason = str(answers.reasons[0]).rpartition(": ")[2]
                found[fault]["flagged"] += 1
                found[fault]["named first"] += reason.startswith(tuple(f"{c} " for c in changed))
    return found


def measure() -> harness.Values:
    return {name: partial(one_table, name) for name in TABLES}


if __name__ == "__main__":
    harness.main(__file__, measure)
