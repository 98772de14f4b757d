"""Models whose steps give frames, by set_output or by the global configuration, save and load."""

import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import dipedl
from dipedl import DIPClassifier, OODDetector
from dipedl.density import GDADensity
from weekly import sample_of_rows

ROWS, Y = load_iris(return_X_y=True)
ROWS -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
FRAME = pd.DataFrame(ROWS, columns=list("abcd"))
LAST = LogisticRegression(max_iter=300)
GDA = GDADensity()
ENCODER = OneHotEncoder(sparse_output=False, handle_unknown="ignore")


def columns(*more, **parameters):
    parts = [("scaled", StandardScaler(), ["a", "b"]), *more]
    return ColumnTransformer(parts, remainder=MinMaxScaler(), **parameters)


STEPS = {
    "scaler": StandardScaler,
    "pipeline": lambda: make_pipeline(StandardScaler(), PCA(2)),
    "columns": columns,
    "columns of their own names": lambda: columns(verbose_feature_names_out=False),
    "columns in columns": lambda: columns(
        (
            "inner",
            ColumnTransformer([("s", StandardScaler(), ["c"])], remainder="passthrough"),
            ["c", "d"],
        )
    ),
    "levels": lambda: columns(("levels", ENCODER, ["d"])),
    "selector": lambda: ColumnTransformer(
        [("all", make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector("a"))]
    ),
    "union": lambda: FeatureUnion([("a", columns()), ("b", PCA(2))]),
    "selection": lambda: make_pipeline(columns(), SelectKBest(k=2)),
    "powers": lambda: make_pipeline(columns(), PolynomialFeatures(2)),
    "bins": lambda: KBinsDiscretizer(
        3, encode="onehot-dense", quantile_method="averaged_inverted_cdf"
    ),
    "nothing": lambda: FunctionTransformer(feature_names_out="one-to-one"),
}
PLACES = {
    "estimator": lambda steps: DIPClassifier(make_pipeline(steps, LAST), GDA, cv="in-sample"),
    "features": lambda steps: DIPClassifier(LAST, GDA, features=steps, cv="in-sample"),
    "frozen": lambda steps: DIPClassifier(
        FrozenEstimator(make_pipeline(steps, LAST).fit(FRAME, Y)), GDA, cv=2
    ),
    "detector": lambda steps: OODDetector(
        DIPClassifier(make_pipeline(steps, LAST), GDA, cv="in-sample")
    ),
}


def same_after_loading(model, path, rows=FRAME):
    dipedl.save(model, path)
    method = "predict_proba" if hasattr(model, "predict_proba") else "score_samples"
    answer = getattr(model, method)(rows)
    np.testing.assert_array_equal(getattr(dipedl.load(path), method)(rows), answer)
    return answer


@pytest.mark.parametrize(
    ("kind", "place", "form"),
    sample_of_rows(
        [
            *((kind, "estimator", "pandas") for kind in STEPS if "own names" not in kind),
            *(("columns", place, "polars") for place in PLACES),
        ],
        *range(0, 30, 2),
    ),
)
def test_steps_that_give_frames_come_back(kind, place, form, tmp_path):
    pytest.importorskip(form)
    model = PLACES[place](STEPS[kind]().set_output(transform=form)).fit(FRAME, Y)
    answer = same_after_loading(model, tmp_path / "model.dipedl")
    plain = PLACES[place](STEPS[kind]()).fit(FRAME, Y)
    method = "predict_proba" if hasattr(plain, "predict_proba") else "score_samples"
    np.testing.assert_allclose(answer, getattr(plain, method)(FRAME), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "form"), [("scaler", "pandas"), ("columns", "pandas"), ("columns", "polars")]
)
def test_models_of_the_global_configuration_come_back_with_it_and_without(kind, form, tmp_path):
    pytest.importorskip(form)
    with config_context(transform_output=form):
        model = DIPClassifier(make_pipeline(STEPS[kind](), LAST), GDA, cv="in-sample").fit(FRAME, Y)
        within = same_after_loading(model, tmp_path / "model.dipedl")
    np.testing.assert_allclose(same_after_loading(model, tmp_path / "model.dipedl"), within)


@pytest.mark.parametrize("rows", [ROWS, FRAME], ids=["array", "frame"])
def test_the_default_is_silent_under_the_global_configuration(rows, tmp_path):
    answers = []
    for context in (config_context(transform_output="pandas"), nullcontext()):
        with context, warnings.catch_warnings():
            warnings.filterwarnings("error", message="X (does not have valid|has) feature names")
            model = DIPClassifier(LAST).fit(rows, Y)
            answers.append(same_after_loading(model, tmp_path / "model.dipedl", rows))
    np.testing.assert_allclose(*answers)
