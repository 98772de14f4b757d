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
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, softmax

from dipedl.dirichlet import Dirichlet
from dipedl.evidence import log_evidence
from dipedl.metrics import accuracy, aupr_out, brier_score, ood_auroc
from dipedl.writing import whole_file

from ..names import run_command
from ..results import paper
from ..results.files import read_file
from ..results.metrics import ood_brier
from ..results.paper import published
from ..results.store import Arrays, Store
from ..tables.table import Estimate, Line, estimate, keep_latest

__all__ = [
    "CONFIGURATIONS",
    "DRAWS",
    "GAMMAS",
    "SIGMAS",
    "SWEEPS",
    "Parts",
    "ablation",
    "brier_scores",
    "gamma_sweep",
    "load_parts",
    "parts_file",
    "parts_of",
    "sigma_corruption",
    "sweep_lines",
    "write_parts",
]

#: The released code's values; the paper prints all but 0.2.
GAMMAS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIGMAS = (0.0, 0.5, 1.0, 2.0, 5.0, np.inf)
#: Seeds of the noise.
DRAWS = (0, 1, 2, 3, 4)
Scores = dict[str, float]


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

    @property
    def both_ways(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Test rows to fit on and test rows to judge on: random halves, and the same exchanged."""
        one, other = np.array_split(np.random.default_rng(0).permutation(len(self.y)), 2)
        return (one, other), (other, one)

    @property
    def entropy(self) -> dict[str, np.ndarray]:
        """Entropy of the classifier's probabilities, by split, each (m,)."""
        return {split: entr(p).sum(axis=1) for split, p in self.proba.items()}

    def dirichlets(self, gamma: float = 1.0) -> dict[str, Dirichlet]:
        """Return the answers of DIP-EDL for every split."""
        evidence = {split: log_evidence(z, self.n, gamma) for split, z in self.z.items()}
        return {s: Dirichlet.from_evidence(e, self.proba[s]) for s, e in evidence.items()}


class Configuration(NamedTuple):
    """Factors of the evidence that are kept, and the name of the paper's task."""

    name: str
    n: bool
    density: bool
    classifier: bool

    @property
    def title(self) -> str:
        """The kept factors, such as ``"n × density"``."""
        return " × ".join(
            name for name, kept in zip(self._fields[1:], self[1:], strict=True) if kept
        )

    def dirichlets(self, parts: Parts) -> dict[str, Dirichlet]:
        """Return the answers for every split with these factors only."""
        answers = {}
        for split, proba in parts.proba.items():
            k, z = proba.shape[1], parts.z[split]
            n = parts.n if self.n else 1.0
            evidence = log_evidence(z if self.density else np.zeros(len(z)), n)
            if not self.classifier:
                # The same evidence for every class adds up to k times as much, spread evenly.
                evidence, proba = evidence + np.log(k), np.full(proba.shape, 1 / k)
            answers[split] = Dirichlet.from_evidence(evidence, np.asarray(proba, dtype=np.float64))
        return answers


CONFIGURATIONS = tuple(Configuration(name, *kept) for kept, name in paper.CONFIGURATIONS.items())


def score_dirichlets(parts: Parts, answers: Mapping[str, Dirichlet]) -> Scores:
    """Return the paper's eight columns for one Dirichlet per image, by name of the split.

    Images are ranked by log-evidence, which orders them as vacuity does in exact arithmetic and
    does not tie where vacuity has rounded to 1. ``accuracy``, ``brier_id``, and for each OOD split
    s ``auroc/s``, ``aupr/s`` (OOD positive) and ``brier_ood/s``.
    """
    briers = brier_scores(parts, answers)
    values = {"accuracy": accuracy(parts.y, answers[parts.known].mean)}
    values |= {"brier_id": briers["brier_id"]}
    values |= _ranking(parts, {split: -of.log_evidence for split, of in answers.items()})
    return values | briers


def brier_scores(parts: Parts, answers: Mapping[str, Dirichlet]) -> Scores:
    """Return ``brier_id``, and ``brier_ood/s`` for each OOD split s, of answers by split."""
    known = {"brier_id": brier_score(parts.y, answers[parts.known].mean)}
    return known | {f"brier_ood/{s}": ood_brier(answers[s].mean) for s in parts.unknown}


def _ranking(parts: Parts, u: Mapping[str, np.ndarray]) -> Scores:
    """AUROC and AUPR of uncertainties by split."""
    return {
        f"{name}/{s}": metric(u[parts.known], u[s])
        for name, metric in (("auroc", ood_auroc), ("aupr", aupr_out))
        for s in parts.unknown
    }


def ablation(parts: Parts) -> dict[str, Scores]:
    """Return the paper's columns for each of the seven configurations, by its name.

    Where the classifier is kept also ``auroc_confidence/s``: images ranked by the largest mean
    probability, which says something about the classifier even where the evidence is constant.
    """
    result = {}
    for factors in CONFIGURATIONS:
        answers = factors.dirichlets(parts)
        result[factors.name] = scores = score_dirichlets(parts, answers)
        if factors.classifier:
            # In exact arithmetic the mean has its largest entry where p has; far from the data p
            # says so longer than the mean can.
            scores["accuracy"] = accuracy(parts.y, parts.proba[parts.known])
            doubt = {split: 1 - d.mean.max(axis=1) for split, d in answers.items()}
            scores |= {
                f"auroc_confidence/{s}": ood_auroc(doubt[parts.known], doubt[s])
                for s in parts.unknown
            }
    return result


def float32_ranking(parts: Parts) -> dict[str, Scores]:
    """Return AUROC and AUPR of configurations 1c and 2b if vacuity is computed in float32.

    In exact arithmetic all images tie: AUROC 0.5, AUPR the share of OOD images. What differs from
    that is rounding noise.
    """
    ranking = {}
    for name, n in (("1c", 1.0), ("2b", parts.n)):
        vacuity = {}
        for split, proba in parts.proba.items():
            alpha = np.float32(1) + np.float32(n) * np.asarray(proba, dtype=np.float32)
            vacuity[split] = np.float32(alpha.shape[1]) / alpha.sum(axis=1, dtype=np.float32)
        ranking[name] = _ranking(parts, vacuity)
    return ranking


def gamma_sweep(parts: Parts, gammas: Iterable[float] = GAMMAS) -> dict[float, Scores]:
    """Return the paper's columns for every gamma; appendix on the likelihood scaling.

    Gamma moves the point at which a prediction has lost half of its confidence, to
    ``z = log(k / (n gamma))``. It adds a constant to the log-evidence, so it changes neither the
    predicted class nor the ranking: accuracy, AUROC and AUPR are the same in every row. (The
    paper's MNIST rows differ in the fourth decimal because each drew new noise for its pixels.)
    """
    return {gamma: score_dirichlets(parts, parts.dirichlets(gamma)) for gamma in gammas}


def sigma_corruption(
    parts: Parts, sigmas: Iterable[float] = SIGMAS, draws: Sequence[int] = DRAWS
) -> dict[float, list[Scores]]:
    """Return the paper's columns with ``z + sigma * noise`` for z, once for every draw of noise.

    The noise is standard normal and independent from image to image, in and out of distribution
    alike. ``sigma = inf`` leaves nothing but the noise: ``z = noise``. All sigmas share the
    noise of a draw, so differences between rows are not differences between draws; sigma 0 has one.

    It is a kind adversary: an estimator that is wrong is wrong in the same way for similar images,
    which independent noise is not. From the paper's appendix on corrupted densities.
    """

    def score_noisy(sigma: float, seed: int) -> Scores:
        rng, noisy = np.random.default_rng(seed), {}
        for split, z in parts.z.items():
            noise = rng.standard_normal(len(z))
            noisy[split] = noise if np.isinf(sigma) else np.asarray(z, np.float64) + sigma * noise
        return score_dirichlets(parts, replace(parts, z=noisy).dirichlets())

    return {s: [score_noisy(s, seed) for seed in (draws if s > 0 else draws[:1])] for s in sigmas}


#: What each sweep computes of one run: scores by step, of sigma for each draw.
SWEEPS: Mapping[str, Any] = {
    "ablation": ablation,
    "float32": float32_ranking,
    "gamma": gamma_sweep,
    "sigma": sigma_corruption,
}


def sweep_lines(what: str, parts: Iterable[Parts], suite: str) -> list[Line]:
    """Return one line for each step of a sweep, over seeds, beside the paper's single run.

    The means of "sigma" are over seeds and draws, and its standard deviation is that over the draws
    of one trained model, as the paper's: the root of its mean square over seeds.
    """
    runs, lines = [SWEEPS[what](one) for one in parts], []
    titles = {c.name: f"{c.name}: {c.title}" for c in CONFIGURATIONS}
    table = f"{'ablation' if what == 'float32' else what}_{suite}"
    for step in runs[0]:
        name = step if isinstance(step, str) else f"{step:g}"
        beside, of_seeds = published(table, name), [run[step] for run in runs]
        if what == "sigma":
            cells = {
                key: _over_draws(
                    [[draw[key] for draw in draws] for draws in of_seeds], beside.get(key)
                )
                for key in of_seeds[0][0]
            }
        else:
            cells = {
                key: estimate([scores[key] for scores in of_seeds], paper=beside.get(key))
                for key in of_seeds[0]
            }
        lines.append(Line(name, titles.get(name, name), cells))
    return lines


def _over_draws(values: Sequence[Sequence[float]], beside: paper.Published | None) -> Estimate:
    data = np.array(values)
    sd = float(np.sqrt(data.var(axis=1).mean()))
    return Estimate(float(data.mean()), sd, tuple(map(float, data.ravel())), paper=beside)


# ------------------------------------------------------------------------------ kept on the disk


def write_parts(path: Path, parts: Parts) -> None:
    """Keep parts in a compressed file, in float32: log-probabilities and z, labels, n."""
    with np.errstate(divide="ignore"):
        logs = {f"log_p/{s}": np.log(p).astype(np.float32) for s, p in parts.proba.items()}
    scores = {f"z/{s}": z.astype(np.float32) for s, z in parts.z.items()}
    small = np.min_scalar_type(int(parts.y.max()))
    with whole_file(path) as file:
        np.savez_compressed(file, n=parts.n, y=parts.y.astype(small), **logs, **scores)  # type: ignore[arg-type]


def parts_file(store: Store, row: Mapping[str, Any]) -> Path:
    """Return where the parts of a row are published, whose arrays are too large to keep."""
    return store.folder / f"{row['method']}-{row['config_hash']}-{row['seed']}.npz"


def load_parts(store: Store, method: str = "dip-edl") -> dict[int, Parts]:
    """Return the parts of a density-informed method, from a run or as published, by seed.

    Seeds of which nothing is there are left out; FileNotFoundError if there is no other.
    """
    rows = [row for row in keep_latest(store.rows()) if row["method"] == method]
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
    available = [
        row
        for row in rows
        if parts_file(store, row).exists()
        or store.has_arrays(method, row["config_hash"], row["seed"])
    ]
    return {row["seed"]: parts_of(store, row) for row in available or rows}


def parts_of(store: Store, row: Mapping[str, Any]) -> Parts:
    """Return the parts of one row, as published (to six digits) or out of the arrays of its run."""
    if not (file := parts_file(store, row)).exists():
        gamma = float(row["config"]["arguments"].get("gamma", 1.0))
        return parts_from_arrays(store.arrays_of(row), store.arrays_of(row, "classifier"), gamma)
    arrays = read_file(file, "restore the published file, or publish the run again")
    splits = [name.removeprefix("z/") for name in arrays if name.startswith("z/")]
    logs = {split: arrays[f"log_p/{split}"].astype(np.float64) for split in splits}
    return Parts(
        n=float(arrays["n"]),
        y=arrays["y"].astype(np.int64),
        proba={split: softmax(log_p, axis=1) for split, log_p in logs.items()},
        z={split: arrays[f"z/{split}"].astype(np.float64) for split in splits},
    )


def parts_from_arrays(method: Arrays, classifier: Arrays, gamma: float = 1.0) -> Parts:
    """Return the classifier's probabilities and normalised log-density out of stored arrays.

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
