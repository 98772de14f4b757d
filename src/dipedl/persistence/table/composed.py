"""Estimators of estimators, and how rows are split."""

from __future__ import annotations

from typing import Any

from ..checks import (
    Sizes,
    count,
    each,
    either,
    fields,
    flag,
    labels,
    maybe,
    need,
    number,
    one_of,
    plain,
    text,
)
from ..objects import is_a, model
from .entry import WIDE, Entry

_LABELS = {"classes_": labels()}
_WIDTH = {"n_features_in_": count("d")}
_NAMED = {"named_estimators_": is_a("sklearn.utils.Bunch")}
_STEP = either(one_of("passthrough", "drop", None), model())
_SHUFFLED = {"n_splits": count(least=1), "shuffle": flag, "random_state": plain}
_DRAWN = {
    "n_splits": count(least=1),
    "test_size": maybe(number()),
    "train_size": maybe(number()),
    "random_state": plain,
    "_default_test_size": number(),
}
_CALIBRATORS = is_a(
    *(f"sklearn.calibration.{name}" for name in ("_SigmoidCalibration", "_TemperatureScaling")),
    "sklearn.isotonic.IsotonicRegression",
)


def _columns_exist(table: Any, sizes: Sizes) -> None:
    """Columns by number lie in the table; those by name are looked up by scikit-learn."""
    for numbers in table._transformer_to_input_indices.values():
        need(all(0 <= n < sizes["d"] for n in numbers), "read columns that there are not")


def _calibrators_fit(calibrated: Any, sizes: Sizes) -> None:
    wanted = 1 if sizes["k"] == 2 or calibrated.method == "temperature" else sizes["k"]
    need(len(calibrated.calibrators) == wanted, "have not one calibrator per class")
    for calibrator in calibrated.calibrators:
        if hasattr(calibrator, "y_thresholds_"):
            steps = calibrator.y_thresholds_
            need(((steps >= 0) & (steps <= 1)).all(), "give what are no probabilities")
            need(calibrator.out_of_bounds == "clip", "give no probabilities beyond their steps")


_VOTERS = _LABELS | _NAMED | {"estimators_": each(model())}

ENTRIES: dict[str, Entry] = {
    "sklearn.pipeline.Pipeline": Entry({}, parameters={"steps": each(fields(text, _STEP))}),
    "sklearn.pipeline.FeatureUnion": Entry(
        {}, parameters={"transformer_list": each(fields(text, _STEP))}
    ),
    "sklearn.compose.ColumnTransformer": Entry(
        WIDE
        | {
            "transformers_": each(fields(text, _STEP, plain)),
            "_transformer_to_input_indices": plain,
            "_remainder": fields(text, _STEP, plain),
            "output_indices_": plain,
            "sparse_output_": flag,
            "_columns": plain,
        },
        {"_n_features": count("d"), "_name_to_fitted_passthrough": plain},
        where=(_columns_exist,),
    ),
    "sklearn.frozen.FrozenEstimator": Entry({}, parameters={"estimator": model()}),
    "sklearn.ensemble.VotingClassifier": Entry(
        _VOTERS | {"le_": is_a("sklearn.preprocessing.LabelEncoder", k="k")}, _WIDTH
    ),
    "sklearn.ensemble.StackingClassifier": Entry(
        _VOTERS
        | {
            "final_estimator_": model(k="k"),
            "stack_method_": each(one_of("predict_proba", "decision_function", "predict")),
            "_label_encoder": is_a("sklearn.preprocessing.LabelEncoder", k="k"),
        },
        _WIDTH | {"_n_feature_outs": plain},
    ),
    "sklearn.calibration.CalibratedClassifierCV": Entry(
        _LABELS
        | {
            "calibrated_classifiers_": each(
                is_a("sklearn.calibration._CalibratedClassifier"), "folds"
            )
        },
        _WIDTH,
    ),
    "sklearn.calibration._CalibratedClassifier": Entry(
        {
            "classes": labels(),
            "estimator": model(k="k"),
            "calibrators": each(_CALIBRATORS),
            "method": one_of("sigmoid", "isotonic", "temperature"),
        },
        where=(_calibrators_fit,),
        bare=True,
    ),
    "sklearn.multiclass.OneVsRestClassifier": Entry(
        _LABELS
        | {
            "estimators_": each(model(), "outputs"),
            "label_binarizer_": is_a("sklearn.preprocessing.LabelBinarizer", k="k"),
        },
        _WIDTH,
    ),
    "sklearn.multiclass.OneVsOneClassifier": Entry(
        _LABELS | {"estimators_": each(model(), "pairs", kind=tuple)},
        _WIDTH | {"pairwise_indices_": one_of(None), "n_classes_": count("k")},
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
        _SHUFFLED | {"max_train_size": maybe(count()), "test_size": maybe(count()), "gap": count()},
        bare=True,
    ),
}
