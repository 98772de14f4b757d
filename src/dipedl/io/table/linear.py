"""Linear models."""

from typing import Any

import numpy as np

from .. import checks as c
from ..objects import is_a
from .entry import CLASSES, Entry

_LINEAR = CLASSES | {
    "coef_": c.floats("outputs", "d"),
    "intercept_": c.either(c.floats("outputs"), c.real()),
}
_ITERATIONS = {
    "n_iter_": c.either(c.ints("*"), c.ints("*", "*", "*"), c.ints("*", "*"), c.maybe(c.count()))
}
_SGD = Entry(
    _LINEAR,
    {
        "t_": c.number(),
        "n_iter_": c.count(),
        "_expanded_class_weight standard_intercept_ average_intercept_": c.floats("*"),
        "standard_coef_ _standard_coef average_coef_ _average_coef": c.either(
            c.maybe(c.floats("*", "*")), c.floats("*")
        ),
        "_standard_intercept _average_intercept": c.maybe(c.floats("*")),
    },
    dropped=frozenset({"_loss_function_", "loss_function_"}),
)
_RIDGE = Entry(
    _LINEAR
    | {"_label_binarizer": is_a("sklearn.preprocessing.LabelBinarizer", k="k")}
    | {"coef_": c.either(c.floats("outputs", "d"), c.floats("d"))},
    _ITERATIONS
    | {"solver_": c.text, "alpha_ best_score_": c.number()}
    | {"cv_results_ cv_values_": c.floats("*", "*", "*")},
)


def _steps_rise(model: Any, sizes: c.Sizes) -> None:
    """Numbers between two steps are interpolated: equal ones would be divided by."""
    x, y = model.X_thresholds_, model.y_thresholds_
    c.need(len(x) and (np.diff(x) > 0).all(), "have steps that do not rise")
    c.need(x[0] == model.X_min_ and x[-1] == model.X_max_, "end elsewhere than their steps")
    least, most = (np.nan if bound is None else bound for bound in (model.y_min, model.y_max))
    c.need(not ((y < least) | (y > most)).any(), "have values out of their bounds")


ENTRIES: dict[str, Entry] = {
    "sklearn.linear_model.LogisticRegression": Entry(_LINEAR, _ITERATIONS),
    "sklearn.linear_model.LogisticRegressionCV": Entry(
        _LINEAR,
        _ITERATIONS | {"Cs_ scores_ coefs_paths_ C_ l1_ratio_ l1_ratios_": c.plain},
        parameters={"scoring": c.maybe(c.text)},
    ),
    "sklearn.linear_model.SGDClassifier": _SGD,
    "sklearn.linear_model.Perceptron": _SGD,
    "sklearn.linear_model.PassiveAggressiveClassifier": _SGD,
    "sklearn.linear_model.RidgeClassifier": _RIDGE,
    "sklearn.linear_model.RidgeClassifierCV": _RIDGE,
    "sklearn.svm.LinearSVC": Entry(_LINEAR, _ITERATIONS),
    "sklearn.isotonic.IsotonicRegression": Entry(
        {"X_min_ X_max_": c.real(), "X_thresholds_ y_thresholds_": c.floats("t")},
        {"increasing_": c.one_of(True, False)},
        where=(_steps_rise,),
        dropped=frozenset({"f_"}),
        # As scikit-learn does when it unpickles one.
        restore=lambda model: model._build_f(model.X_thresholds_, model.y_thresholds_),
    ),
    "sklearn.calibration._SigmoidCalibration": Entry({"a_ b_": c.real()}),
    "sklearn.calibration._TemperatureScaling": Entry({"beta_": c.real(0)}),
}
