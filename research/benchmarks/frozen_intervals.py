"""Intervals of a frozen network where the truth is known: `Rehearsal` beside its last layer.

``python benchmarks/frozen_intervals.py`` writes results/frozen_intervals.json in some minutes. On
problems of the profile "design" of the suite "second-order" a network is fitted on half of the
rows; every method is given it frozen, and the other half.
"""

import time
import warnings
from collections.abc import Iterator

import numpy as np
import receipt
import torch
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier
from dipedl.calibration import Rehearsal, Temperature
from dipedl_bench import load_suite
from dipedl_bench.datasets.splits import make_splits
from dipedl_bench.results.known_truth import distances, known_truth_calls, of_samples
from dipedl_bench.spec.plan import plan

SUITE, PROFILE, SEED = "second-order", "design", 0
PROBLEMS = (
    "gaussians-3-200",
    "moons-flip-500",
    "digits-logistic-800",
    "logistic-2-1000",
    "additive-3-1000",
    "logistic-10-2000",
    "rare-gaussians-2000",
    "checker-2000",
)
BOOTSTRAPS, DRAWS = 20, 50
#: Precisions of the prior of the last layer's weights; the one with the best held-out likelihood.
PRECISIONS = (0.01, 0.1, 1.0, 10.0, 100.0)
METRICS = (
    "coverage_50",
    "coverage_80",
    "coverage_95",
    "width_95",
    "interval_score_95",
    "error_correlation",
)
THIRDS = ("coverage_95_densest", "coverage_95_middle", "coverage_95_sparsest")
FAR = ("coverage_95/far", "interval_score_95/far")


class LastLayer:
    """Penultimate features (n, p) and logits (n, k) of a network's inputs, by name; labels too."""

    def __init__(self, network, inputs, labels):
        layers = [m for m in network.module_.modules() if isinstance(m, torch.nn.Linear)]
        self.layer, self.network, self.labels = layers[-1], network, labels
        self.features, self.logits = {}, {}
        for name, X in inputs.items():
            self.features[name], self.logits[name] = self._seen(X)
        held = softmax(self.logits["held"], axis=1)
        temperature = Temperature(confidence=0.0).fit(held, labels["held"])
        self.proba = {n: temperature.transform(softmax(v, axis=1)) for n, v in self.logits.items()}

    def _seen(self, X):
        seen = []
        hook = self.layer.register_forward_hook(lambda _, given, made: seen.append((*given, made)))
        self.network.predict_proba(X)
        hook.remove()
        return tuple(torch.cat(part).detach().double().numpy() for part in zip(*seen, strict=True))

    def bootstraps(self, rng):
        """Probabilities (m, n, k) of logistic regressions on resampled held-out rows."""
        Z, y, k = self.features["held"], self.labels["held"], self.logits["held"].shape[1]
        samples = {name: np.full((BOOTSTRAPS, len(v), k), 1e-9) for name, v in self.proba.items()}
        for i in range(BOOTSTRAPS):
            rows = rng.integers(len(y), size=len(y))
            head = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
            head.fit(Z[rows], y[rows])
            for name, features in self.features.items():
                samples[name][i][:, head.classes_] = head.predict_proba(features)
        return samples

    def laplace(self, rng):
        """Probabilities (m, n, k) of weights from the Gaussian about the last layer's."""
        A, P = self._with_one("train"), softmax(self.logits["train"], axis=1)
        curvature = sum(
            np.kron(np.diag(p) - np.outer(p, p), np.outer(a, a)) for a, p in zip(A, P, strict=True)
        )
        values, basis = np.linalg.eigh(curvature)
        noise = rng.standard_normal((len(values), DRAWS))

        def drawn(name, precision):
            W = (basis / np.sqrt(np.maximum(values, 0) + precision)) @ noise
            moves = np.einsum("np,kpm->mnk", self._with_one(name), W.reshape(-1, A.shape[1], DRAWS))
            return softmax(self.logits[name] + moves, axis=2)

        def likelihood(precision):
            y = self.labels["held"]
            return np.log(
                drawn("held", precision).mean(axis=0)[np.arange(len(y)), y] + 1e-12
            ).mean()

        best = max(PRECISIONS, key=likelihood)
        return {name: drawn(name, best) for name in self.logits}

    def _with_one(self, name):
        Z = self.features[name]
        return np.column_stack([Z, np.ones(len(Z))])

    def about(self, squares):
        """Concentration with the network's mean, and these squared distances (n,) as variance."""
        found = {}
        for name, variance in squares.items():
            P = np.clip(self.proba[name], 1e-9, None)
            P /= P.sum(axis=1, keepdims=True)
            strength = (1 - (P**2).sum(axis=1)) / np.maximum(variance, 1e-9) - 1
            found[name] = P * np.clip(strength, 0.05, 1e6)[:, None]
        return found

    def neighbours(self):
        """Squared gap between labels and probabilities of the nearest held-out rows, (n,)."""
        y, P = self.labels["held"], self.proba["held"]
        scale = StandardScaler().fit(self.features["held"])
        index = NearestNeighbors(n_neighbors=max(10, round(len(y) ** 0.5)))
        index.fit(scale.transform(self.features["held"]))
        gaps = np.eye(P.shape[1])[y] - P
        return {
            name: (gaps[index.kneighbors(scale.transform(Z))[1]].mean(axis=1) ** 2).sum(axis=1)
            for name, Z in self.features.items()
        }


def concentrations(network, inputs, labels) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Of each method, by split."""
    rows = inputs["train"], labels["train"]
    for name, spread in (("without a spread", None), ("`Rehearsal`", Rehearsal())):
        model = DIPClassifier(FrozenEstimator(network), spread=spread, random_state=SEED)
        model.fit(*rows, calibration=(inputs["held"], labels["held"]))
        yield name, {s: model.predict_dirichlet(X).concentration for s, X in inputs.items()}
    last = LastLayer(network, inputs, labels)
    samples = last.bootstraps(np.random.default_rng(SEED))
    yield "bootstrap of the last layer", {s: of_samples(P) for s, P in samples.items()}
    about = {s: ((P - last.proba[s]) ** 2).sum(axis=2).mean(axis=0) for s, P in samples.items()}
    yield "bootstrap, about the network", last.about(about)
    samples = last.laplace(np.random.default_rng(SEED))
    yield "Laplace of the last layer", {s: of_samples(P) for s, P in samples.items()}
    yield "neighbours in the features", last.about(last.neighbours())


def line(cell) -> dict[str, dict[str, float]]:
    """Metrics of each method on one problem."""
    splits = make_splits(cell.heads[0]["config"]["data"], SEED)
    X, y = (np.concatenate([part["train"], part["validation"]]) for part in (splits.X, splits.y))
    held, own = np.array_split(np.random.default_rng(SEED).permutation(len(y)), 2)
    network = cell.classifier.built(SEED).fit(X[own], y[own])
    inputs = {"train": X[own], "held": X[held], **{s: splits.X[s] for s in splits.truth}}
    distance = distances(X[own], {s: splits.X[s] for s in splits.truth})
    found = {}
    for name, alpha in concentrations(network, inputs, {"train": y[own], "held": y[held]}):
        arrays = {
            s: {"truth": P, "distance": distance[s], "concentration": np.asarray(alpha[s])}
            for s, P in splits.truth.items()
        }
        metrics = {n: float(of(*data)) for n, of, data in known_truth_calls(arrays, "ood/")}
        found[name] = {n: metrics[n] for n in (*METRICS, *FAR)}
        found[name]["lowest_third"] = min(metrics[n] for n in THIRDS)
    return found


def main() -> None:
    start = time.perf_counter()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    cells = plan(load_suite(SUITE), PROFILE, SUITE, datasets=PROBLEMS, classifiers=["network"])
    lines = {cell.heads[0]["dataset"]: line(cell) for cell in cells}
    values = {
        method: {
            name: (min if name == "lowest_third" else np.mean)(
                [of[method][name] for of in lines.values()]
            )
            for name in metrics
        }
        for method, metrics in next(iter(lines.values())).items()
    }
    rounded = {m: {n: round(float(v), 4) for n, v in of.items()} for m, of in values.items()}
    config = {
        "suite": SUITE,
        "profile": PROFILE,
        "seed": SEED,
        "problems": PROBLEMS,
        "bootstraps": BOOTSTRAPS,
        "draws": DRAWS,
        "precisions": PRECISIONS,
    }
    receipt.write("frozen_intervals", config, rounded, time.perf_counter() - start)


if __name__ == "__main__":
    main()
