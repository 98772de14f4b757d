"""What no p-value, set or threshold is computed from: the argument and what came."""

import numpy as np
import pytest

from dipedl.decisions import conformal_p_values, prediction_sets, reject_curve, risk_upper_bound

NAN = float("nan")
SETS = {
    "proba": [[0.5, 0.5]],
    "held_out_proba": [[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]],
    "held_out_labels": [0, 1, 1],
}

#: Function, its arguments, and a pattern with the named argument and what came.
CASES = [
    (conformal_p_values, ([0.0], []), "held_out is empty"),
    (conformal_p_values, ([NAN], [0.0]), "scores must not hold NaN, got it at row 0"),
    (conformal_p_values, ([0.0], [1.0, NAN]), "held_out must not hold NaN, got it at row 1"),
    (conformal_p_values, ([[0.0]], [0.0]), r"scores must hold one number a row.*\(1, 1\)"),
    (conformal_p_values, ([0.0], [0.0, 1.0], [1.0, -1.0]), "sample_weight must be >= 0"),
    (prediction_sets, {"coverage": 1.0}, "coverage must be strictly .*got 1.0"),
    (prediction_sets, {"method": "raps"}, r"method must be one of \['aps', 'lac'\], got 'raps'"),
    (prediction_sets, {"held_out_labels": [0, 1, 2]}, r"y must hold .*0\.\.1, got 0\.\.2"),
    (prediction_sets, {"held_out_labels": [0, 1]}, "y must hold 3 integer class indices"),
    (prediction_sets, {"held_out_labels": [0.0, 1.0, 1.0]}, "y must hold 3 integer class"),
    (prediction_sets, {"proba": [[0.2, 0.3, 0.5]]}, "the same classes, got 3 and 2 columns"),
    (prediction_sets, {"proba": [[3.0, -1.0]]}, "proba must hold finite probabilities >= 0"),
    (prediction_sets, {"held_out_proba": [[2.0, 1.0]] * 3}, "rows of held_out_proba must sum to 1"),
    (prediction_sets, {"proba": [0.5, 0.5]}, r"proba must have shape \(n, k\), got \(2,\)"),
    (reject_curve, ([], np.zeros(0, dtype=bool)), "uncertainty is empty"),
    (reject_curve, ([0.1, NAN], [True, False]), "uncertainty must not hold NaN, got it at row 1"),
    (reject_curve, ([0.1, 0.2], [1, 0]), r"wrong must be boolean of shape \(2,\), got int64"),
    (reject_curve, ([0.1, 0.2], [True]), r"wrong must be boolean of shape \(2,\), got bool of"),
    (
        lambda: reject_curve([0.1], [True], confidence=90),
        (),
        "confidence must be strictly .*got 90",
    ),
    (reject_curve([0.1], [False]).threshold, (0,), "risk must be strictly .*got 0"),
    (risk_upper_bound, (3, 2, 0.9), r"errors must lie in 0\.\.n, got 3 of 2"),
]


@pytest.mark.parametrize(("ask", "given", "message"), CASES)
def test_it_is_refused_by_name(ask, given, message):
    with pytest.raises(ValueError, match=message):
        ask(**{**SETS, **given}) if isinstance(given, dict) else ask(*given)
