"""Estimators of estimators, and how rows are split."""

from __future__ import annotations

from typing import Any

from .. import checks as c
from ..objects import is_a, model
from .entry import WIDE, Entry

_LABELS = {"classes_": c.labels()}
_WIDTH = {"n_features_in_": c.count("d")}
_VOTERS = _LABELS | {
    "named_estimators_": is_a("sklearn.utils.Bunch"),
    "estimators_": c.each(model()),
}
_ENCODER = is_a("sklearn.preprocessing.LabelEncoder", k="k")
_STEP = c.either(c.one_of("passthrough", "drop", None), model())
_STEPS, _TABLE = c.each(c.fields(c.text, _STEP)), c.fields(c.text, _STEP, c.plain)
_FOLDS = {"n_splits": c.count(least=1), "random_state": c.plain}
_SHUFFLED = _FOLDS | {"shuffle": c.flag}
_DRAWN = _FOLDS | {
    "test_size train_size": c.maybe(c.number()),
    "_default_test_size": c.number(),
}
_CALIBRATED = "sklearn.calibration._CalibratedClassifier"
_CALIBRATORS = is_a(
    *(f"sklearn.calibration.{name}" for name in ("_SigmoidCalibration", "_TemperatureScaling")),
    "sklearn.isotonic.IsotonicRegression",
)


def _columns_exist(table: Any, sizes: c.Sizes) -> None:
    """Columns by number lie in the table; those by name are looked up by scikit-learn."""
    for numbers in table._transformer_to_input_indices.values():
        c.need(all(0 <= n < sizes["d"] for n in numbers), "read columns that there are not")


def _calibrators_fit(calibrated: Any, sizes: c.Sizes) -> None:
    wanted = 1 if sizes["k"] == 2 or calibrated.method == "temperature" else sizes["k"]
    c.need(len(calibrated.calibrators) == wanted, "have not one calibrator per class")
    for calibrator in calibrated.calibrators:
        if hasattr(calibrator, "y_thresholds_"):
            steps = calibrator.y_thresholds_
            c.need(((steps >= 0) & (steps <= 1)).all(), "give what are no probabilities")
            c.need(calibrator.out_of_bounds == "clip", "give no probabilities beyond their steps")


ENTRIES: dict[str, Entry] = {
    "sklearn.pipeline.Pipeline": Entry({}, parameters={"steps": _STEPS}),
    "sklearn.pipeline.FeatureUnion": Entry({}, parameters={"transformer_list": _STEPS}),
    "sklearn.compose.ColumnTransformer": Entry(
        WIDE
        | {"transformers_": c.each(_TABLE), "_remainder": _TABLE, "sparse_output_": c.flag}
        | {"_transformer_to_input_indices output_indices_ _columns": c.plain},
        {"_n_features": c.count("d"), "_name_to_fitted_passthrough": c.plain}
        # Kept where its output is a frame, see set_output.
        | {"_transformers_feature_names_out": c.values("*")},
        where=(_columns_exist,),
    ),
    "sklearn.frozen.FrozenEstimator": Entry({}, parameters={"estimator": model()}),
    "sklearn.ensemble.VotingClassifier": Entry(_VOTERS | {"le_": _ENCODER}, _WIDTH),
    "sklearn.ensemble.StackingClassifier": Entry(
        _VOTERS
        | {"final_estimator_": model(k="k"), "_label_encoder": _ENCODER}
        | {"stack_method_": c.each(c.one_of("predict_proba", "decision_function", "predict"))},
        _WIDTH | {"_n_feature_outs": c.plain},
    ),
    "sklearn.calibration.CalibratedClassifierCV": Entry(
        _LABELS | {"calibrated_classifiers_": c.each(is_a(_CALIBRATED), "folds")}, _WIDTH
    ),
    _CALIBRATED: Entry(
        {"classes": c.labels(), "estimator": model(k="k"), "calibrators": c.each(_CALIBRATORS)}
        | {"method": c.one_of("sigmoid", "isotonic", "temperature")},
        where=(_calibrators_fit,),
        bare=True,
    ),
    "sklearn.multiclass.OneVsRestClassifier": Entry(
        _LABELS
        | {"estimators_": c.each(model(), "outputs")}
        | {"label_binarizer_": is_a("sklearn.preprocessing.LabelBinarizer", k="k")},
        _WIDTH,
    ),
    "sklearn.multiclass.OneVsOneClassifier": Entry(
        _LABELS | {"estimators_": c.each(model(), "pairs", kind=tuple)},
        _WIDTH | {"pairwise_indices_": c.one_of(None), "n_classes_": c.count("k")},
    ),
    **{
        f"sklearn.model_selection.{name}": Entry(_SHUFFLED, bare=True)
        for name in ("KFold", "StratifiedKFold", "GroupKFold", "StratifiedGroupKFold")
    },
    **{
        f"sklearn.model_selection.{name}": Entry(_DRAWN, bare=True)
        for name in ("ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit")
    },
    "sklearn.model_selection.LeaveOneOut": Entry({}, bare=True),
    "sklearn.model_selection.TimeSeriesSplit": Entry(
        _SHUFFLED | {"max_train_size test_size": c.maybe(c.count()), "gap": c.count()},
        bare=True,
    ),
}
