"""Models of tables are saved and loaded; a graph of numbers refuses their text by name."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import categories, customers

import dipedl
from dipedl import DIPClassifier
from dipedl.density import GDADensity
from weekly import sample_of

FRAME, Y = customers()
NEW, _ = customers(seed=1)


class TakesAnything(LogisticRegression):
    """A classifier of ages that does not mind other columns."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X[["age"]], y)

    def predict_proba(self, X):
        return super().predict_proba(X[["age"]])


def preparation():
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore")
    return ColumnTransformer([("n", numbers, ["age", "income"]), ("l", levels, ["job", "region"])])


def table():
    return DIPClassifier(TakesAnything(), GDADensity(), cv=2).fit(categories(FRAME), Y), categories(
        NEW
    )


def own_steps():
    model = make_pipeline(preparation(), LogisticRegression())
    return DIPClassifier(model, GDADensity(), cv=2).fit(FRAME, Y), NEW


def frozen():
    model = make_pipeline(preparation(), LogisticRegression()).fit(FRAME, Y)
    return DIPClassifier(FrozenEstimator(model), GDADensity(), cv=2).fit(NEW, Y), NEW


def texts():
    rows = [f"{job} {region}" for job, region in zip(FRAME.job, FRAME.region, strict=True)]
    model = make_pipeline(TfidfVectorizer(), MultinomialNB())
    return DIPClassifier(model, GDADensity(), cv=2).fit(rows, Y), rows[:9]


@pytest.mark.parametrize("make", sample_of([own_steps, frozen, texts, table], 0, 2, 3))
def test_a_loaded_model_answers_and_explains_as_the_saved_one(make, tmp_path):
    pytest.importorskip("safetensors")
    clf, new = make()
    clf.save(tmp_path / "model.dipedl")
    own = [f"{__name__}.TakesAnything"] if make is table else []
    same = dipedl.load(tmp_path / "model.dipedl", trusted=own)
    np.testing.assert_array_equal(same.predict_proba(new), clf.predict_proba(new))
    np.testing.assert_array_equal(same.predict_ood(new), clf.predict_ood(new))
    assert str(same.explain(new[:1])[0]) == str(clf.explain(new[:1])[0])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (table, r"text or categories in the columns \['job', 'region'\]; encode it before"),
        (own_steps, r"text or categories in the columns \['job', 'region'\]"),
        (texts, "holds texts; encode it before the model"),
    ],
)
def test_a_graph_refuses_text_by_the_names_of_its_columns(make, words, tmp_path):
    pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    clf, _ = make()
    with pytest.raises(TypeError, match=f"(?s)X must hold numbers.*{words}"):
        clf.export_onnx(tmp_path / "model.onnx")
