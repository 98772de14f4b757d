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
    """The paper's columns for every gamma.

    Gamma moves the point at which a prediction has lost half of its confidence, to
    ``z = log(k / (n gamma))``. It adds a constant to the log-evidence, so it changes neither the
    predicted class nor the ranking: accuracy, AUROC and AUPR are the same in every row. (The
    paper's MNIST rows differ in the fourth decimal because each drew new noise for its pixels.)

    Parameters
    ----------
    parts : Parts
        Predictions of one trained classifier and one trained density.
    gammas : iterable of float
        Each > 0.

    Returns
    -------
    dict of float to dict of str to float
        By gamma; columns as in `dipedl.bench.results.parts.score_dirichlets`.

    References
    ----------
    Carlotti, Gligić, Farahi, appendix on the likelihood scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.bench.studies.gamma_sweep import gamma_sweep
    >>> from dipedl.bench.results.parts import Parts
    >>> proba = {"test": np.eye(10), "far": np.eye(10)}
    >>> z = {"test": np.zeros(10), "far": np.full(10, np.log(10 / 48_000))}
    >>> rows = gamma_sweep(Parts(48_000, np.arange(10), proba, z))
    >>> [round(rows[gamma]["brier_ood/far"], 4) for gamma in (0.1, 1.0, 10.0)]
    [0.0074, 0.225, 0.7438]
    """
    return {gamma: score_dirichlets(parts, _scaled(parts, gamma)) for gamma in gammas}


def _scaled(parts: Parts, gamma: float) -> dict[str, Dirichlet]:
    return {
        split: Dirichlet.from_evidence(log_evidence(z, parts.n, gamma), parts.proba[split])
        for split, z in parts.z.items()
    }
