"""Saved models with random damage: refused, or to the last bit the model that was saved."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier, load, save
from dipedl.density import FusedDensity, GDADensity, KNNDensity

X, Y = load_iris(return_X_y=True)
EXPECTED = (ValueError, OSError)


@cache
def saved() -> list[tuple[bytes, np.ndarray]]:
    """Bytes of files of a few models, and what these models answer."""
    densities = [GDADensity(), KNNDensity(5), FusedDensity()]
    found = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for density in densities:
            clf = DIPClassifier(LogisticRegression(max_iter=500), density).fit(X, Y)
            save(clf, Path(folder, "model"))
            found.append((Path(folder, "model").read_bytes(), clf.predict_proba(X)))
    return found


def damaged(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """The file with one kind of damage."""
    at, n = int(rng.integers(0, len(data))), int(rng.integers(1, 64))
    noise = rng.bytes(n)
    kinds = [
        lambda: data[:at],
        lambda: data[at:],
        lambda: data[:at] + noise + data[at + n :],
        lambda: data[:at] + noise + data[at:],
        lambda: data[:at] + data[at + n :],
        lambda: data[:at] + bytes([data[at] ^ (1 << int(rng.integers(0, 8)))]) + data[at + 1 :],
        lambda: data[:at] + bytes(n) + data[at + n :],
        lambda: data[:at] + other[at:],
        lambda: data + noise,
        lambda: rng.bytes(8) + data[8:],
        lambda: data[:at] + data[at : at + n] + data[at:],
    ]
    return kinds[rng.integers(0, len(kinds))]()


def tried(path: Path, data: bytes, P: np.ndarray) -> str:
    """Return the outcome of loading a damaged file."""
    path.write_bytes(data)
    try:
        model = load(path)
    except EXPECTED:
        return "refused"
    except Exception as error:
        return f"traceback: {type(error).__name__}: {str(error)[:200]}"
    return "loaded whole" if np.array_equal(model.predict_proba(X), P) else "wrong model"


def run(seed: int, tries: int) -> Counter[str]:
    """Files with damage, each of one of the models."""
    rng, counts = np.random.default_rng(seed), Counter()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(tries):
            data, P = saved()[rng.integers(0, len(saved()))]
            other = saved()[rng.integers(0, len(saved()))][0]
            broken = damaged(rng, data, other)
            counts[tried(Path(folder, "model"), broken, P)] += 1
    return counts
