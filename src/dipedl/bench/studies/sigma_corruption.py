"""Noise on the normalised log-density: how much the method depends on the density being right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...dirichlet import Dirichlet
from ...evidence import log_evidence
from ..results.parts import Parts, score_dirichlets

__all__ = ["DRAWS", "SIGMAS", "sigma_corruption"]

SIGMAS = (0.0, 0.5, 1.0, 2.0, 5.0, np.inf)
#: Seeds of the noise.
DRAWS = (0, 1, 2, 3, 4)


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
        rows[sigma] = [_scores(parts, sigma, seed) for seed in used]
    return rows


def _scores(parts: Parts, sigma: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    dirichlets = {}
    for split, z in parts.z.items():
        noisy = _corrupted(np.asarray(z, dtype=np.float64), sigma, rng.standard_normal(len(z)))
        evidence = log_evidence(noisy, parts.n)
        dirichlets[split] = Dirichlet.from_evidence(evidence, parts.proba[split])
    return score_dirichlets(parts, dirichlets)


def _corrupted(z: np.ndarray, sigma: float, noise: np.ndarray) -> np.ndarray:
    return noise if np.isinf(sigma) else z + sigma * noise
