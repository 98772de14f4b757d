"""Parts of DIP-EDL, split by split: its ablation and its sweeps derive from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import softmax

from dipedl.dirichlet import Dirichlet
from dipedl.evidence import log_evidence
from dipedl.metrics import accuracy, aupr_out, brier_score, ood_auroc, ood_brier

from ..writing import whole_file
from .files import read_file

__all__ = ["Parts", "read_parts", "score_dirichlets", "write_parts"]


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
