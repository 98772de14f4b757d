"""Cost in AUROC of seeking neighbours among some of the rows, as the default does.

    python benchmarks/neighbour_rows.py

Simulated classes of three clusters each in 12 dimensions of 20; one class is left out. AUROC of
held-out rows against pseudo-outliers made of them and against the class left out, by nearest
neighbours alone, by those on features of unit length, and by the default around logistic
regression, with all rows and with those that the default keeps.
"""

from typing import Any

import harness
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl import DIPClassifier
from dipedl.calibration import make_pseudo_outliers
from dipedl.density import (
    DensitySelector,
    FusedDensity,
    GDADensity,
    KNNDensity,
    RelativeDensity,
)
from dipedl.metrics import ood_auroc

ROWS, KEPT, NEW, SEEDS = 60_000, 8_000, 1000, (0, 1)
CLASS_WEIGHTS = {"even": None, "skewed": [0.8, 0.1, 0.05, 0.05]}


def densities(max_rows: int | None) -> dict[str, Any]:
    """Return the default and its parts; with None, neighbours are sought among all rows."""
    neighbours = KNNDensity(max_rows=max_rows)
    unit = make_pipeline(Normalizer(), KNNDensity(max_rows=max_rows))
    candidates = [
        ("gaussians", GDADensity()),
        ("tied-gaussians", GDADensity("tied")),
        ("unit-gaussians", make_pipeline(Normalizer(), GDADensity())),
        ("relative", RelativeDensity()),
        ("neighbours", neighbours),
        ("unit-neighbours", unit),
    ]
    return {
        "neighbours": neighbours,
        "unit-neighbours": unit,
        "fused": FusedDensity(candidates),
        "default": DensitySelector(candidates),
    }


def measure_seed(seed: int, weights: list[float] | None) -> dict[str, list[float]]:
    """Return by density AUROCs against pseudo-outliers and the class left out, all rows, some."""
    X, y = make_classification(
        84_000,
        20,
        n_informative=12,
        n_classes=4,
        n_clusters_per_class=3,
        class_sep=1.5,
        weights=weights,
        random_state=seed,
    )
    unseen, X, y = X[y == 3][:NEW], X[y < 3], y[y < 3]
    new = X[ROWS : ROWS + NEW]
    made = make_pseudo_outliers(new, y[ROWS : ROWS + NEW], n=300)
    rows: dict[str, list[float]] = {}
    for max_rows in (None, KEPT):
        for name, density in densities(max_rows).items():
            clf = DIPClassifier(LogisticRegression(max_iter=300), density).fit(X[:ROWS], y[:ROWS])
            doubt = -clf.score_samples(new)
            by_kind = [ood_auroc(doubt, -clf.score_samples(Z)) for Z in made.values()]
            rows.setdefault(name, []).extend(
                [float(np.mean(by_kind)), ood_auroc(doubt, -clf.score_samples(unseen))]
            )
    return rows


def measure() -> harness.Values:
    values = {}
    for name, weights in CLASS_WEIGHTS.items():
        runs = [measure_seed(seed, weights) for seed in SEEDS]
        for density in runs[0]:
            means = np.mean([run[density] for run in runs], axis=0).round(4).tolist()
            keys = ("pseudo_all", "unseen_all", "pseudo_kept", "unseen_kept")
            values[f"{density}, {name}"] = dict(zip(keys, means, strict=True))
            print(density, name, means, flush=True)
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
