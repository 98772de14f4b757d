"""
The same "I don't know" around any classifier
=============================================

A classifier draws its boundary through places where it has seen nothing, and is sure of itself
there. ``DIPClassifier`` adds a density of the training data: without data the answer returns to
"either class". Where data are, the answer stays close to the classifier's.
"""

# %%
# Two moons of 400 points, and four classifiers that divide the plane in four different ways.
# Each is wrapped with the same density.

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from dipedl import DIPClassifier, datasets
from dipedl.density import GaussianMixtureDensity

data = datasets.load_moons(400, noise=0.2, random_state=0)
classifiers = {
    "logistic regression": LogisticRegression(),
    "15 neighbours": KNeighborsClassifier(15),
    "random forest": RandomForestClassifier(50, min_samples_leaf=5, random_state=0),
    "boosted trees": HistGradientBoostingClassifier(max_iter=15, random_state=0),
}
models = {
    name: DIPClassifier(classifier, GaussianMixtureDensity(random_state=0), random_state=0)
    for name, classifier in classifiers.items()
}
for model in models.values():
    model.fit(data.X_train, data.y_train)

# %%
# The mean confidence at new points of the moons, and at points far from both, where it should be
# near 1/2, as nothing is known there.

places = {"new points": data.X_test, "far away": data.ood["far"]}
confidence = {
    (place, name): (
        model.classifier_proba(X).max(axis=1).mean(),
        model.predict_proba(X).max(axis=1).mean(),
    )
    for place, X in places.items()
    for name, model in models.items()
}
for (place, name), (alone, ours) in confidence.items():
    print(f"{place:11} {name:20} alone {alone:.2f}, with the density {ours:.2f}")

# %%
# Above, the entropy of the classifier alone; below, that of the answer with the density. Dark is
# sure, bright is unsure.

import matplotlib.pyplot as plt
import numpy as np

from dipedl.plots import EvidenceMapDisplay

fig, axes = plt.subplots(2, 4, figsize=(9.5, 4.8), layout="constrained", sharex=True, sharey=True)
for row, kind in zip(axes, ("entropy", "total"), strict=True):
    for ax, (name, model) in zip(row, models.items(), strict=True):
        shown = {"grid": 90, "top": np.log(2), "colorbar": False, "ax": ax}
        EvidenceMapDisplay.from_estimator(model, data.X_train, data.y_train, kind=kind, **shown)
        ax.set(title=name if kind == "entropy" else "", xticks=[], yticks=[])
axes[0, 0].set_ylabel("classifier alone")
axes[1, 0].set_ylabel("with the density")
bar = fig.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.8, aspect=30)
bar.set_label("entropy of the answer, nats")
fig.suptitle("Four classifiers, alone and with the same density")
plt.show()
