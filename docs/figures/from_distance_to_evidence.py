"""Along a line away from the data: evidence falls, and the answer returns to the prior."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.density import GDADensity


def main():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) + 4.0 * y[:, None] * [1, 0]
    clf = DIPClassifier(LogisticRegression(), GDADensity(), random_state=0).fit(X, y)
    x = np.linspace(-8, 20, 400)
    line = np.stack([x, np.zeros_like(x)], axis=1)
    posterior = clf.predict_dirichlet(line)
    _, axes = plt.subplots(2, 1, figsize=(8, 5.2), sharex=True, layout="constrained")
    axes[0].hist([X[y == 0, 0], X[y == 1, 0]], bins=50, stacked=True, color=["#3b7dd8", "#e07b39"])
    axes[0].set(ylabel="training rows", title="two classes; evidence where data was seen")
    evidence = axes[0].twinx()
    evidence.plot(x, np.exp(posterior.log_evidence), color="#222222", lw=1.5)
    evidence.set_ylabel("evidence")
    axes[1].plot(x, posterior.mean[:, 1], color="#222222", label="probability of the second class")
    axes[1].plot(x, posterior.vacuity, color="#3b7dd8", label="vacuity")
    axes[1].plot(x, posterior.aleatoric / np.log(2), color="#e07b39", label="aleatoric / log 2")
    axes[1].plot(x, posterior.epistemic / np.log(2), color="#2a9d6f", label="epistemic / log 2")
    axes[1].set(xlabel="first input; the second is 0", ylim=(-0.03, 1.03))
    axes[1].legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=2)


main()
