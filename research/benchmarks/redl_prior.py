"""R-EDL on MNIST, answered with other priors than the 0.1 that it was trained with.

Asks where the low OOD Brier score of R-EDL in the paper comes from. Trains nothing: it reads the
Dirichlets that ``dipedl-bench run mnist --profile paper --device cpu --seeds 10 --methods r-edl``
keeps in the folder `out`.
"""

from pathlib import Path

import harness
import numpy as np

from dipedl.metrics import brier_score
from dipedl_bench.results.metrics import ood_brier

TRAINED_WITH = 0.1
PRIORS = (0.1, 0.3, 1.0)


def measure(out: str = "results/bench") -> harness.Values:
    found = [*(Path(out) / "mnist" / "paper" / "arrays" / "r-edl").glob("*/10")]
    if len(found) != 1:
        raise SystemExit(f"{len(found)} runs of r-edl in {out!r}: give --out of one run")
    folder = found[0]
    known = np.load(folder / "test.npz")
    unknown = {name: np.load(folder / f"ood__{name}.npz") for name in ("kmnist", "omniglot")}
    rows = {}
    for prior in PRIORS:
        rows[f"{prior:g}"] = {"brier_id": brier_score(known["y"], answered(known, prior))} | {
            f"brier_ood/{name}": ood_brier(answered(of, prior)) for name, of in unknown.items()
        }
    return harness.round_numbers(rows)


def answered(arrays: np.lib.npyio.NpzFile, prior: float) -> np.ndarray:
    """Class probabilities (n, k) of the same evidence and another prior."""
    alpha = arrays["concentration"] - TRAINED_WITH + prior
    return alpha / alpha.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    harness.main(__file__, measure)
