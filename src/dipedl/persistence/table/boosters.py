"""Classifiers of LightGBM and XGBoost."""

from __future__ import annotations

import json
from typing import Any

from ..checks import (
    Sizes,
    count,
    flag,
    labels,
    maybe,
    need,
    plain,
    text,
)
from ..objects import is_a
from .entry import Entry

#: What users hand on to LightGBM, none of which an answer depends on after the fit.
_MORE = frozenset(
    {"verbose", "verbosity", "force_col_wise", "force_row_wise", "deterministic", "max_bin", "seed"}
)


def _lightgbm_fits(model: Any, sizes: Sizes) -> None:
    booster, k = model._Booster, sizes["k"]
    need(booster.num_feature() == sizes["d"], "read other columns")
    need(booster.num_model_per_iteration() == (1 if k == 2 else k), "have other classes")


def _xgboost_fits(model: Any, sizes: Sizes) -> None:
    learned = json.loads(model.get_booster().save_config())["learner"]["learner_model_param"]
    classes = int(learned["num_class"])
    need(max(classes, 2) == sizes["k"], "have other classes")


ENTRIES: dict[str, Entry] = {
    "lightgbm.LGBMClassifier": Entry(
        {
            "_n_features": count("d", 1),
            "_n_features_in": count("d"),
            "_classes": labels(),
            "_n_classes": count("k"),
            "_le": is_a("sklearn.preprocessing.LabelEncoder", k="k"),
            "_Booster": is_a("lightgbm.Booster"),
            "fitted_": flag,
            "_objective": text,
            "_best_iteration": count(),
        },
        {
            "_other_params": plain,
            "_best_score": plain,
            "_evals_result": plain,
            "_class_map": plain,
            "_class_weight": plain,
            "_fitted_with_feature_names": flag,
        },
        where=(_lightgbm_fits,),
        sign="fitted_",
        more=_MORE,
    ),
    "xgboost.XGBClassifier": Entry(
        {"n_classes_": count("k", 2), "_Booster": is_a("xgboost.Booster")},
        {"evals_result_": plain},
        parameters={"callbacks": maybe(lambda value, sizes: need(False, "are code"))},
        where=(_xgboost_fits,),
        more=frozenset({"verbose"}),
    ),
}
