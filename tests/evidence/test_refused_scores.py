"""What no normaliser is fitted to: the error and the argument that it names."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dipedl.evidence import (
    CautionBudget,
    Identity,
    QuantileEvidence,
    RankNormal,
    RobustZScore,
    ZScore,
    check_increasing,
)

NAN, INF = float("nan"), float("inf")
GOOD = {"proba": np.array([[0.9, 0.1], [0.2, 0.8]]), "y": np.array([0, 1]), "n": 10, "prior": 1.0}
NORMALIZERS = [ZScore(), RobustZScore(), RankNormal(), Identity()]


def of_two(caution=None, scores=(0.0, 1.0), **change):
    """The call of a fit to two rows, with these changes."""
    caution = CautionBudget() if caution is None else caution
    return lambda: caution.fit(list(scores), **{**GOOD, **change})


#: Call, error, and a pattern with the named argument and what came.
CASES = [
    (of_two(proba=None), ValueError, r"needs proba and y.*normalizer=QuantileEvidence\(\)"),
    (of_two(y=None), ValueError, "needs proba and y"),
    (of_two(n=None), ValueError, "needs n and prior"),
    (of_two(prior=None), ValueError, "needs n and prior"),
    (of_two(n=-1), ValueError, "n must be finite and > 0"),
    (of_two(gamma=0.0), ValueError, "gamma must be finite and > 0"),
    (of_two(prior=[1.0, 0.0]), ValueError, "prior must be finite and > 0"),
    (of_two(proba=np.ones((2, 1))), ValueError, r"proba must have shape \(2, k\), got \(2, 1\)"),
    (of_two(proba=np.ones((3, 2)) / 2), ValueError, r"proba must have shape \(2, k\)"),
    (of_two(proba=np.array([[3.0, -1.0], [0.0, 1.0]])), ValueError, "proba.*probabilities >= 0"),
    (of_two(proba=np.array([[3.0, 1.0], [0.0, 1.0]])), ValueError, "proba.*sum to 1.*a softmax"),
    (of_two(y=np.array([0, 2])), ValueError, r"y must .*0\.\.1, got 0\.\.2: labels of no known"),
    (of_two(y=np.array([-1, 1])), ValueError, r"y must .*indices 0\.\.1, got -1"),
    (of_two(y=np.array([0.0, 1.0])), ValueError, "y must .*2 integer class indices"),
    (of_two(y=np.array([0, 1, 1])), ValueError, "y must .*2 integer class indices"),
    (of_two(CautionBudget(-0.01)), ValueError, r"budget must be .*\[0, 1\]"),
    (of_two(CautionBudget(2)), ValueError, r"budget must be .*\[0, 1\].*got 2"),
    (of_two(CautionBudget(NAN)), ValueError, "budget must be"),
    (of_two(CautionBudget("2 %")), TypeError, "budget must be a number"),
    (of_two(CautionBudget(measure="ece")), ValueError, "measure must be one of.*got 'ece'"),
    (of_two(CautionBudget(slope=0)), ValueError, "slope must be finite and > 0"),
    (of_two(CautionBudget(slope=INF)), ValueError, "slope must be finite"),
    (of_two(CautionBudget(confidence=0.4)), ValueError, r"confidence must be in \[0.5, 1\)"),
    (of_two(CautionBudget(confidence=1.0)), ValueError, r"confidence must be in \[0.5, 1\)"),
    (of_two(CautionBudget(confidence="95%")), TypeError, "confidence must be a number"),
    *(
        (of_two(scores=bad), ValueError, "log_density must be finite to fit CautionBudget")
        for bad in ([0.0, NAN], [0.0, INF], [-INF, -INF])
    ),
    (lambda: QuantileEvidence(0.0).fit([0.0, 1.0]), ValueError, "quantile must be strictly"),
    (lambda: QuantileEvidence(1.0).fit([0.0, 1.0]), ValueError, "quantile must be strictly"),
    (lambda: QuantileEvidence(slope=-1).fit([0.0, 1.0]), ValueError, "slope must be finite and"),
    (lambda: QuantileEvidence().fit([1.0, 1.0]), ValueError, "must vary to fit QuantileEvidence"),
    (lambda: QuantileEvidence().fit([-INF, 1.0]), ValueError, "must be finite to fit Quant.*-inf"),
    *((lambda n=n: n.transform([0.0]), NotFittedError, "not fitted") for n in NORMALIZERS),
    *(
        (lambda n=n, bad=bad: n.fit(bad), ValueError, f"log_density {message}")
        for n in NORMALIZERS
        for bad, message in (
            ([], "must be a non-empty 1-d"),
            ([[1.0]], "must be a non-empty 1-d"),
            ([1.0, -INF], "must be finite.*got -inf from the log-densities given to fit"),
            ([1.0, NAN], "must be finite"),
        )
    ),
    *(
        (lambda n=n: n.fit([2.0] * 3), ValueError, r"must vary.*use normalizer=Identity\(\)")
        for n in NORMALIZERS[:3]
    ),
    (lambda: ZScore().fit([0.0, 1.0]) + ZScore(), NotFittedError, "not fitted"),
    (lambda: ZScore().fit([0.0, 1.0]) + RobustZScore().fit([0.0, 1.0, 3.0]), TypeError, "unsupp"),
    (
        lambda: check_increasing(ZScore().fit([0.0, 1.0]), np.array([-INF])),
        ValueError,
        "scores must hold a finite number",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
