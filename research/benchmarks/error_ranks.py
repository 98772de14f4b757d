"""How well `epistemic` of the default and of R-EDL rank the error of either's probabilities.

    python benchmarks/error_ranks.py

Networks of the suite `second-order` on its problems of at most 3,000 rows, whose class
probabilities are known: each method trains its own, as in the suite.
"""

from functools import partial

import harness
import numpy as np

from dipedl import DIPClassifier, baselines
from dipedl_bench import load_suite
from dipedl_bench.datasets.splits import make_splits
from dipedl_bench.results.known_truth import error_correlation
from dipedl_bench.spec.plan import plan

SUITE, PROFILE, CLASSIFIER, SEED = "second-order", "cpu", "network", 1
PROBLEMS = (
    "gaussians-4-100",
    "logistic-3-300",
    "digits-mlp-850",
    "gaussians-3-1000",
    "moons-flip-1000",
    "spectra-mlp-1500",
    "rings-2000",
    "additive-5-3000",
    "rare-logistic-3000",
)


def ranks(problem: str) -> harness.Values:
    """Return rank correlations by whose `epistemic` and whose error, and mean confidences."""
    axes = {"methods": ["default"], "datasets": [problem], "classifiers": [CLASSIFIER]}
    (cell,) = plan(load_suite(SUITE), PROFILE, SUITE, **axes)
    splits = make_splits(cell.heads[0]["config"]["data"], SEED)
    X, y = (np.concatenate([of[s] for s in ("train", "validation")]) for of in (splits.X, splits.y))
    network, P = cell.parts[-1].build(SEED), splits.truth["test"]
    models = {
        "ours": DIPClassifier(network, random_state=SEED),
        "R-EDL": baselines.REDL(network.backbone, network.training, random_state=SEED),
    }
    answers = {
        name: model.fit(X, y).predict_dirichlet(splits.X["test"]) for name, model in models.items()
    }
    found = {
        f"{name} of {whose}": error_correlation(of.epistemic, other.mean, P)
        for name, of in answers.items()
        for whose, other in answers.items()
    }
    means = {name: of.mean for name, of in answers.items()} | {"truth": P}
    sure = {f"largest, {name}": float(of.max(axis=1).mean()) for name, of in means.items()}
    return harness.round_numbers(found | sure)


def measure() -> harness.Values:
    return {problem: partial(ranks, problem) for problem in PROBLEMS}


if __name__ == "__main__":
    harness.main(__file__, measure)
