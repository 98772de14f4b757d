"""Graphs at extreme numbers: no NaN, what Python calls OOD is flagged, and the same answers."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import QuantileTransformer

from dipedl import DIPClassifier
from dipedl.density import GDADensity, KNNDensity
from dipedl.io.onnx import export_onnx

X, Y = load_iris(return_X_y=True)
X, Y = X[::2], Y[::2]
FLOAT = np.finfo(float)
SPECIAL = [FLOAT.max, -FLOAT.max, FLOAT.tiny, 5e-324, -0.0, 1e154, -1e155, 3.5e38]
BATCH = 200


@cache
def exported() -> list[tuple[Any, Any]]:
    """Models, each with a session of its graph."""
    import onnxruntime

    settings = [
        (LogisticRegression(max_iter=500), GDADensity(), None),
        (GaussianNB(), KNNDensity(5), "passthrough"),
        (LogisticRegression(max_iter=500), GDADensity(), QuantileTransformer(n_quantiles=20)),
    ]
    found = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for estimator, density, features in settings:
            clf = DIPClassifier(estimator, density, features=features).fit(X, Y)
            export_onnx(clf, path := Path(folder, "m.onnx"))
            found.append((clf, onnxruntime.InferenceSession(path.read_bytes())))
    return found


def rows(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows of the data, some entries of which have any size."""
    found = X[rng.integers(0, len(X), n)].copy()
    size = rng.choice([-1.0, 1.0], found.shape) * 10.0 ** rng.uniform(-320, 308, found.shape)
    special = rng.random(found.shape) < 0.3
    size[special] = rng.choice(SPECIAL, special.sum())
    return np.where(rng.random(found.shape) < rng.choice([0.1, 0.5, 1.0]), size, found)


def outcome(found: dict[str, np.ndarray], i: int, expected: Any, flag: int) -> str:
    """Return the outcome of one row."""
    if any(np.isnan(values[i]).any() for values in found.values()):
        return "wrong: NaN" if found["ood"][i] else "wrong: NaN that is not flagged"
    if bool(found["ood"][i]) != (flag == -1):
        return "wrong flag"
    gap = np.abs(found["probabilities"][i] - expected.mean[i]).max()
    return "the same" if gap < 1e-5 else "wrong probabilities"


def run(seed: int, tries: int) -> Counter[str]:
    """One batch of rows for one of the graphs."""
    rng, counts = np.random.default_rng(seed), Counter()
    clf, session = exported()[seed % len(exported())]
    batch = rows(rng, tries)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, {"X": batch}), strict=True))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected, flags = clf.predict_dirichlet(batch), clf.predict_ood(batch)
    for i in range(tries):
        counts[outcome(found, i, expected, flags[i])] += 1
    return counts
