"""
The promise of 5 % false alarms, checked 3,000 times
====================================================

``predict_ood`` promises that at most 5 % of known inputs are flagged. With rows that are set aside
for calibration this is exact on average, and theory says how far a single calibration may be off.
Here both are checked.
"""

# %%
# The breast cancer table of scikit-learn, 569 rows. 30 models are fitted, each on 200 rows drawn at
# random. For each model the other rows are split 100 times: 199 calibrate, 170 are new.

import numpy as np
from scipy.stats import betabinom
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier
from dipedl.decisions import conformal_p_values
from dipedl.density import GDADensity

ALPHA, N_TRAIN, N_CALIBRATE = 0.05, 200, 199
X, y = load_breast_cancer(return_X_y=True)
n_new = len(X) - N_TRAIN - N_CALIBRATE
rng = np.random.default_rng(0)

counts = []
for _ in range(30):
    train, others = np.split(rng.permutation(len(X)), [N_TRAIN])
    clf = DIPClassifier(GaussianNB(), GDADensity()).fit(X[train], y[train])
    scores = clf.score_samples(X[others])
    for _ in range(100):
        held_out, new = np.split(rng.permutation(scores), [N_CALIBRATE])
        counts.append(np.sum(conformal_p_values(new, held_out) <= ALPHA))
counts = np.array(counts)
print(f"asked for {ALPHA:.0%} false alarms; on average {counts.mean() / n_new:.2%}")

# %%
# An alarm is a score below the 10th lowest of 199 held-out ones. The number of alarms among 170 new
# rows then has a beta-binomial distribution with the parameters 10 and 190, whatever the density
# and the data.

k = int(ALPHA * (N_CALIBRATE + 1))
law = betabinom(n_new, k, N_CALIBRATE + 1 - k)
print(f"standard deviation {counts.std() / n_new:.2%}; theory says {law.std() / n_new:.2%}")

# %%
# How far off may a single calibration with 199 rows be? More rows make the distribution narrower.

low, high = law.ppf([0.05, 0.95]) / n_new
print(f"nine calibrations in ten give {low:.1%} to {high:.1%} false alarms")

# %%
# Bars are what was counted, dots what theory says.

import matplotlib.pyplot as plt

number = np.arange(counts.max() + 2)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
share = np.bincount(counts, minlength=len(number)) / len(counts)
ax.bar(number, share, width=0.9, color="#56B4E9", label=f"{len(counts):,} calibrations")
ax.plot(number, law.pmf(number), "o-", color="#D55E00", label="theory")
ax.axvline(ALPHA * n_new, color="0.5", linestyle=":", label=f"{ALPHA:.0%} of {n_new}")
ax.set(title=f"False alarms among {n_new} new rows")
ax.set(xlabel="number of false alarms", ylabel="probability")
ax.legend()
plt.show()
