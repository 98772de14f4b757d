"""
Reliability: does 90 % sure mean right nine times in ten?
=========================================================

A random forest averages its trees and says .7 where it is nearly always right. A temperature,
learned on held-out rows, repairs that, but makes the forest surer of unknown classes as well.
``DIPClassifier`` learns the same temperature and takes confidence away where little was seen.
"""

# %%
# The digits 0 to 7 to learn. The second test has unknown digits in it, 8 and 9: whatever is said
# about them is wrong.

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from dipedl import DIPClassifier, datasets
from dipedl.metrics import ece

data = datasets.load_digits()
clf = DIPClassifier(RandomForestClassifier(random_state=0), random_state=0)
clf.fit(data.X_train, data.y_train)
unknown = data.ood["held_out"][: len(data.X_test) // 3]
tests = {
    "known digits": (data.X_test, data.y_test),
    "a quarter is unknown": (
        np.concatenate([data.X_test, unknown]),
        np.concatenate([data.y_test, np.full(len(unknown), data.n_classes)]),
    ),
}

# %%
# The calibration error (ECE) is the mean gap between confidence and accuracy. The unknown digits
# are a class of their own, to which nothing gives a probability.

answers = {
    "forest alone": clf.estimator_.predict_proba,
    "with a temperature": clf.classifier_proba,
    "DIPClassifier": clf.predict_proba,
}
proba = {
    test: {who: np.pad(answer(X), ((0, 0), (0, 1))) for who, answer in answers.items()}
    for test, (X, _) in tests.items()
}
gaps = {test: {who: ece(tests[test][1], P) for who, P in by.items()} for test, by in proba.items()}
for test, by in gaps.items():
    print(f"{test:22}", *(f"ECE of {who} {gap:.3f}" for who, gap in by.items()), sep="  ")

# %%
# On the diagonal a classifier is as often right as it says: above it is too modest, below too sure.
# On known digits alone the temperature is best. ``DIPClassifier`` pays for its caution there, and
# earns it back as soon as something unknown comes in.

import matplotlib.pyplot as plt

from dipedl.plots import ReliabilityDisplay

colors = dict(zip(answers, ("#D55E00", "#009E73", "#0072B2"), strict=True))
fig, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained", sharey=True)
for ax, (test, by) in zip(axes, proba.items(), strict=True):
    for who, P in by.items():
        label = f"{who}, ECE {gaps[test][who]:.2f}"
        ReliabilityDisplay(tests[test][1], P, name=label).plot(ax, color=colors[who])
    ax.set_title(test)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
    ax.label_outer()
plt.show()
