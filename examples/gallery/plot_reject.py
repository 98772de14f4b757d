"""
Answer only where few errors are made
=====================================

Some questions are better left to a human. ``predict_with_reject`` answers the inputs that it is
sure of, as many as the error rate that you name allows. The error rate is a promise for inputs of
the known kind, which holds with probability 0.9 over the rows that it is learned from.
"""

# %%
# The digits 0 to 7, learned by naive Bayes from 300 rows, so that there are errors to avoid. The
# other training rows calibrate.

import numpy as np
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier, datasets

data = datasets.load_digits()
X, y = data.X_train, data.y_train
clf = DIPClassifier(GaussianNB(var_smoothing=1e-3), random_state=0)
clf.fit(X[:300], y[:300], calibration=(X[300:], y[300:]))

# %%
# At most 5 % of the answers may be wrong.

answer = clf.predict_with_reject(data.X_test, risk=0.05)
wrong = answer.labels != data.y_test
errors = wrong[answer.accepted].mean()
print(f"everything answered: {wrong.mean():.1%} wrong")
print(f"{answer.accepted.mean():.0%} answered: {errors:.1%} wrong")

# %%
# Nothing is promised for unknown digits (8 and 9), for which every answer is wrong. But the order
# matters: the uncertainty should put them last. ``"total"``, the default, is the entropy of the
# answer with its evidence; ``"max_prob"`` is the classifier's own confidence.

from dipedl.metrics import aurc

unknown = data.ood["held_out"][: len(data.X_test) // 3]
mixed = np.concatenate([data.X_test, unknown])
correct = np.append(~wrong, np.zeros(len(unknown), bool))
doubts = {kind: clf.uncertainty(mixed, kind) for kind in ("max_prob", "total")}
areas = {kind: aurc(correct, doubt) for kind, doubt in doubts.items()}
for kind, area in areas.items():
    print(f"error rate averaged over all coverages, by {kind}: {area:.3f}")

# %%
# Left: the promise. Steps are what ``risk=`` can guarantee, the dashed line is what was observed on
# the rows that calibrate, the dot is the answer above. Right: known and unknown digits together.

import matplotlib.pyplot as plt

from dipedl.plots import RiskCoverageDisplay, promised_risk

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
promised_risk(clf.reject_curve(), risk=0.05, label="guaranteed", ax=left)
left.lines[1].set_label("observed")
left.lines[2].set_label("asked for")
left.set(title="Known digits: what can be promised")
left.legend()
for (kind, doubt), color in zip(doubts.items(), ("#D55E00", "#0072B2"), strict=True):
    RiskCoverageDisplay(correct, doubt, name=f'"{kind}"').plot(right, color=color)
right.set(title="A quarter unknown: which to answer first")
plt.show()
