"""What is learned from predictions on held-out rows: calibrator, normaliser, alarm threshold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ..calibration.held_out import HeldOut
from ..calibration.temperature import Temperature
from ..maths.scores import lowered
from .caution_budget import CautionBudget
from .monotone import check_increasing
from .quantiles import alarm_threshold

#: Only the score of what cannot be computed with is lower, in float32 too.
LOWEST = float(np.finfo(np.float32).min)


def fitted_calibrator(calibrator: Any, held: HeldOut, n: float) -> Any:
    """A fitted copy of the calibrator (None stands for the default); None for "passthrough"."""
    if isinstance(calibrator, str) and calibrator == "passthrough":
        return None
    if calibrator is not None and not hasattr(calibrator, "transform"):
        raise TypeError(
            "calibrator must be None, 'passthrough' or an object with fit and transform, such "
            f"as Temperature(), got {calibrator!r}"
        )
    copy = Temperature() if calibrator is None else clone(calibrator, safe=False)
    extra: dict[str, Any] = {"n": n} if has_fit_parameter(copy, "n") else {}
    return copy.fit(held.proba, held.labels, held.weights, **extra)


def fitted_normalizer(
    normalizer: Any, held: HeldOut, *, n: float, gamma: float, prior: np.ndarray | None
) -> Any:
    """A fitted copy of the normaliser; None stands for the default."""
    copy = CautionBudget() if normalizer is None else _cloned_normalizer(normalizer)
    unlabelled = held.labels is None and held.proba is not None
    if unlabelled and has_fit_parameter(copy, "y"):
        raise ValueError(
            f"y is needed: normalizer {type(copy).__name__} learns from labels, and "
            f"{held.source} have none; give calibrate(X, y), or fit with a normalizer that "
            "needs no labels, such as dipedl.evidence.QuantileEvidence()"
        )
    offered = {"proba": held.proba, "y": held.labels, "n": n, "gamma": gamma}
    if prior is not None:
        offered["prior"] = prior
    wanted = {k: v for k, v in offered.items() if has_fit_parameter(copy, k)}
    copy.fit(held.scores, held.weights, source=held.source, **wanted)
    check_increasing(copy, held.scores)
    return copy


def _cloned_normalizer(normalizer: Any) -> Any:
    if not hasattr(normalizer, "fit") or not hasattr(normalizer, "transform"):
        raise TypeError(
            "normalizer must have methods fit and transform, such as dipedl.evidence.ZScore(), "
            f"got {normalizer!r}"
        )
    return clone(normalizer, safe=False)


def threshold(held: HeldOut, rate: float, name: str = "false_alarm_rate") -> float:
    """The alarm threshold, so low that rounding flags nothing.

    With a warning, `LOWEST` where there are too few rows for another.
    """
    threshold = alarm_threshold(held.scores, rate, held.weights)
    if threshold > -np.inf or not np.isfinite(held.scores).all():
        return float(lowered(threshold))
    warnings.warn(
        f"{name}={rate:g} needs at least {int(np.ceil(1 / rate)) - 1} held-out inputs, got "
        f"{held.total:g}: predict_ood will flag nothing but rows that cannot be computed with; "
        "hold out more (sample_weight counts rows: its sum is their number) or ask for a higher "
        "rate",
        UserWarning,
        stacklevel=5,
    )
    return LOWEST
