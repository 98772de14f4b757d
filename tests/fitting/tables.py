"""A table of customers with text, gaps and booleans, made by a stated rule."""

import numpy as np
import pandas as pd

JOBS = {"teacher": 0.3, "nurse": 0.2, "clerk": 0.25, "engineer": 0.25}
REGIONS = ["north", "south", "east", "west"]


def customers(n=300, seed=0):
    """The table, and a label that depends on income, age, owner and job."""
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 12, n).clip(18, 90).round()
    job = rng.choice(list(JOBS), n, p=list(JOBS.values()))
    owner = rng.random(n) < 1 / (1 + np.exp((45 - age) / 10))
    income = np.exp(rng.normal(7.8, 0.4, n) + 0.4 * (job == "engineer"))
    good = (income - 2700) / 1000 + (age - 45) / 20 + owner + rng.logistic(0, 0.4, n) > 0.5
    frame = pd.DataFrame({"age": age, "income": income, "job": job, "owner": owner})
    frame["region"] = rng.choice(REGIONS, n)
    frame.loc[rng.random(n) < 0.15, "income"] = np.nan
    return frame, np.where(good, "good", "poor")


def categories(frame):
    """The table with text as categories."""
    return frame.astype({"job": "category", "region": "category"})
