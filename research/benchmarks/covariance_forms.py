"""Log-density of held-out rows by form of the covariance and number of rows.

``python benchmarks/covariance_forms.py`` writes results/covariance_forms.json in a minute. Rows of
a class are drawn from training sets; no test set is opened. How the variances of a shared basis
shrink was chosen after rows of the same data had been seen (three of the five seeds).
"""

import harness
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neural_network import MLPClassifier

from dipedl.density import GDADensity
from dipedl.pretrained import ClassGaussians
from dipedl_bench import datasets

FORMS = ("full", "shared-basis", "low-rank", "tied", "diag")
ROWS, HELD, SEEDS, RANK = (20, 50, 100, 400), 3000, 5, 16
NETWORK_ROWS = 15_000


def sources() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and labels: components of images, and what a network makes of them."""
    digits, mnist = load_digits(), datasets.load_mnist(ood=())
    X, y = mnist.X_train, np.asarray(mnist.y_train)
    own, rest = slice(NETWORK_ROWS), slice(NETWORK_ROWS, 3 * NETWORK_ROWS)
    network = MLPClassifier(64, max_iter=10, random_state=0).fit(X[own], y[own])
    hidden = X[rest] @ network.coefs_[0] + network.intercepts_[0]
    return {
        "digits, 40 components": (
            PCA(40, random_state=0).fit_transform(digits.data),
            digits.target,
        ),
        "MNIST, 100 components": (PCA(100, random_state=0).fit_transform(X[rest]), y[rest]),
        "MNIST, 64 features of a network": (hidden, y[rest]),
    }


def score(form: str, X: np.ndarray, y: np.ndarray, held: np.ndarray) -> float:
    """Return the mean log-density of the held-out rows."""
    if form != "low-rank":
        return GDADensity(form).fit(X, y).score(held)
    density = ClassGaussians(form, rank=RANK, dtype=torch.float64)
    density.update(torch.from_numpy(X), torch.from_numpy(y), n_classes=int(y.max()) + 1)
    density.finish()
    return float(density(torch.from_numpy(held)).mean())


def compare(X: np.ndarray, y: np.ndarray, per_class: int) -> dict[str, list[float]]:
    """Mean over seeds of each form's numbers."""
    found: dict[str, list[float]] = {form: [] for form in FORMS}
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(X))
        rows = np.concatenate([order[y[order] == c][:per_class] for c in np.unique(y)])
        held_out = np.setdiff1d(order, rows)[:HELD]
        for form, values in found.items():
            values.append(score(form, X[rows], y[rows], X[held_out]))
    return {form: [round(float(np.mean(values)), 5)] for form, values in found.items()}


def measure() -> harness.Values:
    torch.set_num_threads(1)
    values = {}
    for name, (X, y) in sources().items():
        X, y = X.astype(np.float64), y.astype(np.int64)
        most = np.bincount(y).min() // 1.25
        for per_class in (n for n in ROWS if n <= most):
            values[f"{name}; {per_class} rows of a class"] = compare(X, y, per_class)
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
