"""
Unknown classes, which the classifier alone overlooks
=====================================================

Boosted trees learn the digits 0 to 7. Then they meet the digits 8 and 9, for which they have no
answer. Their own doubt, the entropy of their probabilities, notices some. The density of the same
training images, together with that doubt, notices more.
"""

# %%
# Images of 8 x 8 pixels, bundled with scikit-learn; 8 and 9 are never shown. Nothing below is
# tuned.

import numpy as np
from scipy.stats import entropy
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_curve

from dipedl import DIPClassifier, datasets

data = datasets.load_digits()
known, unknown = data.X_test, data.ood["held_out"]
trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
clf = DIPClassifier(trees, random_state=0).fit(data.X_train, data.y_train)

# %%
# Two scores of each image, higher for "I do not know this". Both come from the same trees, which
# were fitted to the same rows.

images = np.concatenate([known, unknown])
is_unknown = np.arange(len(images)) >= len(known)
doubt = {
    "the trees alone, by entropy": entropy(clf.estimator_.predict_proba(images), axis=1),
    "DIPClassifier": -clf.score_samples(images),
}
curves = {name: roc_curve(is_unknown, score)[:2] for name, score in doubt.items()}

# %%
# ``predict_ood`` has to set its threshold before it sees any unknown digit. It keeps the rate of
# false alarms that was asked for, here the default of 5 %.

flagged = clf.predict_ood(images) == -1
alarms, found = flagged[~is_unknown].mean(), flagged[is_unknown].mean()
alone = doubt["the trees alone, by entropy"]
limit = np.quantile(alone[~is_unknown], 1 - alarms)  # as many false alarms for the trees alone
print(f"false alarms: {alarms:.1%} of {len(known)} known digits, for both")
print(f"flagged of {len(unknown)} unknown digits: {np.mean(alone[is_unknown] > limit):.0%} by the")
print(f"trees alone, {found:.0%} by DIPClassifier")

# %%
# Each point of a curve is one threshold; the dot is the one that ``predict_ood`` chose. At very few
# false alarms, on the far left, the density has no advantage: some known digits are stranger than
# many unknown ones. The images are those that only ``DIPClassifier`` flags.

import matplotlib.pyplot as plt

gained = images[is_unknown & flagged & (alone <= limit)]
shown = gained[np.linspace(0, len(gained) - 1, 24).astype(int)].reshape(6, 4, 8, 8)
mosaic = np.pad(shown, ((0, 0), (0, 0), (1, 1), (1, 1))).swapaxes(1, 2).reshape(60, 40)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1.9, 1), layout="constrained")
for (name, curve), color, line in zip(
    curves.items(), ("#D55E00", "#0072B2"), ("--", "-"), strict=True
):
    left.plot(*curve, line, color=color, label=name, linewidth=2)
left.plot(alarms, found, "o", color="#0072B2", markersize=8, label="predict_ood")
left.set(xlim=(0, 0.2), ylim=(0, 1.02), title="Unknown digits flagged")
left.set(xlabel="share of known digits flagged: false alarms")
left.set(ylabel="share of unknown digits flagged")
left.legend(loc="lower right")
right.imshow(mosaic, cmap="gray")
right.set(xticks=[], yticks=[], title=f"24 of {len(gained)} that only\nDIPClassifier flags")
plt.show()
