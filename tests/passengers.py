"""A made-up list of passengers: text, categories, numbers with gaps, an id; classes by a rule."""

import numpy as np
import pandas as pd

FIRST = ["Anna", "Karl", "Maria", "John", "Ida", "Olaf", "Ruth", "Emil"]


def passengers(n=240, seed=0):
    rng = np.random.default_rng(seed)
    deck = rng.choice([1, 2, 3], n, p=[0.25, 0.21, 0.54])
    sex = rng.choice(["male", "female"], n, p=[0.64, 0.36])
    age = np.round(rng.normal(42 - 5 * deck, 13, n).clip(0.5, 78), 1)
    fare = np.round(np.exp(rng.normal(4.6 - 0.75 * deck, 0.5, n)), 2)
    score = 2.4 * (sex == "female") - 0.8 * (deck - 1) - 0.02 * age + rng.logistic(0, 0.6, n)
    made = pd.DataFrame(
        {
            "passenger": np.arange(1, n + 1),
            "survived": np.where(score > 0, "yes", "no"),
            "deck": deck,
            "name": [f"{FIRST[i % 8]}, no. {i}" for i in range(n)],
            "sex": sex,
            "age": age,
            "fare": fare,
            "port": rng.choice(["S", "C", "Q"], n, p=[0.7, 0.21, 0.09]),
        }
    )
    made.loc[rng.random(n) < 0.2, "age"] = np.nan
    return made


def keep_model(folder):
    """Write passengers.csv, new.csv and model.dipedl, a linear model of the first."""
    from dipedl.apps.table.fit import FitRequest, fit_table
    from dipedl.apps.table.reading import open_table
    from dipedl.apps.table.table_model import save_model

    passengers().to_csv(folder / "passengers.csv", index=False)
    passengers(60, seed=1).to_csv(folder / "new.csv", index=False)
    order = FitRequest("survived", model="linear", drop=["passenger"])
    learned = fit_table(open_table(folder / "passengers.csv"), order)
    save_model(learned.model, folder / "model.dipedl")
    return folder
