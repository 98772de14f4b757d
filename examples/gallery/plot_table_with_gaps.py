"""
A table with text and gaps: what is strange about this row?
===========================================================

Tables go in as they come: numbers, categories, gaps. ``explain`` says for one row what the
classifier says, how much evidence there is for it, and which columns are unusual, in the units of
the table.
"""

# %%
# A made-up list of 900 passengers of a ship. Who was saved depends on class, sex and age by the
# rule below; every sixth age was not noted.

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from dipedl import DIPClassifier
from dipedl.density import GDADensity


def passengers(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """n made-up passengers, and whether each was saved."""
    rng = np.random.default_rng(seed)
    travels = rng.choice([1, 2, 3], n, p=[0.25, 0.2, 0.55])
    sex = rng.choice(["man", "woman"], n, p=[0.6, 0.4])
    age = rng.gamma(6, 5, n).round()
    fare = np.exp(rng.normal(4.6 - 0.9 * travels, 0.3)).round(1) + 5
    port = rng.choice(["Southampton", "Cherbourg", "Queenstown"], n, p=[0.7, 0.2, 0.1])
    chance = 1.5 - 0.8 * travels + 2 * (sex == "woman") - 0.02 * (age - 30)
    saved = np.where(rng.logistic(chance) > 0, "saved", "lost")
    table = pd.DataFrame({"class": travels, "sex": sex, "age": age, "fare": fare, "port": port})
    table.loc[rng.random(n) < 1 / 6, "age"] = np.nan
    return table.astype({"sex": "category", "port": "category"}), saved


X, y = passengers(900, seed=0)
trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
clf = DIPClassifier(trees, GDADensity(), random_state=0).fit(X, y)

# %%
# One passenger, and what may happen to the row on its way: the age is not known, which is nothing
# unusual here; the port is one that nobody embarked at; the fare comes in pence, the age in months.

row = X.iloc[[39]]
variants = {
    "as it is": row,
    "age not known": row.assign(age=np.nan),
    "embarked in Cork": row.assign(port=pd.Categorical(["Cork"])),
    "fare in pence": row.assign(fare=row.fare * 240),
    "age in months": row.assign(age=row.age * 12),
}
cards = {name: clf.explain(variant)[0] for name, variant in variants.items()}
print(cards["age in months"])
print()
print(*cards["embarked in Cork"].news, "was never in the training data")

# %%
# The trees answer every variant. The evidence says which answers have something behind them.

import matplotlib.pyplot as plt

names, shown = list(cards), np.arange(len(cards))
saved = list(clf.classes_).index("saved")
low, high = (
    [float(card.dirichlet.credible_interval(0.95)[end][0, saved]) for card in cards.values()]
    for end in (0, 1)
)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
left.hlines(shown, low, high, color="#0072B2", linewidth=6, alpha=0.5, label="95 % interval")
left.plot([c.mean[saved] for c in cards.values()], shown, "o", color="#0072B2", label="answer")
alone = [card.classifier_proba[saved] for card in cards.values()]
left.plot(alone, shown, "x", color="#D55E00", markeredgewidth=2, label="trees alone")
left.set(title="Was this passenger saved?", xlabel="probability of being saved", xlim=(-0.02, 1.02))
left.set_yticks(shown, names)
left.invert_yaxis()
fig.legend(loc="outside lower center", ncols=3)
right.barh(shown, [card.evidence for card in cards.values()], color="#0072B2")
for i, card in enumerate(cards.values()):
    if card.flagged:
        right.text(0.5, i, f"none: flagged, p = {card.p_value:.3f}", va="center", color="#D55E00")
right.set(title="How much evidence is there?", xlabel="evidence, in training rows")
plt.show()
