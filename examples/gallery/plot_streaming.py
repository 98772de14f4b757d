"""
Data in parts: the same density as from all at once
===================================================

Data come month by month, or lie on several machines. Gaussian densities are learned from sums, so
parts can be added with ``partial_fit``, and fitted densities with ``+``. The result is that of one
fit on all rows, up to rounding. No part has to be kept.
"""

# %%
# The digits of scikit-learn, and a density that has seen all training rows at once.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dipedl.density import GDADensity

X, y = load_digits(return_X_y=True)
X_train, X_new, y_train, _ = train_test_split(X / 16, y, test_size=0.3, random_state=0)
classes = np.unique(y)
at_once = GDADensity(shrinkage=0.1).fit(X_train, y_train).score_samples(X_new)

# %%
# Twelve months. All classes are named with the first part, since some may come later.

stream, rows, medians, differences = GDADensity(shrinkage=0.1), [], [], []
for month in np.array_split(np.arange(len(X_train)), 12):
    stream.partial_fit(X_train[month], y_train[month], classes=classes)
    scores = stream.score_samples(X_new)
    rows.append(month[-1] + 1)
    medians.append(np.median(scores))
    differences.append(np.abs(scores - at_once).max())
print(f"largest difference after the last month: {differences[-1]:.1e} nats")

# %%
# Three machines, each with rows that the others never see.

machines = [
    GDADensity(shrinkage=0.1).partial_fit(X_train[i::3], y_train[i::3], classes=classes)
    for i in range(3)
]
merged = machines[0] + machines[1] + machines[2]
apart = np.abs(merged.score_samples(X_new) - at_once).max()
print(f"largest difference of the three machines together: {apart:.1e} nats")

# %%
# Left: with each month new rows look more typical. Right: how far the log-density of any new row is
# from that of the fit on all rows.

import matplotlib.pyplot as plt

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(rows, medians, "o-", color="#0072B2", label="in parts")
left.axhline(np.median(at_once), color="#D55E00", linestyle="--", label="all at once")
left.set(title="Log-density of new rows", xlabel="rows so far", ylabel="median, nats")
left.legend()
right.plot(rows, differences, "o-", color="#0072B2")
right.plot(rows[-1], apart, "x", color="#D55E00", markersize=9, markeredgewidth=2)
right.annotate(
    "three machines", (rows[-1], apart), (-12, 12), textcoords="offset points", ha="right"
)
right.set(title="Difference from the fit on all rows", xlabel="rows so far", yscale="log")
right.set(ylabel="largest difference, nats")
plt.show()
