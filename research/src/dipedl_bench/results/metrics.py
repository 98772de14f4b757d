"""Metrics that only the tables have: adaptive ECE; of OOD rows AUPR, power, Brier score, areas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dipedl.metrics import augrc, aupr_out, aurc, fpr_at_tpr


def adaptive_ece(y: np.ndarray, proba: np.ndarray, *, n_bins: int = 15) -> float:
    r"""Return the mean gap between confidence and accuracy, in bins of equal mass.

    .. math:: \sum_b \frac{n_b}{n} \, |\mathrm{acc}_b - \mathrm{conf}_b|

    of labels (n,) and class probabilities (n, k). An input with r less confident ones goes into bin
    ``floor(n_bins r / n)``: inputs of equal confidence share a bin, whatever their order.

    References
    ----------
    K. Nguyen, B. O'Connor, "Posterior calibration and exploratory analysis for natural language
    processing models", EMNLP 2015. J. Nixon, M. W. Dusenberry, L. Zhang, G. Jerfel, D. Tran,
    "Measuring calibration in deep learning", CVPR workshops 2019 (whose ACE does the same class by
    class).
    """
    confidence, hit = proba.max(axis=1), proba.argmax(axis=1) == y
    rank = np.searchsorted(np.sort(confidence), confidence, side="left")
    bins = rank * n_bins // len(confidence)
    return float(np.abs(np.bincount(bins, weights=hit - confidence)).sum() / len(confidence))


def aupr_in(uncertainty_in: np.ndarray, uncertainty_out: np.ndarray) -> float:
    """Return `dipedl.metrics.aupr_out` with in-distribution as the positive class."""
    return float(aupr_out(-uncertainty_out, -uncertainty_in))


def caught_at_5(uncertainty_in: np.ndarray, uncertainty_out: np.ndarray) -> float:
    """Return the share of OOD inputs flagged where at most 5 % of the in-distribution ones are.

    The power of the flag at a threshold that new rows of the known data have set: one minus what
    ODIN's paper calls FPR95. Inputs of equal uncertainty are flagged together.
    """
    known, unknown = (np.negative(u, dtype=np.float64) for u in (uncertainty_in, uncertainty_out))
    return 1 - float(fpr_at_tpr(unknown, known))


def _share_in(uncertainty_in: np.ndarray, uncertainty_out: np.ndarray) -> float:
    return len(uncertainty_in) / (len(uncertainty_in) + len(uncertainty_out))


_declared: Any = aupr_in
_declared.kind, _declared.baseline = "ood", _share_in
_power: Any = caught_at_5
_power.kind, _power.baseline = "ood", None


def risk_with_ood(
    known: np.ndarray, uncertainty_out: np.ndarray, *, area: Callable[..., float]
) -> float:
    """Return an area under a risk-coverage curve where every OOD input counts as an error.

    `known` (n, 2) says of each in-distribution input whether its prediction is right, and its
    uncertainty; `area` is `dipedl.metrics.aurc` or `dipedl.metrics.augrc`. P. F. Jaeger et al., "A
    call to reflect on evaluation practices for failure detection in image classification", ICLR
    2023.
    """
    right = np.concatenate([known[:, 0] == 1, np.zeros(len(uncertainty_out), dtype=bool)])
    return area(right, np.concatenate([known[:, 1], uncertainty_out]))


#: Areas with OOD inputs by the name of the metric.
WITH_OOD: dict[str, Any] = {
    "aurc": partial(risk_with_ood, area=aurc),
    "augrc": partial(risk_with_ood, area=augrc),
}
_joined: Any = risk_with_ood
_joined.kind = "ood"


def ood_brier(proba: np.ndarray) -> float:
    r"""Return the mean squared distance of OOD inputs' probabilities (n, k) from the uniform ones.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - 1/k)^2

    In [0, (k-1)/k]. A predictor that is always uniform scores a perfect 0: read it only beside the
    `dipedl.metrics.brier_score` of the same model, which is then (k-1)/k. G. W. Brier,
    "Verification of forecasts expressed in terms of probability", *Monthly Weather Review* 78,
    1950, equation 2, with the uniform distribution as the target.
    """
    return float(np.square(proba - 1 / proba.shape[1]).sum(axis=1).mean())
