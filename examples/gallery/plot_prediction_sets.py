"""
"One of these two": sets of classes that hold the true one
==========================================================

Where one label would often be wrong, a short list may still be right. ``predict_set`` gives each
input a list of classes that holds the true one as often as you ask for, on average over inputs of
the known kind. Clear inputs get one class, doubtful ones two or three.
"""

# %%
# Naive Bayes on the digits 0 to 9 of scikit-learn: right about nine times in ten. A third of the
# rows trains, a third calibrates, a third tests.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
train, calibrate, test = np.array_split(order, 3)
clf = DIPClassifier(GaussianNB(var_smoothing=1e-3), random_state=0)
clf.fit(X[train], y[train], calibration=(X[calibrate], y[calibrate]))

# %%
# The more coverage is asked for, the longer the lists. With some 600 rows to calibrate and 600 to
# test, the coverage that is found may be off by a point or two.

asked = [0.9, 0.95, 0.98, 0.99]
sets = {coverage: clf.predict_set(X[test], coverage, method="aps") for coverage in asked}
covered = {
    coverage: found[np.arange(len(test)), y[test]].mean() for coverage, found in sets.items()
}
print(f"one label: right for {np.mean(clf.predict(X[test]) == y[test]):.1%}")
for coverage, found in sets.items():
    sizes = found.sum(axis=1)
    print(
        f"asked for {coverage:.0%}: the set holds the true class for {covered[coverage]:.1%}; "
        f"{sizes.mean():.1f} classes on average"
    )

# %%
# Left: how many classes there are in a set. Right: digits with two classes in their set at 95 %.

import matplotlib.pyplot as plt

fig = plt.figure(figsize=(9, 4.2), layout="constrained")
left, right = fig.subfigures(1, 2)
ax = left.subplots()
names = [f"{coverage:.0%}\n({covered[coverage]:.1%})" for coverage in asked]
sizes = np.array([found.sum(axis=1) for found in sets.values()])
groups = {"1 class": sizes == 1, "2": sizes == 2, "3": sizes == 3, "4 or more": sizes > 3}
bottom = np.zeros(len(asked))
for (name, inside), shade in zip(groups.items(), (0.95, 0.65, 0.35, 0.1), strict=True):
    share = inside.mean(axis=1)
    ax.bar(names, share, bottom=bottom, label=name, color=plt.cm.cividis(shade))
    bottom += share
ax.set(title="Size of the sets", xlabel="coverage asked for (and found)", ylabel="share of rows")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=4)

pairs = np.flatnonzero(sets[0.95].sum(axis=1) == 2)[:12]
for ax, row in zip(right.subplots(3, 4).flat, pairs, strict=True):
    ax.imshow(X[test][row].reshape(8, 8), cmap="gray")
    ax.set_title(" or ".join(map(str, clf.classes_[sets[0.95][row]])), fontsize="medium")
    ax.set_axis_off()
right.suptitle("Two classes in the set at 95 %")
plt.show()
