r"""Component ablation, sweeps over gamma and sigma, all as lines of tables; nothing is trained.

The full concentration is :math:`\alpha_k = 1 + n \, e^{z} \, p_k`. In the ablation a factor that is
left out is replaced by one; without the classifier every class gets the whole of the rest. With
:math:`K` classes the total evidence is therefore

.. math:: c = n e^z \text{ (with the classifier)}, \qquad c = K n e^z \text{ (without)}.

Everything is computed from :math:`\log c` in float64, so a configuration without the density has
one and the same evidence everywhere, and its AUROC is exactly 0.5. With the classifier the paper
prints 0.51 to 0.53 for MNIST. That is rounding: in float32 the sum of the concentrations of an
image differs from :math:`K + n` in its last bits, by an amount that depends on the class
probabilities, and ranking by such a sum ranks by noise that is not independent of the image.
`float32_ranking` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from dipedl.dirichlet import Dirichlet
from dipedl.evidence import log_evidence
from dipedl.metrics import accuracy, aupr_out, brier_score, ood_auroc, ood_brier
from dipedl.writing import whole_file

from ..names import run_command
from ..results import paper
from ..results.files import read_file
from ..results.paper import published
from ..results.store import Arrays, Store
from ..tables.table import Estimate, Line, estimate, latest

__all__ = [
    "CONFIGURATIONS",
    "DRAWS",
    "GAMMAS",
    "SIGMAS",
    "Parts",
    "ablation",
    "ablation_lines",
    "float32_lines",
    "gamma_lines",
    "gamma_sweep",
    "parts_file",
    "parts_of",
    "sigma_corruption",
    "sigma_lines",
    "stored_parts",
    "write_parts",
]

Scores = Mapping[str, float]
#: The released code's values; the paper prints all but 0.2.
GAMMAS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIGMAS = (0.0, 0.5, 1.0, 2.0, 5.0, np.inf)
#: Seeds of the noise.
DRAWS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Parts:
    """Predictions of classifier and density on the test split and on every OOD split.

    `n` training images are behind the evidence; `y` holds the classes of the split `known`, all
    others count as OOD; `proba` the classifier's probabilities (m, k), and `z` the normalised
    log-density (m,), ``-inf`` where the density is zero.
    """

    n: float
    y: np.ndarray
    proba: Mapping[str, np.ndarray]
    z: Mapping[str, np.ndarray]
    known: str = "test"

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the OOD splits."""
        return tuple(split for split in self.proba if split != self.known)

    def dirichlets(self, gamma: float = 1.0) -> dict[str, Dirichlet]:
        """Return the answers of DIP-EDL for every split."""
        evidence = {split: log_evidence(z, self.n, gamma) for split, z in self.z.items()}
        return {s: Dirichlet.from_evidence(e, self.proba[s]) for s, e in evidence.items()}


def write_parts(path: Path, parts: Parts) -> None:
    """Keep parts in a compressed file, in float32: log-probabilities and z, labels, n."""
    with np.errstate(divide="ignore"):
        logs = {f"log_p/{s}": np.log(p).astype(np.float32) for s, p in parts.proba.items()}
    scores = {f"z/{s}": z.astype(np.float32) for s, z in parts.z.items()}
    small = np.min_scalar_type(int(parts.y.max()))
    with whole_file(path) as file:
        np.savez_compressed(file, n=parts.n, y=parts.y.astype(small), **logs, **scores)  # type: ignore[arg-type]


def read_parts(path: Path) -> Parts:
    """Return the parts that `write_parts` kept; probabilities to about six digits."""
    found = read_file(path)
    splits = [name.removeprefix("z/") for name in found if name.startswith("z/")]
    logs = {split: found[f"log_p/{split}"].astype(np.float64) for split in splits}
    return Parts(
        n=float(found["n"]),
        y=found["y"].astype(np.int64),
        proba={split: softmax(log_p, axis=1) for split, log_p in logs.items()},
        z={split: found[f"z/{split}"].astype(np.float64) for split in splits},
    )


def score_dirichlets(parts: Parts, answers: Mapping[str, Dirichlet]) -> dict[str, float]:
    """The paper's eight columns for one Dirichlet per image, given by name of the split.

    Images are ranked by log-evidence, which orders them as vacuity does in exact arithmetic and
    does not tie where vacuity has rounded to 1. ``accuracy``, ``brier_id``, and for each OOD split
    s ``auroc/s``, ``aupr/s`` (OOD positive) and ``brier_ood/s``.
    """
    at_home = answers[parts.known]
    u_in = -at_home.log_evidence
    values = {
        "accuracy": accuracy(parts.y, at_home.mean),
        "brier_id": brier_score(parts.y, at_home.mean),
    }
    for name, metric in (("auroc", ood_auroc), ("aupr", aupr_out)):
        values |= {f"{name}/{s}": metric(u_in, -answers[s].log_evidence) for s in parts.unknown}
    return values | {f"brier_ood/{s}": ood_brier(answers[s].mean) for s in parts.unknown}


@dataclass(frozen=True)
class Configuration:
    """Which factors of the evidence are kept, and the name of the paper's task."""

    name: str
    n: bool
    density: bool
    classifier: bool

    @property
    def title(self) -> str:
        """The kept factors, such as ``"n × density"``."""
        kept = {"n": self.n, "density": self.density, "classifier": self.classifier}
        return " × ".join(factor for factor, there in kept.items() if there)


CONFIGURATIONS = tuple(Configuration(name, *kept) for kept, name in paper.CONFIGURATIONS.items())


def ablation(parts: Parts) -> dict[str, dict[str, float]]:
    """The paper's columns for each of the seven configurations, by name of the configuration.

    Where the classifier is kept also ``auroc_confidence/s``: images ranked by the largest mean
    probability, which says something about the classifier even where the evidence is constant.
    """
    return {c.name: _scores(parts, c) for c in CONFIGURATIONS}


def _scores(parts: Parts, factors: Configuration) -> dict[str, float]:
    dirichlets = without(parts, factors)
    values = score_dirichlets(parts, dirichlets)
    if not factors.classifier:
        return values
    # In exact arithmetic the mean has its largest entry where p has; far from the data p says so
    # longer than the mean can.
    values["accuracy"] = accuracy(parts.y, parts.proba[parts.known])
    doubt = {split: 1 - d.mean.max(axis=1) for split, d in dirichlets.items()}
    known = doubt.pop(parts.known)
    return values | {f"auroc_confidence/{s}": ood_auroc(known, u) for s, u in doubt.items()}


def without(parts: Parts, factors: Configuration) -> dict[str, Dirichlet]:
    """Dirichlets of every split with only the factors of a configuration."""
    return {split: _dirichlet(parts, split, factors) for split in parts.proba}


def _dirichlet(parts: Parts, split: str, factors: Configuration) -> Dirichlet:
    proba, z = np.asarray(parts.proba[split], dtype=np.float64), parts.z[split]
    k = proba.shape[1]
    evidence = log_evidence(
        z if factors.density else np.zeros(len(z)), parts.n if factors.n else 1.0
    )
    if factors.classifier:
        return Dirichlet.from_evidence(evidence, proba)
    # The same evidence for every class adds up to k times as much, spread evenly.
    return Dirichlet.from_evidence(evidence + np.log(k), np.full_like(proba, 1 / k))


def float32_ranking(parts: Parts, *, n: bool = True) -> dict[str, float]:
    """AUROC and AUPR of the configuration without density if vacuity is computed in float32.

    In exact arithmetic all images tie: AUROC 0.5, AUPR the share of OOD images. What differs from
    that is rounding noise. With `n` it is configuration 2b, without 1c.
    """
    evidence = np.float32(parts.n if n else 1.0)
    vacuity = {split: _vacuity32(proba, evidence) for split, proba in parts.proba.items()}
    u_in = vacuity[parts.known]
    auroc = {f"auroc/{s}": ood_auroc(u_in, vacuity[s]) for s in parts.unknown}
    return auroc | {f"aupr/{s}": aupr_out(u_in, vacuity[s]) for s in parts.unknown}


def _vacuity32(proba: np.ndarray, evidence: np.float32) -> np.ndarray:
    alpha = np.float32(1) + evidence * np.asarray(proba, dtype=np.float32)
    return np.asarray(np.float32(alpha.shape[1]) / alpha.sum(axis=1, dtype=np.float32))


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
            f"{run_command(store.suite, store.profile, '--methods', method)}"
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
    cells = {key: estimate([run[key] for run in runs], paper=paper.get(key)) for key in runs[0]}
    return Line(name, title, cells)


def _over_draws(runs: Sequence[Sequence[Scores]], suite: str, name: str) -> dict[str, Estimate]:
    paper = published(f"sigma_{suite}", name)
    cells = {}
    for key in runs[0][0]:
        values = np.array([[draw[key] for draw in draws] for draws in runs])
        cells[key] = Estimate(
            mean=float(values.mean()),
            sd=float(np.sqrt(values.var(axis=1).mean())),
            values=tuple(map(float, values.ravel())),
            paper=paper.get(key),
        )
    return cells
