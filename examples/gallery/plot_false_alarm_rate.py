"""
The promise of 5 % false alarms, checked on 300 repetitions
===========================================================

``predict_ood`` promises that at most 5 % of known inputs are flagged. With rows that are set aside
for calibration this is exact on average, and theory says how far a single calibration may be off.
Here both are checked by repeating everything.
"""

# %%
# The breast cancer table of scikit-learn, 569 rows. Each repetition splits it anew: 200 rows train,
# 199 calibrate, 170 are new.

import numpy as np
from scipy.stats import betabinom
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier
from dipedl.density import GDADensity

ALPHA, REPEATS, N_CALIBRATE = 0.05, 300, 199
X, y = load_breast_cancer(return_X_y=True)
clf = DIPClassifier(GaussianNB(), GDADensity(), false_alarm_rate=ALPHA)


def alarms(seed: int) -> int:
    """Number of false alarms among the new rows of one split."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, calibrate, new = np.split(order, [200, 200 + N_CALIBRATE])
    clf.fit(X[train], y[train], calibration=(X[calibrate], y[calibrate]))
    return int(np.sum(clf.predict_ood(X[new]) == -1))


n_new = len(X) - 200 - N_CALIBRATE
counts = np.array([alarms(seed) for seed in range(REPEATS)])
print(f"asked for {ALPHA:.1%}; mean of {REPEATS} repetitions {counts.mean() / n_new:.2%}")

# %%
# The threshold is the 10th lowest of 199 held-out scores. If new rows come in the same way, the
# number of alarms among 170 new rows has a beta-binomial distribution with the parameters 10 and
# 190, whatever the density and the data.

k = int(ALPHA * (N_CALIBRATE + 1))
law = betabinom(n_new, k, N_CALIBRATE + 1 - k)
print(f"standard deviation {counts.std() / n_new:.2%}; theory says {law.std() / n_new:.2%}")

# %%
# More rows to calibrate with make the distribution narrower, down to the binomial one.

import matplotlib.pyplot as plt

most = counts.max() + 3
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
edges = np.arange(most + 1) - 0.5
ax.hist(counts, edges, density=True, color="#56B4E9", label=f"{REPEATS} repetitions")
ax.plot(np.arange(most), law.pmf(np.arange(most)), "o-", color="#D55E00", label="theory")
ax.axvline(ALPHA * n_new, color="0.5", linestyle=":", label=f"{ALPHA:.0%} of {n_new}")
ax.set(
    title="False alarms among 170 new rows", xlabel="number of false alarms", ylabel="probability"
)
ax.legend()
plt.show()
