"""Answers of an invented classifier and density, for tests of what derives from them."""

import numpy as np
from scipy.special import softmax

from dipedl_bench.studies.sweeps import Parts


def small_parts(n=48_000, k=5, seed=0, rows=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=rows)
    logits = rng.normal(0, 2, (rows, k))
    logits[np.arange(rows), y] += 4
    proba = {
        "test": softmax(logits, axis=1),
        "near": softmax(rng.normal(0, 2, (rows + 10, k)), axis=1),
        "far": softmax(rng.normal(0, 1, (rows // 2, k)), axis=1),
    }
    z = {
        "test": rng.normal(0, 1, rows),
        "near": rng.normal(-3, 3, rows + 10),
        "far": rng.normal(-60, 9, rows // 2),
    }
    return Parts(n, y, proba, z)
