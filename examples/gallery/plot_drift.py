"""
Drift: the p-values fall before the errors come
===============================================

A model meets data that change slowly. Whether its answers are still right is not known: the labels
of today come next month, if at all. The p-values need no labels. Over data like those of the
training they are uniform, so that a batch whose mean is far below 1/2 is a sign of drift.
"""

# %%
# A stream of digits of scikit-learn: 60 batches of 60 test images. After batch 20 the camera slowly
# loses contrast and gains noise, a little more with each batch.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from dipedl import DIPClassifier
from dipedl.density import GDADensity

BATCHES, SIZE, START = 60, 60, 20
rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = X / 16 + rng.normal(scale=0.05, size=X.shape)  # no camera is without noise
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
forest = RandomForestClassifier(random_state=0)
clf = DIPClassifier(forest, GDADensity(), random_state=0).fit(X_train, y_train)

means, errors = np.empty(BATCHES), np.empty(BATCHES)
for batch in range(BATCHES):
    wear = max(0, batch - START) / (BATCHES - START)
    rows = rng.choice(len(X_test), SIZE, replace=False)
    seen = (1 - 0.5 * wear) * X_test[rows] + 0.25 * wear * rng.normal(size=(SIZE, 64))
    means[batch] = clf.p_value(seen).mean()
    errors[batch] = np.mean(clf.estimator_.predict(seen) != y_test[rows])

# %%
# The mean of 60 uniform numbers has a standard deviation of ``1 / sqrt(12 * 60)``. Three of these
# below 1/2 raise the alarm. With labels one would see the errors rise: three standard deviations
# above the error rate of the first 20 batches.

limit = 0.5 - 3 / np.sqrt(12 * SIZE)
usual = errors[:START].mean()
most = usual + 3 * np.sqrt(usual * (1 - usual) / SIZE)
alarm, noticed = np.argmax(means < limit), np.argmax(errors > most)
print(f"alarm of the p-values in batch {alarm}; errors of the forest rise in batch {noticed}")
print(f"false alarms before batch {START}: {np.sum(means[:START] < limit)}")

# %%
# In the batches between the two lines the answers are still right, and there is time to act.

import matplotlib.pyplot as plt

fig, (above, below) = plt.subplots(2, 1, figsize=(8, 4.8), layout="constrained", sharex=True)
above.plot(means, "o-", color="#0072B2", markersize=3.5)
above.axhline(limit, color="0.5", linestyle=":")
above.text(0, limit - 0.02, "alarm below", va="top", color="0.5")
above.set(
    title="No labels needed: mean p-value of each batch", ylabel="mean p-value", ylim=(0, 0.7)
)
below.plot(errors, "s-", color="#D55E00", markersize=3.5)
below.axhline(most, color="0.5", linestyle=":")
below.text(0, most + 0.02, "more than chance above", color="0.5")
below.set(title="Needs labels: error rate of each batch", ylabel="error rate", xlabel="batch")
for ax in (above, below):
    ax.axvspan(START, BATCHES - 1, color="0.5", alpha=0.15, linewidth=0)
    ax.axvline(alarm, color="#0072B2", linestyle="--", label=f"p-values alarm: batch {alarm}")
    ax.axvline(noticed, color="#D55E00", linestyle="--", label=f"errors rise: batch {noticed}")
below.legend(loc="upper left")
above.text(BATCHES - 1, 0.64, "the camera wears out ", ha="right", color="0.5")
plt.show()
