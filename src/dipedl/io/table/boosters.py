"""Classifiers of LightGBM and XGBoost."""

from __future__ import annotations

import json
from typing import Any

from .. import checks as c
from ..objects import is_a
from .entry import Entry

#: What users hand on to LightGBM, none of which an answer depends on after the fit.
_MORE = frozenset(
    {"verbose", "verbosity", "force_col_wise", "force_row_wise", "deterministic", "max_bin", "seed"}
)


def _lightgbm_fits(model: Any, sizes: c.Sizes) -> None:
    booster, k = model._Booster, sizes["k"]
    c.need(booster.num_feature() == sizes["d"], "read other columns")
    c.need(booster.num_model_per_iteration() == (1 if k == 2 else k), "have other classes")


def _xgboost_fits(model: Any, sizes: c.Sizes) -> None:
    learned = json.loads(model.get_booster().save_config())["learner"]["learner_model_param"]
    classes = int(learned["num_class"])
    c.need(max(classes, 2) == sizes["k"], "have other classes")


ENTRIES: dict[str, Entry] = {
    "lightgbm.LGBMClassifier": Entry(
        {
            "_n_features": c.count("d", 1),
            "_n_features_in": c.count("d"),
            "_classes": c.labels(),
            "_n_classes": c.count("k"),
            "_le": is_a("sklearn.preprocessing.LabelEncoder", k="k"),
            "_Booster": is_a("lightgbm.Booster"),
            "fitted_": c.flag,
            "_objective": c.text,
            "_best_iteration": c.count(),
        },
        {"_other_params _best_score _evals_result _class_map _class_weight": c.plain}
        | {"_fitted_with_feature_names": c.flag},
        where=(_lightgbm_fits,),
        sign="fitted_",
        more=_MORE,
    ),
    "xgboost.XGBClassifier": Entry(
        {"n_classes_": c.count("k", 2), "_Booster": is_a("xgboost.Booster")},
        {"evals_result_": c.plain},
        parameters={"callbacks": c.maybe(lambda value, sizes: c.need(False, "are code"))},
        where=(_xgboost_fits,),
        more=frozenset({"verbose"}),
    ),
}
