"""
Three uncertainties, one thing moved at a time
==============================================

Vacuity says how little was seen here. Epistemic uncertainty says how much more data would teach.
Aleatoric uncertainty is the overlap of the classes, which no amount of data removes. Here each is
moved by what it is about, while everything else stays as it is.
"""

# %%
# Two classes, each one cloud of points in the plane with standard deviation 1. A model is asked
# about the centre of the first class. The scale of the evidence comes from the density alone
# (``QuantileEvidence``), so that it does not move with the classes, and so does the strength of the
# Dirichlets (``spread=None``): by default it also says how wrong the probabilities are.

import numpy as np
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.density import GDADensity
from dipedl.evidence import QuantileEvidence

KINDS = ("vacuity", "epistemic", "aleatoric")
SEEDS = range(3)


def uncertainties(rows: int = 400, gap: float = 2.0, away: float = 0.0) -> np.ndarray:
    """The three kinds (3,), each as a share of its largest value, averaged over random draws."""
    found = []
    for seed in SEEDS:
        y = np.arange(rows) % 2
        centre = np.stack([(2 * y - 1) * gap / 2, 0 * y], axis=1)
        X = centre + np.random.default_rng(seed).normal(size=(rows, 2))
        scale = QuantileEvidence()
        clf = DIPClassifier(LogisticRegression(), GDADensity(), normalizer=scale, spread=None)
        answer = clf.fit(X, y).predict_dirichlet([[-gap / 2, away]])
        found.append([answer.vacuity, answer.epistemic / np.log(2), answer.aleatoric / np.log(2)])
    return np.mean(found, axis=0).ravel()


# %%
# One argument moves at a time.

moved = {
    "rows": np.geomspace(100, 10_000, 7).astype(int),
    "gap": np.linspace(6, 0, 7),
    "away": np.linspace(0, 8, 9),
}
results = {
    name: np.array([uncertainties(**{name: value}) for value in values])
    for name, values in moved.items()
}
for name, values in moved.items():
    print(f"{name:5} {values[0]:g} -> {values[-1]:g}:", end="")
    for kind, ends in zip(KINDS, results[name][[0, -1]].T, strict=True):
        print(f"   {kind} {ends[0]:.3f} -> {ends[1]:.3f}", end="")
    print()

# %%
# More rows: vacuity and epistemic uncertainty fall, the overlap stays. Classes that move together:
# the overlap grows, the rest hardly moves. An input that moves away from all data: all three end
# high, since nothing is known, not even how much the classes overlap out there.
#
# The vertical axis is logarithmic.

import matplotlib.pyplot as plt

titles = {
    "rows": ("More rows", "rows of training data"),
    "gap": ("Classes move together", "distance of the two classes"),
    "away": ("The input moves away", "distance from the data"),
}
styles = zip(KINDS, ("#0072B2", "#009E73", "#D55E00"), ("-", "--", "-."), "os^", strict=True)
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for i, (kind, color, line, marker) in enumerate(styles):
    for ax, (name, values) in zip(axes, moved.items(), strict=True):
        ax.plot(values, results[name][:, i], line, marker=marker, color=color, label=kind)
for ax, (title, xlabel) in zip(axes, titles.values(), strict=True):
    ax.set(title=title, xlabel=xlabel, yscale="log", ylim=(1e-3, 1.5))
axes[0].set(xscale="log", ylabel="share of the largest value")
axes[1].invert_xaxis()
axes[0].legend(loc="center right")
plt.show()
