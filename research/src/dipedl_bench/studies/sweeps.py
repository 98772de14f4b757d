"""Sweeps over gamma and sigma, and all sweeps as lines of tables; nothing is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..results.paper import published
from ..results.parts import Parts, read_parts, score_dirichlets
from ..results.store import Arrays, Store
from ..tables.table import Cell, Line, cell_over_seeds, latest
from .ablation import CONFIGURATIONS, ablation, float32_ranking

__all__ = [
    "DRAWS",
    "GAMMAS",
    "SIGMAS",
    "ablation_lines",
    "float32_lines",
    "gamma_lines",
    "gamma_sweep",
    "parts_file",
    "parts_from_arrays",
    "parts_of",
    "sigma_corruption",
    "sigma_lines",
    "stored_parts",
]

Scores = Mapping[str, float]
#: The released code's values; the paper prints all but 0.2.
GAMMAS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIGMAS = (0.0, 0.5, 1.0, 2.0, 5.0, np.inf)
#: Seeds of the noise.
DRAWS = (0, 1, 2, 3, 4)


def gamma_sweep(parts: Parts, gammas: Iterable[float] = GAMMAS) -> dict[float, dict[str, float]]:
    """The paper's columns for every gamma; appendix on the likelihood scaling.

    Gamma moves the point at which a prediction has lost half of its confidence, to
    ``z = log(k / (n gamma))``. It adds a constant to the log-evidence, so it changes neither the
    predicted class nor the ranking: accuracy, AUROC and AUPR are the same in every row. (The
    paper's MNIST rows differ in the fourth decimal because each drew new noise for its pixels.)
    """
    return {gamma: score_dirichlets(parts, parts.dirichlets(gamma)) for gamma in gammas}


def sigma_corruption(
    parts: Parts, sigmas: Iterable[float] = SIGMAS, draws: Sequence[int] = DRAWS
) -> dict[float, list[dict[str, float]]]:
    """The paper's columns with ``z + sigma * noise`` for z, once for every draw of the noise.

    The noise is standard normal and independent from image to image, in and out of distribution
    alike. ``sigma = inf`` leaves nothing but the noise: ``z = noise``. All sigmas share the
    noise of a draw, so differences between rows are not differences between draws; sigma 0 has one.

    It is a kind adversary: an estimator that is wrong is wrong in the same way for similar images,
    which independent noise is not. From the paper's appendix on corrupted densities.
    """
    rows = {}
    for sigma in sigmas:
        if not sigma >= 0:
            raise ValueError(f"sigmas must be >= 0 (inf for noise alone), got {sigma!r}")
        used = draws if sigma > 0 else draws[:1]
        rows[sigma] = [_corrupted(parts, sigma, seed) for seed in used]
    return rows


def _corrupted(parts: Parts, sigma: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    noisy = {}
    for split, z in parts.z.items():
        noise = rng.standard_normal(len(z))
        noisy[split] = noise if np.isinf(sigma) else np.asarray(z, np.float64) + sigma * noise
    return score_dirichlets(parts, replace(parts, z=noisy).dirichlets())


def parts_file(store: Store, row: Mapping[str, Any]) -> Path:
    """Where the parts of a row are published, whose arrays are too large to keep."""
    return store.folder / f"{row['method']}-{row['config_hash']}-{row['seed']}.npz"


def stored_parts(store: Store, method: str = "dip-edl") -> dict[int, Parts]:
    """Return the parts of a density-informed method, from a run or as published, by seed.

    Seeds of which nothing is there are left out; FileNotFoundError if there is no other.
    """
    rows = [row for row in latest(store.rows()) if row["method"] == method]
    if not rows:
        raise LookupError(
            f"no row of method {method!r} in {str(store.folder)!r}; run it first: "
            f"dipedl-bench run {store.suite} --methods {method} --profile {store.profile}"
        )
    below = rows[0]["parts"]
    informed = "density" in below or "DIP" in rows[0]["config"]["estimator"]
    if not informed or "classifier" not in below:
        raise LookupError(
            f"method must be a DIP-EDL with a classifier of the suite, such as 'dip-edl', got "
            f"{method!r}"
        )
    kept = [
        row
        for row in rows
        if parts_file(store, row).exists()
        or store.has_arrays(method, row["config_hash"], row["seed"])
    ]
    return {row["seed"]: parts_of(store, row) for row in kept or rows}


def parts_of(store: Store, row: Mapping[str, Any]) -> Parts:
    """Parts of one row, published or out of the arrays of its run."""
    if parts_file(store, row).exists():
        return read_parts(parts_file(store, row))
    gamma = float(row["config"]["arguments"].get("gamma", 1.0))
    return parts_from_arrays(store.arrays_of(row), store.arrays_of(row, "classifier"), gamma)


def parts_from_arrays(method: Arrays, classifier: Arrays, gamma: float = 1.0) -> Parts:
    """Classifier's probabilities and normalised log-density out of stored arrays.

    z is the stored log-evidence less ``log(n gamma)``, whatever normaliser it went through.
    """
    if "log_evidence" not in method["test"] or "train" not in classifier:
        raise LookupError(
            "arrays must hold log_evidence of the method and training rows of its classifier, got "
            f"{sorted(method['test'])} and the splits {sorted(classifier)}; use DIP-EDL"
        )
    n = len(classifier["train"]["probabilities"])
    names = {s: s.removeprefix("ood/") for s in method if s == "test" or s.startswith("ood/")}
    shift = np.log(n) + np.log(gamma)
    return Parts(
        n=n,
        y=method["test"]["y"],
        proba={name: classifier[split]["probabilities"] for split, name in names.items()},
        z={name: method[split]["log_evidence"] - shift for split, name in names.items()},
    )


def ablation_lines(parts: Iterable[Parts], suite: str) -> list[Line]:
    """One line for each configuration, over seeds, beside the paper's single run."""
    runs = [ablation(one) for one in parts]
    return [
        _line(c.name, f"{c.name}: {c.title}", [run[c.name] for run in runs], f"ablation_{suite}")
        for c in CONFIGURATIONS
    ]


def float32_lines(parts: Sequence[Parts], suite: str) -> list[Line]:
    """Configurations 1c and 2b ranked by vacuity in float32, beside the paper's numbers."""
    return [
        _line(name, title, [float32_ranking(one, n=n) for one in parts], f"ablation_{suite}")
        for name, title, n in (("1c", "1c: classifier", False), ("2b", "2b: n × classifier", True))
    ]


def gamma_lines(parts: Iterable[Parts], suite: str) -> list[Line]:
    """One line for each gamma, over seeds, beside the paper's single run."""
    runs = [gamma_sweep(one) for one in parts]
    return [
        _line(f"{gamma:g}", f"{gamma:g}", [run[gamma] for run in runs], f"gamma_{suite}")
        for gamma in runs[0]
    ]


def sigma_lines(parts: Iterable[Parts], suite: str) -> list[Line]:
    """One line for each sigma, beside the paper's.

    The mean is over seeds and draws. The standard deviation is that over the draws of one trained
    model, as the paper's: the root of its mean square over seeds.
    """
    runs = [sigma_corruption(one) for one in parts]
    return [
        Line(f"{s:g}", f"{s:g}", _over_draws([run[s] for run in runs], suite, f"{s:g}"))
        for s in runs[0]
    ]


def _line(name: str, title: str, runs: Sequence[Scores], table: str) -> Line:
    paper = published(table, name)
    cells = {
        key: cell_over_seeds([run[key] for run in runs], paper=paper.get(key)) for key in runs[0]
    }
    return Line(name, title, cells)


def _over_draws(runs: Sequence[Sequence[Scores]], suite: str, name: str) -> dict[str, Cell]:
    paper = published(f"sigma_{suite}", name)
    cells = {}
    for key in runs[0][0]:
        values = np.array([[draw[key] for draw in draws] for draws in runs])
        cells[key] = Cell(
            mean=float(values.mean()),
            sd=float(np.sqrt(values.var(axis=1).mean())),
            values=tuple(map(float, values.ravel())),
            paper=paper.get(key),
        )
    return cells
