"""Why no density of spectra tells stars: each on several views of the same rows, beside confidence.

Needs rows of ``dipedl-bench run spectra --profile scarce`` with their arrays; name their folder.
"""

import sys
import time
from pathlib import Path

import receipt
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from dipedl.density import GDADensity, KNNDensity
from dipedl.metrics import ood_auroc
from dipedl_bench import Store
from dipedl_bench.datasets.splits import make_splits

SEED, N_ASKED = 10, 2000
SETS = ("ood/stars", "ood/supernovae", "ood/real_stars")
FORMS = {
    "Gaussian a class": lambda: GDADensity(),
    "tied Gaussians": lambda: GDADensity(covariance_type="tied"),
    "neighbours": lambda: KNNDensity(),
}


def main(out: str) -> None:
    start = time.perf_counter()
    store = Store(out, "spectra", "scarce")
    row = next(r for r in store.rows() if (r["method"], r["seed"]) == ("max-softmax", SEED))
    config = row["config"]["data"]
    splits = make_splits(config, SEED, Path(out) / "features")
    network = store.arrays_of(row, "classifier")
    views = {
        "806 features": lambda split: splits.X[split],
        "network's 32 features": lambda split: network[split]["features"],
    }
    values = {"network": {"1 - largest probability": confidence(network)}}
    for view, rows in views.items():
        for form, make in FORMS.items():
            values.setdefault(view, {})[form] = ranked(make(), rows, splits.y["train"])
    for form, make in FORMS.items():
        model = make_pipeline(PCA(50, random_state=0), make())
        values.setdefault("50 components of the 806", {})[form] = ranked(
            model, views["806 features"], splits.y["train"]
        )
    said = {"data": config, "seed": SEED, "at most of a set": N_ASKED, "row": row["config_hash"]}
    receipt.write("spectra_densities", said, values, time.perf_counter() - start)


def confidence(arrays):
    def unsure(split):
        return 1 - arrays[split]["probabilities"][:N_ASKED].max(axis=1)

    return {name: round(float(ood_auroc(unsure("test"), unsure(name))), 4) for name in SETS}


def ranked(model, rows, y):
    model.fit(rows("train"), y)
    inside = -model.score_samples(rows("test"))
    return {
        name: round(float(ood_auroc(inside, -model.score_samples(rows(name)[:N_ASKED]))), 4)
        for name in SETS
    }


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "bench-results")
