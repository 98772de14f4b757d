"""
Which density? Six of them on five kinds of strange images
==========================================================

No density is best against everything. This is why ``DIPClassifier`` compares several on the
training data, and by default joins those that see different things. None of the strange images
below is used for that.
"""

# %%
# Logistic regression on the digits 0 to 7 of scikit-learn, each time with another density.

import numpy as np
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier, datasets
from dipedl.density import (
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    RelativeDensity,
)
from dipedl.metrics import ood_auroc

data = datasets.load_digits()
densities = {
    "one Gaussian": GaussianDensity(),
    "a Gaussian per class": GDADensity(),
    "relative Gaussians": RelativeDensity(),
    "mixture of Gaussians": GaussianMixtureDensity(random_state=0),
    "kernel density": KernelDensity(),
    "neighbours": KNNDensity(),
    "the default": None,
}

# %%
# Strange images: digits that are no part of the training, and test digits that were changed.

rng = np.random.default_rng(0)
images = data.X_test.reshape(-1, *data.image_shape)
strange = {
    "unknown: 8 and 9": data.ood["held_out"],
    "upside down": images[:, ::-1],
    "turned by 90°": np.rot90(images, axes=(1, 2)),
    "faded by half": images * 0.5,
    "mixed in pairs": (images + images[rng.permutation(len(images))]) / 2,
}
classifier = LogisticRegression(max_iter=1000)
areas = {}
for name, density in densities.items():
    clf = DIPClassifier(classifier, density, random_state=0).fit(data.X_train, data.y_train)
    known = clf.uncertainty(data.X_test, "log_density")
    areas[name] = [
        ood_auroc(known, clf.uncertainty(X.reshape(len(X), -1), "log_density"))
        for X in strange.values()
    ]

# %%
# The AUROC: how often a strange image scores lower than a known one. 0.5 is a coin toss.

worst = {name: min(values) for name, values in areas.items()}
for name, values in areas.items():
    print(f"{name:22}", *(f"{value:.2f}" for value in values), f"  worst {worst[name]:.2f}")

# %%
# Each column is one kind of strange image. Dark cells are what a density misses.

import matplotlib.pyplot as plt

table = np.array(list(areas.values()))
fig, ax = plt.subplots(figsize=(8.5, 4.6), layout="constrained")
image = ax.imshow(table, cmap="cividis", vmin=0.4, vmax=1, aspect="auto")
for (i, j), value in np.ndenumerate(table):
    ax.text(j, i, f"{value:.2f}", ha="center", va="center", color="w" if value < 0.8 else "k")
ax.set_xticks(range(len(strange)), [name.replace(": ", ":\n") for name in strange])
ax.set_yticks(range(len(areas)), areas)
ax.axhline(len(areas) - 1.5, color="w", linewidth=3)
ax.set(title="How well each density tells strange images from known ones", xlabel="strange images")
ax.set_ylabel("density")
fig.colorbar(image, label="AUROC")
plt.show()
