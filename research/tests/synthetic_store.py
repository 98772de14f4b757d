"""A small store of made-up results, for the tests of everything that reads one."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from scipy.special import softmax

from dipedl_bench.results.receipt import config_hash
from dipedl_bench.results.store import Arrays, Store
from dipedl_bench.running.training import make_row

__all__ = ["arrays_of", "write_synthetic_store"]

_SIZES = {"train": 60, "validation": 30, "test": 50}


def arrays_of(store: Store, method: str, seed: int, part: str = "method") -> Arrays:
    """Return the arrays of the row of a method and a seed."""
    (row,) = (row for row in store.rows() if (row["method"], row["seed"]) == (method, seed))
    return store.arrays_of(row, part)


def write_synthetic_store(
    root: str | os.PathLike[str],
    *,
    suite: str = "mnist",
    profile: str = "smoke",
    methods: Iterable[str] = ("dip-edl", "edl", "max-softmax"),
    seeds: Iterable[int] = (10, 20),
    ood: Iterable[str] = ("kmnist", "omniglot", "omniglot_inverted"),
    n_resamples: int = 2,
    shifted: Iterable[str] = (),
    classes: int = 10,
    dataset: str | None = None,
) -> Store:
    """Rows and arrays as `dipedl_bench.run` would leave them, out of random numbers.

    "dip-edl" gets parts "classifier" and "density", methods that start with "max-" a part
    "classifier"; all others are trained methods with "concentration". OOD sets have 40 rows each,
    `shifted` ones, which are labelled, 30; each class has a row in turn. `n_resamples` bootstrap
    resamples are behind the intervals; 0 for none. `dataset` is what the rows say they are of.
    """
    store = Store(root, suite, profile)
    sizes = _SIZES | {f"ood/{name}": 40 for name in ood}
    sizes |= {f"shifted/{name}": 30 for name in shifted}
    config = {} if dataset is None else {"data": {"dataset": dataset}}
    for seed in seeds:
        for method in methods:
            whole = {**config, "estimator": method, "arguments": {}}
            _write(store, method, sizes, classes, whole, seed, n_resamples)
    return store


def _write(store, method, sizes, k, config, seed, n_resamples) -> None:
    rng = np.random.default_rng([seed, *method.encode()])
    parts: dict[str, Arrays] = {}
    if method == "dip-edl" or method.startswith("max-"):
        parts["classifier"] = {s: _classifier(rng, s, n, k) for s, n in sizes.items()}
    if method == "dip-edl":
        parts["density"] = {s: {"log_density": _typical(rng, s, n)} for s, n in sizes.items()}
    own = {
        split: _answers(rng, split, n, k, evidential="density" in parts or not parts)
        for split, n in sizes.items()
        if split != "train"
    }
    cost = {"seconds": {"train": 2.0, "score": 0.5}, "cpu_seconds": {"train": 3.0, "score": 0.6}}
    size = {"peak_memory_mb": 300.0, "forward_passes": 1, "n_parameters": 1000, "n": dict(sizes)}
    receipt = {**cost, **size}
    below = {}
    for kind, arrays in parts.items():
        name, digest = f"{kind}-of-{method}", config_hash({"name": f"{kind}-of-{method}"})
        store.save_arrays(name, digest, seed, arrays, receipt)
        below[kind] = {"name": name, "config_hash": digest, **receipt}
    digest = config_hash({"name": method})
    store.save_arrays(method, digest, seed, own, receipt)
    head = {"suite": store.suite, "profile": store.profile, "method": method}
    head |= {"title": method.upper(), "seed": seed, "config": config, "config_hash": digest}
    store.append(make_row(head, own, receipt, below, n_resamples))


def _labels(n: int, k: int) -> np.ndarray:
    return np.arange(n) % k


def _classifier(rng: np.random.Generator, split: str, n: int, k: int) -> dict[str, np.ndarray]:
    features = rng.normal(size=(n, 4))
    logits = _logits(rng, split, n, k)
    found = {"logits": logits, "probabilities": softmax(logits, axis=1), "features": features}
    return found if split.startswith("ood/") else {**found, "y": _labels(n, k)}


def _logits(rng: np.random.Generator, split: str, n: int, k: int) -> np.ndarray:
    size = 2.0 if split.startswith("ood/") else 6.0
    return np.asarray(rng.normal(size=(n, k)) + size * np.eye(k)[_labels(n, k)])


def _typical(rng: np.random.Generator, split: str, n: int) -> np.ndarray:
    return rng.normal(-30.0 if split.startswith("ood/") else 0.0, 10.0, n)


def _answers(
    rng: np.random.Generator, split: str, n: int, k: int, *, evidential: bool
) -> dict[str, np.ndarray]:
    probabilities = softmax(_logits(rng, split, n, k), axis=1)
    log_evidence = 5 + _typical(rng, split, n) / 10
    found = {"probabilities": probabilities, "uncertainty": 1 - probabilities.max(axis=1)}
    if evidential:
        concentration = 1 + np.exp(log_evidence)[:, None] * probabilities
        total = concentration.sum(axis=1, keepdims=True)
        found = {
            "probabilities": concentration / total,
            "uncertainty": -log_evidence,
            "concentration": concentration,
            "log_evidence": log_evidence,
        }
    return found if split.startswith("ood/") else {**found, "y": _labels(n, k)}
