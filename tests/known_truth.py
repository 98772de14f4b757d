"""Rows whose class probabilities are known: near ones to train and test on, and far ones."""

from types import SimpleNamespace

import numpy as np
from scipy.special import softmax


def known_truth(n_samples, family="gaussians", n_test=1000):
    """Three normal classes of five inputs, or two classes on the fields of a board."""
    rng = np.random.default_rng([0, 0])
    m = int(1.5 * n_samples) + 3 * n_test + 200
    if family == "gaussians":
        means = rng.normal(size=(3, 5)) * np.sqrt(2)
        c = rng.choice(3, m, p=np.full(3, 1 / 3))
        X = means[c] + rng.normal(size=(m, 5))
        P = softmax(-((X[:, None] - means) ** 2).sum(axis=2) / 2, axis=1)
    else:
        X = rng.uniform(-1.5, 1.5, (m, 2))
        p = 0.5 + 0.4 * np.tanh(3 * np.sin(np.pi * X[:, 0]) * np.sin(np.pi * X[:, 1]))
        P = np.column_stack([p, 1 - p])
    along = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=X.shape[1])
    near = np.flatnonzero(along <= np.quantile(along, 2 / 3))
    y = (rng.random((m, 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    train, test = np.split(near[: n_samples + n_test], [n_samples])
    far = np.setdiff1d(np.arange(m), near)[:n_test]
    return SimpleNamespace(
        X_train=X[train],
        y_train=y[train],
        X_test=X[test],
        y_test=y[test],
        ood={"far": X[far]},
        truth={"test": P[test]},
    )
