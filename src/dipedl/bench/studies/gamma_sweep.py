"""The sweep over gamma, the scale of the evidence."""

from __future__ import annotations

from collections.abc import Iterable

from ...dirichlet import Dirichlet
from ...evidence import log_evidence
from ..results.parts import Parts, score_dirichlets

__all__ = ["GAMMAS", "gamma_sweep"]

#: The released code's values; the paper prints all but 0.2.
GAMMAS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def gamma_sweep(parts: Parts, gammas: Iterable[float] = GAMMAS) -> dict[float, dict[str, float]]:
    """The paper's columns for every gamma; appendix on the likelihood scaling.

    Gamma moves the point at which a prediction has lost half of its confidence, to
    ``z = log(k / (n gamma))``. It adds a constant to the log-evidence, so it changes neither the
    predicted class nor the ranking: accuracy, AUROC and AUPR are the same in every row. (The
    paper's MNIST rows differ in the fourth decimal because each drew new noise for its pixels.)
    """
    return {gamma: score_dirichlets(parts, _scaled(parts, gamma)) for gamma in gammas}


def _scaled(parts: Parts, gamma: float) -> dict[str, Dirichlet]:
    return {
        split: Dirichlet.from_evidence(log_evidence(z, parts.n, gamma), parts.proba[split])
        for split, z in parts.z.items()
    }
