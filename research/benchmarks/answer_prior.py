"""Evidential networks of MNIST, answered with other priors than the one they were trained with.

A dial that costs no training: the same evidence with a larger prior doubts more. Asks at which ID
Brier score it buys which OOD Brier score.
It reads the Dirichlets that ``dipedl-bench run mnist --profile paper --methods ...`` keeps in the
folder `out`; methods without a run there are left out, and named.
"""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import harness
import numpy as np

from dipedl.metrics import brier_score
from dipedl_bench import read_rows
from dipedl_bench.results.metrics import ood_brier

METHODS = ("edl-published", "r-edl", "re-edl", "daedl", "postnet")
PRIORS = (0.1, 0.3, 0.6, 1.0, 3.0, 10.0)
Run = Mapping[str, Mapping[str, np.ndarray]]


def measure(out: str = "results/bench") -> harness.Values:
    store, found = Path(out) / "mnist" / "paper", {}
    for method in METHODS:
        folders = [*(store / "arrays" / method).glob("*/[0-9]*")]
        if not folders:
            print(f"{method} has no run in {out!r}: left out")
            continue
        if len({folder.parent for folder in folders}) > 1:
            raise SystemExit(f"{method} has several configurations in {out!r}")
        runs = [load(folder) for folder in folders]
        own = round(prior_of(runs[0]["test"]), 6)
        # A concentration of DAEDL can lie below its prior: a smaller one would be negative.
        lowest = min(of["concentration"].min() for run in runs for of in run.values())
        priors = [p for p in sorted({own, *PRIORS}) if lowest - own + p > 0]
        each = {f"{p:g}": [answered(run, p) for run in runs] for p in priors}
        rows = read_rows(store)
        found[method] = {
            "title": rows.title[rows.method == method].iloc[-1],
            "seeds": len(runs),
            "trained_with": own,
            "priors": {prior: mean(of) for prior, of in each.items()},
        }
    if not found:
        raise SystemExit(f"no run of an evidential network in {out!r}: give --out of such runs")
    return harness.round_numbers(found)


def load(folder: Path) -> Run:
    """The arrays of test and OOD rows of one run, by name of the set."""
    files = {"test": folder / "test.npz"} | {
        f"brier_ood/{file.stem.removeprefix('ood__')}": file for file in folder.glob("ood__*.npz")
    }
    return {name: dict(np.load(file)) for name, file in files.items()}


def prior_of(arrays: Mapping[str, np.ndarray]) -> float:
    """The prior of a class: what the concentration has beside its evidence, where that is least."""
    i = int(np.argmin(arrays["log_evidence"]))
    alpha = arrays["concentration"][i]
    return abs(float(alpha.sum() - np.exp(arrays["log_evidence"][i]))) / len(alpha)


def answered(run: Run, prior: float) -> dict[str, float]:
    """ID and OOD Brier scores of the same evidence and another prior."""
    own = prior_of(run["test"])
    alpha = {name: of["concentration"] - own + prior for name, of in run.items()}
    proba = {name: of / of.sum(axis=1, keepdims=True) for name, of in alpha.items()}
    known = brier_score(run["test"]["y"], proba.pop("test"))
    return {"brier_id": known} | {name: ood_brier(of) for name, of in proba.items()}


def mean(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: fmean(run[name] for run in runs) for name in runs[0]}


if __name__ == "__main__":
    harness.main(__file__, measure)
