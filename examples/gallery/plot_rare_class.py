"""
A rare class: how many rows does it need?
=========================================

Of one class there are few rows. Is it recognised, how sure is the answer, and is it flagged as
unknown more often than the others? One thing moves: the number of rows of that class.
"""

# %%
# The digits of scikit-learn, 0 to 9. Of the digit 5 only some rows are learned, of the others all.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dipedl import DIPClassifier

RARE = 5
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
rare, others = np.flatnonzero(y_train == RARE), np.flatnonzero(y_train != RARE)
rare_test = X_test[y_test == RARE]


def fitted(rows: int) -> DIPClassifier:
    """A model of all other digits and of so many rows of the rare one."""
    kept = np.append(others, rare[:rows])
    clf = DIPClassifier(LogisticRegression(max_iter=1000), random_state=0)
    return clf.fit(X_train[kept], y_train[kept])


# %%
# New rows of the rare class are answered rightly, flagged as unknown, or, what one wants least,
# answered wrongly without a warning. The classifier alone has no second case.

counts = [3, 5, 10, 20, 40, 80]
models = {rows: fitted(rows) for rows in counts}
outcomes = {"right": [], "flagged as unknown": [], "wrong, not flagged": []}
alone = []
for rows, clf in models.items():
    flagged = clf.predict_ood(rare_test) == -1
    right = clf.predict(rare_test) == RARE
    outcomes["right"].append(np.mean(right & ~flagged))
    outcomes["flagged as unknown"].append(np.mean(flagged))
    outcomes["wrong, not flagged"].append(np.mean(~right & ~flagged))
    alone.append(np.mean(clf.estimator_.predict(rare_test) != RARE))
    shares = ", ".join(f"{values[-1]:.0%} {name}" for name, values in outcomes.items())
    print(f"{rows:2} rows: {shares}; the classifier alone: {alone[-1]:.0%} wrong")

# %%
# ``diagnose`` finds such a class by itself, from held-out rows of the training data. With ten rows:

print(next(f for f in models[10].diagnose().findings if f.code == "class_drives_alarms").text)

# %%
# With few rows much of the class looks unknown, and so does most of what the classifier alone gets
# wrong. More rows end that.

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
names, bottom = [str(rows) for rows in counts], np.zeros(len(counts))
for (name, values), color, hatch in zip(
    outcomes.items(), ("#0072B2", "#E69F00", "#D55E00"), ("", "//", "xx"), strict=True
):
    ax.bar(names, values, bottom=bottom, label=name, color=color, hatch=hatch, edgecolor="w")
    bottom += values
diamonds = {"color": "k", "markeredgecolor": "w", "markersize": 8}
ax.plot(names, 1 - np.array(alone), "D", label="right by the classifier alone", **diamonds)
ax.set(title=f"New rows of the rare class, the digit {RARE}", ylim=(0, 1.01))
ax.set(xlabel="rows of the rare class in the training data", ylabel="share of its new rows")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
plt.show()
