r"""The component ablation: the evidence with n, the density or the classifier left out.

The full concentration is :math:`\alpha_k = 1 + n \, e^{z} \, p_k`. A factor that is left out is
replaced by one; without the classifier every class gets the whole of the rest. With :math:`K`
classes the total evidence is therefore

.. math:: c = n e^z \text{ (with the classifier)}, \qquad c = K n e^z \text{ (without)}.

Everything is computed from :math:`\log c` in float64, so a configuration without the density has
one and the same evidence everywhere, and its AUROC is exactly 0.5. With the classifier the paper
prints 0.51 to 0.53 for MNIST. That is rounding: in float32 the sum of the concentrations of an
image differs from :math:`K + n` in its last bits, by an amount that depends on the class
probabilities, and ranking by such a sum ranks by noise that is not independent of the image.
`float32_ranking` shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dipedl.dirichlet import Dirichlet
from dipedl.evidence import log_evidence
from dipedl.metrics import accuracy, aupr_out, ood_auroc

from ..results import paper
from ..results.parts import Parts, score_dirichlets

__all__ = ["CONFIGURATIONS", "Configuration", "ablation", "float32_ranking", "without"]


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


def _scores(parts: Parts, kept: Configuration) -> dict[str, float]:
    dirichlets = without(parts, kept)
    values = score_dirichlets(parts, dirichlets)
    if not kept.classifier:
        return values
    # In exact arithmetic the mean has its largest entry where p has; far from the data p says so
    # longer than the mean can.
    values["accuracy"] = accuracy(parts.y, parts.proba[parts.known])
    doubt = {split: 1 - d.mean.max(axis=1) for split, d in dirichlets.items()}
    known = doubt.pop(parts.known)
    return values | {f"auroc_confidence/{s}": ood_auroc(known, u) for s, u in doubt.items()}


def without(parts: Parts, kept: Configuration) -> dict[str, Dirichlet]:
    """Dirichlets of every split with only the factors of a configuration."""
    return {split: _dirichlet(parts, split, kept) for split in parts.proba}


def _dirichlet(parts: Parts, split: str, kept: Configuration) -> Dirichlet:
    proba, z = np.asarray(parts.proba[split], dtype=np.float64), parts.z[split]
    k = proba.shape[1]
    evidence = log_evidence(z if kept.density else np.zeros(len(z)), parts.n if kept.n else 1.0)
    if kept.classifier:
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
