"""A table with text, categories and gaps, as it comes: whom not to trust, and why.

Offline, in seconds. The table is made up: applications for a loan, with a label that depends on
income, age, job and the house by a stated rule. What comes in later is partly of another kind.
"""

import numpy as np
import pandas as pd
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from dipedl import DIPClassifier

JOBS = {"teacher": 0.2, "nurse": 0.2, "clerk": 0.25, "engineer": 0.2, "retired": 0.15}
REGIONS = ["north", "south", "east", "west"]


def applications(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """n applications, and whether the loan was repaid; every eighth income was not told."""
    rng = np.random.default_rng(seed)
    job = rng.choice(list(JOBS), n, p=list(JOBS.values()))
    age = np.where(job == "retired", rng.normal(70, 6, n), rng.normal(42, 10, n)).clip(18, 90)
    income = np.exp(rng.normal(7.8, 0.35, n) + 0.3 * (job == "engineer") - 0.2 * (job == "retired"))
    house = rng.random(n) < 1 / (1 + np.exp((48 - age) / 8))
    merit = (income - 2500) / 900 + (age - 45) / 30 + house + (job == "nurse")
    table = pd.DataFrame({"age": age.round(), "income": income.round(-1), "job": job})
    table = table.assign(region=rng.choice(REGIONS, n), house=house, loans=rng.poisson(1.2, n))
    table.loc[rng.random(n) < 0.125, "income"] = np.nan
    repaid = np.where(merit + rng.logistic(0, 0.5, n) > 0.5, "repaid", "default")
    return as_categories(table), repaid


def as_categories(table: pd.DataFrame) -> pd.DataFrame:
    """The same with the dtype that boosted trees take natively."""
    return table.astype({"job": "category", "region": "category"})


def arrivals() -> dict[str, pd.DataFrame]:
    """Later applications: like those that were learned, and of five other kinds."""
    new, _ = applications(500, seed=1)
    retired = new[new.job == "retired"]
    return {
        "like the known ones": new,
        "a job nobody had": as_categories(new.assign(job="beekeeper")),
        "income in another currency": new.assign(income=new.income.fillna(2500) * 20),
        "age in months": new.assign(age=new.age * 12),
        "age left empty": new.assign(age=np.nan),
        "retired in their thirties": retired.assign(age=retired.age - 35),
    }


def main() -> None:
    """Fit, compare with the classifier alone, explain one application."""
    X, y = applications(1500, seed=0)
    trees = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    clf = DIPClassifier(trees, random_state=0).fit(X, y)
    alone = clone(trees).fit(X, y)

    found = arrivals()
    known = found["like the known ones"]
    rate = np.mean(clf.predict_ood(known) == -1)
    limit = np.quantile(entropy(alone.predict_proba(known), axis=1), 1 - rate)
    print(f"{'flagged at the same rate of false alarms':42}{'trees alone':>12}{'dipedl':>9}")
    for kind, rows in found.items():
        by_entropy = np.mean(entropy(alone.predict_proba(rows), axis=1) > limit)
        print(f"{kind:42}{by_entropy:>12.0%}{np.mean(clf.predict_ood(rows) == -1):>9.0%}")

    print("\nWhat the density sees:")
    print(next(f.text for f in clf.diagnose().findings if f.code == "density_features"))
    print("\nWhy one of them was flagged:")
    print(clf.explain(found["a job nobody had"].iloc[:1].assign(age=504.0), top=3)[0])


if __name__ == "__main__":
    main()
