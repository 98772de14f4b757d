"""Linear models."""

from typing import Any

import numpy as np

from ..checks import (
    Sizes,
    count,
    either,
    floats,
    ints,
    labels,
    maybe,
    need,
    number,
    one_of,
    plain,
    real,
    text,
)
from ..objects import is_a
from .entry import WIDE, Entry

_BINARIZER = is_a("sklearn.preprocessing.LabelBinarizer", k="k")
_LINEAR = WIDE | {"classes_": labels(), "coef_": floats("outputs", "d")}
_INTERCEPT = {"intercept_": either(floats("outputs"), real())}
_ITERATIONS = {"n_iter_": either(ints("*"), ints("*", "*", "*"), ints("*", "*"), maybe(count()))}
_SGD = Entry(
    _LINEAR | _INTERCEPT,
    {"t_": number(), "n_iter_": count()}
    | {
        name: floats("*")
        for name in ("_expanded_class_weight", "standard_intercept_", "average_intercept_")
    }
    | {
        name: either(maybe(floats("*", "*")), floats("*"))
        for name in ("standard_coef_", "_standard_coef", "average_coef_", "_average_coef")
    }
    | {name: maybe(floats("*")) for name in ("_standard_intercept", "_average_intercept")},
    dropped=frozenset({"_loss_function_", "loss_function_"}),
)
_RIDGE = Entry(
    _LINEAR
    | _INTERCEPT
    | {"_label_binarizer": _BINARIZER, "coef_": either(floats("outputs", "d"), floats("d"))},
    _ITERATIONS
    | {"solver_": text, "alpha_": number(), "best_score_": number()}
    | {"cv_results_": floats("*", "*", "*"), "cv_values_": floats("*", "*", "*")},
)


def _steps_rise(model: Any, sizes: Sizes) -> None:
    """Numbers between two steps are interpolated: equal ones would be divided by."""
    x, y = model.X_thresholds_, model.y_thresholds_
    need(len(x) and (np.diff(x) > 0).all(), "have steps that do not rise")
    need(x[0] == model.X_min_ and x[-1] == model.X_max_, "end elsewhere than their steps")
    least, most = (np.nan if bound is None else bound for bound in (model.y_min, model.y_max))
    need(not ((y < least) | (y > most)).any(), "have values out of their bounds")


ENTRIES: dict[str, Entry] = {
    "sklearn.linear_model.LogisticRegression": Entry(_LINEAR | _INTERCEPT, _ITERATIONS),
    "sklearn.linear_model.LogisticRegressionCV": Entry(
        _LINEAR | _INTERCEPT,
        _ITERATIONS
        | {name: plain for name in ("Cs_", "scores_", "coefs_paths_", "C_")}
        | {name: plain for name in ("l1_ratio_", "l1_ratios_")},
        parameters={"scoring": maybe(text)},
    ),
    "sklearn.linear_model.SGDClassifier": _SGD,
    "sklearn.linear_model.Perceptron": _SGD,
    "sklearn.linear_model.PassiveAggressiveClassifier": _SGD,
    "sklearn.linear_model.RidgeClassifier": _RIDGE,
    "sklearn.linear_model.RidgeClassifierCV": _RIDGE,
    "sklearn.svm.LinearSVC": Entry(_LINEAR | _INTERCEPT, _ITERATIONS),
    "sklearn.isotonic.IsotonicRegression": Entry(
        {
            "X_min_": real(),
            "X_max_": real(),
            "X_thresholds_": floats("t"),
            "y_thresholds_": floats("t"),
        },
        {"increasing_": one_of(True, False)},
        where=(_steps_rise,),
        dropped=frozenset({"f_"}),
        # As scikit-learn does when it unpickles one.
        restore=lambda model: model._build_f(model.X_thresholds_, model.y_thresholds_),
    ),
    "sklearn.calibration._SigmoidCalibration": Entry({"a_": real(), "b_": real()}),
    "sklearn.calibration._TemperatureScaling": Entry({"beta_": real(0)}),
}
