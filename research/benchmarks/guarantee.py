"""Search for flagged inputs that are answered with more confidence than the bare classifier's.

    python benchmarks/guarantee.py

Every classifier here with every density, and a network in a `DIPModule` with both of its scores:
inputs near, between and far from the data; inputs on both sides of the alarm threshold, found by
bisection; and inputs that a search moves towards a violation. A violation is a flagged input whose
largest probability is above the bare classifier's, or whose entropy is below; before the evidence
takes confidence away, or after.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import harness
import numpy as np
import torch
from scipy.special import entr
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from dipedl import DIPClassifier
from dipedl.density import GDADensity, KNNDensity, RelativeDensity
from dipedl.pretrained import DIPModule

#: Inputs for each model: drawn, at the threshold, and in all steps of a search.
RANDOM, AT_THRESHOLD, SEARCHED, STEPS = 46_000, 2_000, 4_000, 20
CHUNK, SEED = 2_000, 7
#: Rounding of float64, and of a network in float32.
ROUNDING, SINGLE = 1e-12, 1e-6
CLASSIFIERS = {
    "forest": RandomForestClassifier(20, min_samples_leaf=8, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=8, learning_rate=0.03, random_state=0),
    "logistic": LogisticRegression(C=1e-3, max_iter=500),
    "bayes": GaussianNB(var_smoothing=0.3),
    "neighbours": KNeighborsClassifier(40),
}
DENSITIES = {
    "default": None,
    "gaussians": GDADensity(),
    "neighbours": KNNDensity(),
    "relative": RelativeDensity(),
}


class Answers(NamedTuple):
    """Of n inputs: whether they are flagged (n,), and by how much they are surer (n,)."""

    flagged: np.ndarray
    surplus: np.ndarray


Ask = Callable[[np.ndarray], Answers]


def surplus(bare: np.ndarray, *answers: np.ndarray) -> np.ndarray:
    """Largest probability above the bare one, or entropy below it: the larger of both, (n,)."""
    found = [P.max(axis=1) - bare.max(axis=1) for P in answers]
    found += [entr(bare).sum(axis=1) - entr(P).sum(axis=1) for P in answers]
    return np.max(found, axis=0)


def of_classifier(clf: DIPClassifier) -> Ask:
    def ask(X: np.ndarray) -> Answers:
        # One pass gives the probabilities that the evidence weighs, and the scores.
        P, scores = clf.proba_and_scores(X)
        mean = np.asarray(clf.dirichlet_of(P, scores).mean)
        return Answers(scores < clf.offset_, surplus(clf.estimator_.predict_proba(X), P, mean))

    return ask


def of_module(module: DIPModule, network: torch.nn.Module) -> Ask:
    def ask(X: np.ndarray) -> Answers:
        rows = torch.from_numpy(X).float()
        with torch.no_grad():
            bare = torch.softmax(network(rows).double(), dim=1).numpy()
            P = module(rows).mean.double().numpy()
        return Answers((module.predict_ood(rows) == -1).numpy(), surplus(bare, P))

    return ask


def wild(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs near, between, far, on the axes, at the ends of the range."""
    row = X[rng.integers(0, len(X), n)]
    spread = X.std(axis=0) + 1e-3
    scale = 10.0 ** rng.uniform(-2, 6, (n, 1))
    moved = row + rng.normal(size=row.shape) * spread * np.where(rng.random((n, 1)) < 0.5, 1, scale)
    one = rng.integers(0, X.shape[1], n)
    axis = row.copy()
    axis[np.arange(n), one] += rng.choice([-1, 1], n) * scale[:, 0]
    mixed = (row + X[rng.integers(0, len(X), n)]) / 2
    kind = rng.integers(0, 4, (n, 1))
    return np.choose(kind, [row, moved, axis, mixed])


def at_threshold(ask: Ask, X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Both sides of the alarm threshold, on lines from rows that pass to inputs that do not."""
    inside, outside = X[~ask(X).flagged], wild(X, 4 * n, rng)
    outside = outside[ask(outside).flagged][: n // 2]
    inside = inside[rng.integers(0, len(inside), len(outside))]
    for _ in range(40):
        middle = (inside + outside) / 2
        flagged = ask(middle).flagged[:, None]
        inside, outside = np.where(flagged, inside, middle), np.where(flagged, middle, outside)
    return np.vstack([inside, outside])


def search(
    ask: Ask, X: np.ndarray, n: int, steps: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Flagged inputs that are moved, step by step, to where they are surer."""
    best = at_threshold(ask, X, 2 * n, rng)
    found = ask(best)
    best, height = best[found.flagged], found.surplus[found.flagged]
    spread = X.std(axis=0) + 1e-3
    for _ in range(steps):
        size = 10.0 ** rng.uniform(-4, 0.5, (len(best), 1))
        tried = best + rng.normal(size=best.shape) * spread * size
        yield tried
        found = ask(tried)
        better = found.flagged & (found.surplus > height)
        best, height = (
            np.where(better[:, None], tried, best),
            np.where(better, found.surplus, height),
        )


def counts(ask: Ask, X: np.ndarray, rounding: float) -> np.ndarray:
    """Of inputs X (n, d): how many there are, are flagged, and break the guarantee, (3,)."""
    found = ask(X)
    surer = found.flagged & (found.surplus > rounding)
    return np.array([len(X), found.flagged.sum(), surer.sum()])


def tally(ask: Ask, X: np.ndarray, rounding: float, rng: np.random.Generator) -> np.ndarray:
    """Add up the counts of one model, fitted on rows X (n, d), over all inputs, (3,)."""
    parts = [wild(X, CHUNK, rng) for _ in range(RANDOM // CHUNK)]
    parts += [
        at_threshold(ask, X, AT_THRESHOLD, rng),
        *search(ask, X, SEARCHED // STEPS, STEPS, rng),
    ]
    return np.sum([counts(ask, part, rounding) for part in parts], axis=0)


def rows() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[y < 8][:600], y[y < 8][:600]


def timid_network(X: np.ndarray, y: np.ndarray) -> torch.nn.Module:
    rule = LogisticRegression(C=1e-3, max_iter=500).fit(X, y)
    network = torch.nn.Linear(X.shape[1], 8)
    network.weight.data = torch.tensor(rule.coef_).float()
    network.bias.data = torch.tensor(rule.intercept_).float()
    return network.eval()


def models(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Ask, float]]:
    """Every combination: its name, how it is asked, and its rounding."""
    for density, model in DENSITIES.items():
        for name, classifier in CLASSIFIERS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = DIPClassifier(classifier, model, random_state=0).fit(X, y)
            yield f"{name}, {density}", of_classifier(clf), ROUNDING
    network = timid_network(X, y)
    data = [(torch.from_numpy(X).float(), torch.from_numpy(y))]
    for score in ("fused", "density"):
        module = DIPModule(network, score=score).fit_density(data)
        yield f"module, {score}", of_module(module, network), SINGLE


def measure() -> harness.Values:
    (X, y), found = rows(), {}
    for name, ask, rounding in models(X, y):
        found[name] = tally(ask, X, rounding, np.random.default_rng(SEED))
        print(name, found[name], flush=True)
    found["all"] = np.sum(list(found.values()), axis=0)
    names = ("inputs", "flagged", "violations")
    return {model: dict(zip(names, of.tolist(), strict=True)) for model, of in found.items()}


if __name__ == "__main__":
    harness.main(__file__, measure)
